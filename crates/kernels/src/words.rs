//! Rows of bytes that tiles read word by word.

use crate::geometry::MATRIX_LINES;
use crate::groups::Side;

/// To read a `k` again costs a product for each column. To pack one costs about as much as this many products.
const MOST_AGAIN: usize = 64;

/// Where the words of a row are, from its point on: each of as many elements as a step has `k`, which lie beside each other in the
/// operand. Offsets count elements, which are bytes, or, where bytes are widened first, numbers of 16 bits.
#[derive(Debug)]
pub(crate) struct RowWords {
    /// The offset of each step.
    pub(crate) steps: Box<[u32]>,
    /// Whether they are words of bytes widened to 16 bits.
    pub(crate) are_widened: bool,
}

impl RowWords {
    /// The words of `group` elements of `side`, if the elements of each lie beside each other.
    pub(crate) fn of(side: &Side, group: usize, are_widened: bool) -> Option<RowWords> {
        if side.needed == 0 {
            return None;
        }
        let step = |word: &[u32]| {
            let is_whole = word.len() == group && word.iter().zip(word[0]..).all(|(a, b)| *a == b);
            is_whole.then_some(word[0])
        };
        Some(RowWords {
            steps: side
                .offsets
                .chunks(group)
                .map(step)
                .collect::<Option<_>>()?,
            are_widened,
        })
    }
}

impl RowWords {
    /// How many words lie beside each other from each step of a multiple of as many on: the most that a line of a matrix register
    /// has room for and all runs are multiples of, or 0 if that is too few to be of use.
    pub(crate) fn line(&self) -> usize {
        const LEAST: usize = 4;
        let runs = self.steps.chunk_by(|a, b| a.checked_add(4) == Some(*b));
        let runs: Vec<usize> = runs.map(<[u32]>::len).collect();
        let divides_all = |line: &usize| runs.iter().all(|run| run.is_multiple_of(*line));
        (LEAST..=MATRIX_LINES).rev().find(divides_all).unwrap_or(0)
    }
}

/// The order in which steps take the `k` of a sum whose elements lie in runs on the row side, each at least a word long but
/// not of whole words: the last word of a run begins so early that it ends with the run, and has some `k` again.
///
/// > `0 1 2 3 4 5 6 7 8` in words of four is `0 1 2 3 | 4 5 6 7 | 5 6 7 8`
///
/// The column side is zero where a `k` comes again. Tiles can then read the words of rows where they are.
#[derive(Debug)]
pub(crate) struct Overlap {
    /// The number of the `k` of each element of each word.
    order: Vec<u32>,
    /// For each word the bits of the elements that come for the first time.
    pub(crate) first: Box<[u32]>,
}

impl Overlap {
    /// The order for `offsets` of the row side in words of `group` elements, if that makes words of it and pays for this many
    /// `columns`.
    pub(crate) fn of(offsets: &[u32], group: usize, columns: usize) -> Option<Overlap> {
        let bits = u32::BITS as usize / group;
        let mut overlap = Overlap {
            order: Vec::with_capacity(offsets.len() + offsets.len() / 2),
            first: Box::default(),
        };
        let mut first = Vec::new();
        let mut start = 0;
        for run in offsets.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            if run.len() < group {
                return None;
            }
            for from in (0..run.len()).step_by(group) {
                let begin = from.min(run.len() - group);
                let word = (start + begin) as u32;
                overlap.order.extend(word..word + group as u32);
                first.push(u32::MAX << (bits * (from - begin)));
            }
            start += run.len();
        }
        overlap.first = first.into();
        let again = overlap.order.len() - offsets.len();
        let pays = again.saturating_mul(columns) <= MOST_AGAIN * offsets.len();
        (again > 0 && pays).then_some(overlap)
    }

    /// Puts the `k` of a side in this order.
    pub(crate) fn apply(&self, side: &mut Side) {
        let offsets = self.order.iter().map(|k| side.offsets[*k as usize]);
        side.offsets = offsets.collect();
        side.ordered = side.offsets.is_sorted();
        side.k_line = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parts_of_all_runs() {
        let line = |runs: &[u32]| {
            let words = |(run, words): (usize, &u32)| {
                let start = 1000 * run as u32;
                (0..*words).map(move |word| start + 4 * word)
            };
            let steps = runs.iter().enumerate().flat_map(words).collect();
            let are_widened = false;
            RowWords { steps, are_widened }.line()
        };
        assert_eq!(line(&[16]), 16);
        assert_eq!(line(&[48, 48, 48]), 16);
        assert_eq!(line(&[24, 24]), 12);
        assert_eq!(line(&[19]), 0);
        assert_eq!(line(&[22, 33]), 11);
        assert_eq!(line(&[4]), 4);
        // Too few words, and runs that have no line in common.
        assert_eq!(line(&[3, 3]), 0);
        assert_eq!(line(&[16, 15]), 0);
    }

    #[test]
    fn the_last_word_of_a_run_ends_with_it() {
        let window: Vec<u32> = (0..9).chain(100..109).collect();
        let overlap = Overlap::of(&window, 4, 32).unwrap();
        let words = |start: u32| [0, 1, 2, 3, 4, 5, 6, 7, 5, 6, 7, 8].map(|k| start + k);
        assert_eq!(overlap.order, [words(0), words(9)].concat());
        let masks = [u32::MAX, u32::MAX, 0xff00_0000];
        assert_eq!(*overlap.first, *[masks, masks].concat());

        let overlap = Overlap::of(&window[..9], 2, 32).unwrap();
        assert_eq!(overlap.order, [0, 1, 2, 3, 4, 5, 6, 7, 7, 8]);
        assert_eq!(*overlap.first.last().unwrap(), 0xffff_0000);
    }

    #[test]
    fn orders_that_make_no_words_or_do_not_pay_stay() {
        let runs = |length: u32, count: u32| -> Vec<u32> {
            let starts = (0..count).map(|run| 100 * run);
            starts.flat_map(|start| start..start + length).collect()
        };
        // Whole words; less than a word.
        assert!(Overlap::of(&runs(8, 3), 4, 1).is_none());
        assert!(Overlap::of(&runs(3, 3), 4, 1).is_none());
        // Three of nine again, for 192 columns and one more.
        assert!(Overlap::of(&runs(9, 3), 4, 192).is_some());
        assert!(Overlap::of(&runs(9, 3), 4, 193).is_none());
    }
}
