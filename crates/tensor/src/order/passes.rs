//! The `k` best of neighbouring columns of few keys, each by a pass over all of them.

use super::best::Best;
use super::lanes::{Key, Least, Row};
use crate::TensorError;
use crate::memory::filled;

/// The most keys of a column that all passes together look at: with more of them, a bound leaves most out sooner.
const MOST: usize = 160;

/// Finds the best of the columns of a block with the same steps for each column, so that they are done for several at
/// once: the best one, the best one of the others, and so on.
#[derive(Debug)]
pub(super) struct Passes<K> {
    found: Vec<Least<K>>,
    /// The positions of a column.
    positions: Vec<u32>,
}

impl<K: Key> Passes<K> {
    /// `None` if it would not pay for `k` of `extent`.
    pub(super) fn new(k: usize, extent: usize) -> Result<Option<Passes<K>>, TensorError> {
        if k.saturating_mul(extent) > MOST {
            return Ok(None);
        }
        Ok(Some(Passes {
            found: filled(k, Least::NONE)?,
            positions: filled(k, 0)?,
        }))
    }

    /// Finds the best of these rows, and makes them the worst there.
    pub(super) fn find(&mut self, rows: &mut [Row<K>]) {
        for found in &mut self.found {
            *found = Least::of(rows.iter().copied());
            for (lane, row) in found.rows.iter().enumerate() {
                let key = &mut rows[*row as usize][lane];
                // There may have been none.
                *key = if *key < K::WORST { K::WORST } else { *key };
            }
        }
    }

    /// The positions of the best of a column: the best first, or the lowest first if `by_position`; `None` if the worst is among
    /// them, which others that are not ordered may come before.
    pub(super) fn positions(
        &mut self,
        column: usize,
        by_position: bool,
    ) -> Option<impl Iterator<Item = usize>> {
        let is_ordered = |found: &Least<K>| found.keys[column] < K::WORST;
        let found = self.found.iter().all(is_ordered).then_some(&self.found)?;
        for (position, found) in self.positions.iter_mut().zip(found) {
            *position = found.rows[column];
        }
        if by_position {
            self.positions.sort_unstable();
        }
        Some(self.positions.iter().map(|position| *position as usize))
    }

    /// Gives all keys of a column to `best`.
    pub(super) fn give(&self, rows: &[Row<K>], column: usize, best: &mut Best) {
        best.clear();
        for (row, position) in rows.iter().zip(0..) {
            let taken = self
                .found
                .iter()
                .find(|found| found.rows[column] == position && found.keys[column] < K::WORST);
            let key = taken.map_or(row[column], |found| found.keys[column]);
            best.push(key.narrow(), position);
        }
    }
}
