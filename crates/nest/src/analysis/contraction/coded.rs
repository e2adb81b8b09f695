//! Factors of `f32` whose elements are stored as numbers of fewer bits, with a zero point and a scale.
//!
//! > `(f32(buffer[..]) - zero) · scale`
//!
//! Networks store weights in this form, with a zero point and a scale for each row, or for each group of a row's elements.
//! Where these are constant, a kernel reads the stored numbers.

use super::{Form, Numbered, Strided, factor, strided_load};
use crate::ir::{Axis, AxisId, Binary, Kind, Nest, Scalar, free_axes};
use vinelift_tensor::ElementType;

/// The zero point and the scale of a factor's stored numbers, whose type is the buffer's:
/// `element = (f32(number) - zero) · scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coding {
    /// The zero point.
    pub zero: Option<Points>,
    /// The scale.
    pub scale: Option<Points>,
}

/// A value for every point of a contraction's axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Points {
    /// The same for all: the bits of an `f32`.
    Value(u32),
    /// `f32` of what a tensor holds.
    Tensor {
        /// The tensor.
        from: Strided,
        /// How far it steps with each axis, those of the domain first, in elements.
        steps: Vec<usize>,
    },
}

/// The least number of consecutive points of the axes summed over that share a zero point or scale. With fewer, there are so
/// many zero points and scales that reading them takes as long as short codes save.
pub(super) const LEAST_GROUP: usize = 16;

/// A factor before its axes are in order.
pub(crate) struct CodedLoad<'a> {
    pub(crate) numbers: &'a Scalar,
    pub(crate) zero: Option<&'a Scalar>,
    pub(crate) scale: Option<&'a Scalar>,
}

impl<'a> CodedLoad<'a> {
    /// The parts of `x`, if it is coded.
    pub(crate) fn of(x: &'a Scalar) -> Option<CodedLoad<'a>> {
        if x.ty() != ElementType::F32 {
            return None;
        }
        let (x, scale) = match x.kind() {
            Kind::Binary(Binary::Mul, a, b) if is_points(b) => (a, Some(b)),
            Kind::Binary(Binary::Mul, a, b) if is_points(a) => (b, Some(a)),
            _ => (x, None),
        };
        let (x, zero) = match x.kind() {
            Kind::Binary(Binary::Sub, a, b) if is_points(b) => (a, Some(b)),
            _ => (x, None),
        };
        let numbers = converted(x)?;
        Some(CodedLoad {
            numbers,
            zero,
            scale,
        })
    }

    /// The zero point and the scale.
    pub(crate) fn points(&self) -> impl Iterator<Item = &'a Scalar> {
        self.zero.into_iter().chain(self.scale)
    }

    /// The coding over these axes.
    pub(crate) fn coding(&self, nest: Numbered<'_>, axes: &[AxisId]) -> Option<Coding> {
        let points = |x: Option<&Scalar>| match x {
            Some(x) => points(nest, x, axes).map(Some),
            None => Some(None),
        };
        Some(Coding {
            zero: points(self.zero)?,
            scale: points(self.scale)?,
        })
    }
}

/// How far `x` steps with an axis, in elements, if it is an `f32` that is stored in 16 bits, without zero point or scale, in a
/// tensor whose offset is affine. Kernels widen such elements while they pack columns.
pub(crate) fn narrow_step(nest: &Nest, x: &Scalar, axis: AxisId) -> Option<usize> {
    let coded = CodedLoad::of(x).filter(|coded| coded.points().next().is_none())?;
    let is_half = matches!(coded.numbers.ty(), ElementType::F16 | ElementType::BF16);
    let nest = Numbered::example(nest);
    let (_, form) = strided_load(nest, coded.numbers).filter(|_| is_half)?;
    Some(form.step(axis))
}

/// Whether `x` is coded, with zero points and scales that belong to axes of the domain (`outer`) that `other` does not
/// have, or to axes summed over (`inner`), so that a kernel can take it as it is.
pub(crate) fn is_coded(
    nest: &Nest,
    x: &Scalar,
    other: &Scalar,
    outer: &[Axis],
    inner: &[Axis],
) -> bool {
    let Some(coded) = CodedLoad::of(x) else {
        return false;
    };
    let (own, others) = (free_axes(coded.numbers), free_axes(other));
    let is_one_of = |axes: &[Axis], axis: &AxisId| axes.iter().any(|a| a.id == *axis);
    let belongs = |axis: &AxisId| {
        is_one_of(inner, axis)
            || own.contains(axis) && !others.contains(axis) && is_one_of(outer, axis)
    };
    let points: Vec<AxisId> = coded.points().flat_map(free_axes).collect();
    let apart = inner.iter().rposition(|a| points.contains(&a.id));
    let together = apart.map_or(LEAST_GROUP, |last| {
        inner[last + 1..]
            .iter()
            .map(|a| a.extent.example())
            .product()
    });
    let nest = Numbered::example(nest);
    strided_load(nest, coded.numbers).is_some()
        && together >= LEAST_GROUP
        && coded
            .points()
            .all(|points| free_axes(points).iter().all(belongs))
        && factor(nest, x, &[outer, inner].concat()).is_some()
}

/// Whether `x` may be a zero point or a scale: a value, or a load.
fn is_points(x: &Scalar) -> bool {
    let is_load = |x: &Scalar| matches!(x.kind(), Kind::Load { .. });
    x.as_const().is_some() || is_load(x) || converted(x).is_some()
}

/// The load that `x` converts, of numbers that are exact as `f32`.
fn converted(x: &Scalar) -> Option<&Scalar> {
    use ElementType::{BF16, F4E2M1, F8E4M3, F8E5M2, F16, F32, I4, I8, NF4, U4, U8};
    let is_code = |ty| {
        let bytes = matches!(ty, I8 | U8 | F8E4M3 | F8E5M2);
        bytes || matches!(ty, I4 | U4 | NF4 | F4E2M1 | F16 | BF16)
    };
    match x.kind() {
        Kind::Cast(load) if x.ty() == F32 && is_code(load.ty()) => {
            matches!(load.kind(), Kind::Load { .. }).then_some(load)
        }
        _ => None,
    }
}

/// `x` as a zero point or a scale over these axes: a value, or a load whose offset is affine.
pub(super) fn points(nest: Numbered<'_>, x: &Scalar, axes: &[AxisId]) -> Option<Points> {
    if let Some(bits) = x.as_const() {
        return Some(Points::Value(bits as u32));
    }
    let (from, form): (Strided, Form) = strided_load(nest, converted(x).unwrap_or(x))?;
    let known = |axis: &AxisId| axes.contains(axis);
    let steps = axes.iter().map(|axis| form.step(*axis)).collect();
    form.axes()
        .all(known)
        .then_some(Points::Tensor { from, steps })
}
