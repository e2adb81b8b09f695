//! The segments of a model that are known before it runs, with those of its sub-graphs.

use crate::compiled::CompiledModel;
use crate::stop::never;
use crate::taken_plans::TakenPlan;
use crate::unit::Unit;
use crate::{Error, Shape};
use rustc_hash::FxHashMap;
use vinelift_graph::{Known, Segment, TensorId, specialize};
use vinelift_ops::TensorType;
use vinelift_tensor::{Extent, extents};

/// A segment of a unit.
#[derive(Clone)]
pub(super) struct Piece<'a> {
    /// The line before its text, which names the sub-graph or the calls before it; empty at the start of the model.
    pub(super) heading: String,
    pub(super) unit: &'a Unit,
    pub(super) segment: Segment,
    /// The shapes that it is specialised to.
    pub(super) shapes: Vec<Shape>,
    pub(super) known: Known,
    /// The values without which the rest cannot be lowered.
    pub(super) waiting: String,
}

impl CompiledModel {
    /// The segments of the model and its sub-graphs, as far as shapes do not depend on values that a run computes.
    pub(super) fn pieces(&self, shapes: &[Option<Shape>]) -> Result<Vec<Piece<'_>>, Error> {
        let fixed = self.given_shapes(shapes)?;
        let mut pieces = Vec::new();
        self.pieces_of(&self.0.unit, String::new(), &fixed, &mut pieces)?;
        Ok(pieces)
    }

    /// The shapes of the inputs: those that are given, and those of the model.
    pub(super) fn given_shapes(&self, shapes: &[Option<Shape>]) -> Result<Vec<Shape>, Error> {
        let mut fixed = Vec::with_capacity(self.inputs().len());
        for (k, port) in self.inputs().iter().enumerate() {
            let given = shapes.get(k).cloned().flatten();
            let shape = given.or_else(|| port.shape.to_static());
            let dynamic = || {
                Error::Input(format!(
                    "input '{}' has the dynamic shape {}, and none was given",
                    port.name(),
                    port.shape
                ))
            };
            fixed.push(shape.ok_or_else(dynamic)?);
        }
        Ok(fixed)
    }

    /// The segments of plans that a run has taken.
    pub(super) fn taken_pieces(&self, taken: Vec<TakenPlan>) -> Result<Vec<Piece<'_>>, Error> {
        let context = &self.0.context;
        let mut pieces: Vec<Piece<'_>> = Vec::with_capacity(taken.len());
        // The values that the next segment of each unit needs.
        let mut after: FxHashMap<usize, String> = FxHashMap::default();
        for TakenPlan {
            unit: number,
            shapes,
            known,
        } in taken
        {
            let found = self.0.unit.find(number);
            let missing = || Error::internal(format!("no unit {number}"));
            let (unit, name) = found.ok_or_else(missing)?;
            let mut strings = context.strings.clone();
            let extents: Vec<Vec<Extent>> = shapes.iter().map(|s| extents(s)).collect();
            let given = unit.given(&extents, &known, &context.config, never());
            let segment = specialize(&unit.interface.graph, given, &mut strings);
            let segment = segment.map_err(|e| context.model.error(e))?;
            let graph = &unit.interface.graph;
            let calls = segment.calls.iter();
            let calls = calls.map(|n| graph.node(*n).label().to_string());
            let wanted = segment.wanted.iter();
            let wanted = wanted.map(|t| format!("the values of {}", graph.tensor_name(*t)));
            let next: Vec<String> = calls.chain(wanted).collect();
            let heading = match after.remove(&number).filter(|text| !text.is_empty()) {
                Some(calls) => format!("{name}# after {calls}\n"),
                None => name,
            };
            after.insert(number, next.join(", "));
            pieces.push(Piece {
                heading,
                unit,
                segment,
                shapes,
                known,
                waiting: String::new(),
            });
        }
        Ok(pieces)
    }

    fn pieces_of<'a>(
        &'a self,
        unit: &'a Unit,
        mut heading: String,
        shapes: &[Shape],
        pieces: &mut Vec<Piece<'a>>,
    ) -> Result<(), Error> {
        let context = &self.0.context;
        let graph = &unit.interface.graph;
        let mut known = Known::default();
        loop {
            let mut strings = context.strings.clone();
            let extents: Vec<Vec<Extent>> = shapes.iter().map(|s| extents(s)).collect();
            let given = unit.given(&extents, &known, &context.config, never());
            let segment = specialize(graph, given, &mut strings);
            let segment = segment.map_err(|e| context.model.error(e))?;
            let before = known.clone();
            let next = next(unit, &segment, &mut known);
            let bodies = bodies(unit, &segment);
            pieces.push(Piece {
                heading,
                unit,
                waiting: waiting(unit, &segment),
                segment,
                shapes: shapes.to_vec(),
                known: before,
            });
            for (body, heading, shapes) in bodies {
                self.pieces_of(body?, heading, &shapes, pieces)?;
            }
            match next {
                Some(calls) => heading = format!("# after {calls}\n"),
                None => return Ok(()),
            }
        }
    }
}

/// The sub-graphs of the nodes that are called after a segment, with their headings and the shapes of their inputs, if
/// these are known.
fn bodies<'a>(
    unit: &'a Unit,
    segment: &Segment,
) -> Vec<(Result<&'a Unit, Error>, String, Vec<Shape>)> {
    let graph = &unit.interface.graph;
    let mut found = Vec::new();
    for &node in &segment.calls {
        let bodies = graph.body_types(node, &segment.types, &segment.constants);
        for (kind, parameters) in bodies.unwrap_or_default() {
            let shapes = parameters.iter().map(|t| t.shape.to_static());
            if let Some(shapes) = shapes.collect::<Option<Vec<Shape>>>() {
                let heading = format!("# {} of {}\n", kind.element(), graph.node(node).label());
                found.push((unit.body(node, kind), heading, shapes));
            }
        }
    }
    found
}

/// The nodes that are called between a segment and the next, which `known` is then about; `None` if there is no next one,
/// or if it depends on values or shapes that a run computes.
fn next(unit: &Unit, segment: &Segment, known: &mut Known) -> Option<String> {
    let graph = &unit.interface.graph;
    let of_calls = segment.calls.iter().flat_map(|&node| {
        let outputs = 0..graph.node(node).layer.outputs.len();
        outputs.map(move |output| TensorId { node, output })
    });
    let computed = segment.outputs.iter().map(|(_, t)| *t).chain(of_calls);
    let computed = computed.map(|t| Some((t, segment.types.get(t)?.clone())));
    let types: Vec<(TensorId, TensorType)> = computed.collect::<Option<_>>()?;
    let is_static = types.iter().all(|(_, t)| t.shape.is_static());
    if !is_static || segment.calls.is_empty() || !segment.wanted.is_empty() {
        return None;
    }
    known.computed.extend(types);
    let values = segment.shape_values.iter();
    known
        .values
        .extend(values.map(|value| (value.tensor, value.example.clone())));
    known.forget(&segment.forgotten);
    let calls = segment.calls.iter();
    let calls: Vec<String> = calls.map(|n| graph.node(*n).label().to_string()).collect();
    Some(calls.join(", "))
}

fn waiting(unit: &Unit, segment: &Segment) -> String {
    let wanted = segment.wanted.iter();
    let names: Vec<String> = wanted
        .map(|t| unit.interface.graph.tensor_name(*t))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("# the rest depends on the values of {}\n", names.join(", "))
}
