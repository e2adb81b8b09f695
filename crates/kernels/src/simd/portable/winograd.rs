//! Arrays in place of the vectors of Winograd's transforms.

use super::Halves;
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
    unsafe { winograd_tile::image::<Halves>(tile) }
}

/// # Safety
/// as [`winograd_tile::results`].
unsafe fn results(tile: &ResultTile) {
    // SAFETY: the caller's.
    unsafe { winograd_tile::results::<Halves>(tile) }
}

impl Vectors for Halves {
    type Halves = [i16; 16];

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
