//! Which tiles a kernel is made of.

use crate::lanes::Vector;
use crate::pack::each_run;

/// The columns as vectors, and the vectors as panels.
#[derive(Debug)]
pub(crate) struct ColumnVectors {
    pub(crate) vectors: Box<[Vector]>,
    pub(crate) panels: Box<[ColumnPanel]>,
}

/// The vectors that one tile takes at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnPanel {
    pub(crate) first_vector: u32,
    pub(crate) vectors: u32,
    pub(crate) first_column: u32,
    pub(crate) columns: u32,
    /// How far whole plain vectors reach: the largest `from`, and all lanes.
    pub(crate) reach: usize,
    /// How many lanes of the last vector are elements, if these are its first ones, all lanes of the vectors before it are, and
    /// each vector's are contiguous in `out`; otherwise 0.
    pub(crate) last: u8,
}

impl ColumnPanel {
    /// Whether every lane is an element, and each vector's are contiguous in `out`.
    pub(crate) fn is_whole(&self, lanes: usize) -> bool {
        usize::from(self.last) == lanes
    }
}

impl ColumnVectors {
    /// Vectors of consecutive columns, for packed panels, and whether each is contiguous in `out`.
    /// Where not, a vector's `to` is the number of its first column.
    pub(crate) fn packed(out: &[u32], lanes: usize, most: usize) -> (ColumnVectors, bool) {
        let contiguous = out.chunks(lanes).all(|chunk| {
            chunk
                .iter()
                .enumerate()
                .all(|(lane, &to)| to == chunk[0] + lane as u32)
        });
        let vectors = out
            .chunks(lanes)
            .enumerate()
            .map(|(number, chunk)| Vector {
                from: 0,
                to: if contiguous {
                    chunk[0]
                } else {
                    (number * lanes) as u32
                },
                valid: ((1u32 << chunk.len()) - 1) as u16,
                load: chunk.len() as u8,
                elements: chunk.len() as u8,
            })
            .collect();
        (
            ColumnVectors::new(vectors, lanes, most, contiguous),
            contiguous,
        )
    }

    /// These [`plain_vectors`], at most `most` in a panel.
    pub(crate) fn plain(vectors: Vec<Vector>, lanes: usize, most: usize) -> ColumnVectors {
        ColumnVectors::new(vectors, lanes, most, true)
    }

    fn new(vectors: Vec<Vector>, lanes: usize, most: usize, contiguous: bool) -> ColumnVectors {
        let count = vectors.len().div_ceil(most);
        let mut panels = Vec::with_capacity(count);
        let (mut first_vector, mut first_column) = (0, 0);
        for vectors_of in parts(vectors.len(), count) {
            let of = &vectors[vectors_of.clone()];
            let columns = of
                .iter()
                .map(|vector| vector.elements as usize)
                .sum::<usize>();
            panels.push(ColumnPanel {
                first_vector,
                vectors: of.len() as u32,
                first_column,
                columns: columns as u32,
                reach: of
                    .iter()
                    .map(|vector| vector.from as usize + lanes)
                    .max()
                    .unwrap_or(0),
                last: match contiguous {
                    true => lanes_of_last(of, lanes),
                    false => 0,
                },
            });
            first_vector += of.len() as u32;
            first_column += columns as u32;
        }
        ColumnVectors {
            vectors: vectors.into(),
            panels: panels.into(),
        }
    }
}

/// Vectors that can be loaded from the operand as it is: those columns whose elements lie close
/// together, in order, and follow each other in `out`.
pub(crate) fn plain_vectors(from: &[u32], out: &[u32], lanes: usize) -> Vec<Vector> {
    let mut vectors = Vec::new();
    let place = |column| out[column];
    each_run(from, lanes, place, |vector| vectors.push(vector));
    vectors
}

