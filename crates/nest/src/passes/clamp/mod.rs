//! Clamps in place of selects, and products in place of quotients: `FakeQuantize` with constant ranges in fewer operations.
//!
//! > `x > high ? top : (x ≤ low ? bottom : f(round((x - low) / width · n)))`
//!
//! is `f(round((y - low) / width · n))` of `y = min(high, max(low, x))`, if that is `top` where `y` is `high`, and `bottom` where it is
//! `low`: this is evaluated, and the select of an end where it is not so stays. And `(y - low) / width` is then a product and a
//! sum, where that is rounded to the same integers ([`reciprocal`]): it can neither overflow nor, where that would matter, underflow.

mod limits;

use crate::build::{fma, number};
use crate::interpret::value_where;
use crate::ir::{
    Binary, Buffer, Kind, Scalar, Stage, Unary, as_binary, as_select, float, reciprocal,
    rewrite_stage, visit_stage,
};
use limits::{bound, unlimited, without_needless};
use vinelift_tensor::ElementType::F32;

/// Has all such values of a stage take fewer operations.
pub(crate) fn clamp_quantized(buffers: &[Buffer], stage: &mut Stage) {
    let mut rounds = false;
    visit_stage(stage, &mut |x| {
        rounds |= matches!(x.kind(), Kind::Unary(Unary::Round, _));
    });
    if rounds {
        rewrite_stage(stage, &mut |x| {
            let fewer = clamped(&x).or_else(|| without_needless(buffers, &x));
            fewer.unwrap_or(x)
        });
    }
}

/// The same values, by a clamp; `None` if they are of another form.
fn clamped(x: &Scalar) -> Option<Scalar> {
    let (above, top, rest) = as_select(x)?;
    let (at_most, bottom, between) = as_select(rest)?;
    let (unknown, high) = as_binary(Binary::Gt, above)?;
    let (same, low) = as_binary(Binary::Le, at_most)?;
    let (high, low) = (float(high)?, float(low)?);
    if unknown.ty() != F32 || same != unknown || low >= high {
        return None;
    }
    let rebuilt = |clamped: Scalar| {
        let mut rebuild = Rebuild {
            unknown,
            low,
            high,
            clamped,
            rounding: None,
            visits: 0,
        };
        rebuild.of(between)
    };
    // At the ends, a clamp is nothing.
    let unclamped = rebuilt(unknown.clone())?;
    let at = |x: f32| value_where(&unclamped, unknown, x.to_bits().into());
    let gives = |x: f64, end: &Scalar| {
        let x = x as f32;
        // Both zeros are at the end.
        let mut equal = [x, -x].into_iter().filter(|same| *same == x);
        end.as_const().is_some() && equal.all(|x| at(x) == end.as_const())
    };
    let [gives_bottom, gives_top] = [gives(low, bottom), gives(high, top)];
    let mut value = rebuilt(between_ends(unknown, low, high))?;
    if !gives_bottom {
        value = Scalar::select(at_most.clone(), bottom.clone(), value);
    }
    if !gives_top {
        value = Scalar::select(above.clone(), top.clone(), value);
    }
    Some(value)
}

/// `min(high, max(low, x))`, of which `x` may have done a part, in place of wider limits that `x` has.
fn between_ends(x: &Scalar, low: f64, high: f64) -> Scalar {
    let mut limited = x.clone();
    if bound(x, Binary::Max).is_none_or(|least| least < low) {
        limited = number(low, F32).max(unlimited(&limited, Binary::Max).clone());
    }
    if bound(x, Binary::Min).is_none_or(|most| most > high) {
        limited = number(high, F32).min(unlimited(&limited, Binary::Min).clone());
    }
    limited
}

/// Rebuilds the expression for numbers between the ends, of the clamped number in place of the unknown one.
struct Rebuild<'s> {
    unknown: &'s Scalar,
    low: f64,
    high: f64,
    clamped: Scalar,
    /// The rounding to an integer as it was, and as it was rebuilt: the expression may use it more than once.
    rounding: Option<(Scalar, Scalar)>,
    /// How many scalars were rebuilt, those that are used again and again each time.
    visits: usize,
}

/// The most scalars that are rebuilt: `FakeQuantize` has a dozen. Of a scalar that uses another twice, which uses a third twice,
/// and so on, there would be no end.
const MOST_VISITS: usize = 64;

/// The most that a quotient, which is at most 1, is multiplied by. One of less than 2⁻³⁰ is rounded to 0 then, whatever it is.
const MOST_STEPS: f64 = (1 << 20) as f64;

impl Rebuild<'_> {
    /// `x` of the clamped number; `None` if it has anything but operations on the integer that is rounded to.
    fn of(&mut self, x: &Scalar) -> Option<Scalar> {
        self.visits += 1;
        if self.visits > MOST_VISITS {
            return None;
        }
        if let Some((old, new)) = &self.rounding
            && old == x
        {
            return Some(new.clone());
        }
        match x.kind() {
            Kind::Const(_) => Some(x.clone()),
            Kind::Unary(Unary::Round, inner) => {
                let new = Scalar::unary(Unary::Round, self.scaled(inner)?);
                self.rounding = Some((x.clone(), new.clone()));
                Some(new)
            }
            Kind::Binary(op, a, b) => Some(Scalar::binary(*op, self.of(a)?, self.of(b)?)),
            Kind::Cast(a) => Some(self.of(a)?.cast(x.ty())),
            _ => None,
        }
    }

    /// `(x - low) / width · n`
    fn scaled(&self, x: &Scalar) -> Option<Scalar> {
        let (quotient, steps) = as_binary(Binary::Mul, x)?;
        let (moved, width) = as_binary(Binary::Div, quotient)?;
        let (unknown, low) = as_binary(Binary::Sub, moved)?;
        let range = self.high as f32 - self.low as f32;
        let count = float(steps)?;
        let fits = unknown == self.unknown
            && float(low)? == self.low
            && float(width)? == f64::from(range)
            && (1.0..=MOST_STEPS).contains(&count);
        if !fits {
            return None;
        }
        let moved = match low.as_const() {
            // It is multiplied next, so that the bits of a NaN do not matter.
            Some(0) => self.clamped.clone(),
            _ => self.clamped.clone() - low.clone(),
        };
        let quotient = match reciprocal(range, count as f32) {
            Some(factors) => {
                let [high, low] = factors.map(|x| number(f64::from(x), F32));
                fma(&moved, &high, &(&moved * &low))
            }
            None => moved / width.clone(),
        };
        Some(quotient * steps.clone())
    }
}

#[cfg(test)]
mod tests;
