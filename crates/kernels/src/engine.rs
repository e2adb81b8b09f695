//! The micro-kernels of an instruction set, and the macros that define them.

use crate::coded::{Code, Decode};
use crate::lanes::Number;
use crate::narrow::NarrowBlock;
use crate::pack::Packing;
use crate::tile::TileFn;

/// The micro-kernels of one instruction set for one type of sums. `packed[n - 1][h - 1]` and
/// `plain[n - 1][h - 1]` are the micro-kernels of `n` vectors and `h` rows, `edge[h - 1]` those of one
/// plain vector of which only `load` lanes may be read. Columns of words are always packed.
pub(crate) struct Engine<T: Number> {
    pub(crate) lanes: usize,
    /// How many `k` a step takes: several where an element of the packed operands is a word.
    pub(crate) group: usize,
    pub(crate) packed: &'static [&'static [TileFn<T>]],
    /// As `packed`, of rows that lie apart.
    pub(crate) strided: &'static [&'static [TileFn<T>]],
    /// As `strided`, with a list of the steps that are taken; none of words.
    pub(crate) live: &'static [&'static [TileFn<T>]],
    pub(crate) plain: &'static [&'static [TileFn<T>]],
    pub(crate) edge: &'static [TileFn<T>],
    /// `across[h - 1][n - 1]` is the micro-kernel of `h` rows and `n` vectors of columns that it lays across; none if there are no
    /// such for the instruction set.
    pub(crate) across: &'static [&'static [TileFn<T>]],
    pub(crate) packing: Packing<T>,
    /// `spread[h - 1]` is the micro-kernel of `h` rows and several packed panels of [`SPREAD_WIDTH`](crate::tile::SPREAD_WIDTH)
    /// vectors, and how many panels these are.
    pub(crate) spread: &'static [(usize, TileFn<T>)],
    /// Those of columns of codes, [`Fused`](crate::coded::Fused) or not, if there are any for the instruction set.
    pub(crate) coded: Option<fn(Code, bool) -> CodedTiles<T>>,
    /// [`decode`](crate::coded::decode), if elements can be coded.
    pub(crate) decode: Option<unsafe fn(&Decode<T>)>,
    /// [`widen`](crate::narrow::widen), if elements can be stored as numbers of 16 bits.
    pub(crate) widen: Option<unsafe fn(&NarrowBlock)>,
    /// From how many rows on the `strided` micro-kernels of up to two vectors have their sums in matrix registers, if there are
    /// such. They read a line of the cache of each row at a time.
    pub(crate) least_matrix_rows: Option<usize>,
    /// Releases the matrix registers, if tiles use them: each thread calls it when it has computed the last tile of a task.
    pub(crate) release: Option<unsafe fn()>,
    /// [`chains`](crate::tile::chains).
    pub(crate) chains: unsafe fn(usize) -> T,
}

/// The micro-kernels of columns of codes of one type.
pub(crate) struct CodedTiles<T: Number> {
    /// `[n - 1][h - 1]`: of a panel of `n` vectors, at most [`SPREAD_WIDTH`](crate::tile::SPREAD_WIDTH), and `h` rows.
    pub(crate) packed: &'static [&'static [TileFn<T>]],
    /// As [`Engine::spread`].
    pub(crate) spread: &'static [(usize, TileFn<T>)],
}

/// The most rows of tiles that take codes: of more, tasks make elements before.
pub(crate) const CODED_ROWS: usize = 2;

/// The most rows of a tile of one vector that has a register for the address of each.
pub(crate) const ADDRESSED_ROWS: usize = 6;