/// [`ColumnPanel::last`] of vectors that are contiguous in `out`.
fn lanes_of_last(vectors: &[Vector], lanes: usize) -> u8 {
    let is_prefix = |vector: &Vector| u32::from(vector.valid) == (1 << vector.elements) - 1;
    match vectors.split_last() {
        Some((last, before))
            if is_prefix(last) && before.iter().all(|v| usize::from(v.elements) == lanes) =>
        {
            last.elements
        }
        _ => 0,
    }
}

/// `0..whole` in `count` ranges, as equal as can be, none empty if there are enough.
pub(crate) fn parts(whole: usize, count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..count).map(move |part| part_start(whole, count, part)..part_start(whole, count, part + 1))
}

/// Where part `part` of `count` starts: the first ones are the longer ones.
pub(crate) fn part_start(whole: usize, count: usize, part: usize) -> usize {
    part * (whole / count) + part.min(whole % count)
}

/// `0..whole` in `count` shares of tasks, none empty if there are enough. The larger ones lie among the others, so that threads
/// which each take neighbouring ones have as much to do.
pub(crate) fn shares(whole: usize, count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..count)
        .map(move |share| share_start(whole, count, share)..share_start(whole, count, share + 1))
}

/// Where share `share` of `count` starts: `⌊share · whole / count⌋`.
pub(crate) fn share_start(whole: usize, count: usize, share: usize) -> usize {
    share * (whole / count) + share * (whole % count) / count
}

/// The heights of an instruction set's tiles, and how fast the machine runs their vectors.
pub(crate) struct Tiles {
    /// The largest height of tiles of `n` vectors is `tallest[n - 1]`.
    pub(crate) tallest: Vec<usize>,
    /// How many vectors the machine loads, and how many it multiplies and adds, in a cycle.
    pub(crate) per_cycle: f64,
    /// As [`Engine::least_matrix_rows`](crate::engine::Engine::least_matrix_rows).
    pub(crate) least_matrix_rows: Option<usize>,
}

/// The most lines of a matrix register, and the most words of a line.
pub(crate) const MATRIX_LINES: usize = 16;

/// The most vectors of tiles that have their sums in matrix registers.
pub(crate) const MATRIX_VECTORS: usize = 2;

/// The panels that rows and columns are divided into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PanelShape {
    /// The height of the row panels.
    pub(crate) height: usize,
    /// The vectors of the column panels.
    pub(crate) vectors: usize,
    /// About how many cycles a `k` of all tiles takes.
    pub(crate) cycles: f64,
}

/// The panels that make the least work of `rows` by `vectors`.
pub(crate) fn shape(rows: usize, vectors: usize, tiles: &Tiles) -> PanelShape {
    let mut best = PanelShape {
        height: 1,
        vectors: 1,
        cycles: f64::INFINITY,
    };
    for (most, &tallest) in (1..).zip(&tiles.tallest) {
        if most > vectors.max(1) {
            break;
        }
        let (row_panels, column_panels) = (rows.div_ceil(tallest), vectors.div_ceil(most));
        let mut cycles = 0.0;
        for (h, row_count) in sizes(rows, row_panels) {
            for (n, column_count) in sizes(vectors, column_panels) {
                cycles += (row_count * column_count) as f64 * tiles.step_cycles(h, n);
            }
        }
        // Among equals the one with more vectors, which are not loaded as often.
        if cycles <= best.cycles * 0.999 {
            best = PanelShape {
                height: rows.div_ceil(row_panels.max(1)).max(1),
                vectors: most,
                cycles,
            };
        }
    }
    best
}

/// As [`shape`], for columns that are packed once for any number of rows: the vectors suit many rows, and the cycles are those
/// of many.
pub(crate) fn shared_shape(rows: usize, vectors: usize, tiles: &Tiles) -> PanelShape {
    /// A multiple of nearly every height of a tile.
    const MANY_ROWS: usize = 2520;
    let many = shape(MANY_ROWS, vectors, tiles);
    let panels = rows.div_ceil(tiles.tallest[many.vectors - 1]).max(1);
    PanelShape {
        height: rows.div_ceil(panels).max(1),
        ..many
    }
}

