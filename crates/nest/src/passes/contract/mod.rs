//! Contractions: sums of products become stages of their own, over operands that are strided tensors.
//!
//! > `out[b, m, n] = Σ_k left[b, m, k] · right[b, k, n]`, every offset affine in the axes
//!
//! The pass recognises MatMul, Convolution, Einsum and the gates of recurrent cells by the shape of the expression: a
//! fold by [`Binary::Add`] over a [`Binary::Term`]. The rest of the stage becomes its epilogue, which loads the sum.
//! A factor that is no load with affine indices (padding, a conversion, a slice of a computed tensor) is stored
//! first, as a tensor over the values that its index arithmetic takes ([`Operand`]). If an earlier stage has computed an
//! equal sum, that is loaded. The result is a nest of the same meaning; a runtime may give a stage that
//! [`Contraction::of`] describes to a micro-kernel. Windows that slide along long rows with channels kept apart
//! (depthwise convolutions) stay folds, as their results share too little of the operands: vector loops do several rows
//! at once.

mod equal;
mod factors;
mod inline_coded;
#[cfg(test)]
mod tests;

use crate::analysis::{Contraction, Numbered, is_grouped, is_proven, offset, sums};
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Mode, Nest, Role, Scalar, Stage, free_axes, loaded_by,
    replace_axes, substitute, visit,
};
use crate::passes::split::split_axis;
use factors::Factors;
pub(super) use inline_coded::split_sum_axes;
use inline_coded::{inline_coded, split_coded};
use rustc_hash::FxHashMap;
use vinelift_tensor::Extent;

/// Makes a stage of its own of every sum of products that is worth one. `is_constant` tells of which
/// buffers the contents are known before the nest runs.
pub fn contract(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    inline_coded(nest, is_constant);
    let mut group_start = (None, 0);
    for mut stage in std::mem::take(&mut nest.stages) {
        if stage.group.is_none() || group_start.0 != stage.group {
            group_start = (stage.group, nest.stages.len());
        }
        split_axes(nest, &mut stage);
        split_coded(nest, &mut stage, is_constant);
        let mut rest = Some(stage);
        while let Some(stage) = rest.take() {
            let extracted = sums(&stage)
                .iter()
                .find_map(|sum| extract(nest, &stage, sum, is_constant));
            let Some(extracted) = extracted else {
                nest.stages.push(stage);
                break;
            };
            if let Some(epilogue) = equal::reuse(nest, &extracted) {
                rest = Some(epilogue);
                continue;
            }
            // Operands that serve all turns are stored before the first turn.
            let place = match stage.group {
                None => before_chain(nest, &extracted),
                Some(_) => group_start.1,
            };
            let stored = extracted.stored.len();
            nest.stages.splice(place..place, extracted.stored);
            group_start.1 += stored;
            nest.stages.push(extracted.contraction);
            rest = extracted.epilogue;
        }
    }
}

/// The stages that replace one.
struct Extracted {
    /// They store operands.
    stored: Vec<Stage>,
    contraction: Stage,
    /// The epilogue: the rest of the stage, if it computes more than the sum.
    epilogue: Option<Stage>,
}

/// Where to store the operands of a contraction that comes next: before an earlier one, if only stages follow that one
/// which the next one depends on, and none of these makes what is stored. So nothing stands between the two that keeps
/// tasks from going through both.
fn before_chain(nest: &Nest, extracted: &Extracted) -> usize {
    let end = nest.stages.len();
    if extracted.stored.is_empty() {
        return end;
    }
    let from = loaded_by(extracted.stored.iter().map(|stage| &stage.value));
    let mut needed = extracted.contraction.loads();
    for (place, stage) in nest.stages.iter().enumerate().rev() {
        if from.contains(&stage.target) || !needed.contains(&stage.target) || stage.group.is_some()
        {
            return end;
        }
        if Contraction::of(nest, stage).is_some() {
            return place;
        }
        needed.extend(stage.loads());
    }
    end
}

/// A sum of products of `stage` on its own, if it is worth it.
fn extract(
    nest: &mut Nest,
    stage: &Stage,
    sum: &Scalar,
    is_constant: &dyn Fn(BufferId) -> bool,
) -> Option<Extracted> {
    let (buffers, next_axis) = (nest.buffers.len(), nest.next_axis);
    let extracted = try_extract(nest, stage, sum, is_constant).filter(|extracted| {
        // A guard around the sum stays with the epilogue, and may be what proves the accesses in the sum.
        let mut alone = extracted.stored.iter().chain([&extracted.contraction]);
        alone.all(|stage| is_proven(nest, stage))
    });
    if extracted.is_none() {
        nest.truncate_buffers(buffers);
        nest.next_axis = next_axis;
    }
    extracted
}

