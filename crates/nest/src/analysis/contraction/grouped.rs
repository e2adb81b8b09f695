//! Sums of products of rows that are quantised by groups.
//!
//! > `Σ_g s[g] · (f32(Σ_i i32(row[g, i]) · (i32(code[g, i]) - zero)) · scale)`
//!
//! So [`dynamic_quantization`](crate::dynamic_quantization) writes them.

use super::{Coding, Factor, Form, Points, byte, coded, strided_load};
use crate::ir::{Axis, AxisId, Binary, Kind, Nest, Scalar};
use vinelift_tensor::ElementType::{self, F32, I4, I8, I32, U4, U8};

/// The parts of such a sum.
pub(super) struct GroupedSum<'a> {
    /// The axes of the groups, and those of the elements of one.
    pub(super) axes: Vec<Axis>,
    row: &'a Scalar,
    row_scale: &'a Scalar,
    codes: &'a Scalar,
    zero: Option<&'a Scalar>,
    scale: Option<&'a Scalar>,
}

impl<'a> GroupedSum<'a> {
    /// The parts of `x`, if it is one.
    pub(super) fn of(x: &'a Scalar) -> Option<GroupedSum<'a>> {
        let (groups, row_scale, scaled) = sum_of_terms(x).filter(|_| x.ty() == F32)?;
        let (exact, scale) = match scaled.kind() {
            Kind::Binary(Binary::Mul, a, b) if exact(a).is_some() => (exact(a)?, Some(b)),
            Kind::Binary(Binary::Mul, a, b) => (exact(b)?, Some(a)),
            _ => (exact(scaled)?, None),
        };
        let (inner, row, difference) = sum_of_terms(exact)?;
        let (codes, zero) = match difference.kind() {
            Kind::Binary(Binary::Sub, codes, zero) => (codes, Some(zero)),
            _ => (difference, None),
        };
        Some(GroupedSum {
            axes: [groups, inner].concat(),
            row: byte(row).filter(|row| row.ty() == I8)?,
            row_scale,
            codes: integer(codes)?,
            zero,
            scale,
        })
    }

    /// The factors and how they step, and the scales of the first one's groups, over all these axes of the contraction.
    pub(super) fn factors(
        &self,
        nest: &Nest,
        axes: &[AxisId],
    ) -> Option<([(Factor, Form); 2], Points)> {
        let (row, row_form) = strided_load(nest, self.row)?;
        let (codes, code_form) = strided_load(nest, self.codes)?;
        let points = |x: Option<&Scalar>| match x {
            Some(x) => points(nest, x, axes).map(Some),
            None => Some(None),
        };
        let coding = Coding {
            zero: points(self.zero)?,
            scale: points(self.scale)?,
        };
        let row = Factor {
            tensor: row,
            coding: None,
        };
        let codes = Factor {
            tensor: codes,
            coding: Some(coding),
        };
        let factors = [(row, row_form), (codes, code_form)];
        Some((factors, coded::points(nest, self.row_scale, axes)?))
    }
}

/// The axes of a sum of products from zero over at least one point, and the factors.
fn sum_of_terms(x: &Scalar) -> Option<(&[Axis], &Scalar, &Scalar)> {
    let Kind::Reduce { axes, body, .. } = x.kind() else {
        return None;
    };
    let (left, right) = body.as_term().filter(|_| super::is_sum_of_terms(x))?;
    Some((axes, left, right))
}

/// The sum of `i32` that `x` is as an `f32`.
fn exact(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(sum) if x.ty() == F32 && sum.ty() == I32 && sum.folds() => Some(sum),
        _ => None,
    }
}

/// Whether a type is of integers of 4 or 8 bits, as which weights are stored.
pub(crate) fn is_integer_code(ty: ElementType) -> bool {
    matches!(ty, I4 | U4 | I8 | U8)
}

/// The number of 4 or 8 bits that `x` is as an `i32`.
fn integer(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(code) if x.ty() == I32 && is_integer_code(code.ty()) => Some(code),
        _ => None,
    }
}

/// A zero point, which is an `i32`, or a scale.
fn points(nest: &Nest, x: &Scalar, axes: &[AxisId]) -> Option<Points> {
    match x.kind() {
        Kind::Const(_) if x.ty() == I32 => {
            Some(Points::Value((x.as_const()? as i32 as f32).to_bits()))
        }
        Kind::Cast(stored) if x.ty() == I32 => coded::points(nest, stored, axes),
        _ => coded::points(nest, x, axes),
    }
}
