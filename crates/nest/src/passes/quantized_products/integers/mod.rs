//! Sums of products of numbers of 8 bits less their zero points, in integers.
//!
//! > `Σ_k (a[k] - p)·(b[k] - q) = Σ_k a[k]·b[k] - q·Σ_k a[k] - p·Σ_k b[k] + K·p·q`
//!
//! where `p` and `q` do not depend on `k`, and may be known only when the nest runs. In `i32` both sides are equal
//! modulo 2³². In `f32` they are if every partial sum on the left is an integer of at most 2²⁴ in size, so that
//! nothing is rounded. A padded zero is `a[k] = p`.

#[cfg(test)]
mod tests;

use super::{MOST_DEPTH, Pass, other_type, pays};
use crate::analysis::Interval;
use crate::build::{integer, select, zero};
use crate::ir::{Binary, BufferId, Definition, Kind, Nest, Scalar, Stage, free_axes};
use vinelift_tensor::ElementType::{self, F32, I8, I32, U8};

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
    /// What the difference lies between.
    range: Interval,
}

/// A zero point.
#[derive(Clone)]
enum Zero {
    Value(i64),
    /// The number of 8 bits, or of 32, and what it lies between.
    Number(Scalar, Interval),
}

impl Zero {
    fn range(&self) -> Interval {
        match self {
            Zero::Value(value) => Interval::exactly(*value),
            Zero::Number(_, range) => *range,
        }
    }

    /// As an `i32`; `None` if it is 0.
    fn wide(&self) -> Option<Scalar> {
        match self {
            Zero::Value(0) => None,
            Zero::Value(value) => Some(integer(*value, I32)),
            Zero::Number(number, _) => Some(number.clone().cast(I32)),
        }
    }

    /// As a code of the type `ty`, if it surely is one.
    fn code(&self, ty: ElementType) -> Option<Scalar> {
        let (codes, range) = (Interval::of_type(ty), self.range());
        (codes.low <= range.low && range.high <= codes.high).then(|| match self {
            Zero::Value(value) => integer(*value, ty),
            Zero::Number(number, _) => number.clone().cast(ty),
        })
    }

