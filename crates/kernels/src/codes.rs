//! Codes as instruction sets load them.

use crate::lanes::Simd;

/// Vectors of coded elements. Those of 4 bits come in twos: of the low halves of bytes, and of the high halves.
///
/// # Safety
/// of every function: the machine has the instructions, and of `from` as many codes, or bytes of codes, may be read as
/// there are lanes.
pub(crate) trait Codes: Simd<T = f32> {
    /// Has the first cache fetch what is at `from`.
    #[inline(always)]
    unsafe fn fetch_codes(_from: *const u8) {}
    unsafe fn i8(from: *const u8) -> Self::V;
    unsafe fn u8(from: *const u8) -> Self::V;
    unsafe fn f16(from: *const u8) -> Self::V;
    unsafe fn bf16(from: *const u8) -> Self::V;
    unsafe fn i4(from: *const u8) -> [Self::V; 2];
    unsafe fn u4(from: *const u8) -> [Self::V; 2];
    /// Numbers of 8 bits, one lane after another.
    #[inline(always)]
    unsafe fn f8(from: *const u8, number: fn(u8) -> f32) -> Self::V {
        let mut lanes = [0.0; 16];
        for (lane, to) in lanes.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: the caller's.
            *to = number(unsafe { *from.add(lane) });
        }
        // SAFETY: a vector has at most 16 lanes.
        unsafe { Self::load(lanes.as_ptr()) }
    }
    /// The numbers of a table.
    unsafe fn table(from: *const u8, table: &[f32; 16]) -> [Self::V; 2];
    /// As [`load`](Simd::load), each time anew: no register holds the vector from one loop to the next.
    #[inline(always)]
    unsafe fn load_anew(from: *const f32) -> Self::V {
        // SAFETY: the caller's.
        unsafe { Self::load(from) }
    }
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`, where `b` takes no register.
    #[inline(always)]
    unsafe fn sub_from_memory(a: Self::V, b: *const f32) -> Self::V {
        // SAFETY: the caller's.
        unsafe { Self::sub(a, Self::load(b)) }
    }
    /// `a · b + c`, where `c` takes no register.
    #[inline(always)]
    unsafe fn fma_from_memory(a: Self::V, b: Self::V, c: *const f32) -> Self::V {
        // SAFETY: the caller's.
        unsafe { Self::fma(a, b, Self::load(c)) }
    }
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
}
