//! Kernels: the ranges of stages that become one native function each.

use crate::analysis::{dim_apart, may_collide};
use crate::ir::{Nest, Stage};
use std::ops::Range;

/// The stages of each kernel of a nest, in the order in which they run: stages of the same layer that follow
/// each other stay together, but for those that are kernels of their own. Those are also all that take turns.
/// Stages that could not be shared out together are not together either, if their target is large.
pub fn kernel_ranges(nest: &Nest, is_alone: impl Fn(&Stage) -> bool) -> Vec<Range<usize>> {
    let alone = nest.stages.iter();
    let alone: Vec<bool> = alone
        .map(|stage| stage.group.is_some() || is_serial(nest, stage) || is_alone(stage))
        .collect();
    let mut kernels = Vec::new();
    let mut start = 0;
    for end in 1..=nest.stages.len() {
        let owner = |i: usize| nest.stages[i].layers.first();
        let ends = end == nest.stages.len() || alone[end - 1] || alone[end];
        if ends || owner(end) != owner(start) || owner(start).is_none() {
            kernels.push(start..end);
            start = end;
        }
    }
    kernels
}

/// The least bytes of a large target: what a cache of one thread does not hold, so that it makes no difference
/// which thread wrote it.
const LARGE: usize = 2 << 20;

/// Whether a stage is one that threads cannot share, nor what is done to its large target before.
fn is_serial(nest: &Nest, stage: &Stage) -> bool {
    let bytes = nest.buf(stage.target).byte_len();
    may_collide(stage) && dim_apart(stage).is_none() && bytes.is_none_or(|bytes| bytes >= LARGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::ir::{Role, SubNest};
    use vinelift_tensor::ElementType::F32;

    #[test]
    fn equal_kernels_have_equal_canonical_forms() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Input);
        let (t, y) = (
            nest.buffer("t", F32, &[4], Role::Temporary),
            nest.buffer("y", F32, &[4], Role::Output),
        );
        let (first, second) = (
            nest.layer("first", "Exp, opset1"),
            nest.layer("second", "Exp, opset1"),
        );
        nest.define(vec![first], t, |n, at| n.load(x, at.to_vec()).exp());
        nest.define(vec![second], y, |n, at| n.load(t, at.to_vec()).exp());
        let kernels = kernel_ranges(&nest, |_| false);
        assert_eq!(kernels, [0..1, 1..2]);
        let kernels = kernels.into_iter().map(|stages| nest.extract(stages));
        let kernels: Vec<SubNest> = kernels.collect();
        assert_eq!(kernels[1].buffers, [t, y]);
        assert_eq!(
            kernels[1].nest.to_string(),
            "temporary t: f32[4]\noutput y: f32[4]\nfor i<4: y[i] = exp(t[i])  # second\n"
        );
        assert_eq!(
            kernels[0].nest.canonical().stages,
            kernels[1].nest.canonical().stages
        );
    }

    #[test]
    fn stages_of_one_layer_stay_together() {
        let mut nest = Nest::new();
        let y = nest.buffer("y", F32, &[4], Role::Output);
        let layer = nest.layer("l", "Op, opset1");
        nest.define(vec![layer], y, |_, _| number(0.0, F32));
        nest.define(vec![layer], y, |_, _| number(1.0, F32));
        assert_eq!(kernel_ranges(&nest, |_| false).len(), 1);
    }
}
