//! The best elements of the slices of a tensor along an axis.

use super::best::Best;
use super::columns::{COLUMNS, Columns};
use super::narrow::NarrowKeys;
use super::{Direction, keys, select, sort};
use crate::memory::{filled, room_for};
use crate::{Tensor, TensorError};

/// How many keys of a line are made at once.
const BLOCK: usize = 4096;

/// Which elements of each slice [`best_along`] finds.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The element that comes first in this direction is the better one; of equal elements the one with the lowest position.
    pub direction: Direction,
    /// How many of each slice: at least 1, and at most as many as it has.
    pub k: usize,
    /// Whether those of the lowest positions come first, not the best.
    pub by_position: bool,
}

/// The best elements of the slices, in the order of a tensor of them.
#[derive(Debug)]
pub struct Found {
    /// Their positions in their slices.
    pub indices: Vec<i64>,
    /// Their positions among all elements.
    pub places: Vec<usize>,
}

/// Finds the `k` best elements of each slice of a tensor of dims `[outer, extent, inner]` along the second of them. After
/// a few slices each it asks whether to go on; `None` is the answer if not.
pub fn best_along(
    tensor: &Tensor,
    [outer, extent, inner]: [usize; 3],
    wanted: Wanted,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Found>, TensorError> {
    let count = outer.saturating_mul(wanted.k).saturating_mul(inner);
    let mut slices = Slices {
        extent,
        inner,
        wanted,
        go_on,
        found: Found {
            indices: filled(count, 0)?,
            places: filled(count, 0)?,
        },
    };
    let done = match NarrowKeys::of(tensor, wanted.direction) {
        _ if count == 0 => true,
        Some(keys) if u32::try_from(extent).is_ok() => match inner {
            1 => slices.lines(keys, outer)?,
            _ => slices.columns(keys, outer)?,
        },
        _ => slices.wide(&keys(tensor, wanted.direction)?, outer)?,
    };
    Ok(done.then_some(slices.found))
}

struct Slices<'a> {
    extent: usize,
    inner: usize,
    wanted: Wanted,
    go_on: &'a dyn Fn() -> bool,
    found: Found,
}

