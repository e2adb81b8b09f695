//! Laying an operand out as the micro-kernel reads it.
//!
//! A panel is `k` lines of `width` elements; line `k` holds the elements of `width` points (rows or
//! columns) at that `k`. Lanes past the last point are zero. Of bytes, a line holds words of several
//! `k`, as many as one step of the micro-kernel takes, with zeros past the last `k`.

pub(crate) mod runs;
pub(crate) mod words;

use std::mem::MaybeUninit;

use crate::lanes::{Number, Simd, Vector};
use words::WidenBytes;

/// The most points that are packed at a time; a panel has at most half as many.
pub(crate) const MOST_POINTS: usize = 256;

/// How many elements ahead of those that are laid across are fetched: there are too many lines for the machine to look ahead by
/// itself.
pub(crate) const AHEAD: usize = 64;

/// A panel to be packed.
pub(crate) struct Block<'a, T: Number> {
    pub(crate) from: *const T::Item,
    pub(crate) to: *mut T,
    pub(crate) width: usize,
    /// The offset of each point, at most `width` of them and more than `width` minus a vector.
    pub(crate) points: &'a [u32],
    /// How many lines.
    pub(crate) k: usize,
    /// The offset of each `k`: of each line, or of each element of its words.
    pub(crate) offsets: &'a [u32],
    /// Whether each offset is its number.
    pub(crate) unit: bool,
    /// Whether bytes have signs.
    pub(crate) signed: bool,
}

/// How an engine packs.
pub(crate) enum Packing<T: Number> {
    /// Each element is one of the operand's.
    Elements {
        /// [`whole`].
        whole: unsafe fn(&Block<T>, &[Whole]),
        /// [`along`].
        along: unsafe fn(&Block<T>, &[Vector]),
        /// [`across`].
        across: unsafe fn(&Block<T>),
        /// [`scattered`].
        scattered: unsafe fn(&Block<T>),
    },
    /// Each element is a word of several of the operand's.
    Words {
        /// [`words::words`]. The points are those of the block and of those that are packed after it.
        pack: unsafe fn(&Block<T>, &[u32]),
        /// [`words::widen_bytes`], where words are of two numbers of 16 bits; those of four bytes are as they lie in the
        /// operand.
        widen_bytes: Option<unsafe fn(&WidenBytes)>,
    },
}

/// Packs a block in the way that suits its strides: `panels` panels, each `block.width` wide and
/// `stride` elements after the one before. If there are several, their points fill them. `lanes` are those of a vector.
///
/// # Safety
/// The machine has the instructions of `packing`; every point of every line may be read, and all lines written.
pub(crate) unsafe fn pack<T: Number>(
    packing: &Packing<T>,
    lanes: usize,
    block: &Block<T>,
    panels: usize,
    stride: usize,
) {
    let width = block.points.len() / panels;
    let each = |pack: &dyn Fn(&Block<T>, usize)| {
        for panel in 0..panels {
            let first = panel * width;
            let one = Block {
                points: &block.points[first..first + width],
                to: block.to.wrapping_add(panel * stride),
                ..*block
            };
            pack(&one, first);
        }
    };
    let (in_vectors, in_runs, in_lines, one_by_one) = match *packing {
        Packing::Elements {
            whole,
            along,
            across,
            scattered,
        } => (whole, along, across, scattered),
        Packing::Words { pack: words, .. } => {
            let points = block.points;
            // SAFETY: the caller's contract, for each panel.
            return each(&|block, first| unsafe { words(block, &points[first..]) });
        }
    };
    let mut vectors = [const { MaybeUninit::<Whole>::uninit() }; MOST_POINTS];
    if let Some(count) = whole_vectors(block, lanes, panels, stride, &mut vectors) {
        // SAFETY: the first `count` were written; the caller's contract. The vectors are all points.
        return unsafe {
            let vectors = std::slice::from_raw_parts(vectors.as_ptr().cast::<Whole>(), count);
            in_vectors(block, vectors)
        };
    }
    let mut runs = [const { MaybeUninit::<Vector>::uninit() }; MOST_POINTS];
    let mut count = 0;
    for panel in 0..panels {
        let points = &block.points[panel * width..(panel + 1) * width];
        let place = |point| (panel * stride + point) as u32;
        each_run(points, lanes, place, |run| {
            runs[count].write(run);
            count += 1;
        });
    }
    // SAFETY: the first `count` were written.
    let runs = unsafe { std::slice::from_raw_parts(runs.as_ptr().cast::<Vector>(), count) };
    let points = block.points.len();
    let along = 3 * count <= points || (!block.unit || block.k == 1) && 2 * count <= points;
    // SAFETY: the caller's contract. The runs cover the points and nothing beyond the last.
    unsafe {
        if along || points == 1 && !block.unit {
            return in_runs(block, runs);
        }
    }
    each(&|block, _| match block.unit {
        // SAFETY: the caller's contract, for each panel.
        true => unsafe { in_lines(block) },
        // SAFETY: as above.
        false => unsafe { one_by_one(block) },
    });
}

