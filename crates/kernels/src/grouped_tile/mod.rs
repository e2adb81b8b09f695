//! Tiles of products of rows with codes by groups: a few rows by one panel of columns or several. Those of rows of bytes are here,
//! those of rows of floats in `floats`.

mod codes;
pub(crate) mod floats;
mod rows;
mod strip;

pub use codes::GroupedRows;
pub(crate) use codes::{GroupedCodes, LINE_BYTES, PANEL, Points, STRIP, Shape, Zero, depth};
pub(crate) use rows::group_sums;
pub(crate) use strip::{AHEAD, Strip};

/// The most rows of a tile.
pub(crate) const MOST_ROWS: usize = 4;

/// The operands of a tile.
pub(crate) struct Tile {
    pub(crate) steps: Steps,
    /// The panels.
    pub(crate) strip: Strip,
    /// The rows: a tile of `H` rows takes the first `H`.
    pub(crate) rows: [TileRow; MOST_ROWS],
    /// Where in `out` of a row the columns of each panel begin.
    pub(crate) places: [usize; STRIP],
    /// How many columns are written: no more than those of all panels.
    pub(crate) columns: usize,
}

/// The counts and sizes by which tiles go through a panel, computed once for a task: tiles have no time to divide.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    /// How many `k` of a row share a scale, and how many lines they are.
    pub(crate) row_group: usize,
    pub(crate) lines: usize,
    /// How many of these groups share zero points and scales of columns, and how many such groups there are.
    pub(crate) row_groups: usize,
    pub(crate) groups: usize,
    /// [`GroupedCodes`] has each of these.
    pub(crate) zero_bytes: usize,
    pub(crate) points_bytes: usize,
    pub(crate) group_bytes: usize,
    pub(crate) panel_bytes: usize,
    /// How many panels there are.
    pub(crate) panels: usize,
    /// Whether groups have scales, and whether points of rows of floats are `f16`.
    pub(crate) has_scales: bool,
    pub(crate) are_half: bool,
}

impl Steps {
    pub(crate) fn new(codes: &GroupedCodes, row_group: usize) -> Steps {
        let shape = &codes.shape;
        Steps {
            row_group,
            lines: row_group / shape.depth,
            row_groups: shape.group.checked_div(row_group).unwrap_or(0),
            groups: shape.groups(),
            zero_bytes: codes.zero_bytes(),
            points_bytes: codes.points_bytes(),
            group_bytes: codes.group_bytes(),
            panel_bytes: codes.panel_bytes(),
            panels: shape.panels(),
            has_scales: codes.points_bytes() > codes.zero_bytes(),
            are_half: matches!(codes.points, Points::OfFloats { are_half: true, .. }),
        }
    }

    /// Whether each group of each column has a zero point.
    pub(crate) fn has_zeros(&self) -> bool {
        self.zero_bytes > 0
    }
}

/// A row of a tile. No pointer need be aligned but that to the sums.
#[derive(Clone, Copy)]
pub(crate) struct TileRow {
    /// The elements.
    pub(crate) elements: *const i8,
    /// The scale of each group.
    pub(crate) scales: *const f32,
    /// Minus the sum of each group, times the zero point, with [`Tiles::shift`], if that is the same for all.
    pub(crate) sums: *const i32,
    /// Where the row begins in `out`.
    pub(crate) out: *mut f32,
}

/// Computes a tile.
///
/// # Safety
/// The machine has the instructions. All that [`Tile`] says may be read, and `columns` elements of `out` written.
pub(crate) type TileFn = unsafe fn(&Tile);

/// The sums of each `group` elements of a row, times `factor`: [`group_sums`].
///
/// # Safety
/// The machine has the instructions. There are as many elements as `sums` has groups.
pub(crate) type GroupSumsFn =
    unsafe fn(row: *const i8, group: usize, factor: i32, sums: &mut [i32]);

/// The tiles of an instruction set, for codes of one size.
pub(crate) struct Tiles {
    pub(crate) name: &'static str,
    /// How much larger the numbers that tiles multiply are than the packed codes: so much is added to all zero points.
    pub(crate) shift: i16,
    /// For each number of rows, how many panels a tile takes at once, and that tile.
    pub(crate) wide: [(usize, TileFn); MOST_ROWS],
    /// For each number of rows, the tile of one panel.
    pub(crate) narrow: [TileFn; MOST_ROWS],
    pub(crate) group_sums: GroupSumsFn,
}

