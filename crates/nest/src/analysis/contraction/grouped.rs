//! Sums of products with codes in groups, each of which is scaled after it is summed.
//!
//! > `Σ_g s[g] · (f32(Σ_i i32(row[g, i]) · (i32(code[g, i]) - zero)) · scale)`, of rows that are quantised,
//! > `Σ_g scale · (Σ_i row[g, i] · f32(code[g, i]) - zero · sum[g])`, of others.
//!
//! [`dynamic_quantization`](crate::dynamic_quantization) writes sums in the first form, [`hoist_scales`](crate::hoist_scales) in the
//! second.

use super::{Coding, Factor, Form, Numbered, Points, byte, coded, strided_load};
use crate::ir::{Axis, AxisId, Binary, Kind, Scalar};
use vinelift_tensor::ElementType::{self, F32, I4, I8, I32, U4, U8};

/// The groups of a contraction with codes whose sums are scaled group by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// How many of the axes summed over are those of the groups: the first ones.
    pub axes: usize,
    /// The type of the first factor, whose rows are multiplied with the codes.
    pub rows: GroupRows,
}

/// The rows of a contraction in [groups](Groups).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRows {
    /// `i8`, with a scale for each group: the sums of a group are integers.
    Quantized {
        /// The scales.
        scales: Points,
    },
    /// `f32`.
    Floats {
        /// The sum of each group; `None` where there are no zero points, which are multiplied by it.
        sums: Option<Points>,
    },
}

/// The parts of such a sum.
pub(super) struct GroupedSum<'a> {
    /// The axes of the groups, and those of the elements of one.
    pub(super) axes: Vec<Axis>,
    groups: usize,
    row: &'a Scalar,
    rows: Rows<'a>,
    codes: &'a Scalar,
    zero: Option<&'a Scalar>,
    scale: Option<&'a Scalar>,
}

/// As [`GroupRows`].
enum Rows<'a> {
    Quantized { scale: &'a Scalar },
    Floats { sum: Option<&'a Scalar> },
}

impl<'a> GroupedSum<'a> {
    /// The parts of `x`, if it is one.
    pub(super) fn of(x: &'a Scalar) -> Option<GroupedSum<'a>> {
        let (groups, scale, value) = sum_of_terms(x).filter(|_| x.ty() == F32)?;
        GroupedSum::of_quantized(groups, scale, value)
            .or_else(|| GroupedSum::of_floats(groups, scale, value))
    }

    /// The parts of the sum of `row_scale · scaled` over `groups`.
    fn of_quantized(
        groups: &[Axis],
        row_scale: &'a Scalar,
        scaled: &'a Scalar,
    ) -> Option<GroupedSum<'a>> {
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
            groups: groups.len(),
            row: byte(row).filter(|row| row.ty() == I8)?,
            rows: Rows::Quantized { scale: row_scale },
            codes: integer(codes, I32)?,
            zero,
            scale,
        })
    }

    /// The parts of the sum of `scale · value` over `groups`.
    fn of_floats(groups: &[Axis], scale: &'a Scalar, value: &'a Scalar) -> Option<GroupedSum<'a>> {
        let (sum, zero) = match value.kind() {
            Kind::Binary(Binary::Sub, sum, taken) => match taken.kind() {
                Kind::Binary(Binary::Mul, row_sum, zero) if zero.as_const().is_some() => {
                    (sum, Some((zero, row_sum)))
                }
                Kind::Binary(Binary::Mul, zero, row_sum) => (sum, Some((zero, row_sum))),
                _ => return None,
            },
            _ => (value, None),
        };
        let (inner, row, codes) = sum_of_terms(sum)?;
        Some(GroupedSum {
            axes: [groups, inner].concat(),
            groups: groups.len(),
            row: Some(row).filter(|row| row.ty() == F32)?,
            rows: Rows::Floats {
                sum: zero.map(|(_, row_sum)| row_sum),
            },
            codes: integer(codes, F32)?,
            zero: zero.map(|(zero, _)| zero),
            scale: Some(scale),
        })
    }

    /// The factors and how they step, and the groups, over all these axes of the contraction.
    pub(super) fn factors(
        &self,
        nest: Numbered<'_>,
        axes: &[AxisId],
    ) -> Option<([(Factor, Form); 2], Groups)> {
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
        let groups = Groups {
            axes: self.groups,
            rows: match self.rows {
                Rows::Quantized { scale } => GroupRows::Quantized {
                    scales: coded::points(nest, scale, axes)?,
                },
                Rows::Floats { sum } => GroupRows::Floats { sums: points(sum)? },
            },
        };
        Some(([(row, row_form), (codes, code_form)], groups))
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

/// The number of 4 or 8 bits that `x` is as a number of another type.
fn integer(x: &Scalar, ty: ElementType) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(code) if x.ty() == ty && is_integer_code(code.ty()) => Some(code),
        _ => None,
    }
}

/// A zero point, which is an `i32`, or a scale.
fn points(nest: Numbered<'_>, x: &Scalar, axes: &[AxisId]) -> Option<Points> {
    match x.kind() {
        Kind::Const(_) if x.ty() == I32 => {
            Some(Points::Value((x.as_const()? as i32 as f32).to_bits()))
        }
        Kind::Cast(stored) if x.ty() == I32 => coded::points(nest, stored, axes),
        _ => coded::points(nest, x, axes),
    }
}
