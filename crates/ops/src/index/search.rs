//! Binary search over positions, unrolled: nests have no loops whose length depends on data.

use vinelift_nest::{
    Scalar,
    build::{index, select},
};
use vinelift_tensor::ElementType;

/// How many of the positions `0..extent` pass `test`, where all that pass come before all that do
/// not. Takes `⌊log₂ extent⌋ + 1` tests, each of a position that is provably in range.
pub(crate) fn count_passing(extent: usize, mut test: impl FnMut(&Scalar) -> Scalar) -> Scalar {
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
