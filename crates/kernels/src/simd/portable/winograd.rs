//! Arrays in place of the vectors of Winograd's transforms.

use crate::winograd_tile::{self, ImageTile, ResultTile, Transforms, Vectors};
use std::array::from_fn;

pub(in crate::simd) static TRANSFORMS: Transforms = Transforms {
    name: "portable",
    image,
    results,
};

/// # Safety
/// as [`winograd_tile::image`].
unsafe fn image(tile: &ImageTile) {
    // SAFETY: the caller's.
    unsafe { winograd_tile::image::<Lanes>(tile) }
}

/// # Safety
/// as [`winograd_tile::results`].
unsafe fn results(tile: &ResultTile) {
    // SAFETY: the caller's.
    unsafe { winograd_tile::results::<Lanes>(tile) }
}

struct Lanes;

impl Vectors for Lanes {
    type Halves = [i16; 16];
    type Words = [i32; 8];
    const WORDS: usize = 8;

    #[inline(always)]
    unsafe fn widen<const SIGNED: bool>(from: *const u8) -> [i16; 16] {
        // SAFETY: the caller lets read 16 bytes.
        let bytes = unsafe { from.cast::<[u8; 16]>().read_unaligned() };
        bytes.map(|byte| match SIGNED {
            true => i16::from(byte.cast_signed()),
            false => i16::from(byte),
        })
    }
    #[inline(always)]
    unsafe fn store_halves(to: *mut i16, v: [i16; 16]) {
        // SAFETY: the caller lets write all lanes.
        unsafe { to.cast::<[i16; 16]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn add_halves(a: [i16; 16], b: [i16; 16]) -> [i16; 16] {
        from_fn(|lane| a[lane].wrapping_add(b[lane]))
    }
    #[inline(always)]
    unsafe fn sub_halves(a: [i16; 16], b: [i16; 16]) -> [i16; 16] {
        from_fn(|lane| a[lane].wrapping_sub(b[lane]))
    }
    #[inline(always)]
    unsafe fn load(from: *const i32) -> [i32; 8] {
        // SAFETY: the caller lets read all lanes.
        unsafe { from.cast::<[i32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut i32, v: [i32; 8]) {
        // SAFETY: as `store_halves`.
        unsafe { to.cast::<[i32; 8]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn store_first(to: *mut i32, v: [i32; 8], lanes: usize) {
        for (lane, &value) in v.iter().enumerate().take(lanes) {
            // SAFETY: the caller lets write the first `lanes`.
            unsafe { to.add(lane).write_unaligned(value) }
        }
    }
    #[inline(always)]
    unsafe fn add(a: [i32; 8], b: [i32; 8]) -> [i32; 8] {
        from_fn(|lane| a[lane].wrapping_add(b[lane]))
    }
    #[inline(always)]
    unsafe fn sub(a: [i32; 8], b: [i32; 8]) -> [i32; 8] {
        from_fn(|lane| a[lane].wrapping_sub(b[lane]))
    }
    #[inline(always)]
    unsafe fn quarter(v: [i32; 8]) -> [i32; 8] {
        v.map(|value| value >> 2)
    }
}
