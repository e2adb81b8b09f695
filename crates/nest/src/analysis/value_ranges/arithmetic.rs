//! Operations on ranges: the range of what they give.

use super::{ValueRange, formulas, ratios};
use crate::analysis::Interval;
use crate::ir::{Binary, Unary};
use vinelift_tensor::ElementType;

pub(super) fn unary(op: Unary, x: ValueRange) -> ValueRange {
    match (op, x) {
        (Unary::Neg, ValueRange::Formula(_)) => binary(Binary::Sub, ValueRange::exactly(0), x),
        (Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round, ValueRange::Ratio(_, b, _))
            if b.as_number() == Some(1) =>
        {
            x
        }
        (Unary::Floor | Unary::Ceil | Unary::Trunc, ValueRange::Ratio(a, b, ty)) => {
            let whole = ratios::whole_part([a, b], ty, op == Unary::Ceil);
            whole.unwrap_or(ValueRange::Computed(a, b))
        }
        (_, ValueRange::Ratio(a, b, _) | ValueRange::Computed(a, b)) => ValueRange::Computed(a, b),
        (_, ValueRange::Formula(_)) => unary(op, x.pinned()),
        (Unary::Neg, ValueRange::Integer(_)) => binary(Binary::Sub, ValueRange::exactly(0), x),
        (Unary::Not, ValueRange::Integer(i)) if i.low >= 0 && i.high <= 1 => {
            ValueRange::Integer(Interval {
                low: 1 - i.high,
                high: 1 - i.low,
            })
        }
        (Unary::Abs, ValueRange::Integer(i)) if i.low >= 0 => x,
        (Unary::Neg, ValueRange::Float(a, b)) => ValueRange::Float(-b, -a),
        (Unary::Floor, ValueRange::Float(a, b)) => ValueRange::Float(a.floor(), b.floor()),
        (Unary::Ceil, ValueRange::Float(a, b)) => ValueRange::Float(a.ceil(), b.ceil()),
        (Unary::Trunc, ValueRange::Float(a, b)) => ValueRange::Float(a.trunc(), b.trunc()),
        (Unary::Round, ValueRange::Float(a, b)) => {
            ValueRange::Float(a.round_ties_even(), b.round_ties_even())
        }
        (Unary::Sqrt, ValueRange::Float(a, b)) if a >= 0.0 => ValueRange::Float(a.sqrt(), b.sqrt()),
        (Unary::Abs, ValueRange::Float(a, _)) if a >= 0.0 => x,
        _ => ValueRange::Unknown,
    }
}

pub(super) fn binary(op: Binary, a: ValueRange, b: ValueRange) -> ValueRange {
    if (a.has_formulas() || b.has_formulas()) && !may_be_exact(op, a, b) {
        return ValueRange::Unknown;
    }
    let is_integer = |x| matches!(x, ValueRange::Formula(_));
    if is_integer(a) || is_integer(b) {
        return formulas::binary(op, a, b).unwrap_or_else(|| binary(op, a.pinned(), b.pinned()));
    }
    if a.has_formulas() || b.has_formulas() {
        return ratios::binary(op, a, b).unwrap_or_else(|| binary(op, a.pinned(), b.pinned()));
    }
    match (a, b) {
        (ValueRange::Integer(a), ValueRange::Integer(b)) => integers(op, a, b),
        (ValueRange::Float(a, b), ValueRange::Float(c, d)) => floats(op, (a, b), (c, d)),
        _ => ValueRange::Unknown,
    }
}

/// Whether `a op b` may be known exactly once all symbols are pinned. Where it cannot, none has to be.
fn may_be_exact(op: Binary, a: ValueRange, b: ValueRange) -> bool {
    let is_unknown = |x| x == ValueRange::Unknown;
    let is_inexact = |x| matches!(x, ValueRange::Integer(i) if i.low < i.high);
    let moves = matches!(op, Binary::Add | Binary::Sub);
    !(is_unknown(a) || is_unknown(b) || moves && (is_inexact(a) || is_inexact(b)))
}

pub(super) fn integers(op: Binary, a: Interval, b: Interval) -> ValueRange {
    let corners = |f| corners(a, b, f);
    match op {
        Binary::Add => corners(|x, y| x + y),
        Binary::Sub => corners(|x, y| x - y),
        Binary::Mul | Binary::Term => corners(|x, y| x.saturating_mul(y)),
        Binary::Div if b.low > 0 => corners(|x, y| x / y),
        Binary::Min => ValueRange::Integer(Interval {
            low: a.low.min(b.low),
            high: a.high.min(b.high),
        }),
        Binary::Max => ValueRange::Integer(Interval {
            low: a.low.max(b.low),
            high: a.high.max(b.high),
        }),
        Binary::Rem if a.low >= 0 && b.low > 0 => {
            let exact = a.low == a.high && b.low == b.high;
            ValueRange::Integer(match exact {
                true => Interval {
                    low: a.low % b.low,
                    high: a.low % b.low,
                },
                false => Interval {
                    low: 0,
                    high: a.high.min(b.high.saturating_sub(1)),
                },
            })
        }
        Binary::Lt => truth(a.high < b.low, a.low >= b.high),
        Binary::Le => truth(a.high <= b.low, a.low > b.high),
        Binary::Gt => truth(a.low > b.high, a.high <= b.low),
        Binary::Ge => truth(a.low >= b.high, a.high < b.low),
        Binary::Eq | Binary::Ne => {
            let apart = a.high < b.low || b.high < a.low;
            let same = a.low == a.high && a == b && a.low != i64::MAX;
            match op {
                Binary::Eq => truth(same, apart),
                _ => truth(apart, same),
            }
        }
        Binary::And if is_truth(a) && is_truth(b) => integers(Binary::Min, a, b),
        Binary::Or if is_truth(a) && is_truth(b) => integers(Binary::Max, a, b),
        _ => ValueRange::Unknown,
    }
}

