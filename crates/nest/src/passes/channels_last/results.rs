//! Stages that read pictures with channels last, and write their results with other dims last: what is between convolutions and
//! a result of the network, or a product that goes through pixels.
//!
//! > `y[c, i] = max[j](x[2·i + j, c])` becomes `t[i, c] = max[j](x[2·i + j, c])` and `y[c, i] = t[i, c]`
//!
//! Vectors of channels are loaded at once then, and what is left is a transposition.

use super::apart::{LEAST_CHANNELS, store_apart};
use super::pictures::{steps_along, steps_apart};
use crate::analysis::Contraction;
use crate::ir::{Axis, BufferId, Kind, Nest, Scalar, Stage, visit_those};
use rustc_hash::{FxHashMap, FxHashSet};

/// Has stages that compute with these buffers, and write results whose last dims are not those of the channels, store these with
/// channels last before.
pub(super) fn store_results_apart(nest: &mut Nest, channels: &FxHashMap<BufferId, usize>) {
    if channels.is_empty() {
        return;
    }
    for stage in std::mem::take(&mut nest.stages) {
        match channels_of_operands(nest, &stage, channels) {
            Some(axis) => store_apart(nest, stage, axis),
            None => nest.stages.push(stage),
        }
    }
}

/// The axis of the channels of the buffers that a stage reads, if its target has other dims last, and nothing else that it reads. A
/// stage that only copies is a transposition as it is.
fn channels_of_operands(
    nest: &Nest,
    stage: &Stage,
    channels: &FxHashMap<BufferId, usize>,
) -> Option<Axis> {
    let is_plain = stage.is_unordered() && !nest.buf(stage.target).ty.is_packed();
    if channels.contains_key(&stage.target) || is_copy(&stage.value) || !is_plain {
        return None;
    }
    let mut along = FxHashSet::default();
    let mut others = Vec::new();
    visit_those(&stage.value, Scalar::loads, &mut |x| {
        let Kind::Load { buffer, at } = x.kind() else {
            return;
        };
        if channels.contains_key(buffer) {
            along.insert(at.last().and_then(steps_along));
        } else {
            others.push(at.clone());
        }
    });
    let mut along = along.into_iter();
    let (Some(axis), None) = (along.next()?, along.next()) else {
        return None;
    };
    let axis = *stage.domain.iter().find(|a| a.id == axis)?;
    let are_apart = |at: &[Scalar]| steps_apart(stage, at, axis.id);
    let pays = axis.extent.example() >= LEAST_CHANNELS
        && are_apart(&stage.at)
        && !others.iter().any(|at| are_apart(at));
    (pays && Contraction::of(nest, stage).is_none()).then_some(axis)
}

/// Whether a value is an element as it is, or a constant beyond a border.
fn is_copy(value: &Scalar) -> bool {
    match value.kind() {
        Kind::Load { .. } => true,
        Kind::Select(_, yes, no) => is_copy(yes) && !no.loads() || is_copy(no) && !yes.loads(),
        _ => false,
    }
}