/// The vectors of the column panels that make the least work of `vectors` in tiles of the given
/// height.
pub(crate) fn width(height: usize, vectors: usize, tiles: &Tiles) -> usize {
    let cycles = |most: &usize| -> f64 {
        let of = |(n, count)| count as f64 * tiles.step_cycles(height, n);
        sizes(vectors, vectors.div_ceil(*most)).map(of).iter().sum()
    };
    (1..=tiles.tallest.len())
        .filter(|&most| tiles.tallest[most - 1] >= height)
        .min_by(|a, b| cycles(a).total_cmp(&cycles(b)))
        .unwrap_or(1)
}

/// The height of tiles whose sums are in matrix registers: `height` if all rows are equally far apart. The rows of each half of a
/// tile have to be: where rows lie in runs, as the pixels of a line do, a tile is a part of a run, or two whole runs.
pub(crate) fn aligned_height(height: usize, points: &[u32]) -> usize {
    let steps = points.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    let first = steps.clone().next();
    let run = 1 + steps.take_while(|step| Some(*step) == first).count();
    if run >= points.len() || !points.len().is_multiple_of(run) {
        return height;
    }
    let fits = |h: &usize| {
        let of_two_runs = *h == 2 * run && run <= MATRIX_LINES;
        run.is_multiple_of(*h) || of_two_runs && points.len().is_multiple_of(*h)
    };
    (LEAST_ALIGNED..=2 * MATRIX_LINES)
        .rev()
        .find(fits)
        .unwrap_or(height)
}

/// Lower tiles than this are not worth it.
const LEAST_ALIGNED: usize = 6;

/// The two sizes of parts, and how many there are of each.
fn sizes(whole: usize, count: usize) -> [(usize, usize); 2] {
    match count {
        0 => [(0, 0); 2],
        _ => [
            (whole / count + 1, whole % count),
            (whole / count, count - whole % count),
        ],
    }
}

impl Tiles {
    /// About how many cycles one `k` of a tile takes, with two loads of elements of rows a cycle and multiply-adds that take
    /// four, and the loop itself.
    fn step_cycles(&self, h: usize, n: usize) -> f64 {
        if self.has_matrices(h, n) {
            return Tiles::matrix_step_cycles(h, n);
        }
        let of_vectors = |count: usize| count as f64 / self.per_cycle;
        let loads = h as f64 / 2.0 + of_vectors(n);
        of_vectors(h * n).max(loads).max(4.0) + 0.5
    }

    /// Whether tiles of this size have their sums in matrix registers.
    pub(crate) fn has_matrices(&self, h: usize, n: usize) -> bool {
        n <= MATRIX_VECTORS && self.least_matrix_rows.is_some_and(|least| h >= least)
    }

