//! The folds: what they start from, what they take in, and what is made of the result.

use crate::Lower;
use vinelift_nest::build::{boolean, highest, integer, lowest, number, zero};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::{ElementType, Extent, element_count, numbers};

/// The fold of a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fold {
    /// `Σ x`
    Sum,
    /// `Σ x / n`
    Mean,
    /// `Π x`
    Prod,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// `Σ |x|`
    L1,
    /// `√(Σ x²)`
    L2,
    /// Whether all are true.
    And,
    /// Whether any is true.
    Or,
}

impl Fold {
    /// The fold of `x` over the points of a box that is not empty.
    pub(super) fn reduce(
        self,
        cx: &mut Lower<'_>,
        extents: &[Extent],
        ty: ElementType,
        x: impl FnOnce(&mut Lower<'_>, &[Scalar]) -> Scalar,
    ) -> Scalar {
        let in_type = self.accumulator(ty);
        let x = |cx: &mut Lower<'_>, point: &[Scalar]| x(cx, point).cast(in_type);
        match self {
            Fold::Sum => cx.reduce(Binary::Add, extents, zero(in_type), x),
            Fold::Mean => {
                let sum = cx.reduce(Binary::Add, extents, zero(in_type), x);
                let count = match numbers(extents).as_deref() {
                    Some(extents) => {
                        let count = element_count(extents).unwrap_or(usize::MAX);
                        integer(count as i64, in_type)
                    }
                    None => {
                        let count = extents.iter().copied().fold(1.into(), Extent::product);
                        Scalar::extent(count).cast(in_type)
                    }
                };
                sum / count
            }
            Fold::Prod => cx.reduce(Binary::Mul, extents, integer(1, in_type), x),
            Fold::Max => cx.reduce(Binary::Max, extents, lowest(in_type), x),
            Fold::Min => cx.reduce(Binary::Min, extents, highest(in_type), x),
            Fold::L1 => cx.reduce(Binary::Add, extents, zero(in_type), |cx, point| {
                x(cx, point).abs()
            }),
            Fold::L2 => {
                let squared = |cx: &mut Lower<'_>, point: &[Scalar]| {
                    let x = x(cx, point);
                    &x * &x
                };
                cx.reduce(Binary::Add, extents, zero(in_type), squared)
                    .sqrt()
            }
            Fold::And => cx.reduce(Binary::And, extents, boolean(true), x),
            Fold::Or => cx.reduce(Binary::Or, extents, boolean(false), x),
        }
    }

    fn accumulator(self, ty: ElementType) -> ElementType {
        match self {
            Fold::Mean if ty == ElementType::U64 => ElementType::U64,
            Fold::Mean if ty.is_integer() => ElementType::I64,
            Fold::L2 if ty.is_integer() => ElementType::F64,
            _ => ty.compute(),
        }
    }

    /// The result where there is nothing to fold.
    pub(super) fn of_nothing(self, ty: ElementType) -> Scalar {
        let compute = ty.compute();
        match self {
            Fold::Sum | Fold::Mean | Fold::L1 | Fold::L2 => zero(compute),
            Fold::Prod => integer(1, compute),
            Fold::Max if ty.is_float() => number(lowest_finite(ty), compute),
            Fold::Min if ty.is_float() => highest(compute),
            Fold::Max => integer(lowest(ty).as_const().unwrap_or(0) as i64, ty.compute()),
            Fold::Min => integer(highest(ty).as_const().unwrap_or(0) as i64, ty.compute()),
            Fold::And => boolean(true),
            Fold::Or => boolean(false),
        }
    }
}

/// The largest of no elements of type `ty`: the lowest number of that type that is not infinite, in the type that elements are
/// computed in.
pub(crate) fn max_of_nothing(ty: ElementType) -> Scalar {
    Fold::Max.of_nothing(ty)
}

/// The lowest number of a float type that is not infinite.
pub(crate) fn lowest_finite(ty: ElementType) -> f64 {
    match ty {
        ElementType::F64 => f64::MIN,
        ElementType::BF16 => f64::from(f32::from_bits(0xff7f_0000)),
        ElementType::F16 => -65504.0,
        ElementType::F8E5M2 => -57344.0,
        ElementType::F8E4M3 => -448.0,
        ElementType::F8E8M0 => f64::powi(2.0, -127),
        ElementType::F4E2M1 => -6.0,
        ElementType::NF4 => -1.0,
        _ => f64::from(f32::MIN),
    }
}
