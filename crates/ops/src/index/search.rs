//! Binary search over positions, unrolled: nests have no loops whose length depends on data.

use crate::layout::index_map::last;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, select};
use vinelift_tensor::{ElementType, Extent};

/// How many of the positions `0..extent` pass `test`, where all that pass come before all that do
/// not. Takes `⌈log₂ extent⌉ + 1` tests, each of a position that is provably in range.
pub(crate) fn count_passing(extent: Extent, test: impl FnMut(&Scalar) -> Scalar) -> Scalar {
    match extent.number() {
        Some(number) => count_of_number(number, test),
        None => count_of_symbols(extent, test),
    }
}

/// The same positions, in numbers that a run gives. The plan is for extents that take as many tests.
fn count_of_symbols(extent: Extent, mut test: impl FnMut(&Scalar) -> Scalar) -> Scalar {
    let (mut passed, mut open) = (index(0), Scalar::extent(extent));
    let end = last(extent);
    let mut most = Extent::ONE;
    while !extent.at_most(most) {
        most = most.product(2.into());
        let half = &open / 2;
        let position = (&passed + &half - 1).max(index(0)).min(end.clone());
        passed = &passed + select(test(&position), half.clone(), index(0));
        open = open - half;
    }
    let position = passed.clone().max(index(0)).min(end);
    passed + test(&position).cast(ElementType::I64)
}

fn count_of_number(extent: usize, mut test: impl FnMut(&Scalar) -> Scalar) -> Scalar {
    let mut passed = index(0);
    if extent == 0 {
        return passed;
    }
    // The count lies in `passed ..= passed + open`.
    let mut open = extent as i64;
    while open > 1 {
        let half = open / 2;
        passed = &passed + select(test(&(&passed + (half - 1))), index(half), index(0));
        open -= half;
    }
    &passed + test(&passed).cast(ElementType::I64)
}
