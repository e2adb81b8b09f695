//! Temporaries of their own for what a stage computes, in loops of which that along channels is the innermost.

use crate::ir::{Axis, BufferId, Nest, Role, Scalar, Stage, replace_axes};
use vinelift_tensor::Extent;

/// The least channels that are worth it: two loads of the smallest vectors.
pub(super) const LEAST_CHANNELS: usize = 8;

/// Appends a stage that computes what `stage` does with the loop along the channels inside, into memory of its own, and one
/// that copies that to its target.
pub(super) fn store_apart(nest: &mut Nest, stage: Stage, channels: Axis) {
    let mut domain = stage.domain.clone();
    domain.retain(|axis| axis.id != channels.id);
    domain.push(channels);
    let name = format!("{}.channels_last", nest.buf(stage.target).name);
    let apart = store(nest, &stage, &name, stage.value.clone(), &domain);
    let at = domain.iter().map(|axis| Scalar::axis(axis.id)).collect();
    nest.stages.push(Stage {
        value: nest.load(apart, at),
        ..stage
    });
}

/// Appends a stage that stores `value`, which depends on axes of `domain` alone, for `reader`.
pub(super) fn store(
    nest: &mut Nest,
    reader: &Stage,
    name: &str,
    value: Scalar,
    domain: &[Axis],
) -> BufferId {
    let shape: Vec<Extent> = domain.iter().map(|axis| axis.extent).collect();
    let target = nest.buffer(name, value.ty(), &shape, Role::Temporary);
    let own = nest.axes(&shape);
    let by_axis = domain.iter().zip(&own);
    let by_axis = by_axis.map(|(old, new)| (old.id, Scalar::axis(new.id)));
    let by_axis = by_axis.collect();
    let mut stage = Stage {
        at: own.iter().map(|axis| Scalar::axis(axis.id)).collect(),
        domain: own,
        target,
        value,
        ..reader.clone()
    };
    replace_axes(&mut stage, &by_axis);
    nest.stages.push(stage);
    target
}
