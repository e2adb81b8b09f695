//! Which folds run along contiguous memory.

use crate::analysis::{GroupedOffset, Ranges, grouped_offset};
use crate::build;
use crate::ir::{
    Axis, AxisId, BufferId, Definition, Kind, Mode, Nest, Role, Scalar, Seen, Stage, computes_with,
    free_axes, rewrite, visit,
};
use crate::passes::simplify::simplify_stage;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use vinelift_tensor::{Extent, Formula, symbols};

/// The position of the first of the fold's `axes` that can be merged with all after it into one axis which, in each load of `body`,
/// steps from an element to its neighbour or does not move at all.
///
/// For a temporary, the loads of its definition count in place of the load of it, as fusion will put the definition there. A
/// temporary that depends on shapes alone counts itself: in a plan for one shape it is a constant. The answer holds for all values
/// of the symbols that satisfy the conditions noted on the way.
pub(super) fn steps_in_memory(
    nest: &mut Nest,
    definitions: &Definitions<'_>,
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
    // A value computed from the axis itself does not count as one that comes in vectors, even if it simplifies to another.
    let ids: Vec<AxisId> = axes.iter().map(|axis| axis.id).collect();
    if computes_with(body, &ids, None) {
        return None;
    }
    inlined.value = definitions.inlined(nest, body);
    simplify_stage(&mut inlined);
    let mut ranges = Ranges::of_stage(&inlined);
    let mut forms = Vec::new();
    let mut open = vec![&inlined.value];
    let mut seen = Seen::default();
    while let Some(x) = open.pop() {
        match x.kind() {
            Kind::Load { buffer, at } => {
                let shape = &nest.buf(*buffer).shape;
                let Some(form) = grouped_offset(at, shape, &mut ranges) else {
                    pin_all(shape.iter().copied());
                    return None;
                };
                forms.push(form);
            }
            _ if seen.insert(x.address()) => open.extend(x.children()),
            _ => {}
        }
    }
    let mut bound = inlined.domain;
    visit(&inlined.value, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            bound.extend(axes);
        }
    });
    Steps { forms, bound }.joined(stage, axes)
}

/// Restricts the plan to the numbers that these extents have at the example.
pub(super) fn pin_all(extents: impl Iterator<Item = Extent>) {
    for extent in extents {
        // Where the number does not fit, there will be no plan anyway.
        let _ = symbols::pin_symbols(extent.formula());
    }
}

/// The offsets of all loads of a fold.
struct Steps {
    forms: Vec<GroupedOffset>,
    /// All axes that they may depend on.
    bound: Vec<Axis>,
}

impl Steps {
    /// As [`steps_in_memory`].
    fn joined(&self, stage: &Stage, axes: &[Axis]) -> Option<usize> {
        let mut first = axes.len() - 1;
        let mut points = *axes[first].extent.formula();
        let along = |form: &GroupedOffset| self.is_one(form, &axes[first]);
        let along: Option<Vec<bool>> = self.forms.iter().map(along).collect();
        let along = along.filter(|along| along.contains(&true))?;
        // A window that slides over neighbours has vectors along the domain.
        let slides = |axis: &Axis| {
            let mut of_fold = self.forms.iter().zip(&along).filter(|(_, along)| **along);
            axis.extent > 1 && of_fold.any(|(form, _)| self.is_one(form, axis) == Some(true))
        };
        if stage.domain.iter().any(slides) {
            return None;
        }
        while first > 0 {
            let axis = &axes[first - 1];
            let mut joined = self.forms.iter().zip(&along);
            let is_next = |(form, along): (&GroupedOffset, &bool)| {
                let expected = if *along { points } else { Formula::number(0) };
                self.step(form, axis)
                    .is_some_and(|step| is_same(&step, &expected))
            };
            if !joined.all(is_next) {
                break;
            }
            first -= 1;
            match points.times(axis.extent.formula()) {
                Some(product) => points = product,
                None => {
                    pin_all(axes.iter().map(|axis| axis.extent));
                    return None;
                }
            }
        }
        Some(first)
    }

    /// Whether a load steps by one element with an axis, and not by none; `None` if by another number, or not evenly.
    fn is_one(&self, form: &GroupedOffset, axis: &Axis) -> Option<bool> {
        let step = self.step(form, axis)?;
        match is_same(&step, &Formula::number(0)) {
            true => Some(false),
            false => is_same(&step, &Formula::number(1)).then_some(true),
        }
    }

    /// The elements by which an offset steps with an axis; `None` if not always by as many.
    fn step(&self, form: &GroupedOffset, axis: &Axis) -> Option<Formula> {
        let mut step = Formula::number(0);
        for (stride, linear) in form {
            for (atom, k) in &linear.terms {
                match atom.kind() {
                    Kind::Axis(id) if *id == axis.id => {
                        let own = stride
                            .times(&Formula::number(*k))
                            .and_then(|s| step.plus(&s));
                        let Some(sum) = own else {
                            pin_all([axis.extent].into_iter());
                            let _ = symbols::pin_symbols(stride);
                            return None;
                        };
                        step = sum;
                    }
                    _ if free_axes(atom).contains(&axis.id) => {
                        self.pin(atom);
                        return None;
                    }
                    _ => {}
                }
            }
        }
        Some(step)
    }

