//! Operands that are kept as they are stored: codes of 4 to 16 bits, of which tiles or tasks make elements.
//!
//! > `element[k, p] = (code[k, p] - zero[k / group, p]) · scale[k / group, p]`, each operation rounded to `f32`
//!
//! If zero points are integers and scales have few bits, as those that are stored as `f16`, then neither operation ever
//! rounds, and `code · scale + shift`, with `shift = -zero · scale`, is the same in one operation.
//!
//! Zero points from 0 to 255 and scales that an `f16` holds are then kept in as few bits ([`Points`]).
//!
//! So the weights of a network take an eighth to half of the memory, and of the time to come from there.

use crate::codes::Codes;
use crate::points::{Lanes, MOST_LANES, Points, PointsAt};
use vinelift_tensor::float8;

/// How the elements of an operand of `f32` are stored, before it is packed.
#[derive(Clone, Debug)]
pub struct Coding {
    /// The type of the codes.
    pub code: Code,
    /// How many consecutive `k` share zero points and scales. It divides the number of `k`.
    pub group: usize,
    /// The zero points, which are subtracted: for each group one for each point of the operand's `m` or `n`, or none.
    pub zero: Option<Vec<f32>>,
    /// The scales, which the differences are multiplied by.
    pub scale: Option<Vec<f32>>,
}

/// Numbers that are exact as `f32`. Those of 4 bits lie two to a byte, the first in the low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// `i8`.
    I8,
    /// `u8`.
    U8,
    /// `f16`.
    F16,
    /// `bf16`.
    BF16,
    /// `i4`.
    I4,
    /// `u4`.
    U4,
    /// `nf4`: numbers of a table.
    NF4,
    /// `f4e2m1`: numbers of a table.
    F4E2M1,
    /// `f8e4m3`.
    F8E4M3,
    /// `f8e5m2`.
    F8E5M2,
}

/// The numbers of the 16 codes of `nf4`.
const NF4_NUMBERS: [f32; 16] = {
    let mut numbers = [0.0; 16];
    let mut code = 0;
    while code < 16 {
        numbers[code] = float8::nf4(code as u8);
        code += 1;
    }
    numbers
};

/// The numbers of the 16 codes of `f4e2m1`.
const F4E2M1_NUMBERS: [f32; 16] = {
    let mut numbers = [0.0; 16];
    let mut code = 0;
    while code < 16 {
        numbers[code] = float8::f4e2m1(code as u8);
        code += 1;
    }
    numbers
};

impl Code {
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Code::I8 | Code::U8 | Code::I4 | Code::U4)
    }

    /// The bytes of the codes that a point has in a packed line.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Code::F16 | Code::BF16 => 2,
            _ => 1,
        }
    }

    /// How many `k` a packed line has.
    pub(crate) fn depth(self) -> usize {
        match self {
            Code::I4 | Code::U4 | Code::NF4 | Code::F4E2M1 => 2,
            _ => 1,
        }
    }

    /// How many packed lines `k` codes of a point take.
    pub(crate) fn lines(self, k: usize) -> usize {
        k.div_ceil(self.depth())
    }

    /// The bytes that `count` codes take in an operand before it is packed.
    pub(crate) fn stored_bytes(self, count: usize) -> usize {
        (count * self.bytes()).div_ceil(self.depth())
    }
}

impl Coding {
    /// Whether [`Fused`] elements have the bits of [`Rounded`] ones, whatever the codes.
    pub(crate) fn can_fuse(&self) -> bool {
        let Some(zeros) = &self.zero else {
            return true;
        };
        let is_integer = self.code.is_integer();
        // Each product of a scale has at most 8 bits more.
        let is_short = |zero: &f32| zero.fract() == 0.0 && (-255.0..=255.0).contains(zero);
        // Nothing overflows or underflows. Scales that are zero or negative make elements of -0.
        let is_coarse = |scale: &f32| {
            let bits = scale.to_bits();
            (1e-30..=1e30).contains(scale) && bits.trailing_zeros() >= 8
        };
        let mut scales = self.scale.iter().flatten();
        is_integer && zeros.iter().all(is_short) && scales.all(is_coarse)
    }
}

/// The codes of a packed operand, with the zero points and scales that make elements of them.
#[derive(Debug)]
pub(crate) struct Coded {
    pub(crate) code: Code,
    /// How many `k` share zero points and scales, and how many such groups there are.
    pub(crate) group: usize,
    pub(crate) groups: usize,
    /// Whether elements are [`Fused`], and not [`Rounded`].
    pub(crate) is_fused: bool,
    /// The shifts and scales of each group and lane of a panel, as [`Fused`] or [`Rounded`] takes them.
    pub(crate) points: Points,
    /// Whether nothing was said of either: elements are the numbers that codes stand for.
    pub(crate) is_plain: bool,
}

