//! Products of matrices of bytes: AMX, beside the 512-bit vectors of AVX-512.
//!
//! Eight matrix registers have up to 16 lines of 64 bytes each. Four of them are the sums of a tile of up to 32 rows by two
//! vectors:
//!
//! > | | columns 0 to 15 | columns 16 to 31 |
//! > |---|---|---|
//! > | **low rows** | `tmm0` | `tmm1` |
//! > | **high rows** | `tmm2` | `tmm3` |
//!
//! and the others up to 16 words of `k` of the rows (`tmm4`, `tmm5`) and of the columns (`tmm6`, `tmm7`). Lines of rows are
//! loaded from where they are: the low rows are equally far apart, and so are the high ones. Other tiles have vectors.

mod registers;
mod rows;

use std::arch::asm;
use std::mem::MaybeUninit;

use super::avx512::{self, Bytes};
use crate::engine::{Engine, tiles};
use crate::geometry::{MATRIX_VECTORS, parts};
use crate::pack::Packing;
use crate::tile::{self, CHAINS, Tile};
use registers::{LINE, LINES, Shape, instruction, load, multiply, release, store};
use rows::{Rows, Sums};

/// The most rows of a tile.
const MOST_ROWS: usize = 2 * LINES;

/// Fewer rows have vectors.
const LEAST_ROWS: usize = 4;

/// Has the caches fetch the lines of `out` of some rows, to write them: of the lines that a matrix register is stored to the
/// machine fetches one after the other.
///
/// # Safety
/// The tile has these rows and `N` vectors.
#[inline(always)]
unsafe fn fetch_out<const N: usize>(t: &Tile<i32>, from: usize, until: usize) {
    for row in from..until {
        // SAFETY: the caller's; nothing is read or written.
        unsafe {
            let row = t.out.wrapping_add(*t.row_offsets.add(row) as usize);
            for j in 0..N {
                let line = row.wrapping_add((*t.vectors.add(j)).to as usize);
                asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
            }
        }
    }
}

/// Loads or stores the sums of a tile of `$n` vectors, whose high rows there are if it `$has_high` ones.
macro_rules! all_sums {
    ($move:ident, $n:expr, $low:expr, $high:expr, $has_high:expr) => {
        $move!("tmm0", $low.at[0], $low.step);
        if $n == 2 {
            $move!("tmm1", $low.at[$n - 1], $low.step);
        }
        if $has_high {
            $move!("tmm2", $high.at[0], $high.step);
            if $n == 2 {
                $move!("tmm3", $high.at[$n - 1], $high.step);
            }
        }
    };
}

/// A tile of low and high rows, whose words lie apart, by `N` vectors, with its sums in matrix registers.
///
/// # Safety
/// as [`TileFn`](tile::TileFn); a product takes `t.row_line` words, which lie beside each other in each row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,bmi1,bmi2")]
unsafe fn matrices<const SIGNED_ROWS: bool, const N: usize>(t: &Tile<i32>, [low, high]: [Rows; 2]) {
    let has_high = high.count > 0;
    let rows = low.count + high.count;
    // SAFETY: by the contract of `TileFn` all that is read and written here may be. Nothing else uses the matrix registers of
    // this thread until they are released.
    unsafe {
        let shape = Shape {
            rows: [low.count as u8, high.count as u8],
            words: t.row_line as u8,
        };
        shape.set();
        let mut own = MaybeUninit::<[[[i32; LINES]; N]; MOST_ROWS]>::uninit();
        let own: *mut i32 = own.as_mut_ptr().cast();
        let in_out = match t.last == LINES {
            true => low.out::<N>(t).zip(high.out::<N>(t)),
            false => None,
        };
        let is_own = in_out.is_none();
        let (low_sums, high_sums) = match in_out {
            Some(sums) => sums,
            None => (
                Sums::own(own),
                Sums::own(own.wrapping_add(low.count * N * LINES)),
            ),
        };
        if t.fresh {
            instruction!("tilezero tmm0");
            if N == 2 {
                instruction!("tilezero tmm1");
            }
            if has_high {
                instruction!("tilezero tmm2");
                if N == 2 {
                    instruction!("tilezero tmm3");
                }
            }
        } else {
            if is_own {
                tile::load_sums::<Bytes<SIGNED_ROWS>>(t, own.cast(), rows, N);
            }
            all_sums!(load, N, low_sums, high_sums, has_high);
        }

        let mut columns = t.columns;
        let rows_each = match t.fresh {
            true => rows.div_ceil((t.k / t.row_line).max(1)),
            false => 0,
        };
        let mut first_row = 0;
        let mut k = 0;
        while k < t.k {
            let step = *t.row_steps.add(k) as usize;
            fetch_out::<N>(t, first_row, rows.min(first_row + rows_each));
            first_row += rows_each;
            load!("tmm6", columns, N * LINE);
            load!("tmm4", low.at(t, step), low.step);
            multiply!(SIGNED_ROWS, "tmm0", "tmm4", "tmm6");
            if N == 2 {
                load!("tmm7", columns.wrapping_add(LINES), N * LINE);
                multiply!(SIGNED_ROWS, "tmm1", "tmm4", "tmm7");
            }
            if has_high {
                load!("tmm5", high.at(t, step), high.step);
                multiply!(SIGNED_ROWS, "tmm2", "tmm5", "tmm6");
                if N == 2 {
                    multiply!(SIGNED_ROWS, "tmm3", "tmm5", "tmm7");
                }
            }
            columns = columns.wrapping_add(t.row_line * N * LINES);
            k += t.row_line;
        }

        all_sums!(store, N, low_sums, high_sums, has_high);
        if is_own {
            tile::store_sums::<Bytes<SIGNED_ROWS>>(t, own.cast_const().cast(), rows, N);
        }
    }
}

