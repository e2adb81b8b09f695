//! Rewriting scalars bottom-up with what is shared kept shared.

use crate::build;
use crate::nest::{Axis, BufferId, Nest, Stage};
use crate::scalar::{AxisId, Kind, Scalar, Wrap};
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::ElementType;

/// Results by the address of their scalar, which is kept so that no other takes its address.
type Memo = FxHashMap<usize, (Scalar, Scalar)>;

/// `x` with `f` applied to every node whose children are done. `f` gets the node with its new
/// children and returns what stands in its place.
pub(crate) fn rewrite(x: &Scalar, f: &mut impl FnMut(Scalar) -> Scalar) -> Scalar {
    walk(x, |_| true, f, &mut Memo::default())
}

/// As [`rewrite`], over all scalars of a stage.
pub(crate) fn rewrite_stage(stage: &mut Stage, f: &mut impl FnMut(Scalar) -> Scalar) {
    rewrite_those(stage, |_| true, f);
}

/// As [`rewrite_stage`], leaving nodes that are not `wanted` as they are, with what is in them.
pub(crate) fn rewrite_those(
    stage: &mut Stage,
    wanted: impl Fn(&Scalar) -> bool + Copy,
    f: &mut impl FnMut(Scalar) -> Scalar,
) {
    let mut memo = Memo::default();
    for index in &mut stage.at {
        *index = walk(index, wanted, f, &mut memo);
    }
    stage.value = walk(&stage.value, wanted, f, &mut memo);
}

/// Puts scalars in place of axes, in all scalars of a stage; its domain stays.
pub(crate) fn replace_axes(stage: &mut Stage, by_axis: &FxHashMap<AxisId, Scalar>) {
    rewrite_stage(stage, &mut |x| match x.kind() {
        Kind::Axis(id) => by_axis.get(id).cloned().unwrap_or(x),
        _ => x,
    });
}

fn walk(
    x: &Scalar,
    wanted: impl Fn(&Scalar) -> bool + Copy,
    f: &mut impl FnMut(Scalar) -> Scalar,
    memo: &mut Memo,
) -> Scalar {
    if !wanted(x) {
        return x.clone();
    }
    // What is not shared is met once.
    let shared = x.is_shared();
    if shared && let Some((_, done)) = memo.get(&x.address()) {
        return done.clone();
    }
    let inner = x.with_children(|child| walk(child, wanted, f, memo));
    let done = f(inner);
    if shared {
        memo.insert(x.address(), (x.clone(), done.clone()));
    }
    done
}

/// A definition `target[axes] = value`, ready to be put in place of loads.
pub(crate) struct Definition<'a> {
    pub(crate) target: BufferId,
    pub(crate) axes: &'a [Axis],
    pub(crate) value: &'a Scalar,
}

