//! Which folds run along memory.

use crate::analysis::{Linear, Ranges, flat_offset};
use crate::build;
use crate::ir::{
    Axis, BufferId, Definition, Kind, Mode, Nest, Scalar, Stage, free_axes, rewrite, visit,
};
use crate::passes::simplify::simplify_stage;
use rustc_hash::{FxHashMap, FxHashSet};

/// The first of the fold's `axes` that is one with those after it, which lead from neighbour to neighbour in
/// everything that `body` reads, or nowhere.
///
/// Buffers that a temporary is computed from count in its place, as fusion will load from them.
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
        value: build::index(0),
        layers: Vec::new(),
        group: None,
    };
    inlined.value = definitions.inlined(nest, body);
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
                let strides = nest.buf(*buffer).strides();
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
    let mut points = i64::try_from(axes[first].extent.example()).ok()?;
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
        points = points.checked_mul(i64::try_from(axis.extent.example()).ok()?)?;
    }
    Some(first)
}

/// The stages that define temporaries, by their position.
#[derive(Default)]
pub(super) struct Definitions {
    /// With the number of nodes of the value; `None` if there is more than one.
    by_target: FxHashMap<BufferId, Option<(usize, usize)>>,
}

/// Expressions that are larger are not looked into.
const MOST_NODES: usize = 300;

impl Definitions {
    /// Takes in the stage at `position` of the nest, the last so far.
    pub(super) fn add(&mut self, position: usize, stage: &Stage) {
        self.by_target
            .entry(stage.target)
            .and_modify(|known| *known = None)
            .or_insert_with(|| Some((position, nodes(&stage.value))));
    }

    /// `x` with definitions without folds in place of what it loads, as long as there are not too many nodes.
    fn inlined(&self, nest: &mut Nest, x: &Scalar) -> Scalar {
        let mut inline = Inline {
            definitions: self,
            left: MOST_NODES.saturating_sub(nodes(x)),
            done: FxHashMap::default(),
        };
        inline.inside(nest, x)
    }
}

struct Inline<'a> {
    definitions: &'a Definitions,
    /// How many more nodes may be put in.
    left: usize,
    /// The scalar that replaces each load.
    done: FxHashMap<Scalar, Scalar>,
}

impl Inline<'_> {
    fn inside(&mut self, nest: &mut Nest, x: &Scalar) -> Scalar {
        rewrite(x, &mut |x| match x.kind() {
            Kind::Load { buffer, at } => match self.done.get(&x) {
                Some(done) => done.clone(),
                None => {
                    let done = match self.definition(nest, *buffer) {
                        Some((axes, value)) => {
                            let definition = Definition {
                                target: *buffer,
                                axes: &axes,
                                value: &value,
                            };
                            let value = definition.instantiate(nest, at);
                            self.inside(nest, &value)
                        }
                        None => x.clone(),
                    };
                    self.done.insert(x.clone(), done.clone());
                    done
                }
            },
            _ => x,
        })
    }

    /// The axes and the value that define a temporary, if that may be put in place of its loads.
    fn definition(&mut self, nest: &Nest, buffer: BufferId) -> Option<(Vec<Axis>, Scalar)> {
        let (position, nodes) = self.definitions.by_target.get(&buffer).copied().flatten()?;
        let stage = nest.stages.get(position)?;
        let fits = stage.is_definition(nest) && !stage.value.folds();
        self.left = self.left.checked_sub(nodes).filter(|_| fits)?;
        Some((stage.domain.clone(), stage.value.clone()))
    }
}

fn nodes(x: &Scalar) -> usize {
    let mut nodes = 0;
    visit(x, &mut |_| nodes += 1);
    nodes
}