/// Defines the [`Engine`] of an instruction set: its attribute, and for each number of vectors the
/// numbers of rows that its registers are enough for; before them, for each number of rows the vectors of tiles that take
/// several panels.
macro_rules! define_engine {
    ($name:ident, $module:ident, $simd:ty, $across:path, $across_tiles:expr, $coded:expr, $decode:expr, $widen:expr, $feature:meta, spread [$($sh:literal: $sn:literal)*] $($n:literal [$($h:literal)+])+) => {
        mod $module {
            use super::*;

            engine::parts!($simd, $feature);

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn spread<const H: usize, const N: usize>(t: &Tile<<$simd as Simd>::T>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::SPREAD }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn packed<const H: usize, const N: usize>(t: &Tile<<$simd as Simd>::T>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::PACKED }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn strided<const H: usize, const N: usize>(t: &Tile<<$simd as Simd>::T>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::STRIDED_ROWS }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn live<const H: usize, const N: usize>(t: &Tile<<$simd as Simd>::T>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::LIVE_STEPS }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn plain<const H: usize, const N: usize>(t: &Tile<<$simd as Simd>::T>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::PLAIN }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn edge<const H: usize>(t: &Tile<<$simd as Simd>::T>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, 1, { tile::EDGE }>(t, PARTS) }
            }

            /// # Safety
            /// as [`pack::whole`].
            #[$feature]
            pub(super) unsafe fn whole(
                block: &Block<<$simd as Simd>::T>,
                vectors: &[pack::Whole],
            ) {
                // SAFETY: the caller's.
                unsafe { pack::whole::<$simd>(block, vectors) }
            }

            /// # Safety
            /// as [`pack::along`].
            #[$feature]
            pub(super) unsafe fn along(
                block: &Block<<$simd as Simd>::T>,
                runs: &[Vector],
            ) {
                // SAFETY: the caller's.
                unsafe { pack::along::<$simd>(block, runs) }
            }

            /// # Safety
            /// as [`tile::chains`].
            #[$feature]
            pub(super) unsafe fn chains(steps: usize) -> <$simd as Simd>::T {
                // SAFETY: the caller's.
                unsafe { tile::chains::<$simd>(steps) }
            }
        }

        pub(super) static $name: Engine<<$simd as Simd>::T> = Engine {
            lanes: <$simd as Simd>::LANES,
            group: 1,
            packed: &[$(engine::tiles!($module packed $n [$($h)+])),+],
            strided: &[$(engine::tiles!($module strided $n [$($h)+])),+],
            live: &[$(engine::tiles!($module live $n [$($h)+])),+],
            plain: &[$(engine::tiles!($module plain $n [$($h)+])),+],
            edge: engine::edges!($module $([$($h)+])+),
            across: $across_tiles,
            packing: Packing::Elements {
                whole: $module::whole,
                along: $module::along,
                across: $across,
                scattered: pack::scattered::<<$simd as Simd>::T>,
            },
            spread: &[$(($sn / tile::SPREAD_WIDTH, $module::spread::<$sh, $sn>)),*],
            coded: $coded,
            decode: $decode,
            widen: $widen,
            least_matrix_rows: None,
            release: None,
            chains: $module::chains,
        };
    };
}

/// Defines the [`Engine`] of an instruction set for bytes, of which a step takes `group` consecutive `k`.
macro_rules! define_byte_engine {
    ($name:ident, $module:ident, $simd:ty, $group:literal, $words:path, $widen_bytes:expr, $feature:meta, spread [$($sh:literal: $sn:literal)*] $($n:literal [$($h:literal)+])+) => {
        mod $module {
            use super::*;

            engine::parts!($simd, $feature);

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn spread<const H: usize, const N: usize>(t: &Tile<i32>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::SPREAD }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn packed<const H: usize, const N: usize>(t: &Tile<i32>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::PACKED }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn strided<const H: usize, const N: usize>(t: &Tile<i32>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::STRIDED_ROWS }>(t, PARTS) }
            }

            /// # Safety
            /// as [`tile::chains`].
            #[$feature]
            pub(super) unsafe fn chains(steps: usize) -> i32 {
                // SAFETY: the caller's.
                unsafe { tile::chains::<$simd>(steps) }
            }
        }

        pub(super) static $name: Engine<i32> = Engine {
            lanes: <$simd as Simd>::LANES,
            group: $group,
            packed: &[$(engine::tiles!($module packed $n [$($h)+])),+],
            strided: &[$(engine::tiles!($module strided $n [$($h)+])),+],
            live: &[],
            plain: &[],
            edge: &[],
            across: &[],
            packing: Packing::Words {
                pack: $words,
                widen_bytes: $widen_bytes,
            },
            spread: &[$(($sn / tile::SPREAD_WIDTH, $module::spread::<$sh, $sn>)),*],
            coded: None,
            decode: None,
            widen: None,
            least_matrix_rows: None,
            release: None,
            chains: $module::chains,
        };
    };
}