    fn plus(&self, more: i64) -> Zero {
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
        let is_number = matches!(sum.ty(), I32 | F32) && !nest.is_symbolic();
        if !is_number || !pays(stage, axes, left, right) {
            return None;
        }
        let left = self.difference(nest, stage, left, MOST_DEPTH)?;
        let right = self.difference(nest, stage, right, MOST_DEPTH)?;
        let varies = |x: &Scalar| {
            let free = free_axes(x);
            axes.iter().any(|axis| free.contains(&axis.id))
        };
        let zeros = [left.zero.wide(), right.zero.wide()].into_iter().flatten();
        if zeros.into_iter().any(|zero| varies(&zero)) {
            return None;
        }
        let count = axes.iter().map(|axis| axis.extent.example());
        let count = count.fold(1usize, usize::saturating_mul);
        let count = i64::from(i32::try_from(count).ok()?);
        if sum.ty() == F32 && !is_exact(left.range, right.range, count) {
            return None;
        }
        let (left, right) = self.of_two_types(nest, stage, left, right)?;
        let wide = |x: &Scalar| x.clone().cast(I32);
        let term = Scalar::binary(Binary::Term, wide(&left.code), wide(&right.code));
        let mut total = Scalar::reduce(Binary::Add, axes.clone(), zero(I32), term);
        let name = nest.buf(stage.target).name.clone();
        for (factor, other, side) in [(&left, &right, "left"), (&right, &left, "right")] {
            if let Some(zero) = other.zero.wide() {
                let name = format!("{name}.{side}.total");
                let part = self.fold(nest, stage, &name, axes, factor.wide.clone());
                total = total - part * zero;
            }
        }
        if let (Some(p), Some(q)) = (left.zero.wide(), right.zero.wide()) {
            total = total + p * q * integer(count, I32);
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
                let (range, less) = (code.range, zero.range());
                let from = |low: i64, high: i64| low.saturating_sub(high);
                let range = Interval {
                    low: from(range.low, less.high),
                    high: from(range.high, less.low),
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
                let inner = self.difference(nest, stage, inner, depth)?;
                let zero_code = inner.zero.code(inner.code.ty())?;
                let zero_wide = zero_code.clone().cast(I32);
                Some(Difference {
                    code: select(condition.clone(), inner.code, zero_code),
                    wide: select(condition.clone(), inner.wide, zero_wide),
                    range: inner.range.union(Interval::exactly(0)),
                    zero: inner.zero,
                })
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

    /// A zero point: a constant integer, a number of 8 bits, or any `i32`.
    fn zero_point(&self, nest: &mut Nest, x: &Scalar, depth: usize) -> Option<Zero> {
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

    /// A load from a constant whose elements are integers of 8 bits, or are with a zero point, as one from
    /// a tensor of such.
    fn narrowed(&mut self, nest: &mut Nest, stage: &Stage, x: &Scalar) -> Option<Difference> {
        let Kind::Load { buffer, at } = x.kind() else {
            return None;
        };
        let range = integers((self.constant)(*buffer)?, x.ty())?;
        let (ty, middle) = match (range.low, range.high) {
            (-128.., ..=127) => (I8, 0),
            (0.., ..=255) => (U8, 0),
            (low, high) if high - low <= 255 => (I8, low + 128),
            _ => return None,
        };
        let wide = |x: Scalar| match middle {
            0 => x.cast(I32),
            _ => x.cast(I32) - integer(middle, I32),
        };
        let code = self.stored(nest, stage, *buffer, at, ty, |x| wide(x).cast(ty));
        Some(Difference {
            code,
            wide: wide(x.clone()),
            zero: Zero::Value(-middle),
            range,
        })
    }

    /// The factors with codes of one signed and one unsigned type: of two that are alike, one is moved by 128.
    fn of_two_types(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        left: Difference,
        right: Difference,
    ) -> Option<(Difference, Difference)> {
        match (left.code.ty(), right.code.ty()) {
            (U8, U8) => Some((left, self.moved(nest, stage, right))),
            (I8, I8) => Some((self.moved(nest, stage, left), right)),
            _ => Some((left, right)),
        }
    }

    /// The same difference with codes of the other type.
    fn moved(&mut self, nest: &mut Nest, stage: &Stage, x: Difference) -> Difference {
        let more = if x.code.ty() == U8 { -128 } else { 128 };
        Difference {
            code: self.moved_code(nest, stage, &x.code, more),
            wide: x.wide + integer(more, I32),
            zero: x.zero.plus(more),
            range: x.range,
        }
    }

    fn moved_code(&mut self, nest: &mut Nest, stage: &Stage, x: &Scalar, more: i64) -> Scalar {
        let ty = other_type(x.ty());
        let moved = |x: Scalar| (x.cast(I32) + integer(more, I32)).cast(ty);
        match x.kind() {
            Kind::Select(condition, inside, outside) => {
                let inside = self.moved_code(nest, stage, inside, more);
                select(condition.clone(), inside, moved(outside.clone()))
            }
            Kind::Load { buffer, at } => self.stored(nest, stage, *buffer, at, ty, moved),
            _ => moved(x.clone()),
        }
    }

    /// The load of `code(buffer)[at]`, which is stored as a tensor of type `ty`.
    fn stored(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        buffer: BufferId,
        at: &[Scalar],
        ty: ElementType,
        code: impl FnOnce(Scalar) -> Scalar,
    ) -> Scalar {
        let key = (buffer, ty);
        if let Some(target) = self.codes.get(&key) {
            return nest.load(*target, at.to_vec());
        }
        let shape = nest.buf(buffer).example().to_vec();
        let name = format!("{}.{ty}", nest.buf(buffer).name);
        let axes = nest.axes(&shape);
        let points = axes.iter().map(|axis| Scalar::axis(axis.id)).collect();
        let value = code(nest.load(buffer, points));
        let target = self.store(nest, &name, stage, &axes, &value);
        if self.definitions.contains_key(&buffer) || (self.constant)(buffer).is_some() {
            self.codes.insert(key, target);
        }
        nest.load(target, at.to_vec())
    }
}

/// The `u8` or `i8` that `x` is a conversion of.
fn number_of_8_bits(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(number) if matches!(number.ty(), U8 | I8) => Some(number),
        _ => None,
    }
}

/// What the elements of a constant lie between, if they are all integers of a few hundred.
fn integers(bytes: &[u8], ty: ElementType) -> Option<Interval> {
    let mut range = Interval { low: 0, high: -1 };
    for element in bytes.chunks_exact(4) {
        let bits = u32::from_le_bytes(element.try_into().ok()?);
        let value = match ty {
            I32 => i64::from(bits as i32),
            F32 => {
                let value = f32::from_bits(bits);
                (value.fract() == 0.0).then_some(value as i64)?
            }
            _ => return None,
        };
        if value.abs() > 512 {
            return None;
        }
        range = range.union(Interval::exactly(value));
    }
    (range.low <= range.high).then_some(range)
}

/// Whether sums of `count` products are exact in `f32`, in any order.
fn is_exact(left: Interval, right: Interval, count: i64) -> bool {
    let product = size(left).saturating_mul(size(right));
    product.saturating_mul(count) <= LARGEST_EXACT
}

/// No value is larger.
fn size(range: Interval) -> i64 {
    range.low.saturating_abs().max(range.high.saturating_abs())
}