/// As [`extract`]; leaves new buffers and axes behind where nothing comes of it.
fn try_extract(
    nest: &mut Nest,
    stage: &Stage,
    sum: &Scalar,
    is_constant: &dyn Fn(BufferId) -> bool,
) -> Option<Extracted> {
    let Kind::Reduce { axes, body, .. } = sum.kind() else {
        return None;
    };
    let (left, right) = body.as_term()?;
    let free = free_axes(sum);
    let mut outer = stage.domain.clone();
    outer.retain(|a| free.contains(&a.id));
    let turn = stage.domain.first().filter(|_| stage.group.is_some());
    outer.retain(|a| turn.is_none_or(|turn| turn.id != a.id));
    let mut stored = Vec::new();
    let value = if is_grouped(sum) {
        sum.clone()
    } else {
        let products = outer.iter().chain(axes).map(|a| a.extent.example());
        let products = products.fold(1usize, usize::saturating_mul);
        let factors = Factors {
            stage,
            outer: &outer,
            axes,
            turn,
            products,
            is_constant,
        };
        let (left, right) = (
            factors.taken(nest, "left", left, right, &mut stored)?,
            factors.taken(nest, "right", right, left, &mut stored)?,
        );
        let term = Scalar::binary(Binary::Term, left, right);
        let init = Scalar::constant(0, sum.ty());
        Scalar::reduce(Binary::Add, axes.clone(), init, term)
    };
    let is_whole = stage.value == *sum
        && stage.mode == Mode::Set
        && offset(Numbered::example(nest), stage.target, &stage.at).is_some();
    let (contraction, epilogue) = if is_whole {
        let whole = Stage {
            value,
            ..stage.clone()
        };
        Contraction::of(nest, &whole)?;
        (whole, None)
    } else {
        let turn = turn.copied();
        let (contraction, epilogue) = separate(nest, stage, sum, turn, outer, value)?;
        (contraction, Some(epilogue))
    };
    Some(Extracted {
        stored,
        contraction,
        epilogue,
    })
}

/// The stage that computes `value`, the sum over stored operands, into a buffer of its own over the axes `outer`, and
/// the epilogue, in which a load of that buffer replaces `sum`.
fn separate(
    nest: &mut Nest,
    stage: &Stage,
    sum: &Scalar,
    turn: Option<Axis>,
    outer: Vec<Axis>,
    value: Scalar,
) -> Option<(Stage, Stage)> {
    let name = format!("{}.sum", nest.buf(stage.target).name);
    let shape: Vec<Extent> = outer.iter().map(|a| a.extent).collect();
    let target = nest.buffer(&name, sum.ty(), &shape, Role::Temporary);
    let at: Vec<Scalar> = outer.iter().map(|a| Scalar::axis(a.id)).collect();
    let load = nest.load(target, at.clone());
    let own = Stage {
        domain: turn.into_iter().chain(outer).collect(),
        target,
        at,
        mode: Mode::Set,
        value,
        layers: stage.layers.clone(),
        group: stage.group,
    };
    Contraction::of(nest, &own)?;
    let contraction = with_fresh_domain(nest, own);
    let mut epilogue = stage.clone();
    substitute(&mut epilogue, sum, &load);
    Some((contraction, epilogue))
}

/// The stage over axes of its own: those that it has stay with another stage, as with its epilogue.
pub(super) fn with_fresh_domain(nest: &mut Nest, mut stage: Stage) -> Stage {
    let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    for axis in &mut stage.domain {
        let fresh = nest.axis(axis.extent);
        by_axis.insert(axis.id, Scalar::axis(fresh.id));
        *axis = fresh;
    }
    replace_axes(&mut stage, &by_axis);
    stage
}

/// Divides axes of the domain that a sum of products only knows by quotient and rest: output
/// channels of a grouped convolution become groups, and channels in a group.
fn split_axes(nest: &mut Nest, stage: &mut Stage) {
    while let Some((position, count)) = divided_axis(stage) {
        if split_axis(nest, stage, position, count).is_none() {
            return;
        }
    }
}

/// The place of an axis of the domain that a sum of products divides by a constant, and the constant, which divides its extent.
fn divided_axis(stage: &Stage) -> Option<(usize, Extent)> {
    let mut found = None;
    for sum in sums(stage) {
        visit(&sum, &mut |x| {
            let Kind::Binary(Binary::Div | Binary::Rem, a, c) = x.kind() else {
                return;
            };
            let (Kind::Axis(id), Some(c)) = (a.kind(), c.as_index()) else {
                return;
            };
            let position = stage.domain.iter().position(|axis| axis.id == *id);
            let (Some(position), Ok(c)) = (position, usize::try_from(c)) else {
                return;
            };
            if position == 0 && stage.group.is_some() {
                return;
            }
            let extent = stage.domain[position].extent;
            if c > 1 && extent.over(c.into()).is_some_and(|n| n > 1) {
                found = Some((position, c.into()));
            }
        });
    }
    found
}
