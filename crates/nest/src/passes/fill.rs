//! Filling: a guarded copy over axes whose extents have symbols is a fill of all its points, and a copy of those inside.
//!
//! > `t[i] = select(0 <= i - 2 < n, x[i - 2], 0)` over `i < n + 4` is `t[i] = 0` over `i < n + 4`, and then
//! > `t[i + 2] = x[i]` over `i < n`
//!
//! The same number fills all points: a constant, or one that a run gives.
//!
//! Where extents are numbers, borders are peeled instead: so no point is written twice.

use crate::analysis::is_proven;
use crate::ir::{Axis, AxisId, Kind, Nest, Scalar, Stage, free_axes, loaded_by, rewrite_stage};
use crate::passes::guard_box::{Inside, guard_box};
use rustc_hash::FxHashMap;
use vinelift_tensor::{Extent, Formula};

/// The stage that fills, and the one that copies, if `stage` is such a copy.
pub(super) fn filled(nest: &mut Nest, stage: &Stage) -> Option<[Stage; 2]> {
    let Kind::Select(condition, body, fill) = stage.value.kind() else {
        return None;
    };
    let is_open = stage.domain.iter().any(|axis| axis.extent.is_symbolic());
    if !is_open || !stage.is_unordered() || stage.value.folds() || !free_axes(fill).is_empty() {
        return None;
    }
    let inside = guard_box(condition, &stage.domain)?;
    let next_axis = nest.next_axis;
    let copy = copied(nest, stage, body, &inside).filter(|copy| is_proven(nest, copy));
    if copy.is_none() {
        nest.next_axis = next_axis;
    }
    let mut filled = stage.clone();
    filled.value = fill.clone();
    Some([filled, copy?])
}

/// The stage that sets the points inside to `body`.
fn copied(nest: &mut Nest, stage: &Stage, body: &Scalar, inside: &[Inside]) -> Option<Stage> {
    let mut domain = Vec::new();
    let mut values: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    for (axis, Inside { low, high }) in stage.domain.iter().zip(inside) {
        let count = high.minus(&Formula::number(*low))?;
        let new = nest.axis(extent(nest, axis, &count, body)?);
        values.insert(axis.id, Scalar::axis(new.id) + *low);
        domain.push(new);
    }
    let mut copy = Stage {
        domain,
        value: body.clone(),
        ..stage.clone()
    };
    rewrite_stage(&mut copy, &mut |x| match x.kind() {
        Kind::Axis(id) => values.get(id).cloned().unwrap_or(x),
        _ => x,
    });
    Some(copy)
}

/// A number of points as an extent: as it is a dim of what is copied, it is none of less than no points.
fn extent(nest: &Nest, axis: &Axis, count: &Formula, body: &Scalar) -> Option<Extent> {
    if let Some(number) = count.as_number() {
        return usize::try_from(number).ok().map(Extent::from);
    }
    let buffers = loaded_by([body]).into_iter();
    let mut dims = buffers.flat_map(|b| nest.buf(b).shape.clone());
    let is_count = |extent: &Extent| extent.formula() == count;
    Some(axis.extent)
        .filter(is_count)
        .or_else(|| dims.find(is_count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::*;
    use crate::ir::Role;
    use crate::passes::schedule::schedule;
    use vinelift_tensor::ElementType::F32;
    use vinelift_tensor::Symbol;

    /// The stages of `t[i, j] = select(0 <= i - 2 < n, x[i - 2, j], fill)`, where `n` is a symbol.
    fn scheduled(fill: impl Fn(&mut Nest, &[Scalar]) -> Scalar) -> Vec<String> {
        let mut nest = Nest::new();
        let n = Extent::new(Formula::symbol(Symbol::new(0).unwrap()), 5);
        let more = n.plus(4.into()).unwrap();
        let x = nest.buffer("x", F32, &[n, 3.into()], Role::Input);
        let t = nest.buffer("t", F32, &[more, 3.into()], Role::Output);
        nest.define(vec![], t, |nest, at| {
            let i = &at[0] - 2;
            let guard = i.ge(index(0)) & i.lt(Scalar::extent(n));
            let fill = fill(nest, at);
            select(guard, nest.load(x, vec![i, at[1].clone()]), fill)
        });
        nest.adopt_symbols();
        schedule(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn a_copy_with_borders_is_a_fill_and_a_copy() {
        assert_eq!(
            scheduled(|_, _| zero(F32)),
            [
                "for i<3*s0 + 12: t[i] = 0.0",
                "for i<3*s0: t[(i + 6)] = x[i]",
            ]
        );
        let of_run = |nest: &mut Nest, _: &[Scalar]| {
            let z = nest.buffer("z", F32, &[0usize; 0], Role::Input);
            nest.load(z, vec![])
        };
        assert_eq!(
            scheduled(of_run),
            [
                "for i<3*s0 + 12: t[i] = z[]",
                "for i<3*s0: t[(i + 6)] = x[i]",
            ]
        );
    }

    #[test]
    fn borders_of_different_numbers_stay() {
        let of_column = |nest: &mut Nest, at: &[Scalar]| {
            let z = nest.buffer("z", F32, &[3usize], Role::Input);
            nest.load(z, vec![at[1].clone()])
        };
        let stages = scheduled(of_column);
        assert!(
            matches!(&stages[..], [stage] if stage.contains("select")),
            "{stages:?}"
        );
    }
}
