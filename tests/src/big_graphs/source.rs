//! The inputs and constants of a graph.

use super::case::{Kind, Node, Port};
use super::fill::Fill;
use super::grow::{Grow, Value};
use vinelift::ElementType;

impl Grow<'_> {
    pub(crate) fn parameter(&mut self, ty: ElementType, shape: &[usize]) -> Value {
        let fill = match ty {
            ElementType::F32 if self.special => Fill::Special {
                nan: self.choices.chance(30),
            },
            ty if ty.is_float() => Fill::Numbers(1.0),
            ElementType::U8 => Fill::Integers { low: 0, high: 255 },
            ElementType::U4 => Fill::Integers { low: 0, high: 15 },
            ElementType::I4 => Fill::Integers { low: -8, high: 7 },
            ElementType::Boolean => Fill::Integers { low: 0, high: 1 },
            _ => Fill::Integers { low: -40, high: 40 },
        };
        let value = self.filled(ty, shape, fill);
        self.values.push(value.clone());
        value
    }

    /// An input that nothing else uses.
    pub(crate) fn filled(&mut self, ty: ElementType, shape: &[usize], fill: Fill) -> Value {
        self.source(Kind::Parameter(fill), ty, shape)
    }

    pub(crate) fn constant(&mut self, ty: ElementType, shape: &[usize], fill: Fill) -> Value {
        let seed = self.choices.seed();
        self.source(Kind::Constant(fill, seed), ty, shape)
    }

    fn source(&mut self, kind: Kind, ty: ElementType, shape: &[usize]) -> Value {
        let node = self.nodes.len();
        let bound = match &kind {
            Kind::Constant(Fill::Numbers(scale), _) => 2.0 * scale,
            _ if ty.is_float() => 2.0,
            _ => 255.0,
        };
        self.nodes.push(Node {
            kind,
            inputs: Vec::new(),
            outputs: vec![(ty, shape.to_vec())],
        });
        Value {
            port: Port { node, output: 0 },
            ty,
            shape: shape.to_vec(),
            bound,
        }
    }

    pub(crate) fn scalar(&mut self, ty: ElementType, number: f64) -> Value {
        self.constant(ty, &[], Fill::Exactly(vec![number]))
            .bounded(number.abs())
    }

    pub(crate) fn list(&mut self, numbers: &[i64]) -> Value {
        let exactly = numbers.iter().map(|&n| n as f64).collect();
        self.constant(ElementType::I64, &[numbers.len()], Fill::Exactly(exactly))
    }

    pub(crate) fn axes(&mut self, axes: &[usize]) -> Value {
        let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
        self.list(&axes)
    }

    pub(crate) fn number(&mut self, number: usize) -> Value {
        self.scalar(ElementType::I64, number as f64)
    }

    /// Weights of a contraction over `length` numbers.
    pub(crate) fn weights(&mut self, ty: ElementType, shape: &[usize], length: usize) -> Value {
        let scale = 1.0 / (length.max(1) as f64).sqrt();
        self.constant(ty, shape, Fill::Numbers(scale))
    }
}
