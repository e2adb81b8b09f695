//! Stages that go on from the point before along their innermost axis.
//!
//! Each point reads the value that the one before has written: it stays in a register instead of going through
//! memory. As each point still waits for the one before, several rows are done side by side.

use super::emitter::{Emitter, Result};
use super::state::{Binding, Bounds};
use crate::analysis::work::usual_points;
use cranelift_codegen::ir::Value;
use vinelift_nest::{Axis, Kind, Scalar, Stage};

/// The most rows that are done side by side.
const ROWS: usize = 8;
/// Values of more scalars are not unrolled by rows.
const MOST_SCALARS: usize = 64;

/// How a scan runs.
pub(super) struct ScanRows<'n> {
    /// The position of the outermost loop that is part of it.
    pub(super) outermost: usize,
    /// The load of the stage's own target.
    previous: Vec<&'n Scalar>,
    /// How many rows there are side by side.
    pub(super) count: usize,
}

impl<'n> Emitter<'n, '_> {
    /// How `stage`, which has these axes of many points, goes on from point to point; `None` if it does not.
    pub(super) fn rows_of(&mut self, stage: &'n Stage, many: &[Axis]) -> Option<ScanRows<'n>> {
        let scan = self.analysis.scan_of(stage)?;
        let (last, outer) = many.split_last()?;
        if scan.axis.id != last.id || self.analysis.nest.buf(stage.target).ty.is_packed() {
            return None;
        }
        let mut previous = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = vec![&stage.value];
        while let Some(x) = open.pop() {
            if !seen.insert(x.address()) {
                continue;
            }
            match x.kind() {
                Kind::Wrap(_) | Kind::Reduce { .. } => return None,
                // It is read before the first point, whatever the guards say.
                Kind::Load { buffer, at } if *buffer == stage.target => {
                    let shape = &self.analysis.nest.buf(*buffer).shape;
                    let mut dims = at.iter().zip(shape);
                    if !dims.all(|(i, n)| self.analysis.ranges.is_index(i, *n)) {
                        return None;
                    }
                    previous.push(x);
                }
                _ => open.extend(x.children()),
            }
        }
        let side_by_side = scan.is_apart && seen.len() <= MOST_SCALARS;
        let (outermost, count) = match outer.last().filter(|_| side_by_side) {
            // A power of two.
            Some(rows) => (
                outer.len() - 1,
                ROWS.min(1 << usual_points(rows.extent).ilog2()),
            ),
            None => (outer.len(), 1),
        };
        Some(ScanRows {
            outermost,
            previous,
            count,
        })
    }

    /// The loops over `axes`: that over rows, if several are done side by side, and the one along them.
    pub(super) fn rows(&mut self, stage: &'n Stage, rows: &ScanRows<'n>, axes: &[Axis]) -> Result {
        let &[across, along] = axes else {
            let along = axes
                .last()
                .map(|axis| self.side_by_side(stage, rows, None, *axis));
            return along.unwrap_or(Ok(()));
        };
        let turns = self.turns(stage, across);
        let count = rows.count as i64;
        let middle = self.whole_blocks(turns, count);
        let Bounds { from, to, .. } = turns;
        self.open_loop(across, Bounds::between(from, middle), count, &[]);
        self.side_by_side(stage, rows, Some((across, rows.count)), along)?;
        self.close_loop(&[]);
        self.open_loop(across, Bounds::between(middle, to), 1, &[]);
        self.side_by_side(stage, rows, Some((across, 1)), along)?;
        self.close_loop(&[]);
        Ok(())
    }

    /// The loop over `along`, for some rows of the axis `across` from the one in scope on.
    fn side_by_side(
        &mut self,
        stage: &'n Stage,
        rows: &ScanRows<'n>,
        across: Option<(Axis, usize)>,
        along: Axis,
    ) -> Result {
        let count = across.map_or(1, |(_, count)| count);
        let first = across.and_then(|(axis, _)| self.axes.get(&axis.id).copied());
        let bind = |this: &mut Self, row: usize| {
            if let (Some((axis, _)), Some(first)) = (across, first) {
                let plus = first.plus + row as i64;
                this.axes.insert(axis.id, Binding { plus, ..first });
            }
        };
        let mut before: Vec<Value> = Vec::with_capacity(count);
        let start = self.index(0);
        self.bind_to(along, start);
        for row in 0..count {
            bind(self, row);
            self.open_scope();
            self.compute(rows.previous.first().copied())?;
            before.extend(rows.previous.first().map(|x| self.get(x)));
            self.close_scope();
        }
        self.axes.remove(&along.id);
        let turns = self.turns(stage, along);
        let carried = self.open_loop(along, turns, 1, &before);
        let mut written = Vec::with_capacity(count);
        for (row, before) in carried.into_iter().enumerate() {
            bind(self, row);
            self.open_scope();
            for x in &rows.previous {
                self.set(x, before);
            }
            self.assign(stage)?;
            written.push(self.get(&stage.value));
            self.close_scope();
        }
        self.close_loop(&written);
        bind(self, 0);
        Ok(())
    }
}
