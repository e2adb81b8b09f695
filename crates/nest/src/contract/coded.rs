//! Factors of `f32` whose elements are stored as numbers of fewer bits, with a zero point and a scale.
//!
//! > `(f32(buffer[..]) - zero) · scale`
//!
//! So networks store their weights. Where these are constant, a kernel takes them as they are.

use super::{Form, Strided, factor, strided_load, sums};
use crate::nest::{Axis, BufferId, Nest, Stage};
use crate::rewrite::{Definition, free_axes, loaded};
use crate::scalar::{AxisId, Binary, Kind, Scalar};
use crate::simplify::simplify_stage;
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

/// What becomes of the numbers of a factor once they are `f32`. Of what type they are, the buffer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coding {
    /// What is subtracted.
    pub zero: Option<Points>,
    /// What is multiplied with after that.
    pub scale: Option<Points>,
}

/// A value for every point of the domain's axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Points {
    /// The same for all: the bits of an `f32`.
    Value(u32),
    /// `f32` of what a tensor holds.
    Tensor {
        /// The tensor.
        from: Strided,
        /// How far it steps with each axis of the domain, in elements.
        steps: Vec<usize>,
    },
}

/// A factor before its axes are in order.
pub(crate) struct CodedLoad<'a> {
    pub(crate) numbers: &'a Scalar,
    pub(crate) zero: Option<&'a Scalar>,
    pub(crate) scale: Option<&'a Scalar>,
}

impl<'a> CodedLoad<'a> {
    /// What `x` is, if it is coded.
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
    pub(super) fn points(&self) -> impl Iterator<Item = &'a Scalar> {
        self.zero.into_iter().chain(self.scale)
    }

    /// The coding over a domain with these axes.
    pub(super) fn coding(&self, nest: &Nest, outer: &[AxisId]) -> Option<Coding> {
        let points = |x: Option<&Scalar>| match x {
            Some(x) => points(nest, x, outer).map(Some),
            None => Some(None),
        };
        Some(Coding {
            zero: points(self.zero)?,
            scale: points(self.scale)?,
        })
    }
}

/// Puts constants that are coded into the sums of products that take them, in place of their elements, if
/// that is all that the elements are for.
pub(super) fn inline_coded(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    let is_candidate = |stage: &Stage| {
        CodedLoad::of(&stage.value).is_some()
            && stage.is_definition(nest)
            && loaded(stage).into_iter().all(is_constant)
    };
    let stages = nest.stages.iter().enumerate();
    let candidates: Vec<usize> = stages
        .filter(|(_, s)| is_candidate(s))
        .map(|(k, _)| k)
        .collect();
    if candidates.is_empty() {
        return;
    }
    let mut uses: FxHashMap<BufferId, (usize, Vec<usize>)> = FxHashMap::default();
    for (position, stage) in nest.stages.iter().enumerate() {
        uses.entry(stage.target).or_default().0 += 1;
        for buffer in loaded(stage) {
            uses.entry(buffer).or_default().1.push(position);
        }
    }
    let mut gone = Vec::new();
    for position in candidates {
        let definition = nest.stages[position].clone();
        let Some((1, readers)) = uses.get(&definition.target) else {
            continue;
        };
        let inlined = readers.iter().map(|&reader| {
            let mut into = nest.stages[reader].clone();
            Definition::of(&definition).inline_into(nest, &mut into);
            simplify_stage(&mut into);
            has_coded_factor(nest, &into).then_some((reader, into))
        });
        let inlined: Option<Vec<(usize, Stage)>> = inlined.collect();
        for (reader, mut into) in inlined.into_iter().flatten() {
            into.layers.extend(&definition.layers);
            nest.stages[reader] = into;
            gone.push(position);
        }
    }
    let mut position = 0;
    nest.stages.retain(|_| {
        position += 1;
        !gone.contains(&(position - 1))
    });
}

/// Whether a kernel could take coded numbers in each of a stage's sums of products.
fn has_coded_factor(nest: &Nest, stage: &Stage) -> bool {
    let turn = usize::from(stage.group.is_some());
    let outer = stage.domain.get(turn..).unwrap_or(&[]);
    let sums = sums(stage);
    let mut factors = sums.iter().map(|sum| match sum.kind() {
        Kind::Reduce { body, .. } => body.as_term(),
        _ => None,
    });
    !sums.is_empty()
        && factors.all(|factors| {
            factors.is_some_and(|(left, right)| {
                is_coded(nest, left, right, outer) || is_coded(nest, right, left, outer)
            })
        })
}

/// Whether `x` is coded, with zero points and scales that belong to axes of the domain that `other` does not
/// have, so that a kernel can take it as it is.
pub(super) fn is_coded(nest: &Nest, x: &Scalar, other: &Scalar, outer: &[Axis]) -> bool {
    let Some(coded) = CodedLoad::of(x) else {
        return false;
    };
    let (own, others) = (free_axes(coded.numbers), free_axes(other));
    let belongs = |axis: &AxisId| {
        own.contains(axis) && !others.contains(axis) && outer.iter().any(|a| a.id == *axis)
    };
    strided_load(nest, coded.numbers).is_some()
        && coded
            .points()
            .all(|points| free_axes(points).iter().all(belongs))
        && factor(nest, x, outer).is_some()
}

/// Whether `x` may be a zero point or a scale: a value, or a load.
fn is_points(x: &Scalar) -> bool {
    let is_load = |x: &Scalar| matches!(x.kind(), Kind::Load { .. });
    x.as_const().is_some() || is_load(x) || converted(x).is_some()
}

/// The load that `x` converts, of numbers that are exact as `f32`.
fn converted(x: &Scalar) -> Option<&Scalar> {
    use ElementType::{F16, F32, I8, U8};
    match x.kind() {
        Kind::Cast(load) if x.ty() == F32 && matches!(load.ty(), I8 | U8 | F16) => {
            matches!(load.kind(), Kind::Load { .. }).then_some(load)
        }
        _ => None,
    }
}

fn points(nest: &Nest, x: &Scalar, outer: &[AxisId]) -> Option<Points> {
    if let Some(bits) = x.as_const() {
        return Some(Points::Value(bits as u32));
    }
    let (from, form): (Strided, Form) = strided_load(nest, converted(x).unwrap_or(x))?;
    let known = |axis: &AxisId| outer.contains(axis);
    let steps = outer.iter().map(|axis| form.step(*axis)).collect();
    form.axes()
        .all(known)
        .then_some(Points::Tensor { from, steps })
}
