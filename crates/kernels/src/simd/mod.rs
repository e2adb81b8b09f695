//! One register of lanes, whatever the machine calls it, and which instruction set there is.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use std::fmt;

use crate::tile::Engine;

/// The instruction set a kernel uses. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Arrays and `mul_add`, for any machine; the compiler makes vectors of them where the target
    /// has a fused multiply-add.
    Portable,
    /// 256-bit vectors of x86-64: AVX2, FMA and BMI.
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

/// An element type, and its engine for each instruction set.
pub(crate) trait Float: Copy + 'static {
    const ZERO: Self;

    /// The engine of an instruction set that this machine has.
    fn engine(isa: Isa) -> &'static Engine<Self>;
}

impl Float for f32 {
    const ZERO: f32 = 0.0;

    fn engine(isa: Isa) -> &'static Engine<f32> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F32,
            _ => &portable::F32,
        }
    }
}

impl Float for f64 {
    const ZERO: f64 = 0.0;

    fn engine(isa: Isa) -> &'static Engine<f64> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F64,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F64,
            _ => &portable::F64,
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
    type T: Float;
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
    /// `a · b + c`, rounded once.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
}
