//! Unroll-and-jam: rows of a fold are done side by side, and loads that they share are done once.
//!
//! > `y[i, j] = Σ_{k, l} x[i + k, j + l] · w[k, l]`: of the rows `i`, `i + 1`, … each takes its points of the
//! > fold in order, the next row one `k` behind the one before. All rows take in the same of `x` at a time.
//!
//! Rows that fill no whole turn of the loop are done after it. So windows over images
//! load each vector of the image once for all rows that it is part of. The weights stay in registers: those that are the
//! same in all lanes throughout, others until the last row has taken them in.
//!
//! Where the number of rows, or how far they lie apart, has symbols, the loop over turns is outside of the
//! program, which does one turn; the last turn does some rows of the one before again.
//!
//! If a value has several folds, those of equally many points run side by side, so that they share loads, too.

use super::build::Builder;
use super::jam::{FoldGroup, Jam, Load, SharedLoad};
use crate::vector_ir::ops::Op;
use crate::vector_ir::program::{TripCount, Value};
use vinelift_nest::{Axis, AxisId, Kind, Scalar};
use vinelift_tensor::ElementType;

impl<'n> Builder<'_, 'n> {
    /// Opens the loop over the turns of rows, unless that is outside, and builds it and what is left; `lane` is the axis
    /// inside.
    pub(super) fn jammed_loops(&mut self, lane: Axis) -> Option<()> {
        let block = self.blocks.len();
        let is_outside = self.rows.is_some();
        let jam = self.jam.as_mut()?;
        jam.block = block;
        let (rows, each) = (jam.axis, jam.each);
        if is_outside {
            self.push_block(rows, None);
        } else {
            let turns = rows.extent.number()? / each;
            self.push(rows, TripCount::Fixed(i32::try_from(turns).ok()?));
        }
        self.open_lanes(lane)?;
        self.all_rows()?;
        self.close();
        self.close();
        if is_outside {
            return Some(());
        }
        let (axis, extent) = (rows.id, rows.extent.number()?);
        let left = extent - extent % each..extent;
        if left.is_empty() {
            return Some(());
        }
        self.jam.as_mut()?.rows = left;
        self.fixed.insert(axis, 0);
        self.open_lanes(lane)?;
        self.all_rows()?;
        self.close();
        self.fixed.remove(&axis);
        Some(())
    }

    /// Whether it is what is left of the rows that is being built.
    pub(super) fn is_rest(&self) -> bool {
        self.jam.as_ref().is_some_and(|jam| jam.rows.start > 0)
    }

    /// How the rows move: the loop that moves them, by how many points, and which point this one is.
    pub(super) fn jammed_axis(&self, axis: AxisId) -> Option<(usize, i64, i64)> {
        let jam = self.jam.as_ref().filter(|jam| jam.axis.id == axis)?;
        Some((jam.block, jam.each as i64, jam.row as i64))
    }

    /// All rows: the folds of all at once, then what else there is of each.
    fn all_rows(&mut self) -> Option<()> {
        let (groups, rows) =
            (self.jam.as_ref()).map(|jam| (jam.folds.clone(), jam.rows.clone()))?;
        let mut folded = Vec::new();
        for group in &groups {
            let sums = self.folds_of_rows(group)?;
            folded.extend(group.folds.iter().copied().zip(sums));
        }
        for (number, row) in rows.enumerate() {
            self.jam.as_mut()?.row = row;
            let mark = self.order.len();
            for (fold, sums) in &folded {
                self.know(fold, self.blocks.len() - 1, sums[number]);
            }
            let value = self.value(&self.stage.value)?;
            self.store(value)?;
            self.forget(mark, &[]);
        }
        Some(())
    }

    /// For each fold of the group the sums of all rows.
    fn folds_of_rows(&mut self, group: &FoldGroup<'n>) -> Option<Vec<Vec<Value>>> {
        let depth = self.blocks.len() - 1;
        let rows = self.jam.as_ref().map(|jam| jam.rows.clone())?;
        let mut sums = Vec::with_capacity(group.folds.len());
        for fold in &group.folds {
            let Kind::Reduce { init, .. } = fold.kind() else {
                return None;
            };
            if self.depth(fold) != depth {
                // The same in all lanes: what is made of the sum goes before the loop that computes it here.
                return None;
            }
            sums.push(vec![self.known_value(init)?; rows.len()]);
        }
        self.jam.as_mut()?.loads = Some(Vec::new());
        let last_row = (rows.len() - 1) * group.behind;
        let window = self.jam.as_ref()?.times_kept(last_row);
        for time in 0..group.points + last_row {
            self.jam.as_mut()?.time = time;
            for row in 0..rows.len() {
                let point = time.checked_sub(row * group.behind);
                let Some(point) = point.filter(|k| *k < group.points) else {
                    continue;
                };
                self.jam.as_mut()?.row = rows.start + row;
                for (fold, sums) in group.folds.iter().zip(&mut sums) {
                    sums[row] = self.fold_at(fold, point, sums[row])?;
                }
            }
            let loads = self.jam.as_mut()?.loads.as_mut()?;
            loads.retain(|known| known.depth < depth || time - known.time < window);
        }
        self.jam.as_mut()?.loads = None;
        Some(sums)
    }

    /// The sum of a fold with its point number `point` taken in.
    fn fold_at(&mut self, fold: &'n Scalar, point: usize, sum: Value) -> Option<Value> {
        let Kind::Reduce { op, axes, body, .. } = fold.kind() else {
            return None;
        };
        let sum = self.fold_point(*op, fold.ty(), axes, point, sum, body)?;
        for axis in axes {
            self.fixed.remove(&axis.id);
        }
        Some(sum)
    }

    /// The value of an equal load that another row, or code for all rows, has done already.
    fn in_common(&self, load: Load) -> Option<Value> {
        let mut loads = self.jam.iter().flat_map(|jam| &jam.loads).flatten();
        let known = loads.find(|known| known.depth == self.at && known.load == load);
        known.map(|known| known.value)
    }

    /// A load, which other rows of a fold share.
    pub(super) fn load_in_common(&mut self, op: Op, ty: ElementType) -> Value {
        let depth = self.blocks.len() - 1;
        let now = |jam: &Jam<'_>| {
            let loads = jam.loads.as_ref()?.iter();
            // `times_kept` has counted the registers of loads of earlier times.
            let kept = loads.filter(|known| known.depth < depth || known.time == jam.time);
            Some((kept.count(), jam.most_kept, jam.time))
        };
        let Some((kept, most_kept, time)) = self.jam.as_ref().and_then(now) else {
            return self.apply(op, ty, &[]);
        };
        if let Some(known) = self.in_common((op, ty)) {
            return known;
        }
        if self.at < depth && kept >= most_kept {
            self.at = depth;
            return self.apply(op, ty, &[]);
        }
        let value = self.apply(op, ty, &[]);
        let shared = SharedLoad {
            depth: self.at,
            load: (op, ty),
            value,
            time,
        };
        if let Some(loads) = self.jam.as_mut().and_then(|jam| jam.loads.as_mut()) {
            loads.push(shared);
        }
        value
    }
}
