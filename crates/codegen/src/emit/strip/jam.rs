//! Rows of a fold side by side: what they load in common is loaded once.
//!
//! > `y[i, j] = Σ_{k, l} x[i + k, j + l] · w[k, l]`: of the rows `i`, `i + 1`, … each takes its points of the
//! > fold in order, the next row one `k` behind the one before. All rows take in the same of `x` at a time.
//!
//! So windows over images load each vector of the image once for all rows that it is part of, and the weights
//! stay in registers.

use super::build::{Builder, Lanes};
use crate::strip::program::Access;
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, Kind, Scalar};
use vinelift_tensor::ElementType;

/// An axis of which several points are done side by side.
pub(super) struct Jam<'n> {
    pub(super) axis: AxisId,
    /// How many of them.
    rows: usize,
    /// The one that is being built.
    row: usize,
    fold: &'n Scalar,
    /// How many points of the fold a row is behind the one before.
    behind: usize,
    /// Of what is the same along the row, so many points stay in registers; others are loaded for each use.
    most_kept: usize,
    /// What rows may have in common, with how deep inside loops it was loaded; while they fold.
    loads: Option<Vec<(usize, Place, Lanes)>>,
}

/// Where elements are loaded from, how far they are apart, and what they are.
type Place = (Access, i64, ElementType);

/// Registers for what is neither a sum nor kept: what is being loaded, and what becomes of a sum.
const OTHERS: usize = 3;

impl<'n> Jam<'n> {
    /// Of the axis `rows`, `most` of them at most, if rows of the only fold in the value of the builder's stage
    /// read the same elements.
    pub(super) fn of(builder: &Builder<'_, 'n, '_>, rows: Axis, most: usize) -> Option<Jam<'n>> {
        let fold = only_fold(&builder.stage.value)?;
        let Kind::Reduce {
            axes, init, body, ..
        } = fold.kind()
        else {
            return None;
        };
        init.as_const()?;
        let points: usize = axes.iter().map(|axis| axis.extent).product();
        if points == 0 || !builder.is_unrolled(points, body) {
            return None;
        }
        let mut counts = (2..=most).rev();
        let count = counts.find(|count| rows.extent.is_multiple_of(*count))?;
        Some(Jam {
            axis: rows.id,
            rows: count,
            row: 0,
            fold,
            behind: behind(builder, rows.id, axes, body)?,
            most_kept: builder.target.registers().saturating_sub(count + OTHERS),
            loads: None,
        })
    }
}

/// The fold in a value, if there is one alone.
fn only_fold(value: &Scalar) -> Option<&Scalar> {
    let mut found = None;
    let mut seen = FxHashSet::default();
    let mut open = vec![value];
    while let Some(x) = open.pop() {
        if !seen.insert(x.address()) {
            continue;
        }
        if matches!(x.kind(), Kind::Reduce { .. }) && found.replace(x).is_some() {
            return None;
        }
        open.extend(x.children());
    }
    found
}

/// After how many points of a fold over `axes` a row reads what the next row reads first.
fn behind<'n>(
    builder: &Builder<'_, 'n, '_>,
    rows: AxisId,
    axes: &'n [Axis],
    body: &'n Scalar,
) -> Option<usize> {
    let mut open = vec![body];
    while let Some(x) = open.pop() {
        let Kind::Load { buffer, at } = x.kind() else {
            open.extend(x.children());
            continue;
        };
        let linear = builder.emitter.linear(*buffer, at);
        let along = |id: AxisId| {
            let is_axis = |leaf: &Scalar| matches!(leaf.kind(), Kind::Axis(other) if *other == id);
            let term = { linear.terms() }.find(|(leaf, _)| is_axis(leaf));
            term.map_or(0, |(_, step)| step)
        };
        let step = along(rows);
        let mut inner = 1;
        for axis in axes.iter().rev() {
            let each = along(axis.id);
            if step > 0 && each > 0 && step % each == 0 && step / each < axis.extent as i64 {
                return Some((step / each) as usize * inner);
            }
            inner *= axis.extent;
        }
    }
    None
}

