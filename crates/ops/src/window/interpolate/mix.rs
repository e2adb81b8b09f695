//! Sums of neighbouring elements with weights, along one axis.

use super::formulas::Formulas;
use super::positions::Positions;
use super::resized::Resized;
use super::taps::Filter;
use super::windows::WindowTables;
use crate::Lower;
use crate::layout::index_map::{extent, last};
use vinelift_nest::build::{index, number, select, zero};
use vinelift_nest::{Binary, BufferId, Mode, Scalar};
use vinelift_tensor::ElementType;

/// Sums of up to this many elements are written out.
const WRITTEN_OUT: usize = 4;

/// `Σ body(k)` for `k` below `count`, written out if these are few.
fn weighted(
    cx: &mut Lower<'_>,
    count: usize,
    ty: ElementType,
    body: impl Fn(&mut Lower<'_>, &Scalar) -> Scalar,
) -> Scalar {
    if count > WRITTEN_OUT {
        return cx.reduce(Binary::Add, &[count], zero(ty), |cx, k| body(cx, &k[0]));
    }
    let first = body(cx, &index(0));
    (1..extent(count)).fold(first, |sum, k| sum + body(cx, &index(k)))
}

/// `count` elements from each of `starts` on, with weights as in [`super::taps::Taps`].
pub(super) struct Mix {
    pub(super) count: usize,
    /// How many of them count, where that is a number of the run.
    pub(super) counted: Option<BufferId>,
    pub(super) starts: Positions,
    pub(super) weights: BufferId,
}

impl Mix {
    pub(super) fn of_windows(tables: WindowTables, axis: &Resized) -> Mix {
        Mix {
            count: tables.room,
            counted: Some(tables.count),
            starts: Positions::Table(tables.starts, last(axis.from)),
            weights: tables.weights,
        }
    }

    /// Where element `k` from `start` on is; one that does not count is anywhere.
    pub(super) fn place(&self, start: &Scalar, k: &Scalar, axis: &Resized) -> Scalar {
        match self.counted {
            Some(_) => (start + k).min(last(axis.from)),
            None => start + k,
        }
    }

    /// As [`weighted`], of those that count: others add -0, which leaves every sum as it is.
    pub(super) fn sum(
        &self,
        cx: &mut Lower<'_>,
        ty: ElementType,
        body: impl Fn(&mut Lower<'_>, &Scalar) -> Scalar,
    ) -> Scalar {
        let Some(counted) = self.counted else {
            return weighted(cx, self.count, ty, body);
        };
        let counted = cx.load_from(counted, &[index(0)]);
        let nothing = number(-0.0, ty);
        let is_fold = counted.gt(index(extent(WRITTEN_OUT)));
        let init = select(is_fold, zero(ty), nothing.clone());
        cx.reduce(Binary::Add, &[self.count], init, |cx, k| {
            select(k[0].lt(counted), body(cx, &k[0]), nothing)
        })
    }

    pub(super) fn of_formulas(
        cx: &mut Lower<'_>,
        formulas: &Formulas<'_>,
        filter: Filter,
        axis: &Resized,
        wide: ElementType,
    ) -> Mix {
        let exact = wide == ElementType::F64;
        let count = filter.fewest().unwrap_or(1);
        let starts = cx.temporary("starts", ElementType::I64, &[axis.to]);
        cx.define(starts, |_, at| formulas.taps(filter, &at[0], exact).0);
        let weights = cx.temporary("weights", wide, &[axis.to.product(count.into())]);
        for k in 0..count {
            cx.stage(&[axis.to], weights, Mode::Set, |_, at| {
                let weight = formulas.taps(filter, &at[0], exact).1.swap_remove(k);
                let place = index(extent(k)) * Scalar::extent(axis.to) + &at[0];
                (vec![place], weight.cast(wide))
            });
        }
        let most = last(axis.from.difference((count - 1).into()));
        Mix {
            count,
            counted: None,
            starts: Positions::Table(starts, most),
            weights,
        }
    }
}