impl std::fmt::Debug for Tiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Tiles {
    /// How many panels are taken at once where there are as many rows: those of the tile of the most of these.
    pub(crate) fn panels_of(&self, rows: usize) -> usize {
        self.wide[rows.clamp(1, MOST_ROWS) - 1].0
    }
}

/// Tiles of codes of 4 bits, for any machine.
pub(crate) static PORTABLE_HALVES: Tiles = portable::<8>();

/// Tiles of codes of 8 bits, for any machine.
pub(crate) static PORTABLE_BYTES: Tiles = portable::<4>();

const fn portable<const DEPTH: usize>() -> Tiles {
    let narrow: [TileFn; MOST_ROWS] = [
        tile::<DEPTH, 1>,
        tile::<DEPTH, 2>,
        tile::<DEPTH, 3>,
        tile::<DEPTH, 4>,
    ];
    Tiles {
        name: "portable",
        shift: 0,
        wide: [
            (1, narrow[0]),
            (1, narrow[1]),
            (1, narrow[2]),
            (1, narrow[3]),
        ],
        narrow,
        group_sums,
    }
}

/// A tile of `H` rows, for any machine.
///
/// # Safety
/// as [`TileFn`].
unsafe fn tile<const DEPTH: usize, const H: usize>(tile: &Tile) {
    let steps = &tile.steps;
    for row in &tile.rows[..H] {
        let mut totals = [0f32; PANEL];
        let (mut elements, mut number) = (row.elements, 0);
        for group in 0..steps.groups {
            let points = tile.strip.points(steps, group);
            let (zeros, scales): (*const i16, *const f32) =
                (points.cast(), points.wrapping_add(steps.zero_bytes).cast());
            let mut from = tile.strip.lines(steps, group);
            for _ in 0..steps.row_groups {
                // SAFETY: by the contract of `TileFn` each group of the panel has zero points, scales and lines, and the row
                // has elements, a scale and a sum for each of its groups.
                unsafe {
                    let row_sum = *row.sums.add(number);
                    let mut sums = [row_sum; PANEL];
                    if steps.has_zeros() {
                        for (lane, sum) in sums.iter_mut().enumerate() {
                            let zero = zeros.add(lane).read_unaligned();
                            *sum = sum.wrapping_mul(zero.into());
                        }
                    }
                    for line in 0..steps.lines {
                        let elements = elements.add(line * DEPTH);
                        add_line::<DEPTH>(&mut sums, &*from.cast(), &*elements.cast());
                        from = from.wrapping_add(tile.strip.line_step());
                    }
                    elements = elements.add(steps.row_group);
                    let row_scale = row.scales.add(number).read_unaligned();
                    for (lane, total) in totals.iter_mut().enumerate() {
                        let scale = match steps.has_scales {
                            true => scales.add(lane).read_unaligned(),
                            false => 1.0,
                        };
                        *total = row_scale.mul_add(sums[lane] as f32 * scale, *total);
                    }
                }
                number += 1;
            }
        }
        for (lane, total) in totals.iter().enumerate().take(tile.columns) {
            // SAFETY: as many columns may be written.
            unsafe { row.out.add(tile.places[0] + lane).write_unaligned(*total) }
        }
    }
}

/// Adds the products of a line. Sums that are too large, of rows that have -128, are wrong but nothing else.
#[inline(always)]
fn add_line<const DEPTH: usize>(
    sums: &mut [i32; PANEL],
    line: &[[u8; 4]; PANEL],
    elements: &[i8; DEPTH],
) {
    for (sum, codes) in sums.iter_mut().zip(line) {
        for (number, code) in codes.iter().enumerate() {
            let product = match DEPTH {
                8 => {
                    let low = i32::from(code & 15) * i32::from(elements[number]);
                    low + i32::from(code >> 4) * i32::from(elements[4 + number])
                }
                _ => i32::from(*code as i8) * i32::from(elements[number]),
            };
            *sum = sum.wrapping_add(product);
        }
    }
}
