//! The `k` best of neighbouring columns of keys, several at a time.

use super::best::Best;
use super::lanes::{Key, LANES, Row, lesser};
use crate::TensorError;
use crate::memory::filled;

/// The most that are looked for in a block: the bounds cost the square of them.
const MOST: usize = 12;

/// The rows whose bits are in one number.
const WORD: usize = u32::BITS as usize;

/// Finds the best of the columns of a block with the same steps for each column, so that they are done for several at
/// once: bounds of the best, as [`Best::start`] has them, then a bit for each key that is not above the bound of its
/// column.
#[derive(Debug)]
pub(super) struct Columns<K> {
    k: usize,
    minima: Vec<Row<K>>,
    hits: Vec<[u32; LANES]>,
}

impl<K: Key> Columns<K> {
    /// `None` if it would not pay for `k` of `extent`.
    pub(super) fn new(k: usize, extent: usize) -> Result<Option<Columns<K>>, TensorError> {
        if k > MOST {
            return Ok(None);
        }
        // More groups mean fewer keys that are not above the bound by chance, but more steps to find it.
        let groups = (k + k / 2 + 1).min(extent);
        Ok(Some(Columns {
            k,
            minima: filled(groups, [K::WORST; LANES])?,
            hits: filled(extent.div_ceil(WORD), [0; LANES])?,
        }))
    }

    /// Finds the keys of these rows that may be among the best of their column.
    pub(super) fn find(&mut self, rows: &[Row<K>]) {
        let bounds = self.bounds(rows);
        for (found, rows) in self.hits.iter_mut().zip(rows.chunks(WORD)) {
            let used = u32::MAX >> (WORD - rows.len());
            let mut above = [0u32; LANES];
            // The bit of the first row comes last, so that it is the lowest.
            for row in rows.iter().rev() {
                for (c, bits) in above.iter_mut().enumerate() {
                    *bits = *bits << 1 | u32::from(bounds[c] < row[c]);
                }
            }
            for (c, found) in found.iter_mut().enumerate() {
                *found = !above[c] & used;
            }
        }
    }

    /// Gives those of one column to `best`.
    pub(super) fn give(&self, rows: &[Row<K>], column: usize, best: &mut Best) {
        best.clear();
        for (word, bits) in self.hits.iter().enumerate() {
            let mut bits = bits[column];
            while bits != 0 {
                let row = word * WORD + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                best.push(rows[row][column].narrow(), row as u32);
            }
        }
    }

    /// A key for each column that none of its `k` best is above.
    fn bounds(&mut self, rows: &[Row<K>]) -> Row<K> {
        let groups = self.minima.len();
        let (first, rest) = rows.split_at(groups);
        for (minima, row) in self.minima.iter_mut().zip(first) {
            *minima = lesser(&[K::WORST; LANES], row);
        }
        for rows in rest.chunks(groups) {
            for (minima, row) in self.minima.iter_mut().zip(rows) {
                *minima = lesser(minima, row);
            }
        }
        // The least of them are moved to the front, one by one.
        let mut bounds = self.minima[0];
        for first in 0..self.k {
            bounds = self.minima[first];
            for other in &mut self.minima[first + 1..] {
                let least = lesser(&bounds, other);
                *other = greater(&bounds, other);
                bounds = least;
            }
        }
        bounds
    }
}

fn greater<K: Key>(a: &Row<K>, b: &Row<K>) -> Row<K> {
    let mut greater = *a;
    for (c, x) in greater.iter_mut().enumerate() {
        *x = if b[c] < *x { *x } else { b[c] };
    }
    greater
}
