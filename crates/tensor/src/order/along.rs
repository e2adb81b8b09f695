//! The best elements of the slices of a tensor along an axis.

use super::best::Best;
use super::first;
use super::lanes::{Key, LANES, Singles, Source};
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

/// Finds the `k` best elements of each slice of a tensor of dims `[outer, extent, inner]` along the second of them: their
/// positions in their slices, in the order of a tensor of dims `[outer, k, inner]`. After a few slices each it asks
/// whether to go on; `None` is the answer if not.
pub fn best_along(
    tensor: &Tensor,
    [outer, extent, inner]: [usize; 3],
    wanted: Wanted,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Vec<i64>>, TensorError> {
    let count = outer.saturating_mul(wanted.k).saturating_mul(inner);
    let mut slices = Slices {
        extent,
        inner,
        wanted,
        go_on,
        found: filled(count, 0)?,
    };
    let done = match NarrowKeys::of(tensor, wanted.direction) {
        _ if count == 0 => true,
        Some(keys) if u32::try_from(extent).is_ok() => {
            let by_rows = match Singles::of(tensor, wanted.direction) {
                Some(singles) => slices.by_rows(singles, outer)?,
                None => slices.by_rows(keys, outer)?,
            };
            match by_rows {
                Some(done) => done,
                None => slices.lines(keys, outer)?,
            }
        }
        _ => slices.wide(&keys(tensor, wanted.direction)?, outer)?,
    };
    Ok(done.then_some(slices.found))
}

pub(super) struct Slices<'a> {
    pub(super) extent: usize,
    pub(super) inner: usize,
    pub(super) wanted: Wanted,
    pub(super) go_on: &'a dyn Fn() -> bool,
    found: Vec<i64>,
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

    /// With what is fast to compare; `None` if that is not for these slices.
    fn by_rows<S: Source>(&mut self, source: S, outer: usize) -> Result<Option<bool>, TensorError> {
        match (self.wanted.k, self.inner) {
            (1, 1) => return self.first_of_lines(source, outer).map(Some),
            (1, _) => return self.first_of_columns(source, outer).map(Some),
            _ => {}
        }
        match (self.together(&source, outer)?, self.inner) {
            (None, 2..) => self.columns(source, outer).map(Some),
            (done, _) => Ok(done),
        }
    }

    /// The best one each, in the last dim.
    fn first_of_lines<S: Source>(&mut self, source: S, outer: usize) -> Result<bool, TensorError> {
        let extent = self.extent;
        let mut room = [[S::Key::WORST; LANES]; first::ROWS];
        if extent <= first::SHORT && outer >= LANES {
            for o in (0..outer).step_by(LANES) {
                if !(self.go_on)() {
                    return Ok(false);
                }
                // The last block is as wide as the others, so it repeats slices of the block before it.
                let o = o.min(outer - LANES);
                let found = first::of_short_lines(&source, o * extent, extent, &mut room);
                self.write_row(o, 0, &found);
            }
            return Ok(true);
        }
        for o in 0..outer {
            if !(self.go_on)() {
                return Ok(false);
            }
            let found = first::of_line(&source, o * extent, extent, &mut room);
            self.write_row(o, 0, &[found]);
        }
        Ok(true)
    }

    /// The best one each, in a dim before the last.
    fn first_of_columns<S: Source>(
        &mut self,
        source: S,
        outer: usize,
    ) -> Result<bool, TensorError> {
        let width = self.inner.min(LANES);
        let mut room = filled(self.extent, [S::Key::WORST; LANES])?;
        for o in 0..outer {
            for first in (0..self.inner).step_by(LANES) {
                if !(self.go_on)() {
                    return Ok(false);
                }
                let first = first.min(self.inner - width);
                let start = o * self.extent * self.inner + first;
                let found = first::of_columns(&source, start, self.inner, width, &mut room);
                self.write_row(o, first, &found[..width]);
            }
        }
        Ok(true)
    }

    /// In a dim before the last, one after the other.
    fn columns<S: Source>(&mut self, source: S, outer: usize) -> Result<bool, TensorError> {
        let (extent, inner) = (self.extent, self.inner);
        let width = inner.min(LANES);
        let mut best = Best::new(self.wanted.k, extent)?;
        let mut block = filled(extent.saturating_mul(width), S::Key::WORST)?;
        let mut line = filled(extent, 0)?;
        for o in 0..outer {
            for first in (0..inner).step_by(width) {
                if !(self.go_on)() {
                    return Ok(false);
                }
                // The last block is as wide as the others, so it repeats slices of the block before it.
                let first = first.min(inner - width);
                source.read(o * extent * inner + first, inner, width, &mut block);
                for column in 0..width {
                    let keys = block.iter().skip(column).step_by(width);
                    let keys = line.iter_mut().zip(keys);
                    keys.for_each(|(to, key)| *to = key.narrow());
                    best.start(&line)?;
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

    /// The only one that was found in each of the slices from `(o, i)` on.
    fn write_row(&mut self, o: usize, i: usize, positions: &[u32]) {
        let found = &mut self.found[o * self.inner + i..];
        for (found, position) in found.iter_mut().zip(positions) {
            *found = i64::from(*position);
        }
    }

    /// What was found in slice `(o, i)`.
    pub(super) fn write(&mut self, o: usize, i: usize, positions: impl Iterator<Item = usize>) {
        let mut at = o * self.wanted.k * self.inner + i;
        for position in positions {
            self.found[at] = position as i64;
            at += self.inner;
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
        let inners = [1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES];
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
                assert_eq!(found, want, "{k} of {extent}, {inner}");
                assert!(
                    best_along(tensor, dims, wanted, &|| false)
                        .unwrap()
                        .is_none()
                );
            }
        }
    }
}
