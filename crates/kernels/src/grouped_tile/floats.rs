//! Tiles of rows of floats: one row or two by codes as they are packed, or more by elements that are made of codes before.

#![allow(
    clippy::needless_range_loop,
    reason = "tiles are matrices, and read as such"
)]

use super::{AHEAD, LINE_BYTES, PANEL, STRIP, Steps, Strip};
use crate::Code;
use crate::coded::Load;
use crate::codes::Codes;
use std::ops::Range;

/// The most rows of a tile that takes codes: of more, elements are made once for all.
pub(crate) const MOST_CODED_ROWS: usize = 2;

/// How many times a line has a byte for each column.
const PARTS: usize = LINE_BYTES / PANEL;

/// The operands of a tile.
pub(crate) struct FloatTile {
    pub(crate) steps: Steps,
    /// The panels.
    pub(crate) strip: Strip,
    /// The rows: a tile of `H` rows takes the first `H`.
    pub(crate) rows: [FloatRow; MOST_CODED_ROWS],
    /// Where in `out` of a row the columns of each panel begin.
    pub(crate) places: [usize; STRIP],
    /// How many columns are written: no more than those of all panels.
    pub(crate) columns: usize,
}

/// A row of a tile. No pointer need be aligned.
#[derive(Clone, Copy)]
pub(crate) struct FloatRow {
    /// The elements.
    pub(crate) elements: *const f32,
    /// The sum of each group, if there are zero points.
    pub(crate) sums: *const f32,
    /// Where the row begins in `out`; of a tile of elements, where its totals go, whole vectors.
    pub(crate) out: *mut f32,
}

/// Lines of a group of which elements are made.
pub(crate) struct CodeLines {
    /// The first line of the first panel, and how much further its next one is.
    pub(crate) codes: *const u8,
    pub(crate) line_step: usize,
    pub(crate) panels: usize,
    /// How many lines each panel has.
    pub(crate) lines: usize,
    /// For each `k` a line of the elements of all panels.
    pub(crate) to: *mut f32,
}

/// The operands of a tile of elements.
pub(crate) struct ElementTile {
    pub(crate) steps: Steps,
    /// The groups: the number of the first one, and how many there are.
    pub(crate) first: usize,
    pub(crate) groups: usize,
    /// The panels.
    pub(crate) strip: Strip,
    /// For each `k` of these groups a line of the elements of all panels, and how far it is from one to the next.
    pub(crate) elements: *const f32,
    pub(crate) width: usize,
    /// The rows, where they begin.
    pub(crate) rows: [FloatRow; MOST_TILE_ROWS],
}

/// The panels of which elements are made at once, where a strip has as many.
pub(crate) const MADE_PANELS: usize = STRIP / 2;

/// The most rows of a tile of elements.
pub(crate) const MOST_TILE_ROWS: usize = 8;

/// Computes a tile.
///
/// # Safety
/// The machine has the instructions. All that [`FloatTile`] says may be read, and `columns` elements of `out` written.
pub(crate) type FloatTileFn = unsafe fn(&FloatTile);

/// The tiles of an instruction set.
pub(crate) struct FloatTiles {
    pub(crate) name: &'static str,
    /// The tiles for codes of a type, which is one of integers.
    pub(crate) of: fn(Code) -> CodeTiles,
    /// The tiles of elements: for each number of panels, for each number of rows.
    pub(crate) elements: &'static [&'static [ElementTileFn]],
}

/// Computes a tile of elements.
///
/// # Safety
/// The machine has the instructions. All that [`ElementTile`] says may be read, and the totals read and written.
pub(crate) type ElementTileFn = unsafe fn(&ElementTile);

/// The tiles for codes of one type.
pub(crate) struct CodeTiles {
    /// For each number of rows, how many panels a tile takes at once, and that tile.
    pub(crate) wide: [(usize, FloatTileFn); MOST_CODED_ROWS],
    /// For each number of rows, the tile of one panel.
    pub(crate) narrow: [FloatTileFn; MOST_CODED_ROWS],
    /// [`make_elements`].
    pub(crate) make: unsafe fn(&CodeLines),
}

