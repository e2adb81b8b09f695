//! The choice of the rows that [unroll-and-jam](super::unroll_and_jam) does side by side: how many, and which folds share loads.

use super::build::Builder;
use super::jam::{FoldGroup, Jam};
use super::reduce::points_of;
use crate::analysis::walk::{Visit, visit};
use vinelift_nest::{Axis, AxisId, FoldBounds, Kind, Scalar};

/// Registers that are neither for sums nor for loads that are kept: for the load at hand, and for the value made of a sum.
const OTHERS: usize = 3;

impl<'n> Jam<'n> {
    /// Computes up to `most` rows along the axis `rows` in each turn, if rows of the folds in the value of the builder's stage read
    /// the same elements; the loop over them is `outside` of the program or part of it. Folds of which rows share nothing are
    /// done row by row.
    pub(super) fn of(
        builder: &Builder<'_, 'n>,
        rows: Axis,
        most: usize,
        outside: bool,
    ) -> Option<Jam<'n>> {
        // Rows are unrolled, so their number must be known; where the loop over them is outside, that of the example decides.
        let extent = match outside {
            true => rows.extent.example(),
            false => rows.extent.number()?,
        };
        let folds = shared_folds(builder, rows.id)?;
        let divides = |count: &usize| extent.is_multiple_of(*count);
        let each = match (most / 2 + 1..=most).rev().find(divides) {
            Some(each) => each,
            // None divides it: turns of about equal length, and a shorter rest.
            None => extent.div_ceil(extent.div_ceil(most)),
        };
        if each < 2 {
            return None;
        }
        let sums = each * folds.iter().map(|group| group.folds.len()).sum::<usize>();
        Some(Jam {
            axis: rows,
            each,
            block: 0,
            rows: 0..each,
            row: 0,
            folds,
            most_kept: builder.target?.registers().saturating_sub(sums + OTHERS),
            loads: None,
            time: 0,
        })
    }
}

/// The folds in the value of the builder's stage whose rows along `rows` share loads; `None` if there are none, or if some fold is
/// not unrolled.
fn shared_folds<'n>(builder: &Builder<'_, 'n>, rows: AxisId) -> Option<Vec<FoldGroup<'n>>> {
    let mut groups: Vec<FoldGroup<'n>> = Vec::new();
    for fold in folds(&builder.stage.value)? {
        let Kind::Reduce {
            axes, init, body, ..
        } = fold.kind()
        else {
            return None;
        };
        init.as_const()?;
        let points = points_of(axes)?;
        if points == 0 || !builder.is_unrolled(points, body) {
            return None;
        }
        let Some(behind) = behind(builder, rows, axes, body) else {
            continue;
        };
        let alike = |group: &&mut FoldGroup<'_>| (group.points, group.behind) == (points, behind);
        match groups.iter_mut().find(alike) {
            Some(group) => group.folds.push(fold),
            None => groups.push(FoldGroup {
                folds: vec![fold],
                points,
                behind,
            }),
        }
    }
    (!groups.is_empty()).then_some(groups)
}

/// The folds in a value; `None` if one of them is in another, or between bounds.
fn folds(value: &Scalar) -> Option<Vec<&Scalar>> {
    let collect = |inside: Visit| {
        let mut found = Vec::new();
        visit(value, |x| match x.kind() {
            Kind::Reduce { .. } => {
                found.push(x);
                inside
            }
            _ => Visit::Children,
        });
        found
    };
    let outer = collect(Visit::Past);
    if outer.iter().any(|fold| FoldBounds::of(fold).is_some()) {
        return None;
    }
    (outer.len() == collect(Visit::Children).len()).then_some(outer)
}

/// After how many points of a fold over `axes` a row reads what the next row reads first.
fn behind<'n>(
    builder: &Builder<'_, 'n>,
    rows: AxisId,
    axes: &'n [Axis],
    body: &'n Scalar,
) -> Option<usize> {
    let mut loads = Vec::new();
    visit(body, |x| match x.kind() {
        Kind::Load { buffer, at } => {
            loads.push((*buffer, at));
            Visit::Past
        }
        _ => Visit::Children,
    });
    for (buffer, at) in loads {
        let linear = builder.analysis.linear(buffer, at);
        let step = linear.of_axis(rows)?;
        let mut inner = 1;
        for axis in axes.iter().rev() {
            let (each, extent) = (linear.of_axis(axis.id)?, axis.extent.number()?);
            let points = step.in_multiples_of(each);
            if let Some(points) = points.filter(|points| *points < extent) {
                return Some(points * inner);
            }
            inner *= extent;
        }
    }
    None
}
