//! Guards that hold in the middle of a domain and fail only near its edges: the middle is done apart,
//! without them.
//!
//! A stage whose selects ask whether `k·a + …` lies in bounds becomes one stage for the box in which
//! all of them hold, whatever the folds' axes are, and one for each border around it. The boxes cover
//! the domain, each point once, so the same values are written.

use crate::linear::Linear;
use crate::nest::{Axis, Mode, Nest, Stage};
use crate::rewrite::{loaded, rebound, rewrite_stage, visit_stage};
use crate::scalar::{AxisId, Binary, Kind, Scalar};
use crate::simplify::simplify_stage;
use crate::verify::verify;
use rustc_hash::FxHashMap;

/// Splits every stage where that pays.
pub(crate) fn split_interiors(nest: &mut Nest) {
    let stages = std::mem::take(&mut nest.stages);
    for stage in stages {
        match interior(&stage) {
            Some(inside) => {
                let first = nest.stages.len();
                split(nest, &stage, &inside);
                // Where a guard is gone, what it was needed for may have become harder to prove.
                let parts = nest.extract(first..nest.stages.len());
                if verify(&parts.nest).is_err() {
                    nest.stages.truncate(first);
                    nest.stages.push(stage);
                }
            }
            None => nest.stages.push(stage),
        }
    }
}

/// For each axis of the domain, from where to where all guards hold; `None` if there are no guards,
/// or hardly anything would be left.
fn interior(stage: &Stage) -> Option<Vec<(i64, i64)>> {
    let mut bounds: FxHashMap<AxisId, (i64, i64)> = FxHashMap::default();
    let mut extents: FxHashMap<AxisId, i64> = FxHashMap::default();
    for axis in &stage.domain {
        let extent = i64::try_from(axis.extent).ok().filter(|n| *n > 0)?;
        bounds.insert(axis.id, (0, extent));
    }
    let mut order_matters =
        stage.mode != Mode::Set || stage.group.is_some() || loaded(stage).contains(&stage.target);
    let mut conditions = Vec::new();
    visit_stage(stage, &mut |x| match x.kind() {
        Kind::Wrap(_) => order_matters = true,
        Kind::Select(condition, ..) => conditions.push(condition.clone()),
        Kind::Reduce { axes, .. } => {
            for axis in axes {
                extents.insert(axis.id, axis.extent as i64);
            }
        }
        _ => {}
    });
    if order_matters || conditions.is_empty() {
        return None;
    }
    while let Some(condition) = conditions.pop() {
        match condition.kind() {
            Kind::Binary(Binary::And, a, b) => conditions.extend([a.clone(), b.clone()]),
            Kind::Binary(op, a, b) if a.ty() == vinelift_tensor::ElementType::I64 => {
                narrow(*op, a, b, &mut bounds, &extents);
            }
            _ => {}
        }
    }
    let mut inside = Vec::new();
    let mut narrower = false;
    for axis in &stage.domain {
        let (low, high) = bounds[&axis.id];
        // A border is worth a stage of its own if it is small.
        if high - low < axis.extent as i64 / 2 {
            return None;
        }
        narrower |= high - low < axis.extent as i64;
        inside.push((low, high));
    }
    narrower.then_some(inside)
}

/// Takes in that `a op b` must hold, if it says something about one axis of the domain.
fn narrow(
    op: Binary,
    a: &Scalar,
    b: &Scalar,
    bounds: &mut FxHashMap<AxisId, (i64, i64)>,
    extents: &FxHashMap<AxisId, i64>,
) -> Option<()> {
    // As `form >= 0`.
    let difference = |x: &Scalar, y: &Scalar, less: i64| {
        let mut form = Linear::of(x).plus(&Linear::of(y), -1);
        form.constant = form.constant.checked_sub(less)?;
        Some(form)
    };
    let form = match op {
        Binary::Ge => difference(a, b, 0)?,
        Binary::Gt => difference(a, b, 1)?,
        Binary::Le => difference(b, a, 0)?,
        Binary::Lt => difference(b, a, 1)?,
        _ => return None,
    };
    let mut least = form.constant;
    let mut along = None;
    for (atom, factor) in &form.terms {
        let Kind::Axis(id) = atom.kind() else {
            return None;
        };
        match extents.get(id) {
            Some(extent) if *factor < 0 => {
                least = least.checked_add(factor.checked_mul(extent - 1)?)?;
            }
            Some(_) => {}
            None if along.is_none() => along = Some((*id, *factor)),
            None => return None,
        }
    }
    let (id, factor) = along?;
    let (low, high) = bounds.get_mut(&id)?;
    if factor > 0 {
        // factor · a >= -least
        *low = (*low).max(
            least.checked_neg()?.div_euclid(factor)
                + i64::from(least.checked_neg()?.rem_euclid(factor) != 0),
        );
    } else {
        // -factor · a <= least
        *high = (*high).min(least.div_euclid(factor.checked_neg()?).checked_add(1)?);
    }
    Some(())
}

/// Puts the borders and the middle into the nest.
fn split(nest: &mut Nest, stage: &Stage, inside: &[(i64, i64)]) {
    let whole: Vec<(i64, i64)> = stage
        .domain
        .iter()
        .map(|axis| (0, axis.extent as i64))
        .collect();
    let mut boxes = Vec::new();
    let mut rest = whole;
    for (d, &(low, high)) in inside.iter().enumerate() {
        for border in [(rest[d].0, low), (high, rest[d].1)] {
            if border.0 < border.1 {
                let mut around = rest.clone();
                around[d] = border;
                boxes.push(around);
            }
        }
        rest[d] = (low, high);
    }
    boxes.push(rest);
    for part in boxes {
        let mut stage = within(nest, stage, &part);
        simplify_stage(&mut stage);
        nest.stages.push(stage);
    }
}

/// The stage over a part of its domain, with axes of its own.
fn within(nest: &mut Nest, stage: &Stage, part: &[(i64, i64)]) -> Stage {
    let mut new_axes: FxHashMap<AxisId, Axis> = FxHashMap::default();
    let mut values: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    let mut domain = Vec::new();
    for (axis, (from, to)) in stage.domain.iter().zip(part) {
        let new = nest.axis((to - from) as usize);
        values.insert(axis.id, Scalar::axis(new.id) + *from);
        domain.push(new);
    }
    visit_stage(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            for axis in axes {
                let new = new_axes
                    .entry(axis.id)
                    .or_insert_with(|| nest.axis(axis.extent));
                values.insert(axis.id, Scalar::axis(new.id));
            }
        }
    });
    let mut stage = Stage {
        domain,
        ..stage.clone()
    };
    rewrite_stage(&mut stage, &mut |x| match x.kind() {
        Kind::Axis(id) => values.get(id).cloned().unwrap_or(x),
        _ => rebound(x, &new_axes),
    });
    stage
}
