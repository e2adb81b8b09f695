//! Variables: a run reads what they held before it, and sets what they hold after it.
//!
//! A variable that holds something is a tensor that is already computed. One that holds nothing has
//! the value of its reader's input, or zeros where that has none; dims that are not declared are 0.

use super::walk::Walk;
use crate::error::{LayerError, Problem};
use crate::model::{Model, NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use vinelift_nest::{Role, build};
use vinelift_ops::{TensorType, VariableAttributes};
use vinelift_tensor::PartialShape;

impl Model {
    /// The type that a variable is declared to have, if it is.
    pub fn variable(&self, id: &str) -> Option<&TensorType> {
        self.graph.node_weights().find_map(|n| match &n.kind {
            NodeKind::ReadValue(v) if v.id == id => v.declared.as_ref(),
            _ => None,
        })
    }

    /// Checks that `node`, if it reads a variable, may read a value of type `held`: another graph, or a node that declares no
    /// type, may have set the variable.
    ///
    /// # Errors
    /// If `node` reads a variable that it declares to have another type than `held`.
    pub fn expect_held(&self, node: NodeIndex, held: &TensorType) -> Result<(), LayerError> {
        let NodeKind::ReadValue(VariableAttributes { id, declared, .. }) = &self.node(node).kind
        else {
            return Ok(());
        };
        let fits = declared.as_ref().map_or(Ok(()), |ty| expect(id, held, ty));
        fits.map_err(|problem| LayerError {
            layer: self.node(node).label(),
            problem,
        })
    }
}

impl Walk<'_> {
    pub(super) fn read_value(
        &mut self,
        node: NodeIndex,
        variable: &VariableAttributes,
    ) -> Result<(), Problem> {
        let tensor = TensorId { node, output: 0 };
        if self.known.computed.contains_key(&tensor) {
            return Ok(());
        }
        let init = self.model.inputs(node).first().copied();
        let found = match init {
            Some(init) => match self.types.get(init) {
                Some(found) => Some(found.clone()),
                None => return Ok(()), // What feeds it is wrong, and is reported itself.
            },
            None => None,
        };
        if let (Some(found), Some(declared)) = (&found, &variable.declared) {
            expect(&variable.id, found, declared)?;
        }
        let is_run = self.mode.is_run();
        let ty = match (&variable.declared, found) {
            (Some(declared), None) if is_run => {
                let dims = declared.shape.dims().unwrap_or_default().iter();
                let shape: Vec<usize> = dims.map(|d| d.get().unwrap_or(d.min())).collect();
                TensorType::new(declared.element, PartialShape::from(shape.as_slice()))
            }
            (Some(declared), _) if !is_run => declared.clone(),
            (_, Some(found)) => found,
            (Some(declared), None) => declared.clone(),
            (None, None) => return Ok(()), // Refused when the model is read.
        };
        let can_be_had = init.is_none_or(|t| self.available.contains(&t));
        let is_static = ty.shape.is_static();
        self.declare(&[tensor], &[ty])?;
        if can_be_had && is_static {
            self.copy(init, tensor)?;
        }
        Ok(())
    }

    pub(super) fn assign(
        &mut self,
        node: NodeIndex,
        variable: &VariableAttributes,
    ) -> Result<(), Problem> {
        let Some(ports) = self.ports(node) else {
            return Ok(());
        };
        let (Some(ty), Some(&value)) = (ports.types.first(), ports.inputs.first()) else {
            return Ok(());
        };
        if let Some(declared) = self.model.variable(&variable.id) {
            expect(&variable.id, ty, declared)?;
        }
        let Some(&output) = ports.outputs.first() else {
            return Ok(());
        };
        self.declare(&[output], std::slice::from_ref(ty))?;
        let is_read = self.model.readers(output).next().is_some();
        if is_read && self.available.contains(&value) {
            self.copy(Some(value), output)?;
        }
        Ok(())
    }

    /// `to = from`, or zeros.
    fn copy(&mut self, from: Option<TensorId>, to: TensorId) -> Result<(), Problem> {
        let label = self.model.node(to.node).label();
        let layer = self.nest.layer(&label.name, &label.op);
        let source = from.map(|t| self.input_buffer(t)).transpose()?;
        let target = self.new_buffer(to, Role::Temporary);
        self.nest
            .define(vec![layer], target, |nest, at| match source {
                Some(source) => nest.load(source, at.to_vec()),
                None => build::zero(nest.buf(target).ty),
            });
        self.available.insert(to);
        Ok(())
    }
}

fn expect(id: &str, found: &TensorType, declared: &TensorType) -> Result<(), Problem> {
    let fits =
        found.element == declared.element && found.shape.intersect(&declared.shape).is_some();
    if fits {
        return Ok(());
    }
    let text = format!("variable '{id}' must be {declared}, found {found}");
    Err(Problem::Graph(text))
}