impl std::fmt::Debug for FloatTiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The tile of `H` rows and `N` vectors of columns, of which `P` at a time, those of whole panels, have the sums of a group.
///
/// # Safety
/// as [`FloatTileFn`].
#[inline(always)]
pub(crate) unsafe fn tile<S: Codes, L: Load<S>, const H: usize, const N: usize, const P: usize>(
    tile: &FloatTile,
) {
    let steps = tile.steps;
    let vectors = PANEL / S::LANES;
    // SAFETY: by the contract of `FloatTileFn` all that is read and written here may be.
    unsafe {
        let mut totals = [[S::zero(); N]; H];
        let mut rows = [tile.rows[0].elements; H];
        for i in 0..H {
            rows[i] = tile.rows[i].elements;
        }
        let line_step = tile.strip.line_step();
        let mut number = 0;
        for group in 0..steps.groups {
            let points = tile.strip.points(&steps, group);
            let mut codes = tile.strip.lines(&steps, group);
            for _ in 0..steps.row_groups {
                for first in (0..N).step_by(P) {
                    let mut sums = [[S::zero(); P]; H];
                    let panel = first / vectors;
                    let mut ahead = tile.strip.next_group(&steps, codes, panel);
                    let mut codes = codes.wrapping_add(panel * LINE_BYTES);
                    let mut k = 0;
                    for _ in 0..steps.lines {
                        if P == N {
                            ahead = codes.wrapping_add(AHEAD);
                        }
                        add_line::<S, L, H, P>(codes, ahead, rows, k, &mut sums);
                        codes = codes.wrapping_add(line_step);
                        ahead = ahead.wrapping_add(P / vectors * LINE_BYTES);
                        k += PARTS * L::DEPTH;
                    }
                    for j in 0..P {
                        let panel = panel + j / vectors;
                        let panel = points.wrapping_add(panel * steps.points_bytes);
                        let points = VectorPoints::load::<S>(&steps, panel, j % vectors);
                        for i in 0..H {
                            let row_sum = tile.rows[i].sums.wrapping_add(number);
                            let total = totals[i].as_mut_ptr().add(first + j);
                            *total = points.add::<S>(&steps, sums[i][j], row_sum, *total);
                        }
                    }
                }
                codes = codes.wrapping_add(steps.lines * line_step);
                for i in 0..H {
                    rows[i] = rows[i].wrapping_add(steps.row_group);
                }
                number += 1;
            }
        }
        for i in 0..H {
            for j in 0..N {
                let count = tile.columns.saturating_sub(j * S::LANES).min(S::LANES);
                let place = tile.places[j / vectors] + j % vectors * S::LANES;
                let to = tile.rows[i].out.wrapping_add(place);
                match count == S::LANES {
                    true => S::store(to, totals[i][j]),
                    false => S::store_first(to, totals[i][j], count),
                }
            }
        }
    }
}

/// Adds the products of a line of each panel with elements of rows from number `k` on, and fetches as many lines `ahead`.
///
/// # Safety
/// as [`tile`]; the lines may be read, and as many elements of rows as they have `k`.
#[inline(always)]
unsafe fn add_line<S: Codes, L: Load<S>, const H: usize, const N: usize>(
    codes: *const u8,
    ahead: *const u8,
    rows: [*const f32; H],
    k: usize,
    sums: &mut [[S::V; N]; H],
) {
    let vectors = PANEL / S::LANES;
    // SAFETY: the caller's.
    unsafe {
        for part in 0..PARTS {
            let mut elements = [[S::zero(); 2]; H];
            for i in 0..H {
                for d in 0..L::DEPTH {
                    elements[i][d] = S::splat(rows[i].wrapping_add(k + part * L::DEPTH + d));
                }
            }
            for j in 0..N {
                let line = codes.wrapping_add(j / vectors * LINE_BYTES);
                if part == 0 && j % vectors == 0 {
                    S::fetch_codes(ahead.wrapping_add(j / vectors * LINE_BYTES));
                }
                let loaded = L::load(line.wrapping_add(part * PANEL + j % vectors * S::LANES));
                for i in 0..H {
                    for d in 0..L::DEPTH {
                        sums[i][j] = S::fma(elements[i][d], loaded[d], sums[i][j]);
                    }
                }
            }
        }
    }
}

/// The zero points and scales of a vector of columns. Zero points are zero if there are none.
#[derive(Clone, Copy)]
struct VectorPoints<V> {
    zero: V,
    scale: V,
}