/// The values of `f`, which is monotonic in each operand, over both intervals.
fn corners(a: Interval, b: Interval, f: fn(i128, i128) -> i128) -> ValueRange {
    // Far beyond all numbers, and yet such that sums and products fit.
    let wide = |x: i64| match x {
        i64::MAX => 1i128 << 62 << 30,
        i64::MIN => -(1i128 << 62 << 30),
        _ => i128::from(x),
    };
    let [p, q, r, s] = [
        f(wide(a.low), wide(b.low)),
        f(wide(a.low), wide(b.high)),
        f(wide(a.high), wide(b.low)),
        f(wide(a.high), wide(b.high)),
    ];
    let (low, high) = (p.min(q).min(r).min(s), p.max(q).max(r).max(s));
    let is_finite = |x: i64| x != i64::MAX && x != i64::MIN;
    let finite = [a.low, a.high, b.low, b.high].into_iter().all(is_finite);
    let narrow = |x: i128| i64::try_from(x).ok();
    match (narrow(low), narrow(high)) {
        (Some(low), Some(high)) => ValueRange::Integer(Interval { low, high }),
        _ if finite => ValueRange::Unknown,
        (low, high) => ValueRange::Integer(Interval {
            low: low.unwrap_or(i64::MIN),
            high: high.unwrap_or(i64::MAX),
        }),
    }
}

/// The range of a comparison that holds `always`, `never`, or for some operands.
fn truth(always: bool, never: bool) -> ValueRange {
    ValueRange::Integer(Interval {
        low: always.into(),
        high: (!never).into(),
    })
}

fn is_truth(x: Interval) -> bool {
    x.low >= 0 && x.high <= 1
}

fn floats(op: Binary, (a, b): (f64, f64), (c, d): (f64, f64)) -> ValueRange {
    let all = |f: fn(f64, f64) -> f64| {
        let corners = [f(a, c), f(a, d), f(b, c), f(b, d)];
        if corners.iter().any(|x| x.is_nan()) {
            return ValueRange::Unknown;
        }
        let low = corners.into_iter().fold(f64::INFINITY, f64::min);
        let high = corners.into_iter().fold(f64::NEG_INFINITY, f64::max);
        ValueRange::Float(low, high)
    };
    match op {
        Binary::Add => all(|x, y| x + y),
        Binary::Sub => all(|x, y| x - y),
        Binary::Mul | Binary::Term => all(|x, y| x * y),
        Binary::Div if c > 0.0 || d < 0.0 => all(|x, y| x / y),
        Binary::Min => all(f64::min),
        Binary::Max => all(f64::max),
        _ => ValueRange::Unknown,
    }
}

pub(super) fn cast(x: ValueRange, ty: ElementType) -> ValueRange {
    let is_float = matches!(ty, ElementType::F32 | ElementType::F64);
    let to_float = |i: i64| match i {
        i64::MAX => f64::INFINITY,
        i64::MIN => f64::NEG_INFINITY,
        _ => i as f64,
    };
    let to_integer = |x: f64| match x.trunc() {
        x if x >= i64::MAX as f64 => i64::MAX,
        x if x <= i64::MIN as f64 => i64::MIN,
        x => x as i64,
    };
    match x {
        ValueRange::Formula(_) if ty.is_integer() => x.of_type(ty),
        ValueRange::Formula(formula) => {
            ratios::of(&formula, ty).unwrap_or_else(|| cast(x.pinned(), ty))
        }
        ValueRange::Ratio(a, b, _) if b.as_number() == Some(1) => cast(ValueRange::Formula(a), ty),
        ValueRange::Ratio(a, b, of) if ty.is_integer() => {
            let whole = ratios::whole_part([a, b], of, false);
            whole.map_or(ValueRange::Computed(a, b), |whole| cast(whole, ty))
        }
        ValueRange::Ratio(a, b, _) | ValueRange::Computed(a, b) => ValueRange::Computed(a, b),
        ValueRange::Integer(i) if is_float => {
            ValueRange::Float(to_float(i.low), to_float(i.high)).of_type(ty)
        }
        ValueRange::Integer(i) if ty == ElementType::Boolean => {
            binary(Binary::Ne, ValueRange::Integer(i), ValueRange::exactly(0))
        }
        ValueRange::Integer(_) if ty.is_integer() => x.of_type(ty),
        ValueRange::Float(..) if is_float => x.of_type(ty),
        ValueRange::Float(a, b) if ty.is_integer() => ValueRange::Integer(Interval {
            low: to_integer(a),
            high: to_integer(b),
        })
        .of_type(ty),
        _ => ValueRange::Unknown,
    }
}
