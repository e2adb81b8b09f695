//! Several slices at once: neighbouring columns, or short lines as columns.

use super::along::Slices;
use super::best::Best;
use super::columns::Columns;
use super::first::{SHORT, read_lines};
use super::lanes::{Key, LANES, Row, Source};
use super::passes::Passes;
use crate::TensorError;
use crate::memory::filled;

/// A way to find the best of the columns of a block.
enum Search<K> {
    Passes(Passes<K>),
    Bounds(Columns<K>),
}

impl<K: Key> Search<K> {
    /// `None` if it would not pay for `k` of `extent`.
    fn new(k: usize, extent: usize) -> Result<Option<Search<K>>, TensorError> {
        if let Some(passes) = Passes::new(k, extent)? {
            return Ok(Some(Search::Passes(passes)));
        }
        Ok(Columns::new(k, extent)?.map(Search::Bounds))
    }
}

impl Slices<'_> {
    /// `None` if there are too few slices side by side, or too many wanted.
    pub(super) fn together<S: Source>(
        &mut self,
        source: &S,
        outer: usize,
    ) -> Result<Option<bool>, TensorError> {
        let (extent, inner, k) = (self.extent, self.inner, self.wanted.k);
        let are_lines = inner == 1;
        let fits = match are_lines {
            true => extent <= SHORT && outer >= LANES,
            false => inner >= LANES,
        };
        let search = if fits { Search::new(k, extent)? } else { None };
        let Some(mut search) = search else {
            return Ok(None);
        };
        let mut best = Best::new(k, extent)?;
        let mut rows = filled(extent, [S::Key::WORST; LANES])?;
        let mut room = filled(if are_lines { LANES * extent } else { 0 }, S::Key::WORST)?;
        let (outer_step, inner_step) = if are_lines { (LANES, 1) } else { (1, LANES) };
        for o in (0..outer).step_by(outer_step) {
            for i in (0..inner).step_by(inner_step) {
                if !(self.go_on)() {
                    return Ok(Some(false));
                }
                // The last block is as wide as the others, so it repeats slices of the block before it.
                let (o, i) = (o.min(outer - outer_step), i.min(inner - inner_step));
                let start = o * extent * inner + i;
                match are_lines {
                    true => read_lines(source, start, &mut rows, &mut room),
                    false => source.read(start, inner, LANES, rows.as_flattened_mut()),
                }
                self.search(&mut search, &mut rows, &mut best, |lane| match are_lines {
                    true => (o + lane, 0),
                    false => (o, i + lane),
                });
            }
        }
        Ok(Some(true))
    }

    /// Finds the best of each column of a block, which belongs to the slice that `slice_of` says.
    fn search<K: Key>(
        &mut self,
        search: &mut Search<K>,
        rows: &mut [Row<K>],
        best: &mut Best,
        slice_of: impl Fn(usize) -> (usize, usize),
    ) {
        let by_position = self.wanted.by_position;
        match search {
            Search::Passes(passes) => passes.find(rows),
            Search::Bounds(columns) => columns.find(rows),
        }
        for lane in 0..LANES {
            let (o, i) = slice_of(lane);
            match search {
                Search::Passes(passes) => {
                    if let Some(positions) = passes.positions(lane, by_position) {
                        self.write(o, i, positions);
                        continue;
                    }
                    passes.give(rows, lane, best);
                }
                Search::Bounds(columns) => columns.give(rows, lane, best),
            }
            self.write(o, i, best.positions(by_position));
        }
    }
}
