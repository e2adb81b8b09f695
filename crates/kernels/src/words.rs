//! Rows of bytes that tiles read word by word.

use crate::groups::Side;

/// Where the words of the row side are, in words: each of as many bytes as a step has `k`, which lie beside each other in the
/// operand. Where words are of two numbers of 16 bits, bytes are widened first, so that the same offsets count words of these.
#[derive(Debug)]
pub(crate) struct RowWords {
    /// The offset of the first word of each row.
    pub(crate) rows: Box<[u32]>,
    /// The offset of each step.
    pub(crate) steps: Box<[u32]>,
    /// Whether they are words of bytes widened to 16 bits.
    pub(crate) are_widened: bool,
}

impl RowWords {
    /// The words of `group` bytes of `side`, if all of them lie whole words apart.
    pub(crate) fn of(side: &Side, group: usize, are_widened: bool) -> Option<RowWords> {
        if side.needed == 0 {
            return None;
        }
        let in_words = |offset: &u32| {
            let offset = *offset as usize;
            (offset.is_multiple_of(group)).then_some((offset / group) as u32)
        };
        let step = |word: &[u32]| {
            let is_whole = word.len() == group && word.iter().zip(word[0]..).all(|(a, b)| *a == b);
            in_words(&word[0]).filter(|_| is_whole)
        };
        Some(RowWords {
            rows: side.points.iter().map(in_words).collect::<Option<_>>()?,
            steps: side
                .offsets
                .chunks(group)
                .map(step)
                .collect::<Option<_>>()?,
            are_widened,
        })
    }
}
