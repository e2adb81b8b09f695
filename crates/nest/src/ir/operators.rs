//! The functions that scalars are made of.

use vinelift_tensor::ElementType;

/// Functions of one scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`; integers wrap.
    Neg,
    /// `|x|`; the smallest integer stays itself.
    Abs,
    /// All bits flipped; of a boolean, its negation.
    Not,
    /// The operand, a boolean that is rarely true: where no lane of a select needs the value for true, code branches around it.
    Rarely,
    /// Square root of a float.
    Sqrt,
    /// Largest integer ≤ a float.
    Floor,
    /// Smallest integer ≥ a float.
    Ceil,
    /// A float without its fraction.
    Trunc,
    /// The nearest integer to a float, ties to even.
    Round,
    /// `e^x`
    Exp,
    /// `e^x - 1`
    Expm1,
    /// Natural logarithm.
    Log,
    /// `ln(1 + x)`
    Log1p,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Inverse sine.
    Asin,
    /// Inverse cosine.
    Acos,
    /// Inverse tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// Error function.
    Erf,
}

/// Functions of two scalars of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Sum; integers wrap.
    Add,
    /// Difference; integers wrap.
    Sub,
    /// Product; integers wrap.
    Mul,
    /// Quotient; of integers truncated toward zero, 0 for a zero divisor, wrapping for `MIN / -1`.
    Div,
    /// Remainder with the sign of the dividend (`fmod` for floats); of integers 0 for a zero divisor.
    Rem,
    /// `x < y ? x : y`: the second operand if either is NaN.
    Min,
    /// `x > y ? x : y`: the second operand if either is NaN.
    Max,
    /// `x` to the power `y`. Integers wrap; a negative exponent gives the truncated quotient.
    Pow,
    /// Bitwise and; of booleans, logical and.
    And,
    /// Bitwise or; of booleans, logical or.
    Or,
    /// Bitwise exclusive or; of booleans, whether they differ.
    Xor,
    /// Shift left; 0 for an amount outside `0..bits`.
    Shl,
    /// Shift right, arithmetic if signed; all sign bits for an amount outside `0..bits`.
    Shr,
    /// The high 64 bits of a product of two `u64`.
    MulHigh,
    /// A product that is a term of a sum: the body of a fold by [`Binary::Add`] or the second operand of
    /// an [`Binary::Add`] and nothing else, which adds it in one rounding, `acc = fma(x, y, acc)`. Of
    /// integers, as [`Binary::Mul`].
    Term,
    /// `x == y`
    Eq,
    /// `x != y`
    Ne,
    /// `x < y`
    Lt,
    /// `x <= y`
    Le,
    /// `x > y`
    Gt,
    /// `x >= y`
    Ge,
}

impl Unary {
    /// Whether code generators and the interpreter know the function itself. The others are
    /// defined in terms of these (`legalize`).
    pub const fn is_primitive(self) -> bool {
        use Unary::*;
        matches!(
            self,
            Neg | Abs | Not | Rarely | Sqrt | Floor | Ceil | Trunc | Round
        )
    }
}

impl Binary {
    /// Whether the result is a boolean whatever the operands are.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge
        )
    }

    /// The operands by which a fold takes in its next value. The accumulator of a `Min` or `Max` of floats comes second, so
    /// that values which are NaN are skipped.
    pub fn fold_operands<T>(self, ty: ElementType, accumulator: T, next: T) -> [T; 2] {
        match self {
            Binary::Min | Binary::Max if ty.is_float() => [next, accumulator],
            _ => [accumulator, next],
        }
    }
}
