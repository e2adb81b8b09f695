//! Walks over scalars that meet every distinct node once.

use crate::ir::{Axis, AxisId, BufferId, Kind, Nest, Scalar, Seen, Stage};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use vinelift_tensor::Extent;

/// Scalars that most walks have open at a time, at most.
const USUAL_DEPTH: usize = 16;

/// Calls `f` once for every distinct node of `x`, children first.
pub(crate) fn visit(x: &Scalar, f: &mut impl FnMut(&Scalar)) {
    visit_those(x, |_| true, f);
}

/// As [`visit`], leaving out what is in nodes that are not `wanted`, and these. Without recursion, as chains may be of
/// any length.
pub(crate) fn visit_those(
    x: &Scalar,
    wanted: impl Fn(&Scalar) -> bool + Copy,
    f: &mut impl FnMut(&Scalar),
) {
    if !wanted(x) {
        return;
    }
    if x.is_leaf() {
        return f(x);
    }
    let mut seen = Seen::default();
    let mut open = Vec::with_capacity(USUAL_DEPTH);
    open.push((x, false));
    while let Some((x, children_done)) = open.pop() {
        if children_done {
            f(x);
            continue;
        }
        // A walk meets a node that is not shared only once: no record is needed.
        if x.is_shared() && !seen.insert(x.address()) {
            continue;
        }
        if x.is_leaf() {
            f(x);
            continue;
        }
        open.push((x, true));
        for child in x.children().rev().filter(|child| wanted(child)) {
            open.push((child, false));
        }
    }
}

/// Calls `f` once for every distinct node of each scalar of a stage.
pub(crate) fn visit_stage(stage: &Stage, f: &mut impl FnMut(&Scalar)) {
    stage
        .at
        .iter()
        .chain([&stage.value])
        .for_each(|x| visit(x, f));
}

/// Calls `f` once for every distinct node of each scalar of a stage that is a fold or contains one.
pub(crate) fn visit_folds(stage: &Stage, f: &mut impl FnMut(&Scalar)) {
    for x in stage.at.iter().chain([&stage.value]) {
        visit_those(x, Scalar::folds, f);
    }
}

/// Calls `f` with the target of a stage and every buffer that it loads from, and where.
pub(crate) fn visit_accesses(stage: &Stage, f: &mut impl FnMut(BufferId, &[Scalar])) {
    f(stage.target, &stage.at);
    for x in stage.at.iter().chain([&stage.value]) {
        visit_those(x, Scalar::loads, &mut |x| {
            if let Kind::Load { buffer, at } = x.kind() {
                f(*buffer, at);
            }
        });
    }
}

/// The buffers that scalars load from, in the order met, each once.
pub(crate) fn loaded_by<'a>(scalars: impl IntoIterator<Item = &'a Scalar>) -> Vec<BufferId> {
    let mut buffers = Vec::new();
    for x in scalars {
        visit_those(x, Scalar::loads, &mut |x| {
            if let Kind::Load { buffer, .. } = x.kind()
                && !buffers.contains(buffer)
            {
                buffers.push(*buffer);
            }
        });
    }
    buffers
}

/// The extents of all axes of a nest: those of the domains of stages, and of folds.
pub(crate) fn extents_of_axes(nest: &Nest) -> FxHashMap<AxisId, Extent> {
    let mut extents = FxHashMap::default();
    let mut note = |axes: &[Axis]| extents.extend(axes.iter().map(|a| (a.id, a.extent)));
    for stage in &nest.stages {
        note(&stage.domain);
        visit_folds(stage, &mut |x| {
            if let Kind::Reduce { axes, .. } = x.kind() {
                note(axes);
            }
        });
    }
    extents
}

/// Whether `x` depends on one of these axes other than through the places of loads, and other than through `except`.
pub(crate) fn computes_with(x: &Scalar, axes: &[AxisId], except: Option<&Scalar>) -> bool {
    let mut open = vec![x];
    let mut seen = Seen::default();
    while let Some(x) = open.pop() {
        match x.kind() {
            Kind::Axis(id) if axes.contains(id) => return true,
            Kind::Load { .. } => {}
            _ if except.is_some_and(|except| except.address() == x.address()) => {}
            _ if seen.insert(x.address()) => open.extend(x.children()),
            _ => {}
        }
    }
    false
}

/// The axes that `x` depends on and does not bind.
pub(crate) fn free_axes(x: &Scalar) -> FxHashSet<AxisId> {
    let (mut free, mut bound) = (FxHashSet::default(), FxHashSet::default());
    visit(x, &mut |x| match x.kind() {
        Kind::Axis(id) => {
            free.insert(*id);
        }
        Kind::Reduce { axes, .. } => bound.extend(axes.iter().map(|a| a.id)),
        _ => {}
    });
    free.retain(|id| !bound.contains(id));
    free
}

impl Stage {
    /// Whether it has extents with symbols, but for those of the buffers that it uses.
    pub fn is_symbolic(&self) -> bool {
        let mut found = self.domain.iter().any(|a| a.extent.is_symbolic());
        visit_stage(self, &mut |x| {
            found |= match x.kind() {
                Kind::Extent(_) => true,
                Kind::Wrap(w) => w.extent.is_symbolic(),
                Kind::Reduce { axes, .. } => axes.iter().any(|a| a.extent.is_symbolic()),
                _ => false,
            }
        });
        found
    }

    /// Whether a point of it can end the run with a fault.
    pub fn may_fault(&self) -> bool {
        let mut found = false;
        for x in self.at.iter().chain([&self.value]) {
            visit_those(x, Scalar::wraps, &mut |x| found |= x.may_fault());
        }
        found
    }

    /// The buffers that it loads from, in the order met, each once.
    pub fn loads(&self) -> Vec<BufferId> {
        loaded_by(self.at.iter().chain([&self.value]))
    }
}

impl Nest {
    /// The buffers that the stages of a range load from, each once.
    pub fn read_in(&self, range: Range<usize>) -> Vec<BufferId> {
        let mut buffers: Vec<BufferId> = self.stages[range].iter().flat_map(Stage::loads).collect();
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }
}
