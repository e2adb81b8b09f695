//! Compressed constants, decompressed in `f32`.
//!
//! > `f32((T(codes) - T(zero)) · scale)`, with `T` = `f16` or `bf16`, is `(f32(codes) - f32(zero)) · f32(scale)`
//!
//! Files store weights of few bits in this form: Convert, Subtract, Multiply, perhaps Reshape, of type `f16`, and a Convert to `f32`
//! at the end. Computed as it is written, each step would round to `f16`, although the weights had more
//! digits before they were compressed. So the steps before the last Convert are computed in `f32`, at every level, as OpenVINO's devices do
//! (Convert, Multiply, Subtract: operator set 1; "low-precision decompression" of its plugins).

use super::walk::Walk;
use crate::error::Problem;
use crate::model::{NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashMap;
use vinelift_nest::{BufferId, LayerId, Role};
use vinelift_ops::{Instance, Lower, OpDef};
use vinelift_tensor::{
    ElementType::{self, BF16, F16, F32},
    Tensor,
};

/// The most steps that follow each other before the last Convert.
const MOST_STEPS: usize = 16;

/// The operators of the steps.
const STEPS: [&str; 7] = [
    "Convert",
    "Subtract",
    "Multiply",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
];

/// The steps that decompress a constant, each after those that feed it.
pub(super) struct Decompression {
    steps: Vec<NodeIndex>,
    /// Whether one of them rounds.
    rounds: bool,
    /// Whether one of them reads codes.
    has_codes: bool,
}

impl Walk<'_> {
    /// The steps before `node`, if that is the Convert at the end of a decompression of constants.
    pub(super) fn decompression(&self, node: NodeIndex, def: &OpDef) -> Option<Decompression> {
        let (is_wide, from) = match self.model.inputs(node).as_slice() {
            [from] => (
                self.element(TensorId { node, output: 0 }) == Some(F32),
                *from,
            ),
            _ => return None,
        };
        if def.name != "Convert" || !is_wide {
            return None;
        }
        let mut found = Decompression {
            steps: Vec::new(),
            rounds: false,
            has_codes: false,
        };
        let is_one = self.collect(from, 0, &mut found) && found.rounds && found.has_codes;
        is_one.then_some(found)
    }

    /// Adds the steps that compute `tensor`, which `depth` others follow; `false` if it is not computed by such steps from
    /// constants alone.
    fn collect(&self, tensor: TensorId, depth: usize, found: &mut Decompression) -> bool {
        let element = self.element(tensor);
        let (def, inputs) = match &self.model.node(tensor.node).kind {
            NodeKind::Constant(_) => return matches!(element, Some(F16 | BF16)),
            NodeKind::Operator { def, .. } => (*def, self.model.inputs(tensor.node)),
            _ => return false,
        };
        let is_step = STEPS.contains(&def.name) && matches!(element, Some(F16 | BF16));
        if found.steps.contains(&tensor.node) {
            return true;
        }
        if !is_step || depth >= MOST_STEPS {
            return false;
        }
        let is_constant =
            |t: &TensorId| matches!(self.model.node(t.node).kind, NodeKind::Constant(_));
        let is_computed = match (def.name, inputs.as_slice()) {
            ("Convert", [codes]) => {
                let bits = self.element(*codes).map_or(64, |ty| ty.bits());
                found.has_codes |= bits <= 8;
                is_constant(codes) && bits <= 16
            }
            ("Subtract" | "Multiply", [a, b]) => {
                found.rounds = true;
                self.collect(*a, depth + 1, found) && self.collect(*b, depth + 1, found)
            }
            (_, [data, rest @ ..]) => {
                rest.iter().all(|t| self.values.contains_key(t))
                    && self.collect(*data, depth + 1, found)
            }
            _ => false,
        };
        found.steps.push(tensor.node);
        is_computed
    }

    pub(super) fn element(&self, tensor: TensorId) -> Option<ElementType> {
        self.types.get(tensor).map(|ty| ty.element)
    }

    /// Lowers the steps in `f32`, as part of `layer`, and gives the buffer of what `node`, the Convert at the end, reads.
    pub(super) fn lower_decompression(
        &mut self,
        node: NodeIndex,
        found: &Decompression,
        layer: LayerId,
    ) -> Result<BufferId, Problem> {
        let mut wide: FxHashMap<TensorId, BufferId> = FxHashMap::default();
        let mut last = None;
        for &step in &found.steps {
            let NodeKind::Operator {
                def,
                op: Instance::Lowered(op),
            } = &self.model.node(step).kind
            else {
                let text = format!("{} has no lowering", self.model.node(step).label());
                return Err(Problem::Graph(text));
            };
            let inputs = self.model.inputs(step);
            let is_index = |k: usize| k > 0 && !matches!(def.name, "Subtract" | "Multiply");
            let mut sources = Vec::with_capacity(inputs.len());
            for (k, input) in inputs.iter().enumerate() {
                let source = match wide.get(input) {
                    Some(known) => *known,
                    // Its own type is that of indices, or of codes.
                    None if is_index(k) || def.name == "Convert" => self.input_buffer(*input)?,
                    None => self.converted(*input, node, layer)?,
                };
                sources.push(source);
            }
            let output = TensorId {
                node: step,
                output: 0,
            };
            let target = self.wide_buffer(output);
            let values = inputs.iter().map(|t| self.values.get(t).cloned());
            let values: Vec<Option<Tensor>> = values.collect();
            let values: Vec<Option<&Tensor>> = values.iter().map(Option::as_ref).collect();
            let policy = self.policy();
            op.lower(&mut Lower::new(
                &mut self.nest,
                def.signature,
                layer,
                sources,
                vec![target],
                &values,
                policy,
            ));
            wide.insert(output, target);
            last = Some(target);
        }
        last.ok_or_else(|| Problem::Graph("it decompresses nothing".to_owned()))
    }

    /// A constant of type `f16` or `bf16` as `f32`: by `node`, which converts.
    fn converted(
        &mut self,
        constant: TensorId,
        node: NodeIndex,
        layer: LayerId,
    ) -> Result<BufferId, Problem> {
        let source = self.input_buffer(constant)?;
        let target = self.wide_buffer(constant);
        if let NodeKind::Operator {
            def,
            op: Instance::Lowered(op),
        } = &self.model.node(node).kind
        {
            let policy = self.policy();
            let (sources, targets) = (vec![source], vec![target]);
            let nest = &mut self.nest;
            op.lower(&mut Lower::new(
                nest,
                def.signature,
                layer,
                sources,
                targets,
                &[None],
                policy,
            ));
        }
        Ok(target)
    }

    /// A temporary of type `f32` for a tensor of another.
    fn wide_buffer(&mut self, tensor: TensorId) -> BufferId {
        let name = self.model.node(tensor.node).layer.name.clone();
        let shape = self.types.shape(tensor).unwrap_or_default();
        self.nest.buffer(&name, F32, &shape, Role::Temporary)
    }
}
