//! Constants that are coded, inlined into the sums of products that take them.

use crate::analysis::{CodedLoad, is_coded, sums};
use crate::ir::{
    Axis, Binary, BufferId, Definition, Kind, Nest, Scalar, Stage, loaded_by, rewrite, substitute,
    visit,
};
use crate::passes::simplify::simplify_stage;
use rustc_hash::FxHashMap;

/// Has sums of products load coded constants and decode them, in place of a temporary of decoded elements, if nothing else
/// reads that temporary.
pub(super) fn inline_coded(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    let is_candidate = |stage: &Stage| {
        CodedLoad::of(&stage.value).is_some()
            && stage.is_definition(nest)
            && stage.loads().into_iter().all(is_constant)
    };
    let stages = nest.stages.iter().enumerate();
    let candidates: Vec<usize> = stages
        .filter(|(_, s)| is_candidate(s))
        .map(|(k, _)| k)
        .collect();
    if candidates.is_empty() {
        return;
    }
    let mut uses: FxHashMap<BufferId, (usize, Vec<usize>)> = FxHashMap::default();
    for (position, stage) in nest.stages.iter().enumerate() {
        uses.entry(stage.target).or_default().0 += 1;
        for buffer in stage.loads() {
            uses.entry(buffer).or_default().1.push(position);
        }
    }
    let mut gone = Vec::new();
    for position in candidates {
        let definition = nest.stages[position].clone();
        let Some((1, readers)) = uses.get(&definition.target) else {
            continue;
        };
        let inlined = readers.iter().map(|&reader| {
            let mut into = nest.stages[reader].clone();
            Definition::of(&definition).inline_into(nest, &mut into);
            simplify_stage(&mut into);
            split_sum_axes(nest, &mut into);
            has_coded_factor(nest, &into, &definition.loads()).then_some((reader, into))
        });
        let inlined: Option<Vec<(usize, Stage)>> = inlined.collect();
        for (reader, mut into) in inlined.into_iter().flatten() {
            into.layers.extend(&definition.layers);
            nest.stages[reader] = into;
            gone.push(position);
        }
    }
    let mut position = 0;
    nest.stages.retain(|_| {
        position += 1;
        !gone.contains(&(position - 1))
    });
}

/// Divides the axes of a stage's sums of products into groups and elements in a group, where kernels can then take the codes
/// of constants.
pub(super) fn split_coded(
    nest: &mut Nest,
    stage: &mut Stage,
    is_constant: &dyn Fn(BufferId) -> bool,
) {
    if !sums(stage)
        .iter()
        .any(|sum| divided_sum_axis(sum).is_some())
    {
        return;
    }
    let constants: Vec<BufferId> = stage
        .loads()
        .into_iter()
        .filter(|b| is_constant(*b))
        .collect();
    let next_axis = nest.next_axis;
    let mut split = stage.clone();
    split_sum_axes(nest, &mut split);
    match has_coded_factor(nest, &split, &constants) {
        true => *stage = split,
        false => nest.next_axis = next_axis,
    }
}

/// Whether a kernel could take the codes in those of a stage's sums of products that load one of `constants`, and there are
/// some.
fn has_coded_factor(nest: &Nest, stage: &Stage, constants: &[BufferId]) -> bool {
    let outer = stage.domain.get(stage.first_inner()..).unwrap_or(&[]);
    let loads = |x: &Scalar| loaded_by([x]).iter().any(|b| constants.contains(b));
    let sums: Vec<Scalar> = sums(stage).into_iter().filter(loads).collect();
    let is_coded_sum = |sum: &Scalar| {
        let Kind::Reduce { body, axes, .. } = sum.kind() else {
            return false;
        };
        body.as_term().is_some_and(|(left, right)| {
            is_coded(nest, left, right, outer, axes) || is_coded(nest, right, left, outer, axes)
        })
    };
    !sums.is_empty() && sums.iter().all(is_coded_sum)
}

/// Divides axes that sums of products only know by quotient and rest, as the groups of a row's elements do which share a
/// scale: into groups, and elements in a group. The order of the sum stays the same.
pub(in crate::passes) fn split_sum_axes(nest: &mut Nest, stage: &mut Stage) {
    while let Some((sum, axis, c)) = sums(stage).into_iter().find_map(|sum| {
        let (axis, c) = divided_sum_axis(&sum)?;
        Some((sum, axis, c))
    }) {
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = sum.kind()
        else {
            return;
        };
        let Some(groups) = axis.extent.over(c.into()) else {
            return;
        };
        let (outer, inner) = (nest.axis(groups), nest.axis(c));
        let whole = Scalar::axis(outer.id) * c as i64 + Scalar::axis(inner.id);
        let body = rewrite(body, &mut |x| match x.is_axis(axis.id) {
            true => whole.clone(),
            false => x,
        });
        let split = |a: &Axis| match a.id == axis.id {
            true => vec![outer, inner],
            false => vec![*a],
        };
        let axes = axes.iter().flat_map(split).collect();
        let new = Scalar::reduce(*op, axes, init.clone(), body);
        substitute(stage, &sum, &new);
        simplify_stage(stage);
    }
}

/// An axis of a sum that it divides by a number which divides its extent, and the number.
fn divided_sum_axis(sum: &Scalar) -> Option<(Axis, usize)> {
    let Kind::Reduce { axes, body, .. } = sum.kind() else {
        return None;
    };
    let mut found = None;
    visit(body, &mut |x| {
        let Kind::Binary(Binary::Div | Binary::Rem, a, c) = x.kind() else {
            return;
        };
        let axis = axes.iter().find(|axis| a.is_axis(axis.id));
        let number = c.as_index().and_then(|c| usize::try_from(c).ok());
        let divided = axis.zip(number).filter(|(axis, c)| {
            let groups = axis.extent.number().filter(|n| n.is_multiple_of(*c));
            *c > 1 && groups.is_some_and(|n| n > *c)
        });
        found = found.or(divided.map(|(axis, c)| (*axis, c)));
    });
    found
}
