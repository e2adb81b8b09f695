//! From a layer's port maps and back edges, which speak of ids, to positions.

use crate::control::{Branch, Collect, Control, Feed, Repeat, Slices};
use crate::error::Problem;
use crate::model::Model;
use std::sync::Arc;
use vinelift_xml::{self as xml, BodyKind, MappedPort};

impl Control {
    /// How the layer's port maps connect its bodies; `None` if it is no layer that runs sub-graphs.
    pub(crate) fn import(
        layer: &xml::Layer,
        bodies: &[(BodyKind, Arc<Model>)],
    ) -> Result<Option<Control>, Problem> {
        let map = |kind: BodyKind| {
            let body = bodies.iter().find(|(k, _)| *k == kind);
            let body = body.ok_or_else(|| missing(kind.element()))?;
            let ports = layer.port_map(kind).cloned().unwrap_or_default();
            Ok::<_, Problem>(Map {
                layer,
                body: &body.1,
                ports,
            })
        };
        match (layer.type_.as_str(), layer.version.as_str()) {
            ("If", "opset8") => {
                expect_inputs(layer, 1)?;
                Ok(Some(Control::If {
                    then: map(BodyKind::Then)?.branch()?,
                    otherwise: map(BodyKind::Else)?.branch()?,
                }))
            }
            ("Loop", "opset5") => {
                expect_inputs(layer, 2)?;
                let repeat = map(BodyKind::Body)?.repeat(true)?;
                if repeat.condition.is_none() {
                    return Err(missing("output with the purpose `execution_condition`"));
                }
                Ok(Some(Control::Repeat(repeat)))
            }
            ("TensorIterator", "opset1") => {
                Ok(Some(Control::Repeat(map(BodyKind::Body)?.repeat(false)?)))
            }
            _ => Ok(None),
        }
    }
}

fn missing(what: &str) -> Problem {
    Problem::Graph(format!("it has no {what}"))
}

fn expect_inputs(layer: &xml::Layer, least: usize) -> Result<(), Problem> {
    let found = layer.inputs.len();
    if found < least {
        let text = format!("{found} inputs, expected at least {least}");
        return Err(Problem::Graph(text));
    }
    Ok(())
}

/// A port map with what it refers to.
struct Map<'a> {
    layer: &'a xml::Layer,
    body: &'a Model,
    ports: xml::PortMap,
}

impl Map<'_> {
    fn branch(&self) -> Result<Branch, Problem> {
        let feeds = self.by_parameter(|port| self.input(port))?;
        let outputs = self.by_output(|_, result| Ok(result))?;
        Ok(Branch { feeds, outputs })
    }

    fn repeat(&self, counted: bool) -> Result<Repeat, Problem> {
        let mut feeds = self.by_parameter(|port| {
            if port.purpose.as_deref() == Some("current_iteration") {
                return Ok(Feed::Iteration);
            }
            let input = self.input(port)?;
            Ok(match slices(port)? {
                Some(slices) => Feed::Slice(input, slices),
                None => Feed::Whole(input),
            })
        })?;
        for edge in &self.layer.back_edges {
            let to = self.parameter(edge.to_layer)?;
            let result = self.result(edge.from_layer)?;
            let Feed::Whole(first) = feeds[to] else {
                return Err(Problem::Graph(format!(
                    "a back edge to layer {} of its body, which is no whole input",
                    edge.to_layer
                )));
            };
            feeds[to] = Feed::Carried { first, result };
        }
        let outputs = self.by_output(|port, result| {
            Ok(match slices(port)? {
                Some(slices) => Collect::All(result, slices),
                None => Collect::Last(result),
            })
        })?;
        let condition = self.ports.outputs.iter();
        let condition = condition
            .filter(|p| p.purpose.as_deref() == Some("execution_condition"))
            .map(|p| self.result(p.internal_layer_id))
            .next()
            .transpose()?;
        Ok(Repeat {
            counted,
            feeds,
            outputs,
            condition,
        })
    }

    /// `of` the entry for each parameter of the body, of which each has one.
    fn by_parameter<T>(
        &self,
        of: impl Fn(&MappedPort) -> Result<T, Problem>,
    ) -> Result<Vec<T>, Problem> {
        let mut found: Vec<Option<T>> = self.body.parameters.iter().map(|_| None).collect();
        for port in &self.ports.inputs {
            let parameter = self.parameter(port.internal_layer_id)?;
            if found[parameter].replace(of(port)?).is_some() {
                let id = port.internal_layer_id;
                let text = format!("two inputs for layer {id} of its body");
                return Err(Problem::Graph(text));
            }
        }
        let fed = found.into_iter().zip(&self.body.parameters);
        fed.map(|(feed, parameter)| {
            let id = self.body.node(*parameter).layer.id;
            feed.ok_or_else(|| missing(&format!("input for layer {id} of its body")))
        })
        .collect()
    }

    /// `of` the entry for each output of the layer, of which each has one.
    fn by_output<T>(
        &self,
        of: impl Fn(&MappedPort, usize) -> Result<T, Problem>,
    ) -> Result<Vec<T>, Problem> {
        let outputs = self.layer.outputs.iter();
        outputs
            .map(|output| {
                let entries = self.ports.outputs.iter();
                let mut entries =
                    entries.filter(|p| u64::try_from(p.external_port_id) == Ok(output.id));
                let port = match (entries.next(), entries.next()) {
                    (Some(port), None) => port,
                    (None, _) => {
                        return Err(missing(&format!("result for its port {}", output.id)));
                    }
                    (Some(_), Some(_)) => {
                        let text = format!("two results for its port {}", output.id);
                        return Err(Problem::Graph(text));
                    }
                };
                of(port, self.result(port.internal_layer_id)?)
            })
            .collect()
    }

    fn input(&self, port: &MappedPort) -> Result<usize, Problem> {
        let mut inputs = self.layer.inputs.iter();
        let position = inputs.position(|p| u64::try_from(port.external_port_id) == Ok(p.id));
        position.ok_or_else(|| missing(&format!("input port {}", port.external_port_id)))
    }

    fn parameter(&self, id: u64) -> Result<usize, Problem> {
        let mut parameters = self.body.parameters.iter();
        let position = parameters.position(|p| self.body.node(*p).layer.id == id);
        position.ok_or_else(|| missing(&format!("Parameter {id} in its body")))
    }

    fn result(&self, id: u64) -> Result<usize, Problem> {
        let mut results = self.body.results.iter();
        let position = results.position(|p| self.body.node(*p).layer.id == id);
        position.ok_or_else(|| missing(&format!("Result {id} in its body")))
    }
}

/// How an entry divides its tensor, if it does.
fn slices(port: &MappedPort) -> Result<Option<Slices>, Problem> {
    let Some(axis) = port.axis else {
        return Ok(None);
    };
    let stride = port.stride.unwrap_or(1);
    let part = port.part_size.unwrap_or(1);
    let forward = stride > 0;
    let (Ok(part), true) = (usize::try_from(part), part != 0 && stride != 0) else {
        let text = format!("slices of {part} with a stride of {stride}, expected more than 0");
        return Err(Problem::Graph(text));
    };
    Ok(Some(Slices {
        axis,
        start: port.start.unwrap_or(if forward { 0 } else { -1 }),
        end: port.end.unwrap_or(if forward { -1 } else { 0 }),
        stride,
        part,
    }))
}
