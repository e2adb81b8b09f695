//! Long folds along memory, as partial folds that run side by side.
//!
//! > `op_k x[k] = op_l t[l]`, where `t[l] = op_j x[j·L + l]` for `l < L`
//!
//! In a fold each point waits for the one before it. Where the points are neighbours in memory, `L` partial folds run side by
//! side, one in each lane of vectors ([`accumulators`]), and memory is read in whole vectors. This order defines the result, for
//! the interpreter as well; sums get more accurate.
//!
//! The points that are left over, fewer than lanes, are taken in by the last lanes: lane `l` takes in `x[n - L + l]` unless that
//! is among those before. 64 lanes are combined to 16 first, `u[l] = (t[l] op t[l+32]) op (t[l+16] op t[l+48])`, and these by
//! halves: lane `l` with lane `l + 8`, then `l + 4`, `l + 2`, `l + 1`. 8 lanes are combined so from `l + 4` on.
//!
//! Where `n`, the number of points, is a formula, a lane asks whether a point is left over for it. All loads are of points
//! that exist, so they are whole vectors. The number of lanes is that of the example, and a condition of the plan.
//!
//! Sums of products stay as they are: there are kernels for them. So do folds in stages that take turns, and folds of values
//! that may fault.
//!
//! A sum of what is NaN or 0 is the same in any order. Such folds are divided once it is known how temporaries lie in memory
//! ([`unordered_partial_folds`]), if the points are neighbours then.

mod accumulators;
mod contiguous;
#[cfg(test)]
mod tests;

use crate::analysis::verify;
use crate::ir::{Binary, BufferId, Kind, Nest, Scalar, Seen, Stage, as_select, visit};
use accumulators::Fold;
use contiguous::{Definitions, pin_all};
use std::sync::atomic::{AtomicBool, Ordering};
use vinelift_tensor::ElementType::F32;

/// Divides every fold that is long enough, but for those whose order does not matter. `of_shapes` says of which inputs the contents
/// depend on shapes alone, as those of constants do. Once `stop` is true, the folds that are left stay as they are.
pub fn partial_folds(nest: &mut Nest, of_shapes: &dyn Fn(BufferId) -> bool, stop: &AtomicBool) {
    let mut definitions = Definitions::new(of_shapes);
    for stage in std::mem::take(&mut nest.stages) {
        let loads = stage.loads();
        let goes_on = !stop.load(Ordering::Relaxed);
        let ordered = folds(&stage)
            .into_iter()
            .filter(|fold| goes_on && !is_unordered(fold));
        let ordered = ordered.collect();
        let stage = divided(nest, &definitions, stage, ordered);
        nest.stages.push(stage);
        definitions.add(nest, nest.stages.len() - 1, &loads);
    }
}

/// Divides those folds whose order does not matter that run along memory as temporaries lie there.
pub fn unordered_partial_folds(nest: &mut Nest) {
    let as_they_lie = Definitions::new(&|_| false);
    for stage in std::mem::take(&mut nest.stages) {
        let unordered = folds(&stage).into_iter().filter(is_unordered).collect();
        let stage = divided(nest, &as_they_lie, stage, unordered);
        nest.stages.push(stage);
    }
}

/// The stage that is left of `stage` once some of its folds are divided, after the stages of their parts, which are appended.
fn divided(
    nest: &mut Nest,
    definitions: &Definitions<'_>,
    mut stage: Stage,
    folds: Vec<Scalar>,
) -> Stage {
    for fold in folds {
        let (first, buffers, next_axis) = (nest.stages.len(), nest.buffers.len(), nest.next_axis);
        let Some(fold) = Fold::of(nest, definitions, &stage, fold) else {
            nest.next_axis = next_axis;
            continue;
        };
        let divided = fold.divide(nest, &stage);
        if nest.is_symbolic() {
            nest.adopt_symbols();
        }
        nest.stages.push(divided);
        let parts = nest.extract(first..nest.stages.len());
        let divided = nest.stages.pop();
        match divided.filter(|_| verify(&parts.nest).is_ok()) {
            Some(divided) => stage = divided,
            None => {
                // With numbers in place of symbols, it may be proven.
                pin_all(fold.extents());
                nest.stages.truncate(first);
                nest.truncate_buffers(buffers);
                nest.next_axis = next_axis;
            }
        }
    }
    stage
}

/// Whether a fold is the same in any order: a sum of what is NaN or 0.
fn is_unordered(fold: &Scalar) -> bool {
    let Kind::Reduce { op, init, body, .. } = fold.kind() else {
        return false;
    };
    let is_zero = |x: &Scalar| x.as_const() == Some(0);
    let is_nan = |x: &Scalar| {
        x.as_const()
            .is_some_and(|x| f32::from_bits(x as u32).is_nan())
    };
    let is_nan_or_zero = as_select(body).is_some_and(|(_, yes, no)| is_nan(yes) && is_zero(no));
    fold.ty() == F32 && *op == Binary::Add && is_zero(init) && is_nan_or_zero
}

/// The folds of a stage that may be divided, whatever they read: those that stand in no other fold, have
/// no sums of products, and cannot fail.
fn folds(stage: &Stage) -> Vec<Scalar> {
    let mut found = Vec::new();
    if stage.group.is_some() || !stage.value.folds() {
        return found;
    }
    let mut seen = Seen::default();
    let mut open = vec![&stage.value];
    while let Some(x) = open.pop() {
        if !x.folds() || !seen.insert(x.address()) {
            continue;
        }
        let Kind::Reduce { op, axes, body, .. } = x.kind() else {
            open.extend(x.children());
            continue;
        };
        use Binary::{Add, And, Max, Min, Mul, Or};
        let mut fits = matches!(op, Add | Mul | Min | Max | And | Or)
            && axes.iter().all(|axis| axis.extent > 0)
            && stage.domain.iter().all(|axis| axis.extent > 0);
        visit(body, &mut |y| match y.kind() {
            Kind::Load { buffer, .. } => fits &= *buffer != stage.target,
            Kind::Wrap(_) | Kind::Reduce { .. } | Kind::Binary(Binary::Term, ..) => fits = false,
            _ => {}
        });
        if fits {
            found.push(x.clone());
        }
    }
    found
}
