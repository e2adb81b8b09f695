//! The cost of evaluating a value.

use super::LEAST_UNROLLED;
use crate::ir::{Binary, Kind, Scalar, Stage, visit, visit_stage};
use vinelift_tensor::ElementType;

/// The cost of evaluating a value once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Primitive nodes, roughly.
    pub(super) nodes: usize,
    /// Operations on values; index arithmetic, loads and widening are free.
    pub(super) arithmetic: usize,
    /// Whether it folds, or loads as much as an unrolled fold.
    pub(super) reduces: bool,
    /// Whether it sums products, for which there are kernels.
    pub(super) contracts: bool,
    /// Whether it can end the run with an error.
    pub(super) may_fail: bool,
}

impl Cost {
    pub(super) fn of(value: &Scalar) -> Cost {
        let mut cost = Cost::default();
        let mut loads = 0;
        visit(value, &mut |x| {
            cost.nodes += weight(x);
            match x.kind() {
                Kind::Reduce { body, .. } => {
                    cost.reduces = true;
                    cost.contracts |= body.as_term().is_some();
                    cost.arithmetic += 1;
                }
                Kind::Wrap(w) => {
                    cost.may_fail |= !w.policy.zero;
                    cost.arithmetic += 1;
                }
                Kind::Unary(op, _) if !is_index(x.ty()) => {
                    cost.arithmetic += if op.is_primitive() { 1 } else { 20 }
                }
                Kind::Load { .. } => loads += 1,
                // Padding and divisions of indices do not become loads of another place.
                Kind::Select(..) | Kind::Binary(Binary::Div | Binary::Rem, ..) => {
                    cost.arithmetic += 1
                }
                Kind::Binary(op, a, _) if !is_index(a.ty()) => {
                    cost.arithmetic += match op {
                        Binary::Pow => 40,
                        _ => 1,
                    }
                }
                _ => {}
            }
        });
        cost.reduces |= loads >= LEAST_UNROLLED;
        cost
    }
}

fn is_index(ty: ElementType) -> bool {
    matches!(ty, ElementType::I64 | ElementType::Boolean)
}

/// Primitive nodes of a stage, roughly.
pub(super) fn node_count(stage: &Stage) -> usize {
    let mut nodes = 0;
    visit_stage(stage, &mut |x| nodes += weight(x));
    nodes
}

/// The number of primitive nodes that a node stands for, roughly.
fn weight(x: &Scalar) -> usize {
    match x.kind() {
        Kind::Unary(op, _) if !op.is_primitive() => 50,
        Kind::Binary(Binary::Pow, ..) => 100,
        Kind::Cast(y) if !(x.ty().is_arithmetic() && y.ty().is_arithmetic()) => 15,
        _ => 1,
    }
}