impl Coded {
    /// Where, in bytes, the line of number `k` of a panel of `width` points starts, before which there are `points` others,
    /// among `all` `k`.
    pub(crate) fn place(&self, points: usize, all: usize, k: usize, width: usize) -> usize {
        (points * self.code.lines(all) + self.code.lines(k) * width) * self.code.bytes()
    }

    /// Where, among shifts and scales, those of number `k` of a panel of `width` points start, before which there are
    /// `points` others.
    pub(crate) fn group_place(&self, points: usize, k: usize, width: usize) -> usize {
        points * self.groups + k / self.group * width
    }

    /// Lines from number `k` on of packed codes, which are `width` codes long. The first starts at byte `place`, its
    /// shifts and scales at place `points`. Where they go is not said yet.
    pub(crate) fn lines<T>(
        &self,
        from: *const u8,
        (place, points): (usize, usize),
        width: usize,
        k: usize,
    ) -> Decode<T> {
        Decode {
            from: from.wrapping_add(place),
            step: width * self.code.bytes(),
            code: self.code,
            is_fused: self.is_fused,
            points: self.points.at(points),
            points_step: width,
            is_plain: self.is_plain,
            left: self.group - k % self.group,
            group: self.group,
            to: std::ptr::null_mut(),
            width: 0,
            k: 0,
        }
    }
}

/// Packed codes of which elements are to be made.
pub(crate) struct Decode<T> {
    /// The first code, and how many bytes further each line starts.
    pub(crate) from: *const u8,
    pub(crate) step: usize,
    pub(crate) code: Code,
    /// [`Coded::is_fused`].
    pub(crate) is_fused: bool,
    /// For each lane, and as many more as make a vector: those of the first group. Those of the next are `points_step`
    /// further.
    pub(crate) points: PointsAt,
    pub(crate) points_step: usize,
    pub(crate) is_plain: bool,
    /// How many `k` the first group has left, and how many the others have.
    pub(crate) left: usize,
    pub(crate) group: usize,
    /// `k` lines of `width` elements.
    pub(crate) to: *mut T,
    pub(crate) width: usize,
    pub(crate) k: usize,
}

/// How elements are made of codes.
///
/// # Safety
/// of every function: as [`Codes`].
pub(crate) trait MakeElement<S: Codes> {
    /// The shift takes no register unless it `IS_HELD` by one.
    unsafe fn element<const IS_HELD: bool>(code: S::V, shift: *const f32, scale: S::V) -> S::V;
}

/// `(code - shift) · scale`, where the shift is the zero point.
pub(crate) struct Rounded;

/// `code · scale + shift`, rounded once, where the shift is `-zero · scale`.
pub(crate) struct Fused;

impl<S: Codes> MakeElement<S> for Rounded {
    #[inline(always)]
    unsafe fn element<const IS_HELD: bool>(code: S::V, shift: *const f32, scale: S::V) -> S::V {
        // SAFETY: the caller's.
        unsafe {
            let difference = match IS_HELD {
                true => S::sub(code, S::load(shift)),
                false => S::sub_from_memory(code, shift),
            };
            S::mul(difference, scale)
        }
    }
}

impl<S: Codes> MakeElement<S> for Fused {
    #[inline(always)]
    unsafe fn element<const IS_HELD: bool>(code: S::V, shift: *const f32, scale: S::V) -> S::V {
        // SAFETY: the caller's.
        unsafe {
            match IS_HELD {
                true => S::fma(code, scale, S::load(shift)),
                false => S::fma_from_memory(code, scale, shift),
            }
        }
    }
}

/// A [`Code`], as the parameter of a function: how vectors of its codes are loaded.
///
/// # Safety
/// of `load`: as [`Codes`].
pub(crate) trait Load<S: Codes> {
    /// [`Code::depth`].
    const DEPTH: usize;
    /// [`Code::bytes`].
    const BYTES: usize;
    /// The vectors of a line, one for each of its `k`.
    unsafe fn load(from: *const u8) -> [S::V; 2];
}

macro_rules! loads {
    ($($name:ident $depth:literal $bytes:literal |$from:ident| $load:expr;)+) => {$(
        pub(crate) struct $name;

        impl<S: Codes> Load<S> for $name {
            const DEPTH: usize = $depth;
            const BYTES: usize = $bytes;
            #[inline(always)]
            unsafe fn load($from: *const u8) -> [S::V; 2] {
                // SAFETY: the caller's.
                unsafe { $load }
            }
        }
    )+};
}

