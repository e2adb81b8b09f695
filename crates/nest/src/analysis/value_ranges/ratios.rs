//! Arithmetic on floats that are made of integers which formulas give, as scales are of sizes.

use super::ValueRange;
use crate::ir::Binary;
use std::cmp::Ordering;
use vinelift_tensor::{ElementType, Formula, symbols};

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
    let (a, b) = (whole(a)?, whole(b)?);
    match op {
        Binary::Add => of(&a.plus(&b)?, ty),
        Binary::Sub => of(&a.minus(&b)?, ty),
        Binary::Mul => of(&a.times(&b)?, ty),
        Binary::Div if symbols::compare(&b)?.is_gt() => match a.over(&b) {
            Some(exact) => of(&exact, ty),
            None => Some(ValueRange::Ratio(a, b, ty)),
        },
        _ => None,
    }
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
