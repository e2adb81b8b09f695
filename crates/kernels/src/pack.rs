//! Laying an operand out as the micro-kernel reads it.
//!
//! A panel is `k` lines of `width` elements; line `k` holds the elements of `width` points (rows or
//! columns) at that `k`. Lanes past the last point are zero.

use std::mem::MaybeUninit;

use crate::simd::{Float, Simd};
use crate::tile::{Engine, Vector};

/// The most points that are packed at a time; a panel has at most half as many.
pub(crate) const MOST_POINTS: usize = 256;

/// A panel to be packed.
pub(crate) struct Block<'a, T> {
    pub(crate) from: *const T,
    pub(crate) to: *mut T,
    pub(crate) width: usize,
    /// The offset of each point, at most `width` of them and more than `width` minus a vector.
    pub(crate) points: &'a [u32],
    /// How many lines, and the offset of each.
    pub(crate) k: usize,
    pub(crate) offsets: &'a [u32],
    /// Whether the offset of each line is its number.
    pub(crate) unit: bool,
}

/// Packs a block in the way that suits its strides: `panels` panels, each `block.width` wide and
/// `stride` elements after the one before. If there are several, their points fill them.
///
/// # Safety
/// The engine is of this machine; every point of every line may be read, and all lines written.
pub(crate) unsafe fn pack<T: Float>(
    engine: &Engine<T>,
    block: &Block<T>,
    panels: usize,
    stride: usize,
) {
    let mut runs = [const { MaybeUninit::<Vector>::uninit() }; MOST_POINTS];
    let mut count = 0;
    for panel in 0..panels {
        let width = block.points.len() / panels;
        let points = &block.points[panel * width..(panel + 1) * width];
        let place = |point| (panel * stride + point) as u32;
        each_run(points, engine.lanes, place, |run| {
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
            return (engine.along)(block, runs);
        }
        for panel in 0..panels {
            let width = points / panels;
            let to = block.to.add(panel * stride);
            let points = &block.points[panel * width..(panel + 1) * width];
            let block = Block {
                points,
                to,
                ..*block
            };
            if block.unit {
                (engine.across)(&block)
            } else {
                scattered(&block)
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
pub(crate) unsafe fn along<S: Simd>(block: &Block<S::T>, runs: &[Vector]) {
    let padding = block.points.len()..block.width;
    for (k, &offset) in block.offsets[..block.k].iter().enumerate() {
        // SAFETY: by the caller's contract; a run loads no lane after its last point.
        unsafe {
            let line = block.to.add(k * block.width);
            for run in runs {
                let from = block.from.add(offset as usize + run.from as usize);
                let lanes = S::compress(S::load_first(from, run.load as usize), run.valid);
                S::store_first(line.add(run.to as usize), lanes, run.elements as usize);
            }
            for lane in padding.clone() {
                line.add(lane).write_unaligned(S::T::ZERO);
            }
        }
    }
}

/// Packs a block whose lines follow each other in the operand, that is, transposes it.
///
/// # Safety
/// as [`pack`].
pub(crate) unsafe fn across<T: Float>(block: &Block<T>) {
    const TILE: usize = 16;
    for start in (0..block.k).step_by(TILE) {
        let depth = (block.k - start).min(TILE);
        for lane in 0..block.width {
            for k in start..start + depth {
                // SAFETY: by the caller's contract.
                unsafe {
                    let element = match block.points.get(lane) {
                        Some(&point) => block.from.add(point as usize + k).read_unaligned(),
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
unsafe fn scattered<T: Float>(block: &Block<T>) {
    for (k, &offset) in block.offsets[..block.k].iter().enumerate() {
        // SAFETY: by the caller's contract.
        unsafe {
            let (from, line) = (
                block.from.add(offset as usize),
                block.to.add(k * block.width),
            );
            for (lane, &point) in block.points.iter().enumerate() {
                line.add(lane)
                    .write_unaligned(from.add(point as usize).read_unaligned());
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
