//! Arrays of lanes for any machine. With a fused multiply-add in the target (aarch64 always has one)
//! the compiler makes vectors of them; elsewhere `mul_add` is a call of the C library, slow and
//! exact. The tiles suit 32 registers of 128 bits.

pub(super) mod winograd;

use crate::coded::{self, Decode};
use crate::codes::Codes;
#[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
use crate::engine::define_coded_tiles;
use crate::engine::{self, Engine, define_across_tiles, define_byte_engine, define_engine};
use crate::grouped_tile::floats::define_float_tiles;
use crate::lanes::{Number, Simd, Vector};
use crate::narrow;
use crate::pack::words::{self, WordLayouts};
use crate::pack::{self, Block, Packing};
use crate::tile::{self, Square, Tile};
use half::{bf16, f16};

macro_rules! portable {
    ($name:ident, $t:ty, $lanes:literal, $row_bytes:expr, $fma:expr) => {
        /// An array of lanes.
        pub(super) struct $name;

        impl Simd for $name {
            type T = $t;
            type V = [$t; $lanes];
            const LANES: usize = $lanes;
            const ROW_BYTES: usize = $row_bytes;

            #[inline(always)]
            unsafe fn zero() -> Self::V {
                [<$t>::ZERO; $lanes]
            }
            #[inline(always)]
            unsafe fn splat(from: *const $t) -> Self::V {
                // SAFETY: the caller may read `from`.
                [unsafe { from.read_unaligned() }; $lanes]
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self::V {
                // SAFETY: the caller may read all lanes.
                unsafe { from.cast::<Self::V>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn store(to: *mut $t, v: Self::V) {
                // SAFETY: the caller may write all lanes.
                unsafe { to.cast::<Self::V>().write_unaligned(v) }
            }
            #[inline(always)]
            unsafe fn load_first(from: *const $t, lanes: usize) -> Self::V {
                std::array::from_fn(|lane| match lane < lanes {
                    // SAFETY: the caller may read the first `lanes`.
                    true => unsafe { from.add(lane).read_unaligned() },
                    false => <$t>::ZERO,
                })
            }
            #[inline(always)]
            unsafe fn store_first(to: *mut $t, v: Self::V, lanes: usize) {
                for (lane, &v) in v.iter().enumerate().take(lanes) {
                    // SAFETY: the caller may write the first `lanes`.
                    unsafe { to.add(lane).write_unaligned(v) }
                }
            }
            #[inline(always)]
            unsafe fn compress(v: Self::V, valid: u16) -> Self::V {
                let mut front = [<$t>::ZERO; $lanes];
                let lanes = (0..$lanes).filter(|lane| valid >> lane & 1 == 1);
                for (front, lane) in front.iter_mut().zip(lanes) {
                    *front = v[lane];
                }
                front
            }
            #[inline(always)]
            unsafe fn expand(v: Self::V, valid: u16) -> Self::V {
                let mut spread = [<$t>::ZERO; $lanes];
                let lanes = (0..$lanes).filter(|lane| valid >> lane & 1 == 1);
                for (lane, &v) in lanes.zip(&v) {
                    spread[lane] = v;
                }
                spread
            }
            // Calls of the C library, once for each lane, are not worth a copy in every tile.
            #[cfg_attr(any(target_arch = "aarch64", target_feature = "fma"), inline(always))]
            #[cfg_attr(
                not(any(target_arch = "aarch64", target_feature = "fma")),
                inline(never)
            )]
            unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|lane| $fma(a[lane], b[lane], c[lane]))
            }
        }
    };
}

portable!(V32, f32, 8, 4, f32::mul_add);
portable!(V64, f64, 4, 8, f64::mul_add);
portable!(Halves, i32, 8, 2, add_products);

/// The products of the two numbers of 16 bits in each word, added.
#[inline(always)]
fn add_products(a: i32, b: i32, c: i32) -> i32 {
    let low = i32::from(a as i16) * i32::from(b as i16);
    c.wrapping_add(low).wrapping_add((a >> 16) * (b >> 16))
}

