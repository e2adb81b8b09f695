//! One register of lanes, whatever the machine calls it, and which instruction set there is.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use std::fmt;

use crate::tile::Engine;

/// The instruction set a kernel uses. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Arrays and `mul_add`, for any machine; the compiler makes vectors of them where the target
    /// has a fused multiply-add.
    Portable,
    /// 256-bit vectors of x86-64: AVX2, F16C, FMA and BMI.
    Avx2,
    /// 512-bit vectors of x86-64: AVX-512 F, BW, DQ and VL, and what `Avx2` needs.
    Avx512,
}

impl Isa {
    /// The best instruction set of this machine.
    pub fn best() -> Isa {
        [Isa::Avx512, Isa::Avx2]
            .into_iter()
            .find(|isa| isa.available())
            .unwrap_or(Isa::Portable)
    }

    /// Whether this machine has it.
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("f16c")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        })
    }
}

/// The type of sums, and of what the micro-kernels read: elements of the operands, or words that hold
/// those of several `k` where these are bytes.
pub(crate) trait Number: Copy + 'static {
    /// An element of the operands.
    type Item: Copy;

    const ZERO: Self;

    /// The engine of an instruction set that this machine has. `signed_rows` says which operand has signs
    /// where only one has.
    fn engine(isa: Isa, signed_rows: bool) -> &'static Engine<Self>;
}

impl Number for f32 {
    type Item = f32;

    const ZERO: f32 = 0.0;

    fn engine(isa: Isa, _: bool) -> &'static Engine<f32> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F32,
            _ => &portable::F32,
        }
    }
}

impl Number for f64 {
    type Item = f64;

    const ZERO: f64 = 0.0;

    fn engine(isa: Isa, _: bool) -> &'static Engine<f64> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F64,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F64,
            _ => &portable::F64,
        }
    }
}

/// Sums of products of bytes.
impl Number for i32 {
    type Item = u8;

    const ZERO: i32 = 0;

    fn engine(isa: Isa, signed_rows: bool) -> &'static Engine<i32> {
        match (isa, signed_rows) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, true) if avx512::has_byte_products() => &avx512::I8U8,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, false) if avx512::has_byte_products() => &avx512::U8I8,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512 | Isa::Avx2, _) => &avx2::BYTES,
            _ => &portable::BYTES,
        }
    }
}

/// A register of `LANES` elements, at most 16. Pointers need no alignment.
///
/// # Safety
/// of every function: the machine has the instructions, and the lanes that are read or written lie
/// in memory that may be read or written: all of them for `load` and `store`, the first `lanes` of
/// them for `load_first` and `store_first`.
pub(crate) trait Simd {
    type T: Number;
    type V: Copy;
    const LANES: usize;

    unsafe fn zero() -> Self::V;
    unsafe fn splat(from: *const Self::T) -> Self::V;
    unsafe fn load(from: *const Self::T) -> Self::V;
    unsafe fn store(to: *mut Self::T, v: Self::V);
    /// Has the second cache fetch what is at `from`, which need not be an element.
    #[inline(always)]
    unsafe fn fetch(_from: *const Self::T) {}
    /// The lanes after the first `lanes` are zero.
    unsafe fn load_first(from: *const Self::T, lanes: usize) -> Self::V;
    unsafe fn store_first(to: *mut Self::T, v: Self::V, lanes: usize);
    /// Moves the lanes whose bit is set in `valid` to the front.
    unsafe fn compress(v: Self::V, valid: u16) -> Self::V;
    /// Moves the front lanes to those whose bit is set in `valid`.
    unsafe fn expand(v: Self::V, valid: u16) -> Self::V;
    /// `a · b + c`, rounded once; of words, the sum of the products of what they hold, `a` being of the
    /// row side.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
}
