//! Channels last: the channels of pictures lie beside each other where sums of products go through them.
//!
//! > `y[o, i, j] = Σ_c x[c, i, j] · w[o, c]` of `x: [24, 128, 128]` becomes `y[i, j, o] = Σ_c x[i, j, c] · w[o, c]`
//!
//! A contraction whose rows are pixels reads their channels where they lie, and packs only the weights, which are constants.
//! Vectors of channels are whole in pictures narrower than a vector, and at the borders of windows. The pass changes the order
//! of the dims of temporaries, and of the loops that write them. Sums keep their order, and so every value its bits.
//!
//! [`Pictures`] finds out which temporaries have channels, and whether it pays to put them last. [`gathers`] does it for data that
//! is read in places which other values choose.

mod apart;
mod gathers;
mod pictures;
mod results;
#[cfg(test)]
mod tests;

pub use gathers::gathered_channels_last;

use crate::analysis::{Contraction, Linear, sums};
use crate::ir::{
    AxisId, BufferId, Kind, Mode, Nest, Role, Scalar, Stage, free_axes, rewrite_those,
    visit_accesses,
};
use crate::passes::constants::constants;
use pictures::{Pictures, steps_along};
use results::store_results_apart;
use rustc_hash::{FxHashMap, FxHashSet};

/// Puts the channels of temporaries last where that pays, and those of weights where channels are last. `is_constant` tells of
/// which buffers the contents are known before the nest runs; contractions have vectors of `lanes` results.
pub fn channels_last(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool, lanes: usize) {
    let constants = constants(nest, is_constant);
    let channels = Pictures::of(nest, &constants, lanes).that_pay();
    move_channels(nest, &channels);
    store_results_apart(nest, &channels);
    transpose_constants(nest, &channels, &constants);
}

/// Moves the dim of the channels of each of these buffers to the end, and the loop along it to the inside of the stages
/// that write them.
fn move_channels(nest: &mut Nest, channels: &FxHashMap<BufferId, usize>) {
    if channels.is_empty() {
        return;
    }
    for (buffer, &dim) in channels {
        nest.buffers[buffer.0 as usize].shape[dim..].rotate_left(1);
    }
    for stage in &mut nest.stages {
        rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
            Kind::Load { buffer, at } => match channels.get(buffer) {
                Some(dim) => Scalar::load(*buffer, moved_last(at, *dim), x.ty()),
                None => x,
            },
            _ => x,
        });
        if let Some(&dim) = channels.get(&stage.target) {
            stage.at[dim..].rotate_left(1);
            move_loop_inside(stage);
        }
    }
}

fn moved_last(at: &[Scalar], dim: usize) -> Vec<Scalar> {
    let mut at = at.to_vec();
    at[dim..].rotate_left(1);
    at
}

/// Makes the loop along the last dim of the target the innermost, unless the order of points matters.
fn move_loop_inside(stage: &mut Stage) {
    let along = stage.at.last().and_then(steps_along);
    let position = stage.domain.iter().position(|a| Some(a.id) == along);
    if let Some(position) = position
        && stage.mode == Mode::Set
        && !stage.loads().contains(&stage.target)
    {
        stage.domain[position..].rotate_left(1);
    }
}

/// Stores constants whose elements vectors of channels need with the channels last: weights of windows that keep channels
/// apart, of these pictures or of those that the model has with channels last. Contraction kernels pack theirs anyway.
fn transpose_constants(
    nest: &mut Nest,
    channels: &FxHashMap<BufferId, usize>,
    constants: &FxHashSet<BufferId>,
) {
    let mut stored: FxHashMap<(BufferId, usize), BufferId> = FxHashMap::default();
    for mut stage in std::mem::take(&mut nest.stages) {
        let lanes = stage.domain.last().map(|a| a.id);
        let has_channels = channels.contains_key(&stage.target) || !sums(&stage).is_empty();
        // The pass puts the stage that stores a constant just before its reader. Stages that take turns must follow each other.
        if let Some(lanes) = lanes
            && has_channels
            && stage.group.is_none()
            && stage.at.last().and_then(steps_along) == Some(lanes)
            && Contraction::of(nest, &stage).is_none()
        {
            for (buffer, dim) in strided_constants(nest, &stage, lanes, constants) {
                let known = stored.entry((buffer, dim));
                let transposed = *known.or_insert_with(|| transpose(nest, &stage, buffer, dim));
                rewrite_those(&mut stage, Scalar::loads, &mut |x| match x.kind() {
                    Kind::Load { buffer: b, at } if *b == buffer && steps_with(&at[dim], lanes) => {
                        Scalar::load(transposed, moved_last(at, dim), x.ty())
                    }
                    _ => x,
                });
            }
        }
        nest.stages.push(stage);
    }
}

/// The constants that a stage reads along an axis in steps of more than one element, and their dims of that axis.
fn strided_constants(
    nest: &Nest,
    stage: &Stage,
    lanes: AxisId,
    constants: &FxHashSet<BufferId>,
) -> Vec<(BufferId, usize)> {
    let mut found = Vec::new();
    visit_accesses(stage, &mut |buffer, at| {
        if !constants.contains(&buffer) || nest.buf(buffer).ty.is_packed() {
            return;
        }
        let Some(dim) = at.iter().position(|index| steps_with(index, lanes)) else {
            return;
        };
        let inner = &nest.buf(buffer).shape[dim + 1..];
        if inner.iter().any(|n| *n > 1) && !found.contains(&(buffer, dim)) {
            found.push((buffer, dim));
        }
    });
    found
}

/// Whether an index is one more at each point along an axis, whatever else it depends on.
fn steps_with(index: &Scalar, axis: AxisId) -> bool {
    let linear = Linear::of(index);
    let depends = |(atom, _): &&(Scalar, i64)| free_axes(atom).contains(&axis);
    let mut along = linear.terms.iter().filter(depends);
    let is_step = |(atom, step): &(Scalar, i64)| *step == 1 && atom.is_axis(axis);
    along.next().is_some_and(is_step) && along.next().is_none()
}

/// Appends a stage that stores a constant with a dim moved to the end, for `reader`.
fn transpose(nest: &mut Nest, reader: &Stage, constant: BufferId, dim: usize) -> BufferId {
    let of = nest.buf(constant).clone();
    let mut shape = of.shape;
    shape[dim..].rotate_left(1);
    let name = format!("{}.channels_last", of.name);
    let target = nest.buffer(&name, of.ty, &shape, Role::Temporary);
    nest.define(reader.layers.clone(), target, |nest, at| {
        let mut at = at.to_vec();
        at[dim..].rotate_right(1);
        nest.load(constant, at)
    });
    target
}

/// How many points loops of these extents have together, or the largest number if there are more.
fn count(extents: impl Iterator<Item = usize>) -> usize {
    extents.fold(1, usize::saturating_mul)
}
