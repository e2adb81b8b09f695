//! Arithmetic on floats that are made of integers which formulas give, as scales are of sizes.

use super::{ValueRange, formulas};
use crate::ir::Binary;
use std::cmp::Ordering;
use vinelift_tensor::{ElementType, Formula, gcd, symbols};

/// The integer that `formula` gives as a float of the type, which the plan relies on from now on to hold it exactly.
pub(super) fn of(formula: &Formula, ty: ElementType) -> Option<ValueRange> {
    let digits = match ty {
        ElementType::F32 => f32::MANTISSA_DIGITS,
        ElementType::F64 => f64::MANTISSA_DIGITS,
        _ => return None,
    };
    let most = Formula::number(1 << digits);
    let is_natural = |gap: Option<Formula>| {
        symbols::compare(&gap?)
            .is_some_and(Ordering::is_ge)
            .then_some(())
    };
    is_natural(most.minus(formula))?;
    is_natural(most.plus(formula))?;
    Some(ValueRange::Ratio(*formula, Formula::number(1), ty))
}

/// Exactly the quotient of `a` and `b`, whose symbols are pinned.
pub(super) fn pinned(a: &Formula, b: &Formula, ty: ElementType) -> ValueRange {
    let (Some(a), Some(b)) = (symbols::pin(a), symbols::pin(b)) else {
        return ValueRange::Unknown;
    };
    // Both are exact, and rounding the quotient once more, to fewer than half of the digits, gives what one rounding does.
    let quotient = a as f64 / b as f64;
    ValueRange::Float(quotient, quotient).of_type(ty)
}

/// `a op b` of floats, of which at least one is made of formulas; `None` if it is made of too many.
pub(super) fn binary(op: Binary, a: ValueRange, b: ValueRange) -> Option<ValueRange> {
    exact(op, a, b).or_else(|| computed(a, b))
}

/// `a op b`, if it is a ratio.
fn exact(op: Binary, a: ValueRange, b: ValueRange) -> Option<ValueRange> {
    let ty = match (a, b) {
        (ValueRange::Ratio(.., ty), _) | (_, ValueRange::Ratio(.., ty)) => ty,
        _ => return None,
    };
    match op {
        Binary::Add => of(&whole(a)?.plus(&whole(b)?)?, ty),
        Binary::Sub => of(&whole(a)?.minus(&whole(b)?)?, ty),
        Binary::Mul => {
            let (a, b) = (fraction(a)?, fraction(b)?);
            ratio([a[0].times(&b[0])?, a[1].times(&b[1])?], ty)
        }
        Binary::Div => {
            let (a, b) = (fraction(a)?, fraction(b)?);
            let is_positive = symbols::compare(&b[0])?.is_gt();
            let ratio = || ratio([a[0].times(&b[1])?, a[1].times(&b[0])?], ty);
            is_positive.then(ratio)?
        }
        _ => None,
    }
}

/// The quotient of two integers, of which the second is positive, rounded to a type that the plan relies on from now on to hold both.
fn ratio([a, b]: [Formula; 2], ty: ElementType) -> Option<ValueRange> {
    if let Some(exact) = a.over(&b) {
        return of(&exact, ty);
    }
    let are_exact = of(&a, ty).is_some() && of(&b, ty).is_some();
    are_exact.then_some(ValueRange::Ratio(a, b, ty))
}

/// `floor(a / b)`, or `ceil(a / b)` if it goes `up`, of what [`ValueRange::Ratio`] has, where `a` is not negative. That the quotient is
/// rounded to the type makes no difference: `a` has at most as many binary digits as the type, `d`, so between the quotient and the next
/// integer `n` is at least `1 / b`, which is more than `n / 2^d`, the most by which it was rounded.
pub(super) fn whole_part([a, b]: [Formula; 2], ty: ElementType, up: bool) -> Option<ValueRange> {
    let more = match up {
        true => b.minus(&Formula::number(1))?,
        false => Formula::number(0),
    };
    of(&formulas::quotient(&a.plus(&more)?, &b)?, ty)
}

/// What is computed from both, as [`ValueRange::Computed`]; `None` if more than two formulas are behind it.
fn computed(a: ValueRange, b: ValueRange) -> Option<ValueRange> {
    let mut all: Vec<Formula> = Vec::new();
    for x in [a, b] {
        let formulas = match x {
            ValueRange::Ratio(a, b, _) | ValueRange::Computed(a, b) => [a, b],
            ValueRange::Float(..) => continue,
            _ => return None,
        };
        for formula in formulas.into_iter().filter(|f| f.as_number().is_none()) {
            if !all.contains(&formula) {
                all.push(formula);
            }
        }
    }
    match all[..] {
        [only] => Some(ValueRange::Computed(only, Formula::number(0))),
        [first, second] => Some(ValueRange::Computed(first, second)),
        _ => None,
    }
}

/// The two integers whose quotient it is exactly; the second is positive.
fn fraction(x: ValueRange) -> Option<[Formula; 2]> {
    if let Some(whole) = whole(x) {
        return Some([whole, Formula::number(1)]);
    }
    // A number with a few binary digits behind the point.
    const MOST_DIGITS: u32 = 12;
    let ValueRange::Float(low, high) = x else {
        return None;
    };
    let scale = 1i64 << MOST_DIGITS;
    let scaled = low * scale as f64;
    let is_exact = low == high && scaled.fract() == 0.0 && scaled.abs() < (scale * scale) as f64;
    let number = scaled as i64;
    let common = gcd(number, scale);
    // Of -0 there is no integer.
    (is_exact && number != 0).then(|| [number / common, scale / common].map(Formula::number))
}

/// The integer that it is.
fn whole(x: ValueRange) -> Option<Formula> {
    match x {
        ValueRange::Ratio(a, b, _) => (b.as_number() == Some(1)).then_some(a),
        ValueRange::Float(low, high) if low == high => {
            let integer = low as i64;
            let is_whole = integer as f64 == low && integer.abs() <= 1 << f32::MANTISSA_DIGITS;
            // Of -0 there is no integer.
            (is_whole && low.is_sign_positive() == (integer >= 0)).then(|| Formula::number(integer))
        }
        _ => None,
    }
}
