//! Zero points.

use super::number_of_8_bits;
use crate::analysis::Interval;
use crate::build::integer;
use crate::ir::{Definition, Kind, Nest, Scalar};
use crate::passes::quantized_products::Pass;
use vinelift_tensor::ElementType::{self, I32};

/// A zero point.
#[derive(Clone)]
pub(super) enum Zero {
    Value(i64),
    /// The number of 8 bits, or of 32, and what it lies between.
    Number(Scalar, Interval),
}

impl Zero {
    pub(super) fn range(&self) -> Interval {
        match self {
            Zero::Value(value) => Interval::exactly(*value),
            Zero::Number(_, range) => *range,
        }
    }

    /// As an `i32`; `None` if it is 0.
    pub(super) fn wide(&self) -> Option<Scalar> {
        match self {
            Zero::Value(0) => None,
            Zero::Value(value) => Some(integer(*value, I32)),
            Zero::Number(number, _) => Some(number.clone().cast(I32)),
        }
    }

    /// As a code of the type `ty`, if it surely is one.
    pub(super) fn code(&self, ty: ElementType) -> Option<Scalar> {
        let (codes, range) = (Interval::of_type(ty), self.range());
        (codes.low <= range.low && range.high <= codes.high).then(|| match self {
            Zero::Value(value) => integer(*value, ty),
            Zero::Number(number, _) => number.clone().cast(ty),
        })
    }

    pub(super) fn plus(&self, more: i64) -> Zero {
        match self {
            Zero::Value(value) => Zero::Value(value + more),
            Zero::Number(number, range) => {
                let sum = number.clone().cast(I32) + integer(more, I32);
                let (low, high) = (range.low + more, range.high + more);
                Zero::Number(sum, Interval { low, high })
            }
        }
    }
}

impl Pass<'_> {
    /// A zero point: a constant integer, a number of 8 bits, or any `i32`.
    pub(super) fn zero_point(&self, nest: &mut Nest, x: &Scalar, depth: usize) -> Option<Zero> {
        if let Some(bits) = x.as_const() {
            let value = match x.ty() {
                I32 => f64::from(bits as u32 as i32),
                _ => f64::from(f32::from_bits(bits as u32)),
            };
            let is_small = value.fract() == 0.0 && value.abs() <= 512.0;
            return is_small.then_some(Zero::Value(value as i64));
        }
        if let Some(number) = number_of_8_bits(x) {
            let range = Interval::of_type(number.ty());
            return Some(Zero::Number(number.clone(), range));
        }
        let Kind::Load { buffer, at } = x.kind() else {
            return None;
        };
        let value = match self.definitions.get(buffer) {
            Some(definition) if depth > 0 => {
                let value = Definition::of(definition).instantiate(nest, at);
                self.zero_point(nest, &value, depth - 1)
            }
            _ => None,
        };
        let any = || (x.ty() == I32).then(|| Zero::Number(x.clone(), Interval::of_type(I32)));
        value.or_else(any)
    }
}
