//! Nodes that no nest computes: operators that are functions of their own, and nodes that run
//! sub-graphs.

use super::budget::work;
use super::sub_graphs::Inputs;
use super::walk::{Ports, Walk};
use crate::control::Control;
use crate::error::{LayerError, Problem};
use crate::model::{Model, NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use std::time::Instant;
use vinelift_ops::{Evaluate, Infer, Instance, Native, OpDef, OpError, Stop, TensorType};
use vinelift_tensor::Tensor;

impl Model {
    /// The outputs of the node, an operator that is a function of its own, for these inputs. It is given
    /// up when `stop` says so: then the problem [is cancelled](Problem::is_cancelled).
    pub fn evaluate(
        &self,
        node: NodeIndex,
        inputs: &[Tensor],
        stop: Stop<'_>,
    ) -> Result<Vec<Tensor>, LayerError> {
        let node = self.node(node);
        let NodeKind::Operator {
            def,
            op: Instance::Native(op),
        } = &node.kind
        else {
            return Err(LayerError {
                layer: node.label(),
                problem: Problem::Graph("internal error: it is no function".to_owned()),
            });
        };
        let types: Vec<TensorType> = inputs.iter().map(type_of).collect();
        let values: Vec<Option<&Tensor>> = inputs.iter().map(Some).collect();
        let outputs = Infer::new(def.signature, &types, &values)
            .and_then(|cx| op.infer(&cx))
            .and_then(|types| {
                op.evaluate(&Evaluate::new(def.signature, inputs, &types).with_stop(stop))
            });
        outputs.map_err(|e| LayerError {
            layer: node.label(),
            problem: Problem::Op(e),
        })
    }
}

fn type_of(tensor: &Tensor) -> TensorType {
    TensorType::new(tensor.element_type(), tensor.shape().into())
}

impl Walk<'_> {
    pub(super) fn native(
        &mut self,
        node: NodeIndex,
        def: &'static OpDef,
        op: &dyn Native,
        values: &[Option<&Tensor>],
        results: &[TensorType],
    ) {
        let constant: Option<Vec<Tensor>> = values.iter().map(|v| v.cloned()).collect();
        let inputs = constant.filter(|inputs| {
            op.is_function()
                && self.is_folding(node, self.budget.of_function(work(inputs, results)))
        });
        let folded = inputs.and_then(|inputs| self.evaluate(node, def, op, &inputs, results));
        let Some(outputs) = folded else {
            self.call(node);
            return;
        };
        for (output, value) in outputs.into_iter().enumerate() {
            let tensor = TensorId { node, output };
            self.types.set(tensor, type_of(&value));
            self.values.insert(tensor, value);
            self.available.insert(tensor);
        }
    }

    /// The outputs, unless that takes too long. What is wrong with the contents is reported when the
    /// model runs.
    fn evaluate(
        &mut self,
        node: NodeIndex,
        def: &'static OpDef,
        op: &dyn Native,
        inputs: &[Tensor],
        outputs: &[TensorType],
    ) -> Option<Vec<Tensor>> {
        let start = Instant::now();
        let cx = Evaluate::new(def.signature, inputs, outputs).with_stop(self.budget.stop());
        let made = op.evaluate(&cx);
        self.budget.spend_on_function(start, made.iter().flatten());
        if made == Err(OpError::Cancelled) {
            self.types.left.insert(node);
        }
        made.ok()
    }

    pub(super) fn control(&mut self, node: NodeIndex, control: &Control) -> Result<(), Problem> {
        let Some(Ports {
            outputs,
            types,
            values,
            ..
        }) = self.ports(node)
        else {
            return Ok(());
        };
        let values: Vec<Option<&Tensor>> = values.iter().map(Option::as_ref).collect();
        let inputs = Inputs {
            types: &types,
            values: &values,
        };
        let results = control.infer(self.model.node(node), &inputs, self.budget)?;
        self.declare(&outputs, &results)?;
        self.call(node);
        Ok(())
    }

    /// Has the node called after the nest, if its inputs can be had then.
    fn call(&mut self, node: NodeIndex) {
        let inputs = self.model.inputs(node);
        if inputs.iter().all(|t| self.available.contains(t)) {
            self.calls.push(node);
        }
    }
}
