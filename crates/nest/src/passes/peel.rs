//! Loop peeling: the interior of a domain, where all guards hold, runs apart from the borders, without the guards.
//!
//! Where the selects of a stage ask whether `k·a + …` lies in bounds, the stage becomes one stage for the box in
//! which all of these conditions hold, whatever the axes of folds are, and one for each border around the box. The
//! boxes cover the domain and share no point, so each element is written once, with the same value. An axis whose
//! extent has symbols stays whole.

use crate::analysis;
use crate::analysis::{Linear, Scan, verify};
use crate::ir::{
    Axis, AxisId, Kind, Mode, Nest, Scalar, Stage, rebound, rewrite_stage, visit_folds, visit_stage,
};
use crate::passes::fill::filled;
use crate::passes::pad_windows::{MOST_PEELED_SINGLY, Part, is_small, padded};
use crate::passes::simplify::simplify_stage;
use crate::passes::trim_folds::trim_folds;
use rustc_hash::FxHashMap;

/// Splits every stage where that pays.
pub(crate) fn peel_borders(nest: &mut Nest) {
    for stage in std::mem::take(&mut nest.stages) {
        let (first, next_axis) = (nest.stages.len(), nest.next_axis);
        let buffers = nest.buffers.len();
        append(nest, stage.clone());
        // Where a guard is gone, what it was needed for may have become harder to prove.
        let is_proven = |nest: &Nest| verify(&nest.extract(first..nest.stages.len()).nest).is_ok();
        if nest.stages[first..] != *std::slice::from_ref(&stage) && !is_proven(nest) {
            nest.stages.truncate(first);
            nest.stages.push(stage);
            nest.truncate_buffers(buffers);
            nest.next_axis = next_axis;
        }
    }
}

/// Appends a stage, its borders apart.
fn append(nest: &mut Nest, mut stage: Stage) {
    trim_folds(nest, &mut stage);
    if let Some(parts) = filled(nest, &stage) {
        nest.stages.extend(parts);
        return;
    }
    let known = interior(nest, &stage);
    let inside = known.clone().or_else(|| open(&stage));
    let padded = inside.and_then(|inside| padded(nest, &stage, &inside));
    if let Some((copy, whole)) = padded {
        append(nest, copy);
        append(nest, whole);
        return;
    }
    let Some(inside) = known else {
        nest.stages.push(stage);
        return;
    };
    // A border is worth a stage of its own if it is small or, around whole rows, a fill.
    let innermost = stage.domain.iter().rposition(|a| a.extent > 1);
    let is_fill = |d: usize| innermost != Some(d) && !stage.value.folds();
    let mut middle = stage.domain.iter().zip(&inside).enumerate();
    let stays_whole = |(d, (axis, part)): (usize, (&Axis, &Part))| {
        part.is_some_and(|part| is_small(*axis, part) && !(is_fill(d) && part.0 < part.1))
    };
    if middle.any(stays_whole) {
        nest.stages.push(stage);
        return;
    }
    let (mut borders, middle) = split(nest, &stage, &inside);
    // A border that reads its own target would read elements that the interior has not written yet.
    if borders.iter().any(|b| b.loads().contains(&b.target)) {
        nest.stages.push(stage);
        return;
    }
    for border in borders.drain(..) {
        append(nest, border);
    }
    append(nest, middle);
}

/// A part that leaves the whole domain as it is, for a stage whose innermost axis has an extent with symbols: where its guards
/// hold is not known before the run. `None` if there is no such axis, or the stage has to run in its order.
fn open(stage: &Stage) -> Option<Vec<Part>> {
    let innermost = stage.domain.iter().rfind(|a| a.extent > 1)?;
    let fits = innermost.extent.is_symbolic() && stage.is_unordered();
    fits.then(|| vec![None; stage.domain.len()])
}

/// The same for a stage of which outer axes have extents with symbols, and the innermost has none; what guards say of axes whose
/// extents are numbers, [`interior`] knows.
pub(super) fn open_outside(stage: &Stage) -> Option<Vec<Part>> {
    let whole = |axis: &Axis| Some((0, axis.extent.number()? as i64));
    let parts: Vec<Part> = stage.domain.iter().map(whole).collect();
    let fits = parts.contains(&None) && stage.selects() && stage.is_unordered();
    fits.then_some(parts)
}