/// A tile of `h` rows, whose words lie apart, by `N` vectors. `vectors` are tiles of as many vectors, of one row and more.
///
/// # Safety
/// as [`TileFn`](tile::TileFn).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,bmi1,bmi2")]
unsafe fn strided<const SIGNED_ROWS: bool, const N: usize>(
    t: &Tile<i32>,
    h: usize,
    vectors: &[tile::TileFn<i32>],
) {
    // SAFETY: the caller's.
    unsafe {
        let rows = match h >= LEAST_ROWS && t.row_line > 0 {
            true => Rows::low_and_high(t, h),
            false => None,
        };
        match rows {
            Some(rows) => matrices::<SIGNED_ROWS, N>(t, rows),
            None => in_vectors(t, h, vectors),
        }
    }
}

/// A tile of `h` rows in tiles of vectors, of one row and more.
///
/// # Safety
/// as [`TileFn`](tile::TileFn).
unsafe fn in_vectors(t: &Tile<i32>, h: usize, tiles: &[tile::TileFn<i32>]) {
    for rows in parts(h, h.div_ceil(tiles.len())) {
        let mut part = *t;
        part.row_offsets = t.row_offsets.wrapping_add(rows.start);
        match t.row_points.is_null() {
            true => part.rows = t.rows.wrapping_add(rows.start),
            false => part.row_points = t.row_points.wrapping_add(rows.start),
        }
        // SAFETY: the caller's; there is a micro-kernel for as many rows.
        unsafe { tiles[rows.len() - 1](&part) }
    }
}

/// As many products as [`tile::chains`] has, and nothing else.
///
/// # Safety
/// The machine has the instructions.
unsafe fn chains(steps: usize) -> i32 {
    /// The products of a matrix register and another one for each of a vector and another one.
    const VECTORS: usize = LINES * LINES;
    // SAFETY: the caller's; matrix registers are zero at first.
    unsafe {
        let lines = LINES as u8;
        let shape = Shape {
            rows: [lines; 2],
            words: lines,
        };
        shape.set();
        for _ in 0..(steps * CHAINS).div_ceil(4 * VECTORS) {
            multiply!(true, "tmm0", "tmm4", "tmm6");
            multiply!(true, "tmm1", "tmm4", "tmm7");
            multiply!(true, "tmm2", "tmm5", "tmm6");
            multiply!(true, "tmm3", "tmm5", "tmm7");
        }
        release();
    }
    0
}

/// The engines of bytes, for rows with and without signs, beside those of vectors.
macro_rules! bytes {
    ($name:ident, $module:ident, $signed_rows:literal) => {
        mod $module {
            use super::*;

            /// # Safety
            /// as [`tile::TileFn`].
            pub(super) unsafe fn strided<const H: usize, const N: usize>(t: &Tile<i32>) {
                let vectors = avx512::$name.strided[N - 1];
                // SAFETY: the caller's.
                unsafe {
                    match N {
                        1 => super::strided::<$signed_rows, 1>(t, H, vectors),
                        2 => super::strided::<$signed_rows, 2>(t, H, vectors),
                        _ => vectors[H - 1](t),
                    }
                }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            pub(super) unsafe fn packed<const H: usize, const N: usize>(t: &Tile<i32>) {
                // SAFETY: the caller's.
                unsafe { in_vectors(t, H, avx512::$name.packed[N - 1]) }
            }
        }

        pub(super) static $name: Engine<i32> = Engine {
            lanes: LINES,
            group: 4,
            packed: &tables!($module, packed),
            strided: &tables!($module, strided),
            live: &[],
            plain: &[],
            edge: &[],
            across: &[],
            packing: Packing::Words {
                pack: avx512::pack_words,
                widen_bytes: None,
            },
            spread: avx512::$name.spread,
            coded: None,
            decode: None,
            widen: None,
            least_matrix_rows: Some(LEAST_ROWS),
            release: Some(release),
            chains,
        };
    };
}

/// Tiles of up to [`MOST_ROWS`] rows by up to [`MATRIX_VECTORS`] vectors, and wider ones of fewer rows than [`LEAST_ROWS`].
macro_rules! tables {
    ($module:ident, $f:ident) => {
        [
            tables!($module, $f, 1),
            tables!($module, $f, 2),
            tiles!($module $f 3 [1 2 3]),
            tiles!($module $f 4 [1 2 3]),
        ]
    };
    ($module:ident, $f:ident, $n:literal) => {
        tiles!($module $f $n [
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        ])
    };
}

bytes!(I8U8, i8u8_tiles, true);
bytes!(U8I8, u8i8_tiles, false);

const _: () = assert!(MATRIX_VECTORS == 2);
