//! Words for writing scalars: constants, operators, comparisons.
//!
//! ```
//! use vinelift_nest::{build::*, Nest, Role};
//! use vinelift_tensor::ElementType::F32;
//!
//! let mut nest = Nest::new();
//! let x = nest.buffer("x", F32, &[4], Role::Input);
//! let y = nest.buffer("y", F32, &[4], Role::Output);
//! nest.define(vec![], y, |nest, at| {
//!     let x = nest.load(x, at.to_vec());
//!     &x * clamp(&x + 3.0, 0.0, 6.0) / 6.0
//! });
//! ```

use crate::ir::{Binary, Scalar, Unary};
use std::ops;
use vinelift_tensor::ElementType::{self, *};

/// An `i64` constant: an index.
pub fn index(i: i64) -> Scalar {
    Scalar::constant(i as u64, I64)
}

/// A boolean constant.
pub fn boolean(b: bool) -> Scalar {
    Scalar::constant(b.into(), Boolean)
}

/// The number `x` as a constant of an arithmetic type: rounded if a float, truncated and wrapped if
/// an integer, `x != 0` if boolean.
pub fn number(x: f64, ty: ElementType) -> Scalar {
    let bits = match ty {
        F64 => x.to_bits(),
        F32 => u64::from((x as f32).to_bits()),
        Boolean => (x != 0.0).into(),
        _ => integer_bits(x as i128, ty),
    };
    Scalar::constant(bits, ty)
}

/// The integer `x`, wrapped to the integer type `ty`, or as a float or boolean.
pub fn integer(x: i64, ty: ElementType) -> Scalar {
    if ty.is_integer() {
        return Scalar::constant(integer_bits(x.into(), ty), ty);
    }
    number(x as f64, ty)
}

/// All bits zero: 0, `false`, the empty string.
pub fn zero(ty: ElementType) -> Scalar {
    Scalar::constant(0, ty)
}

/// The value that `max` starts from: `-inf`, the smallest integer, `false`.
pub fn lowest(ty: ElementType) -> Scalar {
    match ty {
        F32 | F64 => number(f64::NEG_INFINITY, ty),
        _ if ty.is_signed_integer() => Scalar::constant(1 << (ty.bits() - 1), ty),
        _ => zero(ty),
    }
}

/// The value that `min` starts from: `inf`, the largest integer, `true`.
pub fn highest(ty: ElementType) -> Scalar {
    match ty {
        F32 | F64 => number(f64::INFINITY, ty),
        Boolean => boolean(true),
        _ if ty.is_signed_integer() => Scalar::constant(u64::MAX >> (65 - ty.bits()), ty),
        _ => Scalar::constant(u64::MAX >> (64 - ty.bits()), ty),
    }
}

/// `x · y + sum`, rounded once.
pub fn fma(x: &Scalar, y: &Scalar, sum: &Scalar) -> Scalar {
    let term = Scalar::binary(Binary::Term, x.clone(), y.clone());
    Scalar::binary(Binary::Add, sum.clone(), term)
}