impl<'a> Definition<'a> {
    /// That of a stage which is one.
    pub(crate) fn of(stage: &'a Stage) -> Definition<'a> {
        Definition {
            target: stage.target,
            axes: &stage.domain,
            value: &stage.value,
        }
    }

    /// Puts the definition in place of every load of its target in `stage`. The axes of reductions
    /// in it are made anew for each place.
    pub(crate) fn inline_into(&self, nest: &mut Nest, stage: &mut Stage) {
        rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
            Kind::Load { buffer, at } if *buffer == self.target => self.instantiate(nest, at),
            _ => x,
        });
    }

    /// What stands in place of a load at `at`.
    pub(crate) fn instantiate(&self, nest: &mut Nest, at: &[Scalar]) -> Scalar {
        let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
        let mut inside: Option<Scalar> = None;
        for (axis, index) in self.axes.iter().zip(at) {
            let index = match index.kind() {
                // A load reads zero there; what is computed from loads need not be zero.
                Kind::Wrap(w) if w.policy.zero && !self.is_index(axis.id) => {
                    let (condition, index) = checked(w);
                    inside = Some(match inside {
                        Some(others) => others & condition,
                        None => condition,
                    });
                    index
                }
                _ => index.clone(),
            };
            by_axis.insert(axis.id, index);
        }
        let mut fresh: FxHashMap<AxisId, Axis> = FxHashMap::default();
        for axis in reduce_axes(self.value) {
            let new = nest.axis(axis.extent);
            fresh.insert(axis.id, new);
            by_axis.insert(axis.id, Scalar::axis(new.id));
        }
        let value = rewrite(self.value, &mut |x| match x.kind() {
            Kind::Axis(id) => by_axis.get(id).cloned().unwrap_or(x),
            _ => rebound(x, &fresh),
        });
        match inside {
            Some(inside) => {
                let zero = build::zero(value.ty());
                Scalar::select(inside, value, zero)
            }
            None => value,
        }
    }

    /// Whether the value is a load that has the axis for an index, and elsewhere not.
    fn is_index(&self, axis: AxisId) -> bool {
        let Kind::Load { at, .. } = self.value.kind() else {
            return false;
        };
        let is_axis = |x: &Scalar| matches!(x.kind(), Kind::Axis(id) if *id == axis);
        let mut uses = 0;
        for index in at.iter().filter(|x| !is_axis(x)) {
            visit(index, &mut |x| uses += usize::from(is_axis(x)));
        }
        uses == 0 && at.iter().filter(|x| is_axis(x)).count() == 1
    }
}

/// Whether a data-dependent index is in range, and the index if it is.
fn checked(w: &Wrap) -> (Scalar, Scalar) {
    let extent = i64::try_from(w.extent).unwrap_or(i64::MAX);
    if w.index.ty() == ElementType::U64 {
        let below = w.index.lt(build::integer(extent, ElementType::U64));
        let index = w.index.clone().cast(ElementType::I64);
        return (below & build::inside(&index, 0, extent), index);
    }
    let mut index = w.index.clone().cast(ElementType::I64);
    if w.policy.negative && !w.index.ty().is_unsigned_integer() {
        let from_end = &index + extent;
        index = Scalar::select(index.lt(build::index(0)), from_end, index);
    }
    (build::inside(&index, 0, extent), index)
}

/// `x` itself; if it folds, over the axes that `by_axis` has in place of its own.
pub(crate) fn rebound(x: Scalar, by_axis: &FxHashMap<AxisId, Axis>) -> Scalar {
    let Kind::Reduce {
        op,
        axes,
        init,
        body,
    } = x.kind()
    else {
        return x;
    };
    let renew = |a: &Axis| by_axis.get(&a.id).copied().unwrap_or(*a);
    let axes = axes.iter().map(renew).collect();
    Scalar::reduce(*op, axes, init.clone(), body.clone())
}

fn reduce_axes(x: &Scalar) -> Vec<Axis> {
    let mut axes = Vec::new();
    visit_those(x, Scalar::folds, &mut |x| {
        if let Kind::Reduce { axes: more, .. } = x.kind() {
            axes.extend(more.iter().copied());
        }
    });
    axes
}

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
    let mut seen = FxHashSet::default();
    let mut open = vec![(x, false)];
    while let Some((x, children_done)) = open.pop() {
        if children_done {
            f(x);
            continue;
        }
        // What is not shared is met once.
        if !wanted(x) || (x.is_shared() && !seen.insert(x.address())) {
            continue;
        }
        open.push((x, true));
        let below = open.len();
        open.extend(x.children().map(|child| (child, false)));
        open[below..].reverse();
    }
}

/// Calls `f` once for every distinct fold in each scalar of a stage, and for what they are in.
pub(crate) fn visit_folds(stage: &Stage, f: &mut impl FnMut(&Scalar)) {
    for x in stage.at.iter().chain([&stage.value]) {
        visit_those(x, Scalar::folds, f);
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

/// The buffers that a stage loads from, in the order met, each once.
pub(crate) fn loaded(stage: &Stage) -> Vec<BufferId> {
    loaded_by(stage.at.iter().chain([&stage.value]))
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