loads! {
    I8 1 1 |from| [S::i8(from), S::zero()];
    U8 1 1 |from| [S::u8(from), S::zero()];
    F16 1 2 |from| [S::f16(from), S::zero()];
    BF16 1 2 |from| [S::bf16(from), S::zero()];
    I4 2 1 |from| S::i4(from);
    U4 2 1 |from| S::u4(from);
    Nf4 2 1 |from| S::table(from, &NF4_NUMBERS);
    F4 2 1 |from| S::table(from, &F4E2M1_NUMBERS);
    F8E4 1 1 |from| [S::f8(from, float8::f8e4m3), S::zero()];
    F8E5 1 1 |from| [S::f8(from, float8::f8e5m2), S::zero()];
}

/// Makes elements.
///
/// # Safety
/// The machine has the instructions; all lines may be written, and read with a vector more after the
/// last; there are as many `points` as [`Decode`] says. A line of two `k` is not begun in its middle.
#[inline(always)]
pub(crate) unsafe fn decode<S: Codes>(lines: &Decode<f32>) {
    // SAFETY: the caller's.
    unsafe {
        match lines.code {
            Code::I8 => decode_by::<S, I8>(lines),
            Code::U8 => decode_by::<S, U8>(lines),
            Code::F16 => decode_by::<S, F16>(lines),
            Code::BF16 => decode_by::<S, BF16>(lines),
            Code::I4 => decode_by::<S, I4>(lines),
            Code::U4 => decode_by::<S, U4>(lines),
            Code::NF4 => decode_by::<S, Nf4>(lines),
            Code::F4E2M1 => decode_by::<S, F4>(lines),
            Code::F8E4M3 => decode_by::<S, F8E4>(lines),
            Code::F8E5M2 => decode_by::<S, F8E5>(lines),
        }
    }
}

/// # Safety
/// as [`decode`].
#[inline(always)]
unsafe fn decode_by<S: Codes, L: Load<S>>(lines: &Decode<f32>) {
    if lines.is_plain {
        for start in (0..lines.width).step_by(S::LANES) {
            // SAFETY: by the caller's contract.
            unsafe { decode_vectors::<S, L>(lines, start, 0..lines.k, |code| code) }
        }
        return;
    }
    // SAFETY: by the caller's contract.
    unsafe {
        match lines.is_fused {
            true => decode_groups::<S, L, Fused>(lines),
            false => decode_groups::<S, L, Rounded>(lines),
        }
    }
}

/// # Safety
/// as [`decode`].
#[inline(always)]
unsafe fn decode_groups<S: Codes, L: Load<S>, E: MakeElement<S>>(lines: &Decode<f32>) {
    let (mut k, mut group, mut until) = (0, 0, lines.left.min(lines.k));
    while k < lines.k {
        for start in (0..lines.width).step_by(S::LANES) {
            // SAFETY: by the caller's contract.
            unsafe {
                let points = group * lines.points_step + start;
                let [shift, scale] = lines.points.load::<S>(points);
                let mut shifts = Lanes([0.0; MOST_LANES]);
                S::store(shifts.0.as_mut_ptr(), shift);
                let element = |code| E::element::<true>(code, shifts.0.as_ptr(), scale);
                decode_vectors::<S, L>(lines, start, k..until, element);
            }
        }
        k = until;
        group += 1;
        until = lines.k.min(until + lines.group);
    }
}

/// # Safety
/// as [`decode`].
#[inline(always)]
unsafe fn decode_vectors<S: Codes, L: Load<S>>(
    lines: &Decode<f32>,
    start: usize,
    mut range: std::ops::Range<usize>,
    element: impl Fn(S::V) -> S::V,
) {
    let lanes = (lines.width - start).min(S::LANES);
    let first = range.start / L::DEPTH * lines.step + start * L::BYTES;
    let mut from = lines.from.wrapping_add(first);
    let mut to = lines.to.wrapping_add(range.start * lines.width + start);
    while !range.is_empty() {
        // SAFETY: by the caller's contract.
        unsafe {
            S::fetch(from.wrapping_add(AHEAD).cast());
            let codes = L::load(from);
            for &code in codes.iter().take(L::DEPTH.min(range.len())) {
                let v = element(code);
                match lanes == S::LANES {
                    true => S::store(to, v),
                    false => S::store_first(to, v, lanes),
                }
                to = to.wrapping_add(lines.width);
            }
        }
        from = from.wrapping_add(lines.step);
        range.start += L::DEPTH.min(range.len());
    }
}

/// How many bytes ahead codes are fetched.
const AHEAD: usize = 4 << 10;