impl<V: Copy> VectorPoints<V> {
    /// Loads those of vector number `vector` of a panel, whose zero points start at `panel`.
    ///
    /// # Safety
    /// The machine has the instructions, and the panel these points.
    #[inline(always)]
    unsafe fn load<S: Codes<V = V>>(steps: &Steps, panel: *const u8, vector: usize) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let scales = panel.wrapping_add(steps.zero_bytes);
            VectorPoints {
                zero: match steps.has_zeros() {
                    true => point::<S>(steps, panel, vector),
                    false => S::zero(),
                },
                scale: point::<S>(steps, scales, vector),
            }
        }
    }

    /// `scale · (sum - zero · row_sum) + total`.
    ///
    /// # Safety
    /// The machine has the instructions; `row_sum` may be read if there are zero points.
    #[inline(always)]
    unsafe fn add<S: Codes<V = V>>(
        &self,
        steps: &Steps,
        sum: V,
        row_sum: *const f32,
        total: V,
    ) -> V {
        // SAFETY: the caller's.
        unsafe {
            let value = match steps.has_zeros() {
                true => S::sub(sum, S::mul(self.zero, S::splat(row_sum))),
                false => sum,
            };
            S::fma(self.scale, value, total)
        }
    }
}

/// A vector of zero points or scales of a panel, which start at `from`.
///
/// # Safety
/// as [`VectorPoints::load`].
#[inline(always)]
unsafe fn point<S: Codes>(steps: &Steps, from: *const u8, vector: usize) -> S::V {
    let place = vector * S::LANES;
    // SAFETY: the caller's.
    unsafe {
        match steps.are_half {
            true => S::f16(from.wrapping_add(place * size_of::<u16>())),
            false => S::load(from.cast::<f32>().wrapping_add(place)),
        }
    }
}

/// Makes the elements of some lines: the numbers of the codes. As many bytes after them are fetched, which come next.
///
/// # Safety
/// The machine has the instructions; the lines may be read, and all elements written.
#[inline(always)]
pub(crate) unsafe fn make_elements<S: Codes, L: Load<S>>(lines: &CodeLines) {
    let width = lines.panels * PANEL;
    // SAFETY: the caller's.
    unsafe {
        for panel in 0..lines.panels {
            let mut codes = lines.codes.wrapping_add(panel * LINE_BYTES);
            let mut to = lines.to.wrapping_add(panel * PANEL);
            let next = lines.lines * lines.line_step;
            for _ in 0..lines.lines {
                S::fetch_codes(codes.wrapping_add(next));
                for part in 0..PARTS {
                    for first in (0..PANEL).step_by(S::LANES) {
                        let loaded = L::load(codes.wrapping_add(part * PANEL + first));
                        for d in 0..L::DEPTH {
                            S::store(to.wrapping_add(d * width + first), loaded[d]);
                        }
                    }
                    to = to.wrapping_add(L::DEPTH * width);
                }
                codes = codes.wrapping_add(lines.line_step);
            }
        }
    }
}

/// The tile of `H` rows by elements of `N` vectors of columns.
///
/// # Safety
/// as [`ElementTileFn`].
#[inline(always)]
pub(crate) unsafe fn element_tile<S: Codes, const H: usize, const N: usize>(tile: &ElementTile) {
    let steps = tile.steps;
    let vectors = PANEL / S::LANES;
    // SAFETY: by the contract of `ElementTileFn` all that is read and written here may be.
    unsafe {
        let mut rows = [tile.rows[0].elements; H];
        for i in 0..H {
            let first = tile.first * steps.row_group;
            rows[i] = tile.rows[i].elements.wrapping_add(first);
        }
        let mut elements = tile.elements;
        for number in tile.first..tile.first + tile.groups {
            let mut sums = [[S::zero(); N]; H];
            for k in 0..steps.row_group {
                let mut columns = [S::zero(); N];
                for j in 0..N {
                    columns[j] = S::load(elements.wrapping_add(j * S::LANES));
                }
                // Two loops: the compiler leaves longer ones as they are.
                add_rows::<S, H, N>(&mut sums, 0..H / 2, &columns, &rows, k);
                add_rows::<S, H, N>(&mut sums, H / 2..H, &columns, &rows, k);
                elements = elements.wrapping_add(tile.width);
            }
            for i in 0..H {
                rows[i] = rows[i].wrapping_add(steps.row_group);
            }
            let points = tile.strip.points(&steps, number / steps.row_groups);
            let none = VectorPoints {
                zero: S::zero(),
                scale: S::zero(),
            };
            let mut of_vectors = [none; N];
            for j in 0..N {
                let panel = points.wrapping_add(j / vectors * steps.points_bytes);
                of_vectors[j] = VectorPoints::load::<S>(&steps, panel, j % vectors);
            }
            // From here on sums are in memory: what follows is too long for the compiler to write it out for each.
            let mut stored = [[S::zero(); N]; H];
            for i in 0..H {
                for j in 0..N {
                    stored[i][j] = sums[i][j];
                }
            }
            for i in 0..H {
                let row_sum = tile.rows[i].sums.wrapping_add(number);
                for j in 0..N {
                    let total = tile.rows[i].out.wrapping_add(j * S::LANES);
                    let before = match number {
                        0 => S::zero(),
                        _ => S::load(total),
                    };
                    let after = of_vectors[j].add::<S>(&steps, stored[i][j], row_sum, before);
                    S::store(total, after);
                }
            }
        }
    }
}