    /// Whether `x` is one of two scalars by a condition that has neither symbols nor axes whose extents have any, and only one
    /// of the two has symbols: whatever their numbers are, `x` is not linear.
    fn is_choice(&self, x: &Scalar) -> bool {
        let Kind::Select(condition, yes, no) = x.kind() else {
            return false;
        };
        let free = free_axes(condition);
        let mut axes = self.bound.iter().filter(|axis| free.contains(&axis.id));
        !has_symbols(condition)
            && axes.all(|axis| !axis.extent.is_symbolic())
            && has_symbols(yes) != has_symbols(no)
    }

    /// Pins the symbols in `atom`, unless that is made of what is loaded: with numbers in their place it may be linear.
    fn pin(&self, atom: &Scalar) {
        if atom.loads() || self.is_choice(atom) {
            return;
        }
        let free = free_axes(atom);
        let axes = self.bound.iter().filter(|axis| free.contains(&axis.id));
        pin_all(axes.map(|axis| axis.extent));
        visit(atom, &mut |x| {
            if let Kind::Extent(extent) = x.kind() {
                pin_all([*extent].into_iter());
            }
        });
    }
}

/// Whether there are extents in `x` that have symbols.
fn has_symbols(x: &Scalar) -> bool {
    let mut found = false;
    visit(x, &mut |x| {
        found |= matches!(x.kind(), Kind::Extent(extent) if extent.is_symbolic());
    });
    found
}

/// Whether two formulas are the same number, which the plan relies on from now on.
fn is_same(a: &Formula, b: &Formula) -> bool {
    let order = a.minus(b).and_then(|gap| symbols::compare(&gap));
    if order.is_none() {
        let _ = symbols::pin_symbols(a).and_then(|()| symbols::pin_symbols(b));
    }
    order == Some(Ordering::Equal)
}

/// The stages that define temporaries, by their position.
pub(super) struct Definitions<'a> {
    /// With the number of nodes of the value; `None` if there is more than one.
    by_target: FxHashMap<BufferId, Option<(usize, usize)>>,
    /// Whether the contents of an input are computed from constants and shapes only, without the contents of a parameter or
    /// variable of the model.
    of_shapes: &'a dyn Fn(BufferId) -> bool,
    /// The targets that depend on the contents of other inputs.
    varying: FxHashSet<BufferId>,
}

/// Expressions that are larger are not looked into.
const MOST_NODES: usize = 300;

impl<'a> Definitions<'a> {
    /// None yet.
    pub(super) fn new(of_shapes: &'a dyn Fn(BufferId) -> bool) -> Definitions<'a> {
        Definitions {
            by_target: FxHashMap::default(),
            of_shapes,
            varying: FxHashSet::default(),
        }
    }

    /// Takes in the stage at `position` of the nest, the last so far, which `loads` from these buffers.
    pub(super) fn add(&mut self, nest: &Nest, position: usize, loads: &[BufferId]) {
        let stage = &nest.stages[position];
        self.by_target
            .entry(stage.target)
            .and_modify(|known| *known = None)
            .or_insert_with(|| Some((position, nodes(&stage.value))));
        if !loads.iter().all(|buffer| self.is_of_shapes(nest, *buffer)) {
            self.varying.insert(stage.target);
        }
    }

    /// Whether the contents of a buffer are computed from constants and shapes only. A plan for one shape folds such a buffer to a
    /// constant; a plan for a class of shapes computes it in every run.
    fn is_of_shapes(&self, nest: &Nest, buffer: BufferId) -> bool {
        match nest.buf(buffer).role {
            Role::Input => (self.of_shapes)(buffer),
            _ => !self.varying.contains(&buffer),
        }
    }

    /// `x` with definitions without folds in place of what it loads, unless that depends on shapes alone, as long as there are
    /// not too many nodes.
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
    definitions: &'a Definitions<'a>,
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

    /// The axes and the value that define a temporary, or a result, so that a fold has the same order whether or not the model
    /// returns what it folds; `None` if they may not be put in place of its loads.
    fn definition(&mut self, nest: &Nest, buffer: BufferId) -> Option<(Vec<Axis>, Scalar)> {
        if self.definitions.is_of_shapes(nest, buffer) {
            return None;
        }
        let (position, nodes) = self.definitions.by_target.get(&buffer).copied().flatten()?;
        let stage = nest.stages.get(position)?;
        let fits = stage.sets_all(nest) && !stage.value.folds();
        self.left = self.left.checked_sub(nodes).filter(|_| fits)?;
        Some((stage.domain.clone(), stage.value.clone()))
    }
}

fn nodes(x: &Scalar) -> usize {
    let mut nodes = 0;
    visit(x, &mut |_| nodes += 1);
    nodes
}