/// For each axis of the domain, from where to where all guards hold; `None` if there are no guards that
/// say so.
pub(super) fn interior(nest: &Nest, stage: &Stage) -> Option<Vec<Part>> {
    if !stage.selects() {
        return None;
    }
    let mut bounds: FxHashMap<AxisId, (i64, i64)> = FxHashMap::default();
    let mut extents: FxHashMap<AxisId, i64> = FxHashMap::default();
    for axis in &stage.domain {
        let Some(extent) = axis.extent.number() else {
            continue;
        };
        let extent = i64::try_from(extent).ok().filter(|n| *n > 0)?;
        bounds.insert(axis.id, (0, extent));
    }
    let mut order_matters = stage.mode != Mode::Set || stage.group.is_some();
    let scan = match stage.loads().contains(&stage.target) {
        true => Some(Scan::of(nest, stage)?),
        false => None,
    };
    let mut conditions = Vec::new();
    visit_stage(stage, &mut |x| match x.kind() {
        Kind::Wrap(_) => order_matters = true,
        Kind::Select(condition, ..) => conditions.push(condition.clone()),
        Kind::Reduce { axes, .. } => {
            for axis in axes {
                if let Some(extent) = axis.extent.number() {
                    extents.insert(axis.id, extent as i64);
                }
            }
        }
        _ => {}
    });
    if order_matters || conditions.is_empty() {
        return None;
    }
    for form in Linear::of_conditions(conditions) {
        narrow(&form, &mut bounds, &extents);
    }
    let mut inside = Vec::new();
    let mut narrower = false;
    for axis in &stage.domain {
        let (Some((low, high)), Some(extent)) = (bounds.get(&axis.id), axis.extent.number()) else {
            inside.push(None);
            continue;
        };
        let (low, high, extent) = (*low, *high, extent as i64);
        let is_whole = high - low == extent;
        // A recurrence reads the point before: its first points may be peeled, as they run first.
        let is_rest = |scan: &Scan| scan.axis.id == axis.id && high == extent;
        if !is_whole && scan.as_ref().is_some_and(|scan| !is_rest(scan)) {
            return None;
        }
        narrower |= !is_whole;
        inside.push(Some((low, high)));
    }
    narrower.then_some(inside)
}

/// Takes in that `form` is not negative, if that says something about one axis of the domain.
fn narrow(
    form: &Linear,
    bounds: &mut FxHashMap<AxisId, (i64, i64)>,
    extents: &FxHashMap<AxisId, i64>,
) -> Option<()> {
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
    analysis::narrow(factor, least, bounds.get_mut(&id)?)
}

/// The borders of a stage, and its middle.
fn split(nest: &mut Nest, stage: &Stage, inside: &[Part]) -> (Vec<Stage>, Stage) {
    let whole = |axis: &Axis| Some((0, axis.extent.number()? as i64));
    let mut rest: Vec<Part> = stage.domain.iter().map(whole).collect();
    let mut borders = Vec::new();
    for (d, part) in inside.iter().enumerate() {
        let (Some((low, high)), Some((start, end))) = (*part, rest[d]) else {
            continue;
        };
        for (from, to) in [(start, low), (high, end)] {
            let mut of = |points: (i64, i64)| {
                let mut around = rest.clone();
                around[d] = Some(points);
                borders.push(within(nest, stage, &around));
            };
            match to - from <= MOST_PEELED_SINGLY && folds_with_guards(stage) {
                true => (from..to).for_each(|k| of((k, k + 1))),
                false if from < to => of((from, to)),
                false => {}
            }
        }
        rest[d] = Some((low, high));
    }
    (borders, within(nest, stage, &rest))
}

fn folds_with_guards(stage: &Stage) -> bool {
    let mut found = false;
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { body, .. } = x.kind() {
            found |= matches!(body.kind(), Kind::Select(..));
        }
    });
    found
}

/// The stage over a part of its domain, with axes of its own.
fn within(nest: &mut Nest, stage: &Stage, parts: &[Part]) -> Stage {
    let mut new_axes: FxHashMap<AxisId, Axis> = FxHashMap::default();
    let mut values: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    let mut domain = Vec::new();
    for (axis, part) in stage.domain.iter().zip(parts) {
        let (new, from) = match *part {
            Some((from, to)) => (nest.axis((to - from) as usize), from),
            None => (nest.axis(axis.extent), 0),
        };
        values.insert(axis.id, Scalar::axis(new.id) + from);
        domain.push(new);
    }
    visit_folds(stage, &mut |x| {
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
    simplify_stage(&mut stage);
    stage
}