/// Defines `coded_tiles`, the micro-kernels of columns of codes: for each number of rows up to [`CODED_ROWS`], the vectors of
/// tiles that take several panels.
macro_rules! define_coded_tiles {
    ($module:ident, $simd:ty, $feature:meta, $($h:literal: $spread:literal)+) => {
        mod $module {
            use super::*;
            use crate::coded::{Code, Fused, Load, MakeElement, Rounded};
            use crate::engine::CodedTiles;

            engine::parts!($simd, $feature);

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            unsafe fn tile<
                L: Load<$simd>,
                E: MakeElement<$simd>,
                const H: usize,
                const N: usize,
                const WIDTH: usize,
            >(
                t: &Tile<f32>,
            ) {
                // SAFETY: the caller's.
                unsafe { tile::coded_tile::<$simd, L, E, H, N, WIDTH>(t, PARTS) }
            }

            fn made<L: Load<$simd>, E: MakeElement<$simd>>() -> CodedTiles<f32> {
                CodedTiles {
                    packed: &[&[$(tile::<L, E, $h, 1, 1>),+], &[$(tile::<L, E, $h, 2, 2>),+]],
                    spread: &[$(($spread / tile::SPREAD_WIDTH, tile::<L, E, $h, $spread, 2>)),+],
                }
            }

            pub(super) fn of(code: Code, is_fused: bool) -> CodedTiles<f32> {
                match is_fused {
                    true => tiles::<Fused>(code),
                    false => tiles::<Rounded>(code),
                }
            }

            fn tiles<E: MakeElement<$simd>>(code: Code) -> CodedTiles<f32> {
                match code {
                    Code::I8 => made::<coded::I8, E>(),
                    Code::U8 => made::<coded::U8, E>(),
                    Code::F16 => made::<coded::F16, E>(),
                    Code::BF16 => made::<coded::BF16, E>(),
                    Code::I4 => made::<coded::I4, E>(),
                    Code::U4 => made::<coded::U4, E>(),
                    Code::NF4 => made::<coded::Nf4, E>(),
                    Code::F4E2M1 => made::<coded::F4, E>(),
                    Code::F8E4M3 => made::<coded::F8E4, E>(),
                    Code::F8E5M2 => made::<coded::F8E5, E>(),
                }
            }
        }
    };
}

/// Defines `TILES` of a module, the [`Engine::across`] of an instruction set: for each number of rows the numbers of vectors that its
/// registers are enough for.
macro_rules! define_across_tiles {
    ($module:ident, $simd:ty, $lanes:literal, $feature:meta, $($h:literal [$($n:literal)+])+) => {
        mod $module {
            use super::*;
            use crate::tile::TileFn;

            engine::parts!($simd, $feature);

            pub(super) const TILES: &[&[TileFn<<$simd as Simd>::T>]] = &[$(&[$(across::<$h, $n>),+]),+];

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            unsafe fn across<const H: usize, const N: usize>(t: &Tile<<$simd as Simd>::T>) {
                // SAFETY: the caller's.
                unsafe { tile::across_tile::<$simd, H, N, $lanes>(t, PARTS) }
            }
        }
    };
}

/// The [`EdgeFunctions`](crate::tile::EdgeFunctions) of an engine.
macro_rules! parts {
    ($simd:ty, $feature:meta) => {
        const PARTS: tile::EdgeFunctions<$simd> = tile::EdgeFunctions {
            load: load_sums,
            store: store_sums,
        };

        /// # Safety
        /// as [`tile::load_sums`].
        #[$feature]
        #[cfg_attr(target_arch = "x86_64", inline(never))]
        unsafe fn load_sums(
            t: &Tile<<$simd as Simd>::T>,
            sums: *mut <$simd as Simd>::V,
            h: usize,
            n: usize,
        ) {
            // SAFETY: the caller's.
            unsafe { tile::load_sums::<$simd>(t, sums, h, n) }
        }

        /// # Safety
        /// as [`tile::store_sums`].
        #[$feature]
        #[cfg_attr(target_arch = "x86_64", inline(never))]
        unsafe fn store_sums(
            t: &Tile<<$simd as Simd>::T>,
            sums: *const <$simd as Simd>::V,
            h: usize,
            n: usize,
        ) {
            // SAFETY: the caller's.
            unsafe { tile::store_sums::<$simd>(t, sums, h, n) }
        }
    };
}

/// The micro-kernels of `n` vectors.
macro_rules! tiles {
    ($module:ident $f:ident $n:literal [$($h:literal)+]) => { &[$($module::$f::<$h, $n>),+] };
}

/// The table of micro-kernels of one vector.
macro_rules! edges {
    ($module:ident [$($a:literal)+] $($rest:tt)*) => { &[$($module::edge::<$a>),+] };
}

pub(crate) use {
    define_across_tiles, define_byte_engine, define_coded_tiles, define_engine, edges, parts, tiles,
};
