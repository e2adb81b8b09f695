//! Sums of products of numbers of 8 bits less their zero points, in integers.
//!
//! > `Σ_k (a[k] - p)·(b[k] - q) = Σ_k a[k]·b[k] - q·Σ_k a[k] - p·Σ_k b[k] + K·p·q`
//!
//! where `p` and `q` do not depend on `k`, and may be known only when the nest runs. In `i32` both sides are equal
//! modulo 2³². In `f32` they are if every partial sum on the left is an integer of at most 2²⁴ in size, so that
//! nothing is rounded. A padded zero is `a[k] = p`.

mod codes;
#[cfg(test)]
mod tests;
mod totals;
mod zero;

use super::{MOST_DEPTH, Pass, pays, varies};
use crate::analysis::Interval;
use crate::build::{integer, select, zero};
use crate::ir::{Binary, Definition, Kind, Nest, Scalar, Stage, free_axes};
use vinelift_tensor::ElementType::{F32, I8, I32, U8};
use zero::Zero;

/// Integers of at most this size are exact as `f32`.
const LARGEST_EXACT: i64 = 1 << 24;

/// A factor `code - zero`.
struct Difference {
    /// A `u8` or an `i8`.
    code: Scalar,
    /// The code as an `i32`, from the constant that it is stored from if there is one, so that sums of it are
    /// constant, too.
    wide: Scalar,
    zero: Zero,
    /// The range of the difference.
    range: Interval,
}

impl Pass<'_> {
    /// The scalar that replaces `sum`, a sum of products of `i32` or `f32`.
    pub(super) fn of_integers(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        sum: &Scalar,
    ) -> Option<Scalar> {
        let Kind::Reduce { axes, body, .. } = sum.kind() else {
            return None;
        };
        let (left, right) = body.as_term()?;
        let mut count = 1i32;
        for axis in axes {
            count = count.checked_mul(i32::try_from(axis.extent.number()?).ok()?)?;
        }
        if !matches!(sum.ty(), I32 | F32) {
            return None;
        }
        let left_factor = self.difference(nest, stage, left, MOST_DEPTH)?;
        let right_factor = self.difference(nest, stage, right, MOST_DEPTH)?;
        let is_exact = is_exact(left_factor.range, right_factor.range, count);
        let zeros = [left_factor.zero.wide(), right_factor.zero.wide()];
        let fits = (sum.ty() == I32 || is_exact)
            && !zeros.iter().flatten().any(|zero| varies(zero, axes))
            && pays(stage, axes, left, right);
        if !fits {
            return None;
        }
        let (left, right) = self.of_two_types(nest, stage, left_factor, right_factor);
        let wide = |x: &Scalar| x.clone().cast(I32);
        let term = Scalar::binary(Binary::Term, wide(&left.code), wide(&right.code));
        let mut total = Scalar::reduce(Binary::Add, axes.clone(), zero(I32), term);
        let name = nest.buf(stage.target).name.clone();
        for (factor, other, side) in [(&left, &right, "left"), (&right, &left, "right")] {
            if let Some(zero) = other.zero.wide() {
                let name = format!("{name}.{side}.total");
                let part = self.total(nest, stage, &name, axes, &factor.wide);
                total = total - part * zero;
            }
        }
        if let (Some(p), Some(q)) = (left.zero.wide(), right.zero.wide()) {
            total = total + p * q * integer(i64::from(count), I32);
        }
        Some(total.cast(sum.ty()))
    }

    /// `x` as a number of 8 bits less a zero point.
    fn difference(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        x: &Scalar,
        depth: usize,
    ) -> Option<Difference> {
        if let Some(code) = number_of_8_bits(x) {
            return Some(Difference {
                code: code.clone(),
                wide: code.clone().cast(I32),
                zero: Zero::Value(0),
                range: Interval::of_type(code.ty()),
            });
        }
        match x.kind() {
            Kind::Cast(inner) if x.ty() == F32 && inner.ty() == I32 => {
                let inner = self.difference(nest, stage, inner, depth)?;
                let is_exact = size(inner.range) <= LARGEST_EXACT;
                is_exact.then_some(inner)
            }
            Kind::Binary(Binary::Sub, a, b) => {
                let zero = self.zero_point(nest, b, depth)?;
                let code = self.difference(nest, stage, a, depth)?;
                let less = zero.range();
                let range = Interval {
                    low: code.range.low.saturating_sub(less.high),
                    high: code.range.high.saturating_sub(less.low),
                };
                let is_plain = matches!(code.zero, Zero::Value(0));
                is_plain.then_some(Difference {
                    zero,
                    range,
                    ..code
                })
            }
            // Padding.
            Kind::Select(condition, inner, outside) if outside.as_const() == Some(0) => {
                padded(condition, self.difference(nest, stage, inner, depth)?)
            }
            Kind::Load { buffer, at } => match self.definitions.get(buffer).cloned() {
                Some(definition) if depth > 0 => {
                    let value = Definition::of(&definition).instantiate(nest, at);
                    self.difference(nest, stage, &value, depth - 1)
                }
                _ => self.narrowed(nest, stage, x),
            },
            _ => None,
        }
    }
}

/// `inner` where the condition holds, else 0.
fn padded(condition: &Scalar, inner: Difference) -> Option<Difference> {
    // The condition may be what keeps the index of a zero point in range.
    let guarded = free_axes(condition);
    let depends = free_axes(&inner.zero.wide().unwrap_or_else(|| zero(I32)));
    guarded.is_disjoint(&depends).then_some(())?;
    let zero_code = inner.zero.code(inner.code.ty())?;
    let zero_wide = zero_code.clone().cast(I32);
    Some(Difference {
        code: select(condition.clone(), inner.code, zero_code),
        wide: select(condition.clone(), inner.wide, zero_wide),
        range: inner.range.union(Interval::exactly(0)),
        zero: inner.zero,
    })
}

/// The `u8` or `i8` that `x` is a conversion of.
fn number_of_8_bits(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(number) if matches!(number.ty(), U8 | I8) => Some(number),
        _ => None,
    }
}

/// Whether sums of `count` products are exact in `f32`, in any order.
fn is_exact(left: Interval, right: Interval, count: i32) -> bool {
    let product = size(left).saturating_mul(size(right));
    product.saturating_mul(i64::from(count)) <= LARGEST_EXACT
}

/// No value is larger.
fn size(range: Interval) -> i64 {
    range.low.saturating_abs().max(range.high.saturating_abs())
}
