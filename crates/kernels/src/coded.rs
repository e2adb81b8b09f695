//! Operands that are kept as they are stored: numbers of 8 or 16 bits, of which tasks make elements.
//!
//! > `element[k, p] = (number[k, p] - zero[p]) · scale[p]`, each operation rounded to `f32`
//!
//! So the weights of a network take a quarter or half of the memory, and of the time to come from there.

use crate::lanes::Simd;

/// How the elements of an operand of `f32` are stored, before it is packed.
#[derive(Clone, Debug)]
pub struct Coding {
    /// The type of the codes.
    pub code: Code,
    /// The zero points, which are subtracted: one for each point of the operand's `m` or `n`, or none.
    pub zero: Option<Vec<f32>>,
    /// The scales, which the differences are multiplied by.
    pub scale: Option<Vec<f32>>,
}

/// Numbers that are exact as `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// `i8`.
    I8,
    /// `u8`.
    U8,
    /// `f16`.
    F16,
}

impl Code {
    /// The size of a number in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Code::I8 | Code::U8 => 1,
            Code::F16 => 2,
        }
    }
}

/// The codes of a packed operand, with the zero points and scales that make elements of them.
#[derive(Debug)]
pub(crate) struct Coded {
    pub(crate) code: Code,
    /// For each point, and a vector more: 0 and 1 if nothing was said.
    pub(crate) zero: Box<[f32]>,
    pub(crate) scale: Box<[f32]>,
    /// Whether tiles can take the numbers: see [`crate::tile::coded_tile`].
    pub(crate) in_tiles: bool,
}

impl Coded {
    /// Lines of packed numbers that start at number `place`, `step` numbers apart, of the points from `point`
    /// on. Where they go is not said yet.
    pub(crate) fn lines<T>(
        &self,
        from: *const u8,
        place: usize,
        step: usize,
        point: usize,
    ) -> Decode<T> {
        let size = self.code.bytes();
        Decode {
            from: from.wrapping_add(place * size),
            step: step * size,
            code: self.code,
            zero: self.zero[point..].as_ptr(),
            scale: self.scale[point..].as_ptr(),
            to: std::ptr::null_mut(),
            width: 0,
            k: 0,
        }
    }
}

/// Packed numbers of which elements are to be made.
pub(crate) struct Decode<T> {
    /// The first number, and how many bytes further each line starts.
    pub(crate) from: *const u8,
    pub(crate) step: usize,
    pub(crate) code: Code,
    /// For each lane, and as many more as make a vector.
    pub(crate) zero: *const f32,
    pub(crate) scale: *const f32,
    /// `k` lines of `width` elements.
    pub(crate) to: *mut T,
    pub(crate) width: usize,
    pub(crate) k: usize,
}

/// Vectors of coded elements.
///
/// # Safety
/// of every function: the machine has the instructions, and of `from` as many numbers may be read as
/// there are lanes.
pub(crate) trait Codes: Simd<T = f32> {
    unsafe fn i8(from: *const u8) -> Self::V;
    unsafe fn u8(from: *const u8) -> Self::V;
    unsafe fn f16(from: *const u8) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
}

/// Makes elements.
///
/// # Safety
/// The machine has the instructions; all lines may be written, and read with a vector more after the
/// last; `zero` and `scale` are as long as [`Decode`] says.
#[inline(always)]
pub(crate) unsafe fn decode<S: Codes>(lines: &Decode<f32>) {
    // SAFETY: the caller's.
    unsafe {
        match lines.code {
            Code::I8 => decode_by::<S>(lines, |from| S::i8(from)),
            Code::U8 => decode_by::<S>(lines, |from| S::u8(from)),
            Code::F16 => decode_by::<S>(lines, |from| S::f16(from)),
        }
    }
}

/// # Safety
/// as [`decode`].
#[inline(always)]
unsafe fn decode_by<S: Codes>(lines: &Decode<f32>, load: impl Fn(*const u8) -> S::V) {
    for start in (0..lines.width).step_by(S::LANES) {
        // SAFETY: by the caller's contract.
        unsafe {
            let scale = S::load(lines.scale.add(start));
            let zero = S::load(lines.zero.add(start));
            decode_vectors::<S>(lines, start, |from| S::mul(S::sub(load(from), zero), scale));
        }
    }
}

/// # Safety
/// as [`decode`].
#[inline(always)]
unsafe fn decode_vectors<S: Codes>(
    lines: &Decode<f32>,
    start: usize,
    element: impl Fn(*const u8) -> S::V,
) {
    let lanes = (lines.width - start).min(S::LANES);
    let mut from = lines.from.wrapping_add(start * lines.code.bytes());
    let mut to = lines.to.wrapping_add(start);
    for _ in 0..lines.k {
        // SAFETY: by the caller's contract.
        unsafe {
            S::fetch(from.wrapping_add(AHEAD).cast());
            let v = element(from);
            match lanes == S::LANES {
                true => S::store(to, v),
                false => S::store_first(to, v, lanes),
            }
        }
        from = from.wrapping_add(lines.step);
        to = to.wrapping_add(lines.width);
    }
}

/// How many bytes ahead numbers are fetched.
const AHEAD: usize = 4 << 10;
