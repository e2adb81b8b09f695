//! The definition of every function that is not primitive, as polynomials over scalars.
//!
//! One definition each, in arithmetic that is exact or rounded once per operation: results agree to the
//! bit on every machine and for every lane width. The functions are evaluated in `f64`, of an `f32`
//! operand too but for those in `single`, in straight lines with few selects. Those of `f32` have
//! shorter definitions where networks call for them, which may fuse products and sums.

#![allow(
    clippy::excessive_precision,
    reason = "coefficients are given as published"
)]

mod convert;
mod erf;
mod exponential;
mod hyperbolic;
mod integer_division;
mod inverse;
mod legalize;
mod power;
mod power_edges;
mod single;
mod single_power;
mod single_remainder;
mod single_trigonometric;
mod trigonometric;
mod words;

pub use integer_division::{Rounding, rounded_down};
pub use legalize::{legalize, legalize_with_halves};

use self::integer_division::Divisions;
use crate::ir::{Binary, BufferId, Kind, Nest, Scalar, Unary};
use vinelift_tensor::ElementType::{self, *};

/// The definitions, and the tables that they have added to a nest.
#[derive(Default)]
pub(crate) struct Math {
    /// Whether casts between `f16` and `f32` are primitive.
    has_halves: bool,
    nf4: Option<BufferId>,
    two_over_pi: Option<BufferId>,
    divisions: Divisions,
}

impl Math {
    /// For a machine that casts between `f16` and `f32`.
    pub(crate) fn with_halves() -> Math {
        Math {
            has_halves: true,
            ..Math::default()
        }
    }

    /// The definition of `op(x)`, if it is not primitive.
    pub(crate) fn unary(&mut self, nest: &mut Nest, op: Unary, x: &Scalar) -> Option<Scalar> {
        match x.ty() {
            _ if op.is_primitive() => None,
            F64 => self.unary_f64(nest, op, x),
            F32 => Some(match op {
                Unary::Exp => single::exp(x),
                Unary::Expm1 => single::expm1(x),
                Unary::Log => single::log(x),
                Unary::Log1p => single::log1p(x),
                Unary::Tanh => single::tanh(x),
                Unary::Erf => single::erf(x),
                Unary::Sin => single_trigonometric::sin(x),
                Unary::Cos => single_trigonometric::cos(x),
                Unary::Tan => single_trigonometric::tan(x),
                _ => self.unary_f64(nest, op, &x.clone().cast(F64))?.cast(F32),
            }),
            _ => None,
        }
    }

    /// A shorter definition of `ln(1 + x)` where `whole`, which that is, says that `x` is from 0 to 1.
    pub(crate) fn log1p_of_part(&self, whole: &Scalar, x: &Scalar) -> Option<Scalar> {
        let argument = |x: &Scalar, of: Unary| match x.kind() {
            Kind::Unary(op, x) if *op == of => Some(x.clone()),
            _ => None,
        };
        let power = argument(whole, Unary::Log1p).filter(|_| x.ty() == F32)?;
        let negative = argument(&power, Unary::Exp)?;
        argument(&argument(&negative, Unary::Neg)?, Unary::Abs)?;
        Some(single::log1p_of_part(x))
    }

    /// The definition of `op(x, y)`, if it is not primitive; `x` and `y` live as long as this.
    pub(crate) fn binary(&mut self, op: Binary, x: &Scalar, y: &Scalar) -> Option<Scalar> {
        match x.ty() {
            F32 if op == Binary::Rem => Some(single_remainder::remainder(x, y)),
            _ if op != Binary::Pow => self.divisions.binary(op, Rounding::TowardZero, x, y),
            _ if x.ty() != y.ty() => None,
            F64 => Some(power::pow_f64(x, y)),
            F32 => Some(single_power::pow(x, y)),
            ty if ty.is_integer() && ty.is_arithmetic() => Some(power::pow_integer(x, y)),
            _ => None,
        }
    }

    /// The definition of `op(x, y)` of integers, rounded down, as a select among primitives that corrects it says; see
    /// [`rounded_down`](integer_division::rounded_down).
    pub(crate) fn rounded_down(&mut self, op: Binary, x: &Scalar, y: &Scalar) -> Option<Scalar> {
        self.divisions.binary(op, Rounding::Down, x, y)
    }

    /// The definition of a cast, if it is not primitive.
    pub(crate) fn cast(&mut self, nest: &mut Nest, x: &Scalar, to: ElementType) -> Option<Scalar> {
        let storage = |ty: ElementType| ty.is_float() && !matches!(ty, F32 | F64);
        if [x.ty(), to].contains(&String) || !(storage(x.ty()) || storage(to)) {
            return None;
        }
        let x = match storage(x.ty()) {
            true => self.decode(nest, x),
            false => x.clone(),
        };
        Some(if to == F16 {
            let near = convert::narrow_to_half(x);
            match self.has_halves {
                true => near.cast(F16),
                false => convert::encode(near, to),
            }
        } else if storage(to) {
            convert::encode(convert::narrow_to_f32(x), to)
        } else {
            x.cast(to)
        })
    }

    fn unary_f64(&mut self, nest: &mut Nest, op: Unary, x: &Scalar) -> Option<Scalar> {
        use Unary::*;
        Some(match op {
            Exp => exponential::exp(x),
            Expm1 => exponential::expm1(x),
            Log => exponential::log(x),
            Log1p => exponential::log1p(x),
            Sin => trigonometric::sin(x, self.two_over_pi(nest)),
            Cos => trigonometric::cos(x, self.two_over_pi(nest)),
            Tan => trigonometric::tan(x, self.two_over_pi(nest)),
            Asin => inverse::asin(x),
            Acos => inverse::acos(x),
            Atan => inverse::atan(x),
            Sinh => hyperbolic::sinh(x),
            Cosh => hyperbolic::cosh(x),
            Tanh => hyperbolic::tanh(x),
            Asinh => hyperbolic::asinh(x),
            Acosh => hyperbolic::acosh(x),
            Atanh => hyperbolic::atanh(x),
            Erf => erf::erf(x),
            Neg | Abs | Not | Rarely | Sqrt | Floor | Ceil | Trunc | Round => return None,
        })
    }

    fn decode(&mut self, nest: &mut Nest, x: &Scalar) -> Scalar {
        if self.has_halves && x.ty() == F16 {
            return x.clone().cast(F32);
        }
        if x.ty() != NF4 {
            return convert::decode(x);
        }
        let values = convert::NF4_VALUES.map(f32::to_le_bytes);
        let table = *self
            .nf4
            .get_or_insert_with(|| table(nest, "nf4", F32, &values));
        nest.load(table, vec![x.clone().bitcast(U4).cast(I64)])
    }

    fn two_over_pi(&mut self, nest: &mut Nest) -> BufferId {
        let words = trigonometric::TWO_OVER_PI.map(u64::to_le_bytes);
        *self
            .two_over_pi
            .get_or_insert_with(|| table(nest, "two_over_pi", U64, &words))
    }
}

fn table<const N: usize>(
    nest: &mut Nest,
    name: &str,
    ty: ElementType,
    values: &[[u8; N]],
) -> BufferId {
    nest.table(name, ty, values.len(), values.as_flattened())
}

#[cfg(test)]
mod tests;