/// Points that are all lanes of a vector, `step` elements apart, from the one at `from` on; packed from `to` on.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    from: u32,
    to: u32,
    step: Step,
}

/// How far the points of a vector are apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    One,
    Two,
}

/// Writes the points of all panels as whole vectors, and says how many, if that is what they are.
fn whole_vectors<T: Number>(
    block: &Block<T>,
    lanes: usize,
    panels: usize,
    stride: usize,
    vectors: &mut [MaybeUninit<Whole>],
) -> Option<usize> {
    let width = block.points.len() / panels;
    if width != block.width || !width.is_multiple_of(lanes) || lanes < 2 || block.k == 1 {
        return None;
    }
    let mut count = 0;
    for chunk in block.points.chunks(lanes) {
        let step = match chunk[1].wrapping_sub(chunk[0]) {
            1 => Step::One,
            2 => Step::Two,
            _ => return None,
        };
        let apart = 1 + u32::from(step == Step::Two);
        if !chunk
            .windows(2)
            .all(|two| two[1].wrapping_sub(two[0]) == apart)
        {
            return None;
        }
        let first = count * lanes;
        vectors[count].write(Whole {
            from: chunk[0],
            to: (first / width * stride + first % width) as u32,
            step,
        });
        count += 1;
    }
    Some(count)
}

/// Packs by vectors of points, all of whose lanes are some.
///
/// # Safety
/// as [`pack`]; the machine has the instructions.
#[inline(always)]
pub(crate) unsafe fn whole<S: Simd>(block: &Block<S::T>, vectors: &[Whole])
where
    S::T: Number<Item = S::T>,
{
    for (k, &offset) in block.offsets[..block.k].iter().enumerate() {
        let from = block.from.wrapping_add(offset as usize);
        let line = block.to.wrapping_add(k * block.width);
        for vector in vectors {
            let from = from.wrapping_add(vector.from as usize);
            // SAFETY: by the caller's contract; between the first and the last lane lies nothing else.
            unsafe {
                let lanes = match vector.step {
                    Step::One => S::load(from),
                    Step::Two => S::load_every_second(from),
                };
                S::store(line.wrapping_add(vector.to as usize), lanes);
            }
        }
    }
}

/// Splits `points` into vectors of at most `lanes` lanes, so that the elements of each lie within
/// that many elements of its first, in order, and have places one after another.
pub(crate) fn each_run(
    points: &[u32],
    lanes: usize,
    place: impl Fn(usize) -> u32,
    mut run: impl FnMut(Vector),
) {
    let mut current: Option<(Vector, u32)> = None;
    for (point, &from) in points.iter().enumerate() {
        let place = place(point);
        if let Some((vector, next)) = &mut current {
            let lane = (from as usize).wrapping_sub(vector.from as usize);
            if lane < lanes && lane >= vector.load as usize && place == *next {
                vector.valid |= 1 << lane;
                vector.load = lane as u8 + 1;
                vector.elements += 1;
                *next += 1;
                continue;
            }
            run(*vector);
        }
        current = Some((
            Vector {
                from,
                to: place,
                valid: 1,
                load: 1,
                elements: 1,
            },
            place + 1,
        ));
    }
    if let Some((vector, _)) = current {
        run(vector);
    }
}