impl<'n> Builder<'_, 'n, '_> {
    /// How many points of an axis are done side by side.
    pub(super) fn rows_of(&self, axis: AxisId) -> usize {
        let jam = self.jam.as_ref().filter(|jam| jam.axis == axis);
        jam.map_or(1, |jam| jam.rows)
    }

    /// All rows: the fold of all at once, then what else there is of each.
    pub(super) fn rows(&mut self) -> Option<()> {
        let (fold, rows) = self.jam.as_ref().map(|jam| (jam.fold, jam.rows))?;
        let sums = self.folds_of_rows(fold)?;
        for (row, sum) in (0..rows).zip(sums) {
            self.jam.as_mut()?.row = row;
            let mark = self.order.len();
            self.know(fold, self.blocks.len() - 1, sum);
            let value = self.value(&self.stage.value)?;
            self.store(&value)?;
            self.forget(mark, &[]);
        }
        Some(())
    }

    fn folds_of_rows(&mut self, fold: &'n Scalar) -> Option<Vec<Lanes>> {
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = fold.kind()
        else {
            return None;
        };
        let start = self.lanes_of(init)?;
        let (rows, behind) = self.jam.as_ref().map(|jam| (jam.rows, jam.behind))?;
        let points: usize = axes.iter().map(|axis| axis.extent).product();
        let mut sums = vec![start; rows];
        let depth = self.blocks.len() - 1;
        self.jam.as_mut()?.loads = Some(Vec::new());
        for time in 0..points + (rows - 1) * behind {
            for (row, sum) in sums.iter_mut().enumerate() {
                let point = time.checked_sub(row * behind).filter(|k| *k < points);
                let Some(point) = point else { continue };
                self.jam.as_mut()?.row = row;
                *sum = self.fold_point(*op, fold.ty(), axes, point, sum, body)?;
            }
            // What the next points read is something else, but for weights.
            let loads = self.jam.as_mut()?.loads.as_mut()?;
            loads.retain(|(at, ..)| *at < depth);
        }
        for axis in axes {
            self.fixed.remove(&axis.id);
        }
        self.jam.as_mut()?.loads = None;
        Some(sums)
    }

    /// Which of them is being built.
    pub(super) fn row_of(&self, axis: AxisId) -> i64 {
        let jam = self.jam.as_ref().filter(|jam| jam.axis == axis);
        jam.map_or(0, |jam| jam.row as i64)
    }

    /// What has been loaded from there already, for another row or for all.
    fn in_common(&self, place: Place) -> Option<Lanes> {
        let mut loads = self.jam.iter().flat_map(|jam| &jam.loads).flatten();
        let is_known = |(at, known, _): &&(usize, Place, Lanes)| *at == self.at && *known == place;
        loads.find(is_known).map(|(.., lanes)| lanes.clone())
    }

    /// Loads what a fold reads, and keeps it for the other rows.
    pub(super) fn load_in_common(
        &mut self,
        place: Place,
        load: impl FnOnce(&mut Self) -> Option<Lanes>,
    ) -> Option<Lanes> {
        let depth = self.blocks.len() - 1;
        let loads = |jam: &Jam<'_>| Some((jam.loads.as_ref()?.len(), jam.most_kept));
        let Some((kept, most_kept)) = self.jam.as_ref().and_then(loads) else {
            return load(self);
        };
        if let Some(known) = self.in_common(place) {
            return Some(known);
        }
        if self.at < depth && kept >= most_kept {
            self.at = depth;
            return load(self);
        }
        let loaded = load(self)?;
        let loads = self.jam.as_mut()?.loads.as_mut()?;
        loads.push((self.at, place, loaded.clone()));
        Some(loaded)
    }
}