/// Adds the products of some rows' elements of number `k` and the columns.
///
/// # Safety
/// as [`element_tile`].
#[inline(always)]
unsafe fn add_rows<S: Codes, const H: usize, const N: usize>(
    sums: &mut [[S::V; N]; H],
    which: Range<usize>,
    columns: &[S::V; N],
    rows: &[*const f32; H],
    k: usize,
) {
    for i in which {
        // SAFETY: the caller's.
        unsafe {
            let row = S::splat(rows[i].wrapping_add(k));
            for j in 0..N {
                sums[i][j] = S::fma(row, columns[j], sums[i][j]);
            }
        }
    }
}

/// Defines the [`FloatTiles`] of an instruction set: its attribute, the vectors of a panel and those of a tile of several panels,
/// for one row and for two how many of these have sums at a time, and for each number of panels of a tile of elements
/// the vectors, and the rows that registers are enough for.
macro_rules! define_float_tiles {
    ($name:ident, $module:ident, $label:literal, $simd:ty, $feature:meta, $vectors:literal, wide $wide:literal [$one:literal $two:literal], made $($n:literal [$($h:literal)+])+) => {
        mod $module {
            use super::*;
            use crate::Code;
            use crate::coded::{self, Load};
            use crate::grouped_tile::PANEL;
            use crate::grouped_tile::floats::{self, CodeLines, CodeTiles, ElementTile, ElementTileFn, FloatTile};
            use crate::lanes::Simd;

            /// # Safety
            /// as [`floats::FloatTileFn`].
            #[$feature]
            unsafe fn tile<L: Load<$simd>, const H: usize, const N: usize, const P: usize>(
                tile: &FloatTile,
            ) {
                // SAFETY: the caller's.
                unsafe { floats::tile::<$simd, L, H, N, P>(tile) }
            }

            /// # Safety
            /// as [`floats::make_elements`].
            #[$feature]
            unsafe fn make_elements<L: Load<$simd>>(lines: &CodeLines) {
                // SAFETY: the caller's.
                unsafe { floats::make_elements::<$simd, L>(lines) }
            }

            /// # Safety
            /// as [`floats::ElementTileFn`].
            #[$feature]
            unsafe fn element_tile<const H: usize, const N: usize>(tile: &ElementTile) {
                // SAFETY: the caller's.
                unsafe { floats::element_tile::<$simd, H, N>(tile) }
            }

            pub(super) static ELEMENTS: &[&[ElementTileFn]] = &[$(&[$(element_tile::<$h, $n>),+]),+];

            const fn tiles<L: Load<$simd>>() -> CodeTiles {
                CodeTiles {
                    wide: [
                        ($wide / $vectors, tile::<L, 1, $wide, $one>),
                        ($wide / $vectors, tile::<L, 2, $wide, $two>),
                    ],
                    narrow: [tile::<L, 1, $vectors, $vectors>, tile::<L, 2, $vectors, $vectors>],
                    make: make_elements::<L>,
                }
            }

            pub(super) fn of(code: Code) -> CodeTiles {
                match code {
                    Code::I4 => tiles::<coded::I4>(),
                    Code::U4 => tiles::<coded::U4>(),
                    Code::I8 => tiles::<coded::I8>(),
                    Code::U8 => tiles::<coded::U8>(),
                    _ => unreachable!("codes of groups are integers"),
                }
            }

            const _: () = assert!($vectors * <$simd as Simd>::LANES == PANEL);
        }

        pub(super) static $name: crate::grouped_tile::floats::FloatTiles =
            crate::grouped_tile::floats::FloatTiles {
                name: $label,
                of: $module::of,
                elements: $module::ELEMENTS,
            };
    };
}
pub(crate) use define_float_tiles;