/// Packs by vectors that lie along the points.
///
/// # Safety
/// as [`pack`]; the machine has the instructions.
#[inline(always)]
pub(crate) unsafe fn along<S: Simd>(block: &Block<S::T>, runs: &[Vector])
where
    S::T: Number<Item = S::T>,
{
    let padding = block.points.len()..block.width;
    if let ([run], true) = (runs, padding.is_empty())
        && run.load == run.elements
    {
        // Apart, because this is how rows are packed that lie one after another: all but the offsets stays in
        // registers.
        let (from, lanes) = (
            block.from.wrapping_add(run.from as usize),
            run.load as usize,
        );
        let mut line = block.to.wrapping_add(run.to as usize);
        for (k, &offset) in block.offsets[..block.k].iter().enumerate() {
            // SAFETY: by the caller's contract; a run loads no lane after its last point.
            unsafe {
                let v = S::load_first(from.wrapping_add(offset as usize), lanes);
                store_line::<S>(line, v, lanes, (block.k - k) * block.width);
            }
            line = line.wrapping_add(block.width);
        }
        return;
    }
    for (k, &offset) in block.offsets[..block.k].iter().enumerate() {
        // SAFETY: by the caller's contract; a run loads no lane after its last point.
        unsafe {
            let line = block.to.add(k * block.width);
            for run in runs {
                let from = block.from.wrapping_add(offset as usize + run.from as usize);
                let mut lanes = S::load_first(from, run.load as usize);
                if run.elements != run.load {
                    lanes = S::compress(lanes, run.valid);
                }
                // Of the lines of a panel, whose width is at least one, those after this one have room for a vector.
                let room = match k + S::LANES <= block.k {
                    true => S::LANES,
                    false => 0,
                };
                store_line::<S>(
                    line.add(run.to as usize),
                    lanes,
                    run.elements as usize,
                    room,
                );
            }
            for lane in padding.clone() {
                line.add(lane).write_unaligned(S::T::ZERO);
            }
        }
    }
}

/// Stores `lanes` elements of a line, from which on the panel has `room` elements: a whole vector where there is room, as
/// the lanes too many are those of elements that are stored after it. A store of some lanes takes AVX2 machines several times as long.
///
/// # Safety
/// `room` elements may be written from `line` on, at least `lanes`; the machine has the instructions.
#[inline(always)]
pub(crate) unsafe fn store_line<S: Simd>(line: *mut S::T, v: S::V, lanes: usize, room: usize) {
    // SAFETY: the caller's.
    unsafe {
        match room >= S::LANES {
            true => S::store(line, v),
            false => S::store_first(line, v, lanes),
        }
    }
}

/// Packs a block whose lines follow each other in the operand, that is, transposes it.
///
/// # Safety
/// as [`pack`].
pub(crate) unsafe fn across<T: Number<Item = T>>(block: &Block<T>) {
    const TILE: usize = 16;
    for start in (0..block.k).step_by(TILE) {
        let depth = (block.k - start).min(TILE);
        for lane in 0..block.width {
            for k in start..start + depth {
                // SAFETY: by the caller's contract.
                unsafe {
                    let element = match block.points.get(lane) {
                        Some(&point) => {
                            let from = block.from.wrapping_add(point as usize + k);
                            from.read_unaligned()
                        }
                        None => T::ZERO,
                    };
                    block
                        .to
                        .add(k * block.width + lane)
                        .write_unaligned(element);
                }
            }
        }
    }
}

/// Packs element by element.
///
/// # Safety
/// as [`pack`].
pub(crate) unsafe fn scattered<T: Number<Item = T>>(block: &Block<T>) {
    for (k, &offset) in block.offsets[..block.k].iter().enumerate() {
        // SAFETY: by the caller's contract.
        unsafe {
            let (from, line) = (
                block.from.wrapping_add(offset as usize),
                block.to.add(k * block.width),
            );
            for (lane, &point) in block.points.iter().enumerate() {
                line.add(lane)
                    .write_unaligned(from.wrapping_add(point as usize).read_unaligned());
            }
            for lane in block.points.len()..block.width {
                line.add(lane).write_unaligned(T::ZERO);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(points: &[u32], lanes: usize) -> Vec<(u32, u32, u16, u8)> {
        let mut runs = Vec::new();
        each_run(
            points,
            lanes,
            |point| point as u32,
            |v| {
                runs.push((v.from, v.to, v.valid, v.load));
            },
        );
        runs
    }

    #[test]
    fn runs_span_small_gaps() {
        // Rows of three in lines of five; then every second; then points that step back.
        assert_eq!(
            runs(&[0, 1, 2, 5, 6, 7, 10], 8),
            [(0, 0, 0b1110_0111, 8), (10, 6, 1, 1)]
        );
        assert_eq!(
            runs(&[0, 2, 4, 6, 8], 4),
            [(0, 0, 0b101, 3), (4, 2, 0b101, 3), (8, 4, 1, 1)]
        );
        assert_eq!(
            runs(&[3, 3, 1], 4),
            [(3, 0, 1, 1), (3, 1, 1, 1), (1, 2, 1, 1)]
        );
        assert_eq!(runs(&[], 4), []);
    }
}
