//! Where elements are along an axis: as simple index maps where they are that, else in tables.

use super::coordinates::Nearest;
use super::formulas::{Formulas, Near};
use super::resized::Resized;
use crate::Lower;
use crate::layout::index_map::{extent, last};
use vinelift_nest::build::index;
use vinelift_nest::{BufferId, Scalar};
use vinelift_tensor::ElementType;

/// A position for each element along an axis.
pub(super) enum Positions {
    /// `o · by`
    Times(i64),
    /// `o / by`
    Over(i64),
    /// From a table; the positions are at most this.
    Table(BufferId, Scalar),
}

impl Positions {
    pub(super) fn new(cx: &mut Lower<'_>, all: &[usize], most: usize) -> Positions {
        let matches =
            |of: &dyn Fn(usize) -> usize| all.iter().enumerate().all(|(o, &i)| i == of(o));
        let by = all.get(1).copied().unwrap_or(0);
        if matches(&|o| o * by) {
            return Positions::Times(extent(by));
        }
        let by = all.iter().take_while(|&&i| i == 0).count().max(1);
        if matches(&|o| o / by) {
            return Positions::Over(extent(by));
        }
        let all: Vec<i64> = all.iter().map(|&i| extent(i)).collect();
        Positions::Table(cx.table("positions", &all), index(extent(most)))
    }

    pub(super) fn of_formulas(
        cx: &mut Lower<'_>,
        formulas: &Formulas<'_>,
        nearest: Nearest,
        axis: &Resized,
    ) -> Positions {
        match formulas.near(nearest) {
            Near::Times(by) => Positions::Times(extent(by)),
            Near::Over(by) => Positions::Over(extent(by)),
            Near::Other => {
                let table = cx.temporary("positions", ElementType::I64, &[axis.to]);
                cx.define(table, |_, at| formulas.nearest(nearest, &at[0]));
                Positions::Table(table, last(axis.from))
            }
        }
    }

    pub(super) fn at(&self, cx: &Lower<'_>, o: &Scalar) -> Scalar {
        match self {
            Positions::Times(1) => o.clone(),
            Positions::Times(by) => o * *by,
            Positions::Over(by) => o / *by,
            // The bounds are for the verifier, which does not read tables.
            Positions::Table(table, most) => {
                let position = cx.load_from(*table, std::slice::from_ref(o));
                position.max(index(0)).min(most.clone())
            }
        }
    }
}
