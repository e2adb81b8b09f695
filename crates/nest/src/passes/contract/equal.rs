//! Contractions that are there already: a sum that several readers were fused with is computed once.

use super::Extracted;
use crate::ir::{
    Axis, AxisId, BufferId, Kind, Nest, Role, Scalar, Stage, rebound, rewrite, rewrite_stage,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The epilogue of `extracted`, which the nest does not have yet, as a stage that loads an equal sum which the nest
/// computes already, from buffers that nothing has written since; `None` if there is none.
pub(super) fn reuse(nest: &mut Nest, extracted: &Extracted) -> Option<Stage> {
    let target = extracted.contraction.target;
    let is_last = target.0 as usize + 1 == nest.buffers.len();
    if !extracted.stored.is_empty() || !is_last {
        return None;
    }
    let mut epilogue = extracted.epilogue.clone()?;
    let known = earlier(nest, &extracted.contraction)?;
    rewrite_stage(&mut epilogue, &mut |x| match x.kind() {
        Kind::Load { buffer, at } if *buffer == target => nest.load(known, at.clone()),
        _ => x,
    });
    nest.truncate_buffers(target.0 as usize);
    Some(epilogue)
}

/// The temporary that holds what `new` would compute.
fn earlier(nest: &Nest, new: &Stage) -> Option<BufferId> {
    let loads = new.loads();
    let mut written: FxHashSet<BufferId> = FxHashSet::default();
    for stage in nest.stages.iter().rev() {
        let is_kept = nest.buf(stage.target).role == Role::Temporary
            && !written.contains(&stage.target)
            && stage.group.is_none()
            && new.group.is_none();
        if is_kept && is_equal(stage, new) {
            return Some(stage.target);
        }
        if loads.contains(&stage.target) {
            return None;
        }
        written.insert(stage.target);
    }
    None
}

/// Whether two stages store the same sum at the same places of their targets, whatever their axes are called.
fn is_equal(old: &Stage, new: &Stage) -> bool {
    let (Kind::Reduce { axes: from, .. }, Kind::Reduce { axes: to, .. }) =
        (new.value.kind(), old.value.kind())
    else {
        return false;
    };
    let extents = |axes: &[Axis]| -> Vec<_> { axes.iter().map(|axis| axis.extent).collect() };
    let is_alike = old.mode == new.mode
        && old.value.ty() == new.value.ty()
        && extents(&old.domain) == extents(&new.domain)
        && extents(from) == extents(to);
    if !is_alike {
        return false;
    }
    let folded: FxHashMap<AxisId, Axis> =
        from.iter().map(|a| a.id).zip(to.iter().copied()).collect();
    let outer = new.domain.iter().zip(&old.domain);
    let mut names: FxHashMap<AxisId, Scalar> =
        outer.map(|(n, o)| (n.id, Scalar::axis(o.id))).collect();
    names.extend(folded.iter().map(|(id, axis)| (*id, Scalar::axis(axis.id))));
    let renamed = |x: &Scalar| {
        rewrite(x, &mut |x| match x.kind() {
            Kind::Axis(id) => names.get(id).cloned().unwrap_or(x),
            _ => rebound(x, &folded),
        })
    };
    let mut at = new.at.iter().zip(&old.at);
    new.at.len() == old.at.len()
        && at.all(|(new, old)| renamed(new) == *old)
        && renamed(&new.value) == old.value
}
