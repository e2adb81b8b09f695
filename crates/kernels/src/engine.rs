//! The micro-kernels of an instruction set, and the macros that define them.

use crate::coded::Decode;
use crate::lanes::Number;
use crate::pack::Packing;
use crate::tile::TileFn;

/// The micro-kernels of one instruction set for one type of sums. `packed[n - 1][h - 1]` and
/// `plain[n - 1][h - 1]` are the micro-kernels of `n` vectors and `h` rows, `edge[h - 1]` those of one
/// plain vector of which only `load` lanes may be read. Words are always packed.
pub(crate) struct Engine<T: Number> {
    pub(crate) lanes: usize,
    /// How many `k` a step takes: several where an element of the packed operands is a word.
    pub(crate) group: usize,
    pub(crate) packed: &'static [&'static [TileFn<T>]],
    pub(crate) plain: &'static [&'static [TileFn<T>]],
    pub(crate) edge: &'static [TileFn<T>],
    pub(crate) packing: Packing<T>,
    /// As `packed`, of columns of numbers: a table for each [`Code`](crate::coded::Code), or none.
    pub(crate) coded: &'static [&'static [&'static [TileFn<T>]]],
    /// [`decode`](crate::coded::decode), if elements can be coded.
    pub(crate) decode: Option<unsafe fn(&Decode<T>)>,
    /// [`chains`](crate::tile::chains).
    pub(crate) chains: unsafe fn(usize) -> T,
}

/// Defines the [`Engine`] of an instruction set: its attribute, and for each number of vectors the
/// numbers of rows that its registers are enough for.
macro_rules! define_engine {
    ($name:ident, $module:ident, $simd:ty, $across:path, $coded:expr, $decode:expr, $feature:meta, $($n:literal [$($h:literal)+])+) => {
        mod $module {
            use super::*;

            engine::parts!($simd, $feature);

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
            plain: &[$(engine::tiles!($module plain $n [$($h)+])),+],
            edge: engine::edges!($module $([$($h)+])+),
            packing: Packing::Elements {
                along: $module::along,
                across: $across,
                scattered: pack::scattered::<<$simd as Simd>::T>,
            },
            coded: $coded,
            decode: $decode,
            chains: $module::chains,
        };
    };
}

/// Defines the [`Engine`] of an instruction set for bytes, of which a step takes `group` consecutive `k`.
macro_rules! define_byte_engine {
    ($name:ident, $module:ident, $simd:ty, $group:literal, $words:path, $feature:meta, $($n:literal [$($h:literal)+])+) => {
        mod $module {
            use super::*;

            engine::parts!($simd, $feature);

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            pub(super) unsafe fn packed<const H: usize, const N: usize>(t: &Tile<i32>) {
                // SAFETY: the caller's.
                unsafe { tile::tile::<$simd, H, N, { tile::PACKED }>(t, PARTS) }
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
            plain: &[],
            edge: &[],
            packing: Packing::Words($words),
            coded: &[],
            decode: None,
            chains: $module::chains,
        };
    };
}

/// The micro-kernels of columns of numbers, for each code; as many numbers of vectors as there are lists.
macro_rules! define_coded_tiles {
    ($name:ident, $module:ident, $simd:ty, $feature:meta, $($n:literal [$($h:literal)+])+) => {
        mod $module {
            use super::*;

            engine::parts!($simd, $feature);

            /// # Safety
            /// as [`tile::TileFn`].
            #[$feature]
            unsafe fn tile<const CODE: u8, const H: usize, const N: usize>(t: &Tile<f32>) {
                // SAFETY: the caller's.
                unsafe { tile::coded_tile::<$simd, H, N, CODE>(t, PARTS) }
            }

            pub(super) static $name: [&[&[tile::TileFn<f32>]]; 3] = [
                &[$(&[$(tile::<{ tile::I8 }, $h, $n>),+]),+],
                &[$(&[$(tile::<{ tile::U8 }, $h, $n>),+]),+],
                &[$(&[$(tile::<{ tile::F16 }, $h, $n>),+]),+],
            ];
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

pub(crate) use {define_byte_engine, define_coded_tiles, define_engine, edges, parts, tiles};
