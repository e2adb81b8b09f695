//! Split: an innermost axis of which a stage takes quotients or remainders becomes two loops.
//!
//! > `for i<3000: y[i] = x[i % 1000]` becomes `for i<3, j<1000: y[1000·i + j] = x[j]`
//!
//! Lanes then read neighbours, where they would read elements one by one. Tiles, and rows that are repeated, are like that. Copies are
//! split by small numbers, too: code interleaves what comes from several planes, as in `DepthToSpace` or an enlarged picture.

use crate::analysis::Contraction;
use crate::ir::{Axis, Binary, Kind, Nest, Scalar, Stage, replace_axes, rewrite_stage, visit};
use crate::passes::simplify::simplify_stage;
use std::ops::RangeInclusive;
use vinelift_tensor::{ElementType, Extent};

/// The least points of the inner loop: fewer do not fill the widest vectors. Runs of neighbours that are copied are moved as
/// bytes, so that less are enough.
const LEAST_INNER: usize = 16;
const LEAST_OF_RUN: usize = 9;

/// The points of the inner loop of a copy, and the least of the loop around it, for which code interleaves elements of at most so
/// many bits.
pub(super) const PLANES: RangeInclusive<usize> = 2..=8;
pub(super) const LEAST_OF_PLANE: usize = 16;
pub(super) const MOST_BITS: usize = 32;

/// Splits the innermost axes of stages that take quotients or remainders of them.
pub(crate) fn split_innermost_axes(nest: &mut Nest) {
    let mut stages = std::mem::take(&mut nest.stages);
    for stage in &mut stages {
        if let Some((place, count)) = digits_of_innermost(stage)
            && Contraction::of(nest, stage).is_none()
        {
            split_axis(nest, stage, place, count);
        }
    }
    nest.stages = stages;
}

/// The place of the innermost axis of a stage, and the least number by which it is divided and that divides its extent.
fn digits_of_innermost(stage: &Stage) -> Option<(usize, Extent)> {
    let place = stage.domain.iter().rposition(|axis| axis.extent > 1)?;
    let lane = stage.domain[place];
    if !stage.is_unordered() {
        return None;
    }
    let extent = lane.extent.example();
    let is_copy = is_plain_copy(stage);
    let pays = |op: Binary, by: Extent| {
        let are_planes = || by.number().is_some_and(|by| PLANES.contains(&by));
        let least = match op {
            Binary::Rem if is_copy => LEAST_OF_RUN,
            Binary::Div if is_copy && are_planes() => {
                return extent / by.example() >= LEAST_OF_PLANE;
            }
            _ => LEAST_INNER,
        };
        (least..extent).contains(&by.example())
    };
    let mut least: Option<Extent> = None;
    visit(&stage.value, &mut |x| {
        let Some((op, by)) = digit(x, lane) else {
            return;
        };
        let is_less = least.is_none_or(|least| by.example() < least.example());
        if is_less && pays(op, by) && lane.extent.over(by).is_some() {
            least = Some(by);
        }
    });
    Some((place, least?))
}

/// The operation and the divisor of a quotient or a remainder of an axis by a number or an extent.
fn digit(x: &Scalar, axis: Axis) -> Option<(Binary, Extent)> {
    let Kind::Binary(op @ (Binary::Div | Binary::Rem), a, b) = x.kind() else {
        return None;
    };
    let by = match b.kind() {
        Kind::Extent(extent) => *extent,
        _ => usize::try_from(b.as_index()?).ok()?.into(),
    };
    (a.is_axis(axis.id) && by > 0).then_some((*op, by))
}

/// Whether a stage moves small elements as they are.
fn is_plain_copy(stage: &Stage) -> bool {
    let ty = stage.value.ty();
    let is_small = !ty.is_packed() && ty.bits() <= MOST_BITS && ty != ElementType::Boolean;
    is_small && matches!(stage.value.kind(), Kind::Load { .. })
}

/// Makes two loops of the axis at `place` in the domain of a stage, the inner one of `count` points, of which its extent is a multiple.
pub(super) fn split_axis(
    nest: &mut Nest,
    stage: &mut Stage,
    place: usize,
    count: Extent,
) -> Option<()> {
    let axis = stage.domain[place];
    let [outer, inner] = [nest.axis(axis.extent.over(count)?), nest.axis(count)];
    let [high, low] = [outer, inner].map(|axis| Scalar::axis(axis.id));
    rewrite_stage(stage, &mut |x| match digit(&x, axis) {
        Some((Binary::Div, by)) if by == count => high.clone(),
        Some((_, by)) if by == count => low.clone(),
        _ => x,
    });
    let both = &high * &Scalar::extent(count) + low;
    replace_axes(stage, &[(axis.id, both)].into_iter().collect());
    stage.domain.splice(place..=place, [outer, inner]);
    simplify_stage(stage);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::ir::parse;

    /// The nest of a stage that writes `n` elements, of `value`.
    fn split(n: usize, value: &str) -> String {
        let text = format!(
            "input x: f32[6000]\noutput y: f32[2, {n}]\nfor i<2, j<{n}: y[i, j] = {value}\n"
        );
        let mut nest = parse(&text).unwrap();
        split_innermost_axes(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()[0].clone()
    }

    #[test]
    fn tiles_and_repeated_rows_are_split() {
        let tile = "for i<2, j<3, k<32: y[i, ((j * 32) + k)] = x[((i * 32) + k)]";
        assert_eq!(split(96, "x[((i * 32) + (j % 32))]"), tile);
        let rows = "for i<2, j<3, k<32: y[i, ((j * 32) + k)] = x[((i * 3) + j)]";
        assert_eq!(split(96, "x[((i * 3) + (j / 32))]"), rows);
        // The lesser of two numbers is a loop, the other one is of the loop around it.
        let both = split(192, "(x[(j % 96)] + x[(j % 32)])");
        assert!(both.starts_with("for i<2, j<6, k<32"), "{both}");
    }

    #[test]
    fn copies_are_split_by_few_planes() {
        let twice = "for i<2, j<16, k<2: y[i, ((j * 2) + k)] = x[((i * 16) + j)]";
        assert_eq!(split(32, "x[((i * 16) + (j / 2))]"), twice);
        // Planes would be short, or too many; and sums are vectors as they are.
        for (n, value) in [
            (30, "x[(j / 2)]"),
            (90, "x[(j / 9)]"),
            (32, "(x[(j / 2)] + 1.0)"),
        ] {
            assert!(split(n, value).starts_with(&format!("for i<2, j<{n}:")));
        }
    }

    /// A row that is repeated as often as is known, of a length that is not.
    #[test]
    fn extents_may_have_symbols() {
        let text = "symbols s0=100\ninput x: f32[s0]\noutput y: f32[3*s0]\n\
                    for i<3*s0: y[i] = x[(i % extent(s0))]\n";
        let mut nest = parse(text).unwrap();
        split_innermost_axes(&mut nest);
        verify(&nest).unwrap();
        let split = "for i<3, j<s0: y[((i * extent(s0)) + j)] = x[j]";
        assert_eq!(nest.stage_texts(), [split]);
    }

    #[test]
    fn others_stay() {
        // The inner loop would be short, or the last one not whole; and a quotient that is none of the innermost axis.
        for (n, value) in [
            (90, "(x[(j % 15)] + 1.0)"),
            (97, "x[(j % 32)]"),
            (90, "x[(j % 5)]"),
            (96, "x[(i / 32)]"),
        ] {
            assert!(split(n, value).starts_with(&format!("for i<2, j<{n}:")));
        }
    }
}