impl Slices<'_> {
    /// With narrow keys, in the last dim.
    fn lines(&mut self, keys: NarrowKeys<'_>, outer: usize) -> Result<bool, TensorError> {
        let extent = self.extent;
        let mut best = Best::new(self.wanted.k, 0)?;
        let mut block = filled(extent.min(BLOCK), 0)?;
        for o in 0..outer {
            if !(self.go_on)() {
                return Ok(false);
            }
            for start in (0..extent).step_by(BLOCK) {
                let count = BLOCK.min(extent - start);
                let block = &mut block[..count];
                keys.read(o * extent + start, 0, count, block);
                match start {
                    0 => best.start(block)?,
                    _ => best.add(block, start as u32),
                }
            }
            self.write(o, 0, best.positions(self.wanted.by_position));
        }
        Ok(true)
    }

    /// With narrow keys, in a dim before the last.
    fn columns(&mut self, keys: NarrowKeys<'_>, outer: usize) -> Result<bool, TensorError> {
        let (extent, inner) = (self.extent, self.inner);
        let width = inner.min(COLUMNS);
        let mut best = Best::new(self.wanted.k, extent)?;
        let mut block = filled(extent.saturating_mul(width), 0)?;
        let mut together = match width {
            COLUMNS => Columns::new(self.wanted.k, extent)?,
            _ => None,
        };
        let mut line = filled(if together.is_some() { 0 } else { extent }, 0)?;
        for o in 0..outer {
            for first in (0..inner).step_by(width) {
                if !(self.go_on)() {
                    return Ok(false);
                }
                // Those of the last block may have been in the one before.
                let first = first.min(inner - width);
                keys.read(o * extent * inner + first, inner, width, &mut block);
                let rows = block.as_chunks().0;
                if let Some(columns) = &mut together {
                    columns.find(rows);
                }
                for column in 0..width {
                    match &together {
                        Some(columns) => columns.give(rows, column, &mut best),
                        None => {
                            let keys = block.iter().skip(column).step_by(width);
                            line.iter_mut().zip(keys).for_each(|(to, key)| *to = *key);
                            best.start(&line)?;
                        }
                    }
                    self.write(o, first + column, best.positions(self.wanted.by_position));
                }
            }
        }
        Ok(true)
    }

    /// With the keys of all elements.
    fn wide(&mut self, keys: &[u64], outer: usize) -> Result<bool, TensorError> {
        let (extent, inner) = (self.extent, self.inner);
        let mut slice = room_for(extent)?;
        for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
            if !(self.go_on)() {
                return Ok(false);
            }
            slice.clear();
            slice.extend((0..extent).map(|j| (keys[(o * extent + j) * inner + i], j)));
            select(&mut slice, self.wanted.k);
            if self.wanted.by_position {
                slice.iter_mut().for_each(|(key, _)| *key = 0);
            }
            sort(&mut slice);
            self.write(o, i, slice.iter().map(|(_, j)| *j));
        }
        Ok(true)
    }

    /// What was found in slice `(o, i)`.
    fn write(&mut self, o: usize, i: usize, positions: impl Iterator<Item = usize>) {
        let first = o * self.wanted.k * self.inner + i;
        let indices = self.found.indices[first..].iter_mut().step_by(self.inner);
        let places = self.found.places[first..].iter_mut().step_by(self.inner);
        for ((index, place), j) in indices.zip(places).zip(positions) {
            *index = j as i64;
            *place = (o * self.extent + j) * self.inner + i;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against all elements of each slice sorted, for each way there is, with many equal elements.
    #[test]
    fn slices_of_every_dim() {
        let extents = [1, 2, 4, 5, 6, 32, 33, 300];
        let inners = [1, 2, COLUMNS - 1, COLUMNS, COLUMNS + 1, 3 * COLUMNS];
        for (extent, inner) in extents.iter().flat_map(|e| inners.map(|i| (*e, i))) {
            let dims = [2, extent, inner];
            let values = (0..2 * extent * inner).map(|k| (k * 7919 % 101) as f64);
            let values: Vec<f64> = values.collect();
            let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            check(&Tensor::from_slice(&dims, &narrow).unwrap(), &values, dims);
            check(&Tensor::from_slice(&dims, &values).unwrap(), &values, dims);
        }
        let long = 2 * BLOCK + 1;
        let values: Vec<f64> = (0..2 * long).map(|k| (k * 31 % 4001) as f64).collect();
        let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let dims = [2, long, 1];
        check(&Tensor::from_slice(&dims, &narrow).unwrap(), &values, dims);
    }

    fn check(tensor: &Tensor, values: &[f64], [outer, extent, inner]: [usize; 3]) {
        for k in [1, 3, 12, 13, 30].into_iter().filter(|k| *k <= extent) {
            for by_position in [false, true] {
                let mut want = vec![0; outer * k * inner];
                for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
                    let value = |j: &usize| values[(o * extent + j) * inner + i] as i64;
                    let mut order: Vec<usize> = (0..extent).collect();
                    order.sort_by_key(|j| -value(j));
                    order.truncate(k);
                    if by_position {
                        order.sort_unstable();
                    }
                    for (n, j) in order.into_iter().enumerate() {
                        want[(o * k + n) * inner + i] = j as i64;
                    }
                }
                let wanted = Wanted {
                    direction: Direction::Descending,
                    k,
                    by_position,
                };
                let dims = [outer, extent, inner];
                let found = best_along(tensor, dims, wanted, &|| true);
                let found = found.unwrap().unwrap();
                assert_eq!(found.indices, want, "{k} of {extent}, {inner}");
                for (n, place) in found.places.into_iter().enumerate() {
                    let (o, i, j) = (n / (k * inner), n % inner, want[n] as usize);
                    assert_eq!(place, (o * extent + j) * inner + i);
                }
                assert!(
                    best_along(tensor, dims, wanted, &|| false)
                        .unwrap()
                        .is_none()
                );
            }
        }
    }
}
