//! Guarded copies: stages that copy a picture and fill a border around it, `t[i] = select(0 <= i - 1 < n, x[i - 1], 0)`.

use crate::analysis::{Linear, least_of};
use crate::ir::{BufferId, Kind, Mode, Nest, Scalar, Stage};
use crate::passes::guard_box::guard_box;
use crate::passes::rearrangeable::rearrangeable;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::Formula;

/// The guarded copies that can become parts of their sources: a copy is written by one stage, after all stages that write its
/// source, and its source is no such copy itself, as these are gone afterwards.
pub(super) fn guarded_copies(nest: &Nest) -> Vec<GuardedCopy> {
    let rearrangeable = rearrangeable(nest);
    let mut writers: FxHashMap<BufferId, Vec<usize>> = FxHashMap::default();
    for (k, stage) in nest.stages.iter().enumerate() {
        writers.entry(stage.target).or_default().push(k);
    }
    let is_written_before = |buffer: BufferId, k: usize| {
        let last = writers.get(&buffer).and_then(|all| all.last());
        last.is_some_and(|last| *last < k)
    };
    let stages = nest.stages.iter().enumerate();
    let copies = stages.filter_map(|(k, stage)| {
        let copy = GuardedCopy::of(nest, stage)?;
        let are_free = [copy.source, copy.target].map(|b| rearrangeable.contains(&b)) == [true; 2];
        let is_once = writers[&copy.target] == [k];
        (are_free && is_once && is_written_before(copy.source, k)).then_some(copy)
    });
    let mut copies: Vec<GuardedCopy> = copies.collect();
    let targets: FxHashSet<BufferId> = copies.iter().map(|copy| copy.target).collect();
    copies.retain(|copy| !targets.contains(&copy.source));
    copies
}

/// A stage that copies a temporary and fills the border around it.
pub(super) struct GuardedCopy {
    pub(super) source: BufferId,
    pub(super) target: BufferId,
    /// What the border is filled with, a constant.
    pub(super) fill: Scalar,
    /// Each dim of the source in the copy; `None` for one of a single element that the copy lacks.
    pub(super) dims: Vec<Option<CopiedDim>>,
}

/// A dim of the source in a copy of it.
pub(super) struct CopiedDim {
    /// Which dim of the copy it is.
    pub(super) dim: usize,
    /// How many points the copy has before the first of the source.
    pub(super) below: i64,
    /// The most points that the copy has after the last of the source; the symbols decide how many where windows go in steps.
    pub(super) above: i64,
}

impl GuardedCopy {
    /// The copy that a stage makes, if the source can be a part of it.
    fn of(nest: &Nest, stage: &Stage) -> Option<GuardedCopy> {
        let Kind::Select(guard, body, fill) = stage.value.kind() else {
            return None;
        };
        let Kind::Load { buffer: source, at } = body.kind() else {
            return None;
        };
        fill.as_const()?;
        let (from, to) = (nest.buf(*source), nest.buf(stage.target));
        let is_copy = stage.mode == Mode::Set && stage.group.is_none() && stage.covers(&to.shape);
        if !is_copy || *source == stage.target {
            return None;
        }
        let inside = guard_box(guard, &stage.domain)?;
        let mut dims = Vec::new();
        let mut used = vec![false; to.shape.len()];
        for (index, extent) in at.iter().zip(&from.shape) {
            let form = Linear::of(index);
            let dim = match form.terms.as_slice() {
                [] if form.constant == 0 && *extent == 1 => None,
                [(atom, 1)] if form.constant <= 0 => {
                    let axis = stage.domain.iter().position(|a| atom.is_axis(a.id))?;
                    let dim = stage.at.iter().position(|index| index == atom)?;
                    let below = form.constant.checked_neg()?;
                    let whole = stage.domain[axis].extent.formula();
                    let last = extent.formula().plus(&Formula::number(below))?;
                    let high = &inside[axis].high;
                    if inside[axis].low > below || *high != last && high != whole || used[dim] {
                        return None;
                    }
                    used[dim] = true;
                    let least = least_of(&last.minus(whole)?, &nest.relations)?;
                    Some(CopiedDim {
                        dim,
                        below,
                        above: least.min(0).checked_neg()?,
                    })
                }
                _ => return None,
            };
            dims.push(dim);
        }
        let rest = used.iter().zip(&to.shape);
        let is_whole = rest.into_iter().all(|(used, n)| *used || *n == 1);
        let innermost = from.shape.iter().rposition(|n| *n > 1)?;
        let is_flush = (dims[innermost].as_ref()).is_some_and(|d| d.below == 0 && d.above == 0);
        (is_whole && is_flush).then(|| GuardedCopy {
            source: *source,
            target: stage.target,
            fill: fill.clone(),
            dims,
        })
    }
}
