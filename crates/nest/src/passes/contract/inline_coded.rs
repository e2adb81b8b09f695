//! Constants that are coded, inlined into the sums of products that take them.

use crate::analysis::{CodedLoad, is_coded, sums};
use crate::ir::{BufferId, Definition, Kind, Nest, Stage, loaded};
use crate::passes::simplify::simplify_stage;
use rustc_hash::FxHashMap;

/// Puts constants that are coded into the sums of products that take them, in place of their elements, if
/// that is all that the elements are for.
pub(super) fn inline_coded(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    let is_candidate = |stage: &Stage| {
        CodedLoad::of(&stage.value).is_some()
            && stage.is_definition(nest)
            && loaded(stage).into_iter().all(is_constant)
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
        for buffer in loaded(stage) {
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
            has_coded_factor(nest, &into).then_some((reader, into))
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

/// Whether a kernel could take coded numbers in each of a stage's sums of products.
fn has_coded_factor(nest: &Nest, stage: &Stage) -> bool {
    let outer = stage.domain.get(stage.first_inner()..).unwrap_or(&[]);
    let sums = sums(stage);
    let mut factors = sums.iter().map(|sum| match sum.kind() {
        Kind::Reduce { body, .. } => body.as_term(),
        _ => None,
    });
    !sums.is_empty()
        && factors.all(|factors| {
            factors.is_some_and(|(left, right)| {
                is_coded(nest, left, right, outer) || is_coded(nest, right, left, outer)
            })
        })
}
