//! Calls of layers that stand between segments: those with sub-graphs, and those that are evaluated as a whole.

use crate::compile::interface::Carried;
use crate::compile::plan::{NodeCall, Plan};
use crate::run::values::Values;
use crate::run::{KernelTime, Run};
use crate::unit::Unit;
use crate::{Error, Tensor};
use std::time::Instant;
use vinelift_graph::{self as graph, Control, ControlError, NodeKind, Stop};
use vinelift_ops::TensorType;
use vinelift_tensor::ElementType;
use vinelift_xml::BodyKind;

impl Run<'_> {
    /// Calls a node; its outputs are kept afterwards.
    pub(super) fn call(
        &mut self,
        unit: &Unit,
        call: &NodeCall,
        plan: &Plan,
        values: &mut Values<'_>,
    ) -> Result<(), Error> {
        let graph = &unit.interface.graph;
        let node = graph.node(call.node);
        let inputs = graph.inputs(call.node).into_iter();
        let inputs = inputs.map(|tensor| values.get(tensor, plan, &self.texts));
        let inputs: Vec<Tensor> = inputs.collect::<Result<_, _>>()?;
        let start = Instant::now();
        let outputs = match &node.kind {
            NodeKind::Control(control) => {
                let mut bodies = Bodies {
                    run: self,
                    unit,
                    call,
                    has_begun: false,
                };
                let outputs = control.run(&inputs, &mut bodies);
                if matches!(control, Control::Repeat(_)) {
                    bodies.forget_carried();
                }
                outputs.map_err(|e| match e {
                    ControlError::Body(e) => e,
                    other => Error::Fault(format!("{}: {other}", node.label())),
                })?
            }
            _ => {
                let outputs = graph.evaluate(call.node, &inputs, Stop::when(self.stop));
                outputs.map_err(|e| match e.problem.is_cancelled() {
                    true => Error::Cancelled,
                    false => Error::Fault(e.to_string()),
                })?
            }
        };
        if let Some(times) = self.times.as_deref_mut() {
            times.push(KernelTime::of_call(&node.layer.name, start.elapsed()));
        }
        for ((tensor, ty), value) in call.outputs.iter().zip(outputs) {
            let fits = ty.element == value.element_type() && ty.shape.contains(value.shape());
            if !fits {
                let text = format!("{}: inferred {ty}, found {value}", node.label());
                return Err(Error::internal(text));
            }
            values.set(*tensor, value, &mut self.texts)?;
        }
        Ok(())
    }
}

/// The sub-graphs of a node.
struct Bodies<'a, 'b> {
    run: &'a mut Run<'b>,
    unit: &'a Unit,
    call: &'a NodeCall,
    /// Whether one has run.
    has_begun: bool,
}

impl Bodies<'_, '_> {
    /// Lets go of what the loop has carried in variables.
    fn forget_carried(&mut self) {
        if let Ok(body) = self.unit.body(self.call.node, BodyKind::Body) {
            for carried in &body.interface.carried {
                self.run.variables.remove(&carried.variable);
            }
        }
    }
}

impl graph::Body<Error> for Bodies<'_, '_> {
    fn run(&mut self, kind: BodyKind, mut parameters: Vec<Tensor>) -> Result<Vec<Tensor>, Error> {
        let body = self.unit.body(self.call.node, kind)?;
        let carried = &body.interface.carried;
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        for Carried {
            parameter,
            variable,
            ..
        } in carried
        {
            // It is in the variable, where it may grow; the body reads it there.
            let stand_in = Tensor::zeros(ElementType::U8, &[0])?;
            let value = std::mem::replace(&mut parameters[*parameter], stand_in);
            if is_first {
                self.run.variables.insert(variable.clone(), value.into());
            }
        }
        let mut results = self.run.unit(body, parameters)?;
        for carried in carried {
            results.insert(carried.result, Tensor::zeros(ElementType::U8, &[0])?);
        }
        Ok(results)
    }

    fn last(&mut self, result: usize, value: &Tensor) -> Result<Tensor, Error> {
        let body = self.unit.body(self.call.node, BodyKind::Body)?;
        let mut carried = body.interface.carried.iter();
        let Some(carried) = carried.find(|carried| carried.result == result) else {
            return Ok(value.clone());
        };
        let held = self.run.variables.get(&carried.variable);
        let value = held.and_then(|held| held.tensor()).cloned();
        value.ok_or_else(|| {
            let layer = self.unit.interface.graph.node(self.call.node).label();
            Error::Fault(format!(
                "{layer}: out of memory: a tensor that the loop carries"
            ))
        })
    }

    fn parameter(&self, parameter: usize) -> TensorType {
        let body = self.unit.body(self.call.node, BodyKind::Body);
        let declared = body.ok().and_then(|b| {
            let graph = &b.interface.graph;
            Some(graph.declared_type(*graph.parameters.get(parameter)?))
        });
        declared.unwrap_or(TensorType::new(
            ElementType::I64,
            [0usize; 0].as_slice().into(),
        ))
    }

    fn output(&self, output: usize) -> &TensorType {
        &self.call.outputs[output].1
    }

    fn outputs(&self, inputs: &[Tensor]) -> Vec<TensorType> {
        let graph = &self.unit.interface.graph;
        let types = match &graph.node(self.call.node).kind {
            NodeKind::Control(control) => graph.output_types(self.call.node, control, inputs).ok(),
            _ => None,
        };
        // If inference refuses the inputs, the types of the plan have to do.
        let known = || self.call.outputs.iter().map(|(_, ty)| ty.clone()).collect();
        types.unwrap_or_else(known)
    }
}
