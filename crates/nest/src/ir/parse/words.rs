//! Constants, and the names of operators and types.

use super::{Parsed, fail};
use crate::ir::{Binary, Scalar, Unary, binary_name, unary_name};
use vinelift_tensor::ElementType;

/// `word(x)`, if there is such a function.
pub(super) fn unary(at: usize, word: &str, x: &Scalar) -> Parsed<Option<Scalar>> {
    if let Some(op) = UNARIES.into_iter().find(|op| unary_name(*op) == word) {
        return Ok(Some(Scalar::unary(op, x.clone())));
    }
    if let Some(ty) = word.strip_prefix("bits.") {
        let ty = element_type(at, ty)?;
        if ty.bits() != x.ty().bits() {
            return fail(
                at,
                format!("the bits of {} are as many as {ty} has", x.ty()),
            );
        }
        return Ok(Some(x.clone().bitcast(ty)));
    }
    Ok(word.parse().ok().map(|ty| x.clone().cast(ty)))
}

pub(super) fn element_type(at: usize, name: &str) -> Parsed<ElementType> {
    name.parse()
        .or_else(|_| fail(at, format!("no element type `{name}`")))
}

/// `-3i32`, `1.5`, `inf`, `0x3c00_f16`
pub(super) fn constant(at: usize, text: &str) -> Parsed<Scalar> {
    let bad = || (at, format!("no constant `{text}`"));
    if let Some((hex, ty)) = text
        .strip_prefix("0x")
        .and_then(|bits| bits.split_once('_'))
    {
        let ty = element_type(at, ty)?;
        let bits = u64::from_str_radix(hex, 16)
            .ok()
            .filter(|bits| fits(*bits, ty));
        return bits.map(|bits| Scalar::constant(bits, ty)).ok_or_else(bad);
    }
    let (sign, magnitude) = text.split_at(text.len() - text.trim_start_matches('-').len());
    let digits = match magnitude.strip_prefix("inf") {
        Some(suffix) => magnitude.len() - suffix.len(),
        None => magnitude
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(magnitude.len()),
    };
    let (value, suffix) = (&text[..sign.len() + digits], &magnitude[digits..]);
    let is_float = value.ends_with("inf") || value.contains('.');
    let ty = match suffix {
        "" if is_float => ElementType::F32,
        "" => ElementType::I64,
        name => element_type(at, name)?,
    };
    let bits = match ty {
        ElementType::F32 | ElementType::F64 if !is_float => None,
        ElementType::F32 => value.parse().ok().map(|x: f32| x.to_bits().into()),
        ElementType::F64 => value.parse().ok().map(f64::to_bits),
        _ if ty.is_signed_integer() => value.parse().ok().and_then(|x| signed(x, ty)),
        _ if ty.is_unsigned_integer() => value.parse().ok().filter(|bits| fits(*bits, ty)),
        _ => None,
    };
    bits.map(|bits| Scalar::constant(bits, ty)).ok_or_else(bad)
}

fn fits(bits: u64, ty: ElementType) -> bool {
    bits <= u64::MAX >> (64 - ty.bits())
}

/// The bits of `x` as a signed integer type, if it is one of its values.
fn signed(x: i64, ty: ElementType) -> Option<u64> {
    let shift = 64 - ty.bits();
    let bits = x as u64 & (u64::MAX >> shift);
    ((bits << shift) as i64 >> shift == x).then_some(bits)
}

/// The operator that is called `name` where it stands before its operands or a `=`.
pub(super) fn named(name: &str) -> Option<Binary> {
    BINARIES.into_iter().find(|op| binary_name(*op) == name)
}

pub(super) const BINARIES: [Binary; 21] = {
    use Binary::*;
    [
        Add, Sub, Mul, Div, Rem, Min, Max, Pow, And, Or, Xor, Shl, Shr, MulHigh, Term, Eq, Ne, Lt,
        Le, Gt, Ge,
    ]
};

const UNARIES: [Unary; 26] = {
    use Unary::*;
    [
        Neg, Abs, Not, Rarely, Sqrt, Floor, Ceil, Trunc, Round, Exp, Expm1, Log, Log1p, Sin, Cos,
        Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf,
    ]
};
