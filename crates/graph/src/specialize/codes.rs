//! Which constants stay codes, although they could be folded.

use super::budget::SMALL_WORK;
use super::walk::{FAKE_QUANTIZE, Walk};
use crate::model::{NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use vinelift_nest::LEAST_CODED;
use vinelift_ops::OpDef;
use vinelift_tensor::ElementType::{self, I4, I8, U4, U8};
use vinelift_tensor::element_count;

/// Weights of fewer elements do not stay codes for products of bytes.
const LEAST_WEIGHTS: usize = 64;

/// Nor do weights for fewer channels, which are their second dim: a vector of bytes is made of channels. Where the channels of a pixel
/// lie beside each other, any number will do.
const LEAST_CHANNELS: usize = 8;

/// Nor do weights of groups, whose channels are their third dim, for fewer results of each group.
const LEAST_OF_GROUP: usize = 4;

const CONVOLUTION: &str = "Convolution";
const GROUP_CONVOLUTION: &str = "GroupConvolution";

/// The most nodes between weights and the node that multiplies by them, and between that and a transposition.
const MOST_STEPS: usize = 4;

impl Walk<'_> {
    /// Whether constant values must stay codes in the plan. Passes over the nest recognise products with codes: they make exact sums of
    /// integers of those with quantised values, and hoist scales out of others. The answer must not depend on what the budget has
    /// left, as these passes change how sums are rounded.
    pub(super) fn keeps_codes(
        &self,
        node: NodeIndex,
        def: &OpDef,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> bool {
        let is_float = |t: &TensorId| self.element(*t).is_some_and(ElementType::is_float);
        let shape = |tensor: &TensorId| self.types.get(*tensor)?.shape.to_static();
        let has_least = |tensor: &TensorId, least: usize| {
            let count = shape(tensor).and_then(|shape| element_count(&shape));
            count.is_none_or(|count| count >= least)
        };
        let has_channels = |tensor: &TensorId| {
            let Some(shape) = shape(tensor) else {
                return true;
            };
            let reader = self.reader_of_weights(*tensor);
            match (reader, shape.as_slice()) {
                (Some((_, GROUP_CONVOLUTION)), [_, results, channels, ..]) => {
                    *results >= LEAST_OF_GROUP && *channels >= LEAST_CHANNELS
                }
                (Some((reader, CONVOLUTION)), _) if self.is_transposed(reader) => true,
                (_, shape) => shape.get(1).is_some_and(|n| *n >= LEAST_CHANNELS),
            }
        };
        let all_of = |types: &[ElementType]| {
            let is_one = |t: &TensorId| self.element(*t).is_some_and(|ty| types.contains(&ty));
            inputs.iter().all(is_one)
        };
        let converts = def.name == "Convert";
        let quantizes = def.name == FAKE_QUANTIZE || (converts && all_of(&[I8, U8]));
        let decompresses = || all_of(&[I4, U4, I8, U8]) || self.decompression(node, def).is_some();
        let least = if self.is_quantized && quantizes {
            match outputs.iter().all(has_channels) {
                true => LEAST_WEIGHTS,
                false => SMALL_WORK + 1,
            }
        } else if converts && decompresses() {
            LEAST_CODED
        } else {
            return false;
        };
        outputs.iter().all(|t| is_float(t) && has_least(t, least))
    }

    /// The convolution that `weights` are those of alone, and its operator.
    fn reader_of_weights(&self, weights: TensorId) -> Option<(NodeIndex, &str)> {
        let mut tensor = weights;
        for _ in 0..MOST_STEPS {
            let mut readers = self.model.readers(tensor);
            let (Some(reader), None) = (readers.next(), readers.next()) else {
                return None;
            };
            let operator = self.operator_name(reader);
            if let Some(operator @ (CONVOLUTION | GROUP_CONVOLUTION)) = operator {
                return Some((reader, operator));
            }
            tensor = TensorId {
                node: reader,
                output: 0,
            };
        }
        None
    }

    /// Whether the first operand of a node comes from a transposition, with only padding and elementwise nodes in between.
    fn is_transposed(&self, node: NodeIndex) -> bool {
        let mut node = node;
        for _ in 0..MOST_STEPS {
            let Some(operand) = self.model.inputs(node).first().copied() else {
                return false;
            };
            node = operand.node;
            match self.operator_name(node) {
                Some("Transpose") => return true,
                Some(FAKE_QUANTIZE | "Convert" | "Add" | "Subtract" | "Multiply" | "Pad") => {}
                _ => return false,
            }
        }
        false
    }

    /// The name of the operator that a node is.
    fn operator_name(&self, node: NodeIndex) -> Option<&str> {
        match &self.model.node(node).kind {
            NodeKind::Operator { def, .. } => Some(def.name),
            _ => None,
        }
    }
}
