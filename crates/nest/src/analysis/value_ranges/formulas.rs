//! Arithmetic on integers that formulas give. What is decided on the way is written down
//! ([`symbols`](vinelift_tensor::symbols)).

use super::ValueRange;
use crate::analysis::Interval;
use crate::ir::Binary;
use std::cmp::Ordering;
use vinelift_tensor::{ElementType, Extent, Formula, symbols};

/// `a op b` of two integers that are known exactly; `None` if there is no formula for it.
pub(super) fn binary(op: Binary, a: ValueRange, b: ValueRange) -> Option<ValueRange> {
    let (a, b) = (a.formula()?, b.formula()?);
    let gap = || a.minus(&b);
    let truth = |holds: fn(Ordering) -> bool| {
        let order = symbols::compare(&gap()?)?;
        Some(ValueRange::exactly(holds(order).into()))
    };
    Some(ValueRange::Formula(match op {
        Binary::Add => a.plus(&b)?,
        Binary::Sub => gap()?,
        Binary::Mul => a.times(&b)?,
        Binary::Div => quotient(&a, &b)?,
        Binary::Rem => a.minus(&quotient(&a, &b)?.times(&b)?)?,
        Binary::Min => match symbols::compare(&gap()?)? {
            Ordering::Greater => b,
            _ => a,
        },
        Binary::Max => match symbols::compare(&gap()?)? {
            Ordering::Less => b,
            _ => a,
        },
        Binary::Lt => return truth(Ordering::is_lt),
        Binary::Le => return truth(Ordering::is_le),
        Binary::Gt => return truth(Ordering::is_gt),
        Binary::Ge => return truth(Ordering::is_ge),
        Binary::Eq => return truth(Ordering::is_eq),
        Binary::Ne => return truth(Ordering::is_ne),
        _ => return None,
    }))
}

/// `a / b` for `a >= 0` and `b > 0`.
pub(super) fn quotient(a: &Formula, b: &Formula) -> Option<Formula> {
    if let Some(exact) = a.over(b) {
        return Some(exact);
    }
    let natural = symbols::compare(a)?.is_ge() && symbols::compare(b)?.is_gt();
    let extent = |formula: &Formula| {
        let value = usize::try_from(symbols::example(formula)?).ok()?;
        Some(Extent::new(*formula, value))
    };
    let (a, b) = extent(a).zip(extent(b)).filter(|_| natural)?;
    Some(*a.quotient(b).formula())
}

/// Whether `formula` is a number of the type, which the plan relies on from now on.
pub(super) fn is_of_type(formula: &Formula, ty: ElementType) -> bool {
    let Interval { low, high } = Interval::of_type(ty);
    let is_natural = |gap: Option<Formula>| {
        gap.and_then(|gap| symbols::compare(&gap))
            .is_some_and(Ordering::is_ge)
    };
    let above = || is_natural(formula.minus(&Formula::number(low)));
    let below = || is_natural(Formula::number(high).minus(formula));
    (ty == ElementType::I64) || (above() && below())
}