/// `if condition { yes } else { no }`, evaluating one side only.
pub fn select(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar {
    Scalar::select(condition, yes, no)
}

/// Marks the condition of a select as rarely true: where no lane needs the value for true, code branches around it.
pub fn rarely(condition: Scalar) -> Scalar {
    Scalar::unary(Unary::Rarely, condition)
}

/// `min(max(x, low), high)`, NaN where `x` is.
pub fn clamp(x: Scalar, low: f64, high: f64) -> Scalar {
    let ty = x.ty();
    number(high, ty).min(number(low, ty).max(x))
}

/// `low <= i < high`
pub fn inside(i: &Scalar, low: i64, high: i64) -> Scalar {
    i.ge(index(low)) & i.lt(index(high))
}

fn integer_bits(x: i128, ty: ElementType) -> u64 {
    x as u64 & (u64::MAX >> (64 - ty.bits()))
}

macro_rules! comparisons {
    ($($name:ident $op:ident $doc:literal),* $(,)?) => { $(
        #[doc = $doc]
        pub fn $name(&self, other: Scalar) -> Scalar {
            Scalar::binary(Binary::$op, self.clone(), other)
        }
    )* };
}

macro_rules! unaries {
    ($($name:ident $op:ident $doc:literal),* $(,)?) => { $(
        #[doc = $doc]
        pub fn $name(&self) -> Scalar {
            Scalar::unary(Unary::$op, self.clone())
        }
    )* };
}

#[allow(
    clippy::should_implement_trait,
    reason = "the results are scalars, which no comparison trait of the standard library returns"
)]
impl Scalar {
    comparisons! {
        eq Eq "`self == other`",
        ne Ne "`self != other`",
        lt Lt "`self < other`",
        le Le "`self <= other`",
        gt Gt "`self > other`",
        ge Ge "`self >= other`",
        min Min "`self < other ? self : other`",
        max Max "`self > other ? self : other`",
        pow Pow "`self` to the power `other`",
        shl Shl "`self << other`",
        shr Shr "`self >> other`",
        rem Rem "the remainder of `self / other`, with the sign of `self`",
    }

    unaries! {
        abs Abs "`|self|`",
        sqrt Sqrt "square root",
        floor Floor "largest integer not above",
        ceil Ceil "smallest integer not below",
        trunc Trunc "without its fraction",
        round Round "nearest integer, ties to even",
        exp Exp "`e^self`",
        log Log "natural logarithm",
        tanh Tanh "hyperbolic tangent",
        erf Erf "error function",
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),* $(,)?) => { $(
        impl ops::$trait<Scalar> for Scalar {
            type Output = Scalar;
            fn $method(self, other: Scalar) -> Scalar {
                Scalar::binary(Binary::$op, self, other)
            }
        }
        impl ops::$trait<&Scalar> for Scalar {
            type Output = Scalar;
            fn $method(self, other: &Scalar) -> Scalar {
                Scalar::binary(Binary::$op, self, other.clone())
            }
        }
        impl ops::$trait<Scalar> for &Scalar {
            type Output = Scalar;
            fn $method(self, other: Scalar) -> Scalar {
                Scalar::binary(Binary::$op, self.clone(), other)
            }
        }
        impl ops::$trait<&Scalar> for &Scalar {
            type Output = Scalar;
            fn $method(self, other: &Scalar) -> Scalar {
                Scalar::binary(Binary::$op, self.clone(), other.clone())
            }
        }
    )* };
}

/// With a number on the right, it takes the scalar's type.
macro_rules! operators_with_numbers {
    ($($trait:ident $method:ident $op:ident),* $(,)?) => { $(
        impl ops::$trait<f64> for Scalar {
            type Output = Scalar;
            fn $method(self, other: f64) -> Scalar {
                let other = number(other, self.ty());
                Scalar::binary(Binary::$op, self, other)
            }
        }
        impl ops::$trait<f64> for &Scalar {
            type Output = Scalar;
            fn $method(self, other: f64) -> Scalar {
                Scalar::binary(Binary::$op, self.clone(), number(other, self.ty()))
            }
        }
        impl ops::$trait<i64> for Scalar {
            type Output = Scalar;
            fn $method(self, other: i64) -> Scalar {
                let other = integer(other, self.ty());
                Scalar::binary(Binary::$op, self, other)
            }
        }
        impl ops::$trait<i64> for &Scalar {
            type Output = Scalar;
            fn $method(self, other: i64) -> Scalar {
                Scalar::binary(Binary::$op, self.clone(), integer(other, self.ty()))
            }
        }
    )* };
}

operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor);
operators_with_numbers!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl ops::Neg for Scalar {
    type Output = Scalar;
    fn neg(self) -> Scalar {
        Scalar::unary(Unary::Neg, self)
    }
}

impl ops::Not for Scalar {
    type Output = Scalar;
    fn not(self) -> Scalar {
        Scalar::unary(Unary::Not, self)
    }
}
