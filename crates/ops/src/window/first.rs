//! Where a maximum stands: the first of equal elements.

use crate::Lower;
use crate::elementwise::widened;
use crate::layout::index_map::flatten;
use vinelift_nest::build::{highest, index, select};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::{ElementType, Extent};

/// Output 1, of type `ty`: for each element of output 0 the position of the first element of `data`
/// equal to it in its window, counted from dim `from` on; if there is none, as in a window of NaN or of
/// padding alone, that of the first element of its channel, as in OpenVINO.
///
/// `place` gives the coordinates of a point of the `kernel`, and whether they lie in `data`, where
/// they may not.
pub(super) fn positions(
    cx: &mut Lower<'_>,
    kernel: &[impl Into<Extent> + Copy],
    from: usize,
    place: impl FnOnce(&[Scalar], &[Scalar]) -> (Vec<Scalar>, Option<Scalar>),
) {
    let shape = cx.extents("data");
    let dims = &shape[from..];
    let total = dims.iter().fold(Extent::ONE, |n, d| n.product(*d));
    let (values, target) = (cx.output(0), cx.output(1));
    let ty = cx.type_of(target);
    cx.define(target, |cx, at| {
        let largest = widened(cx.load_from(values, at));
        let none = highest(ElementType::I64);
        let found = cx.reduce(Binary::Min, kernel, none.clone(), |cx, k| {
            let (from_at, guard) = place(at, k);
            let equal = widened(cx.load("data", &from_at)).eq(largest);
            let here = select(equal, flatten(&from_at[from..], dims), none.clone());
            super::dim_windows::guarded(guard, here, none)
        });
        let mut first = at.to_vec();
        first[2..].fill(index(0));
        let first = flatten(&first[from..], dims);
        select(found.lt(Scalar::extent(total)), found, first).cast(ty)
    });
}
