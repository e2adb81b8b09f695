//! Large windows over rows and columns, of which the rows are folded first: windows that overlap have their rows in common.

use super::dim_windows::{DimWindows, and, guarded, places};
use crate::Lower;
use vinelift_nest::{Binary, BufferId, Scalar};

/// The points of a window from which on its rows are folded first.
const LARGE: i64 = 25;

/// `rows[n, c, row, o] = op_k data[n, c, row, o · stride - begin + k · dilation]`, for all rows that windows reach over, those
/// in the padding too.
pub(super) struct RowFolds<'d> {
    rows: BufferId,
    down: &'d DimWindows,
    op: Binary,
    /// The initial value of a fold, which elements of the padding have, too.
    fill: Scalar,
}

impl<'d> RowFolds<'d> {
    /// The folds of `data` in the type of `fill`, if they are worth a buffer of their own: of windows over two dims that are large, and
    /// overlap.
    pub(super) fn of(
        cx: &mut Lower<'_>,
        dims: &'d [DimWindows],
        op: Binary,
        fill: &Scalar,
    ) -> Option<RowFolds<'d>> {
        let [down, across] = dims else {
            return None;
        };
        let is_large = down.kernel.checked_mul(across.kernel)? >= LARGE;
        if down.kernel < 2 || across.kernel < 2 || !is_large || down.stride >= down.kernel {
            return None;
        }
        let data = cx.extents("data");
        let shape = [data[0], data[1], down.padded_extent(), across.windows];
        let rows = cx.temporary("row_folds", fill.ty(), &shape);
        cx.define(rows, |cx, at| {
            let [n, c, row, o] = at else {
                return fill.clone();
            };
            let row = down.unpadded(row);
            cx.reduce(op, &[across.kernel as usize], fill.clone(), |cx, k| {
                let across = std::slice::from_ref(across);
                let (column, guard) = places(across, std::slice::from_ref(o), k);
                let from = [n, c, &row, &column[0]].map(Clone::clone);
                let guard = and(down.inside(&row), guard);
                let x = cx.load("data", &from).cast(fill.ty());
                guarded(guard, x, fill.clone())
            })
        });
        Some(RowFolds {
            rows,
            down,
            op,
            fill: fill.clone(),
        })
    }

    /// The fold of the window `at` of the output.
    pub(super) fn fold(&self, cx: &mut Lower<'_>, at: &[Scalar]) -> Scalar {
        let kernel = self.down.kernel as usize;
        cx.reduce(self.op, &[kernel], self.fill.clone(), |cx, k| {
            let row = self.down.padded_place(&at[2], &k[0]);
            cx.load_from(self.rows, &[&at[0], &at[1], &row, &at[3]].map(Clone::clone))
        })
    }
}