    /// About how many cycles a word of `k` takes in such tiles: a product takes a cycle for each of its rows and has 16 words of
    /// `k`, of each of which it loads a line for each row and vector, two in a cycle.
    fn matrix_step_cycles(h: usize, n: usize) -> f64 {
        let (products, lines) = (h * n, h + MATRIX_LINES * n);
        products.max(lines.div_ceil(2)) as f64 / MATRIX_LINES as f64 + 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(per_cycle: f64) -> Tiles {
        Tiles {
            tallest: vec![14, 14, 9, 6, 5, 4, 3, 2],
            per_cycle,
            least_matrix_rows: None,
        }
    }

    #[test]
    fn shapes_suit_the_problem() {
        let tiles = tiles(2.0);
        let shape = |rows, vectors| {
            let shape = shape(rows, vectors, &tiles);
            (shape.height, shape.vectors)
        };
        assert_eq!(shape(1, 24), (1, 8));
        assert_eq!(shape(400, 24), (14, 2));
        assert_eq!(shape(16, 100), (8, 3));
        assert_eq!(shape(4, 1), (4, 1));
        assert_eq!(shape(0, 0), (1, 1));
        assert_eq!(width(1, 5, &tiles), 5);
        assert_eq!(width(14, 7, &tiles), 2);
        assert_eq!(width(1, 0, &tiles), 1);
    }

    #[test]
    fn tiles_of_matrix_registers_are_parts_of_lines_or_two_lines() {
        let height = |line: u32, lines: u32| {
            let pixels = |line_number: u32| (0..line).map(move |x| 1000 * line_number + 8 * x);
            let points: Vec<u32> = (0..lines).flat_map(pixels).collect();
            aligned_height(31, &points)
        };
        assert_eq!(height(56, 56), 28);
        assert_eq!(height(28, 3), 28);
        assert_eq!(height(14, 14), 28);
        assert_eq!(height(16, 4), 32);
        // No pairs of lines, and lines of which two are too much.
        assert_eq!(height(14, 13), 14);
        assert_eq!(height(26, 2), 26);
        assert_eq!(height(17, 2), 17);
        // All rows are equally far apart, or no tile is high enough.
        assert_eq!(height(100, 1), 31);
        assert_eq!(height(5, 3), 31);
        assert_eq!(height(37, 2), 31);
        assert_eq!(aligned_height(1, &[]), 1);
    }

    #[test]
    fn products_of_matrices_take_a_cycle_for_each_row() {
        let matrices = Tiles {
            tallest: vec![32, 32, 3],
            per_cycle: 2.0,
            least_matrix_rows: Some(4),
        };
        assert_eq!(matrices.step_cycles(32, 2), 4.5);
        assert_eq!(matrices.step_cycles(4, 2), 18.0 / 16.0 + 0.5);
        assert!(!matrices.has_matrices(3, 2) && !matrices.has_matrices(3, 3));
        assert_eq!(shape(400, 24, &matrices).height, 31);
    }

    #[test]
    fn halves_take_twice_the_cycles() {
        let cycles = |h, n| [2.0, 1.0].map(|per_cycle| tiles(per_cycle).step_cycles(h, n));
        assert_eq!(cycles(14, 2), [14.5, 28.5]);
        assert_eq!(cycles(1, 8), [5.0, 9.0]);
        // So few sums that they wait for each other.
        assert_eq!(cycles(2, 1), [4.5, 4.5]);
    }

    #[test]
    fn parts_are_equal_and_in_order() {
        assert_eq!(parts(10, 4).collect::<Vec<_>>(), [0..3, 3..6, 6..8, 8..10]);
        assert_eq!(parts(0, 0).count(), 0);
    }

    #[test]
    fn any_half_of_the_shares_is_half_of_the_whole() {
        assert_eq!(shares(10, 4).collect::<Vec<_>>(), [0..2, 2..5, 5..7, 7..10]);
        assert_eq!(shares(0, 0).count(), 0);
        for (whole, count) in (0..100).flat_map(|whole| [1, 2, 3, 8].map(|count| (whole, count))) {
            let starts: Vec<usize> = shares(whole, count).map(|s| s.start).collect();
            let ends: Vec<usize> = shares(whole, count).map(|s| s.end).collect();
            assert_eq!((starts[0], ends[count - 1]), (0, whole));
            assert_eq!(starts[1..], ends[..count - 1]);
            if count % 2 == 0 {
                assert_eq!(starts[count / 2], whole / 2);
            }
        }
    }

    #[test]
    fn a_vector_that_does_not_fit_out_is_scattered() {
        let (columns, contiguous) = ColumnVectors::packed(&[0, 1, 2, 3, 8, 9], 4, 2);
        // The first vector is whole, of the second one half is there.
        assert!(contiguous && columns.panels[0].last == 2 && !columns.panels[0].is_whole(4));
        let (columns, _) = ColumnVectors::packed(&[0, 1, 2, 3, 8, 9, 10, 11], 4, 2);
        assert!(columns.panels[0].is_whole(4));
        let (columns, contiguous) = ColumnVectors::packed(&[0, 2, 4, 6, 8], 4, 2);
        assert!(!contiguous && columns.panels[0].last == 0);
        assert_eq!(columns.vectors[1].to, 4);
    }
}
