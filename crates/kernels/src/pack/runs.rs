//! Points of which many are consecutive bytes, or every second, so that vectors of them are loaded at once.

use super::MOST_POINTS;
use std::mem::MaybeUninit;

/// The points of a vector: lane `l` is at `first + l · step` if it is less than `split`, and at `second + l · step` otherwise. In
/// both runs the bytes of all lanes may be read, and those between them: they are the operand's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) first: u32,
    pub(crate) second: u32,
    pub(crate) split: u8,
    /// How many lanes there are: fewer than a vector has where no more points follow, which are one run then.
    pub(crate) lanes: u8,
    /// 1 or 2.
    pub(crate) step: u8,
}

impl Runs {
    /// The runs that the points of a vector are, if there are at most two, both of one step.
    fn of(points: &[u32], lanes: usize) -> Option<Runs> {
        Runs::with_step(points, lanes, 1).or_else(|| Runs::with_step(points, lanes, 2))
    }

    fn with_step(points: &[u32], lanes: usize, step: u8) -> Option<Runs> {
        let first = points[0];
        let apart = u32::from(step);
        let split = run(points, apart);
        let second = match points.get(split) {
            None => first,
            Some(point) => {
                let fits = points.len() == lanes && run(&points[split..], apart) == lanes - split;
                let start = point.checked_sub(split as u32 * apart);
                start.filter(|start| fits && *start >= first)?
            }
        };
        Some(Runs {
            first,
            second,
            split: split as u8,
            lanes: points.len() as u8,
            step,
        })
    }

    /// Whether all lanes are in the first run.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn is_one(&self) -> bool {
        self.split == self.lanes
    }
}

/// The runs of the vectors of a panel of `width` points, of which `points` has those that follow, too.
pub(crate) fn runs_of<'a>(
    points: &[u32],
    width: usize,
    lanes: usize,
    runs: &'a mut [MaybeUninit<Runs>; MOST_POINTS],
) -> Option<&'a [Runs]> {
    let count = width.div_ceil(lanes);
    for (number, to) in runs.iter_mut().enumerate().take(count) {
        let points = &points[number * lanes..];
        to.write(Runs::of(&points[..points.len().min(lanes)], lanes)?);
    }
    // SAFETY: the first `count` were written.
    Some(unsafe { std::slice::from_raw_parts(runs.as_ptr().cast::<Runs>(), count) })
}

/// How many of the offsets follow each other, `step` apart, from the first on.
#[inline(always)]
pub(crate) fn run(offsets: &[u32], step: u32) -> usize {
    let follow = offsets
        .windows(2)
        .take_while(|two| two[1].wrapping_sub(two[0]) == step);
    (follow.count() + 1).min(offsets.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_where_offsets_do_not_follow() {
        assert_eq!(run(&[7, 8, 9, 10, 30, 31], 1), 4);
        assert_eq!(run(&[7, 9, 10, 11], 1), 1);
        assert_eq!(run(&[7, 9, 11, 12], 2), 3);
        assert_eq!(run(&[0, 1, 2], 1), 3);
        assert_eq!(run(&[], 1), 0);
    }

    #[test]
    fn vectors_lie_in_one_or_two_runs() {
        let runs = |points: &[u32]| {
            let of = Runs::of(points, 4)?;
            Some((of.first, of.second, of.split, of.lanes, of.step))
        };
        assert_eq!(runs(&[5, 6, 7, 8]), Some((5, 5, 4, 4, 1)));
        assert_eq!(runs(&[5, 6, 7, 12]), Some((5, 9, 3, 4, 1)));
        assert_eq!(runs(&[5, 9, 10, 11]), Some((5, 8, 1, 4, 1)));
        assert_eq!(runs(&[5, 7, 9, 11]), Some((5, 5, 4, 4, 2)));
        assert_eq!(runs(&[5, 9, 11, 13]), Some((5, 7, 1, 4, 2)));
        // Three runs; a run before the other; the same point twice; two steps.
        assert_eq!(runs(&[5, 9, 10, 12]), None);
        assert_eq!(runs(&[5, 6, 1, 2]), None);
        assert_eq!(runs(&[5, 6, 6, 7]), None);
        assert_eq!(runs(&[5, 7, 10, 11]), None);
        // Fewer than a vector has, and nothing after them.
        assert_eq!(runs(&[5, 6]), Some((5, 5, 2, 2, 1)));
        assert_eq!(runs(&[5, 7]), Some((5, 5, 2, 2, 2)));
        assert_eq!(runs(&[5, 8]), None);
    }
}
