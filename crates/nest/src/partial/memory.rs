//! Which folds run along memory.

use crate::linear::Linear;
use crate::nest::{Axis, BufferId, Mode, Nest, Role, Stage};
use crate::range::Ranges;
use crate::rewrite::{Definition, free_axes, loaded, visit, visit_stage};
use crate::row_major;
use crate::scalar::{Kind, Scalar};
use crate::simplify::{flat_offset, simplify_stage};
use rustc_hash::{FxHashMap, FxHashSet};

/// The first of the fold's `axes` that is one with those after it, which lead from neighbour to neighbour in
/// everything that `body` reads, or nowhere.
///
/// What temporaries are computed from counts in their place: fusion will see to that.
pub(super) fn steps_in_memory(
    nest: &mut Nest,
    definitions: &Definitions,
    stage: &Stage,
    axes: &[Axis],
    body: &Scalar,
) -> Option<usize> {
    let mut inlined = Stage {
        domain: [&stage.domain, axes].concat(),
        target: stage.target,
        at: Vec::new(),
        mode: Mode::Set,
        value: body.clone(),
        layers: Vec::new(),
        group: None,
    };
    definitions.inline_into(nest, &mut inlined);
    simplify_stage(&mut inlined);
    let mut ranges = Ranges::of_stage(&inlined);
    let mut forms = Vec::new();
    let mut open = vec![&inlined.value];
    let mut seen = FxHashSet::default();
    while let Some(x) = open.pop() {
        match x.kind() {
            // A value that is made of the axis itself does not come in vectors.
            Kind::Axis(id) if axes.iter().any(|a| a.id == *id) => return None,
            Kind::Load { buffer, at } => {
                let strides = row_major(&nest.buf(*buffer).shape);
                forms.push(Linear::of(&flat_offset(at, &strides, &mut ranges)));
            }
            _ if seen.insert(x.address()) => open.extend(x.children()),
            _ => {}
        }
    }
    let step = |form: &Linear, axis: &Axis| {
        let mut step = 0;
        for (atom, k) in &form.terms {
            match atom.kind() {
                Kind::Axis(id) if *id == axis.id => step = *k,
                _ if free_axes(atom).contains(&axis.id) => return None,
                _ => {}
            }
        }
        Some(step)
    };
    let mut first = axes.len() - 1;
    let mut points = i64::try_from(axes[first].extent).ok()?;
    let steps: Option<Vec<i64>> = forms.iter().map(|form| step(form, &axes[first])).collect();
    let steps = steps.filter(|s| s.contains(&1) && s.iter().all(|k| (0..=1).contains(k)))?;
    // A window that slides over neighbours has vectors along the domain.
    let slides = |axis: &Axis| {
        let of_fold = forms.iter().zip(&steps).filter(|(_, k)| **k == 1);
        axis.extent > 1
            && of_fold
                .into_iter()
                .any(|(form, _)| step(form, axis) == Some(1))
    };
    if stage.domain.iter().any(slides) {
        return None;
    }
    while first > 0 {
        let axis = &axes[first - 1];
        let mut joined = forms.iter().zip(&steps);
        if !joined.all(|(form, k)| step(form, axis) == Some(points.saturating_mul(*k))) {
            break;
        }
        first -= 1;
        points = points.checked_mul(i64::try_from(axis.extent).ok()?)?;
    }
    Some(first)
}

/// The stages that define temporaries, by their position.
#[derive(Default)]
pub(super) struct Definitions {
    /// `None` if there is more than one.
    by_target: FxHashMap<BufferId, Option<usize>>,
}

/// Expressions that are larger are not looked into.
const MOST_NODES: usize = 300;

impl Definitions {
    pub(super) fn add(&mut self, position: usize, target: BufferId) {
        self.by_target
            .entry(target)
            .and_modify(|known| *known = None)
            .or_insert(Some(position));
    }

    /// Puts definitions without folds in place of what `stage` loads.
    fn inline_into(&self, nest: &mut Nest, stage: &mut Stage) {
        let mut tried = FxHashSet::default();
        loop {
            let next = loaded(stage).into_iter().find(|b| tried.insert(*b));
            let Some(buffer) = next else { return };
            let known = self.by_target.get(&buffer).copied().flatten();
            let Some(definition) = known.and_then(|k| nest.stages.get(k)).cloned() else {
                continue;
            };
            let (mut nodes, mut folds) = (0, false);
            let mut count = |x: &Scalar| {
                nodes += 1;
                folds |= matches!(x.kind(), Kind::Reduce { .. });
            };
            visit_stage(stage, &mut |x| count(x));
            visit(&definition.value, &mut count);
            let fits = definition.mode == Mode::Set
                && definition.group.is_none()
                && definition.is_identity(nest)
                && nest.buf(buffer).role == Role::Temporary;
            if !fits || folds || nodes > MOST_NODES {
                continue;
            }
            let definition = Definition {
                target: buffer,
                axes: &definition.domain,
                value: &definition.value,
            };
            definition.inline_into(nest, stage);
        }
    }
}
