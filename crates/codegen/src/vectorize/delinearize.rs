//! Delinearization: the lane axis may run through rows of few columns, as `x[lane / columns, lane % columns]` does.

use super::build::Builder;
use super::vector_loop::Pace;
use crate::analysis::Analysis;
use crate::analysis::linear::Linear;
use crate::analysis::walk::{Visit, visit};
use vinelift_nest::{Axis, AxisId, Binary, Kind, Scalar, Stage};

/// The most bytes from row to row.
const MOST_ROW_BYTES: u32 = 1 << 20;
/// The most columns of a row.
const MOST_COLUMNS: usize = 32;

/// The rows that the lanes run through; there are none if `columns` is 0.
#[derive(Clone, Copy, Default)]
pub(super) struct LaneRows {
    pub(super) columns: u8,
    /// Bytes from row to row, and from column to column.
    pub(super) row_bytes: i32,
    pub(super) column_bytes: u8,
}

impl LaneRows {
    /// How an address moves with the points of the lane axis, if that axis `is_cut`.
    pub(super) fn pace(self, is_cut: bool) -> Pace {
        match self.columns {
            columns if columns > 0 && is_cut => Pace {
                bytes: self.row_bytes.into(),
                points: columns.into(),
            },
            _ => Pace::STILL,
        }
    }
}

/// The part of `x` that is `lane / n` or `lane % n`, and that number.
fn of_lane(x: &Scalar, lane: AxisId) -> Option<(Binary, i64)> {
    let Kind::Binary(op @ (Binary::Div | Binary::Rem), axis, n) = x.kind() else {
        return None;
    };
    let is_lane = matches!(axis.kind(), Kind::Axis(id) if *id == lane);
    let n = n.as_index().filter(|n| is_lane && *n > 0)?;
    Some((*op, n))
}

impl<'n> Analysis<'n> {
    /// The number of columns, if the axis `lane` runs through rows of few columns in some load.
    pub(super) fn few_columns(&self, stage: &'n Stage, lane: Axis) -> Option<usize> {
        let mut found = None;
        visit(&stage.value, |x| {
            if !self.facts.free(x).contains(&lane.id) {
                return Visit::Past;
            }
            if let Kind::Load { buffer, at } = x.kind() {
                let linear = self.linear(*buffer, at);
                found = linear.leaves().find_map(|leaf| of_lane(leaf, lane.id));
            }
            if found.is_some() {
                Visit::End
            } else {
                Visit::Children
            }
        });
        let columns = usize::try_from(found?.1).ok()?;
        let fits = lane.extent.is_multiple_of(columns) && columns <= MOST_COLUMNS;
        fits.then_some(columns)
    }
}

impl<'n> Builder<'_, 'n> {
    /// Where the elements of consecutive lanes lie if these are rows of few columns: of an offset made of
    /// `lane / columns` and `lane % columns`, that part, and the rest.
    pub(super) fn by_rows(
        &self,
        linear: Linear<'n>,
        lane: AxisId,
        width: u8,
    ) -> Option<(LaneRows, Linear<'n>)> {
        let mut rows = LaneRows::default();
        for (leaf, k) in linear.terms() {
            let Some((op, columns)) = of_lane(leaf, lane) else {
                continue;
            };
            let columns = usize::try_from(columns).ok()?;
            let fits = (self.lanes * self.parts).is_multiple_of(columns) && columns <= MOST_COLUMNS;
            let columns = u8::try_from(columns).ok().filter(|_| fits)?;
            let k = k.number()?;
            if ![0, columns].contains(&rows.columns) {
                return None;
            }
            rows.columns = columns;
            match op {
                Binary::Div => rows.row_bytes = i32::try_from(k.checked_mul(width.into())?).ok()?,
                _ if k == 1 => rows.column_bytes = width,
                _ => return None,
            }
        }
        let mut domain = self.stage.domain.iter();
        let extent = domain.find(|axis| axis.id == lane)?.extent;
        // Every turn must begin with a row, also that of a chunk.
        let in_parts = self.cut != Some(lane) || self.analysis.cuts_at(rows.columns.into());
        let begins = self.blocked.is_empty() && extent.is_multiple_of(rows.columns.into());
        if rows.columns > 0 && !(in_parts && begins) {
            return None;
        }
        // The rows of a turn lie at offsets that instructions have room for.
        let is_near = rows.row_bytes.unsigned_abs() <= MOST_ROW_BYTES;
        is_near.then(|| (rows, linear.without(|x| of_lane(x, lane).is_some())))
    }
}
