//! Rewriting scalars bottom-up with what is shared kept shared.

use crate::ir::{Axis, AxisId, Kind, Scalar, Stage};
use rustc_hash::FxHashMap;

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

/// Puts `new` in place of `old` wherever a stage has it.
pub(crate) fn substitute(stage: &mut Stage, old: &Scalar, new: &Scalar) {
    rewrite_stage(stage, &mut |x| match x == *old {
        true => new.clone(),
        false => x,
    });
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
    // A walk meets a node that is not shared only once: no memo is needed.
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
