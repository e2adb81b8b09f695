//! Groups of dims: neighbouring dims of a buffer between whose elements lie numbers of elements, not formulas.
//!
//! > `x: [s0, 12, s1, 64]` has the groups `[s0, 12]`, of stride `64·s1`, and `[s1, 64]`, of stride 1
//!
//! All dims of a shape of numbers are one group.

use crate::analysis::{Linear, Ranges, delinearized, flat_offset};
use crate::ir::{Binary, Kind, Scalar, row_major};
use std::ops::Range;
use vinelift_tensor::{Extent, Formula, example};

/// Neighbouring dims, of which all but the first are numbers.
pub(crate) struct DimGroup {
    pub(crate) dims: Range<usize>,
    /// The elements between neighbours in the last of them.
    pub(crate) stride: Formula,
}

/// The groups of the dims of a shape, as large as they can be; `None` if there is no formula for a stride.
pub(crate) fn dim_groups(shape: &[Extent]) -> Option<Vec<DimGroup>> {
    let mut groups = Vec::new();
    let mut stride = Formula::number(1);
    let mut end = shape.len();
    while end > 0 {
        let symbolic = shape[..end].iter().rposition(|n| n.is_symbolic());
        let start = symbolic.unwrap_or(0);
        let dims = start..end;
        groups.push(DimGroup {
            dims: dims.clone(),
            stride,
        });
        for extent in &shape[dims] {
            if start > 0 {
                stride = stride.times(extent.formula())?;
            }
        }
        end = start;
    }
    groups.reverse();
    Some(groups)
}

/// The offset of an element: for each group of dims, the offset in the group and its stride.
pub(crate) type GroupedOffset = Vec<(Formula, Linear)>;

/// The offset of `buffer[at]` in a buffer of `shape`; `None` if there is no formula for a stride.
pub(crate) fn grouped_offset(
    at: &[Scalar],
    shape: &[Extent],
    ranges: &mut Ranges,
) -> Option<GroupedOffset> {
    let mut grouped = Vec::new();
    if let Some(offset) = delinearized(at, shape, ranges) {
        push(&mut grouped, Formula::number(1), Linear::of(&offset));
        return Some(grouped);
    }
    for DimGroup { dims, stride } in dim_groups(shape)? {
        // The first extent of a group is part of no stride in it.
        let strides = row_major(&example(&shape[dims.clone()]));
        let within = flat_offset(&at[dims], &strides, ranges);
        push(&mut grouped, stride, Linear::of(&within));
    }
    Some(grouped)
}

/// Appends `stride · linear`. Terms `x · extent` become `x` with a stride of their own, as in the offset `i·s0 + j` in what was
/// flattened.
fn push(grouped: &mut GroupedOffset, stride: Formula, mut linear: Linear) {
    let mut multiples = Vec::new();
    linear.terms.retain(|(atom, k)| {
        let multiple = multiple_of_extent(atom).and_then(|(x, extent)| {
            let stride = stride.times(extent)?.times(&Formula::number(*k))?;
            Some((stride, Linear::of(x)))
        });
        let stays = multiple.is_none();
        multiples.extend(multiple);
        stays
    });
    grouped.push((stride, linear));
    for (stride, linear) in multiples {
        push(grouped, stride, linear);
    }
}

/// `x` and `extent` of `x · extent`.
pub(crate) fn multiple_of_extent(product: &Scalar) -> Option<(&Scalar, &Formula)> {
    let Kind::Binary(Binary::Mul, a, b) = product.kind() else {
        return None;
    };
    match (a.kind(), b.kind()) {
        (_, Kind::Extent(extent)) => Some((a, extent.formula())),
        (Kind::Extent(extent), _) => Some((b, extent.formula())),
        _ => None,
    }
}