impl Codes for V32 {
    #[inline(always)]
    unsafe fn i8(from: *const u8) -> [f32; 8] {
        // SAFETY: the caller may read all lanes.
        unsafe { from.cast::<[i8; 8]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn u8(from: *const u8) -> [f32; 8] {
        // SAFETY: as `i8`.
        unsafe { from.cast::<[u8; 8]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn f16(from: *const u8) -> [f32; 8] {
        // SAFETY: as `i8`.
        unsafe { from.cast::<[f16; 8]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn bf16(from: *const u8) -> [f32; 8] {
        // SAFETY: as `i8`.
        unsafe { from.cast::<[bf16; 8]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn i4(from: *const u8) -> [[f32; 8]; 2] {
        // SAFETY: as `i8`.
        let bytes = unsafe { from.cast::<[i8; 8]>().read_unaligned() };
        [
            bytes.map(|b| f32::from(b << 4 >> 4)),
            bytes.map(|b| f32::from(b >> 4)),
        ]
    }
    #[inline(always)]
    unsafe fn u4(from: *const u8) -> [[f32; 8]; 2] {
        // SAFETY: as `i8`.
        let bytes = unsafe { from.cast::<[u8; 8]>().read_unaligned() };
        [
            bytes.map(|b| f32::from(b & 15)),
            bytes.map(|b| f32::from(b >> 4)),
        ]
    }
    #[inline(always)]
    unsafe fn table(from: *const u8, table: &[f32; 16]) -> [[f32; 8]; 2] {
        // SAFETY: as `i8`.
        let bytes = unsafe { from.cast::<[u8; 8]>().read_unaligned() };
        let number = |code: u8| table[usize::from(code)];
        [bytes.map(|b| number(b & 15)), bytes.map(|b| number(b >> 4))]
    }
    #[inline(always)]
    unsafe fn sub(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|lane| a[lane] - b[lane])
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|lane| a[lane] * b[lane])
    }
}

impl Square<8> for V32 {
    #[inline(always)]
    unsafe fn transpose(lines: [[f32; 8]; 8]) -> [[f32; 8]; 8] {
        std::array::from_fn(|j| std::array::from_fn(|i| lines[i][j]))
    }
}

/// [`coded::decode`].
unsafe fn decode(lines: &Decode<f32>) {
    // SAFETY: the caller's.
    unsafe { coded::decode::<V32>(lines) }
}

/// [`words::words`] of two numbers of 16 bits.
unsafe fn pack_words(block: &Block<i32>, points: &[u32]) {
    const LAYOUTS: WordLayouts = WordLayouts {
        across: words::across::<2>,
        along: None,
    };
    // SAFETY: the caller's.
    unsafe { words::words::<2>(block, points, &LAYOUTS) }
}

/// The engine of one element type, with the tiles that registers are enough for; where lanes are calls,
/// with few.
macro_rules! engine_of {
    ($name:ident, $module:ident, $simd:ty, $across_tiles:expr, $coded:expr, $decode:expr, $widen:expr) => {
        #[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
        define_engine!(
            $name, $module, $simd, pack::across, $across_tiles, $coded, $decode, $widen,
            cfg_attr(not(target_arch = "x86_64"), inline(never)),
            spread [1: 8 2: 4]
            1 [1 2 3 4 5 6 7 8 9 10 11 12]
            2 [1 2 3 4 5 6]
            3 [1 2 3 4]
            4 [1 2]
            5 [1 2]
            6 [1]
            7 [1]
            8 [1]
        );
        #[cfg(not(any(target_arch = "aarch64", target_feature = "fma")))]
        define_engine!(
            $name, $module, $simd, pack::across, $across_tiles, $coded, $decode, $widen,
            cfg_attr(not(target_arch = "x86_64"), inline(never)),
            spread [1: 4]
            1 [1 2 3 4]
            2 [1 2]
            3 [1]
        );
    };
}

define_across_tiles!(
    across_tiles, V32, 8,
    cfg_attr(not(target_arch = "x86_64"), inline(never)),
    1 [1 2]
    2 [1]
);

#[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
define_coded_tiles!(
    coded_tiles, V32,
    cfg_attr(not(target_arch = "x86_64"), inline(never)),
    1: 8 2: 4
);
#[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
const CODED: Option<fn(coded::Code, bool) -> engine::CodedTiles<f32>> = Some(coded_tiles::of);
#[cfg(not(any(target_arch = "aarch64", target_feature = "fma")))]
const CODED: Option<fn(coded::Code, bool) -> engine::CodedTiles<f32>> = None;

engine_of!(
    F32,
    f32_tiles,
    V32,
    across_tiles::TILES,
    CODED,
    Some(decode),
    Some(narrow::widen)
);
engine_of!(F64, f64_tiles, V64, &[], None, None, None);

#[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
define_byte_engine!(
    BYTES, byte_tiles, Halves, 2, pack_words, Some(words::widen_bytes),
    cfg_attr(not(target_arch = "x86_64"), inline(never)),
    spread [1: 4]
    1 [1 2 3 4]
    2 [1 2 3 4]
);
#[cfg(not(any(target_arch = "aarch64", target_feature = "fma")))]
define_byte_engine!(
    BYTES, byte_tiles, Halves, 2, pack_words, Some(words::widen_bytes),
    cfg_attr(not(target_arch = "x86_64"), inline(never)),
    spread [1: 2]
    1 [1 2]
);

define_float_tiles!(
    FLOATS, float_tiles, "portable", V32,
    cfg_attr(not(target_arch = "x86_64"), inline(never)),
    2, wide 2 [2 2], made 2 [1 2]
);
