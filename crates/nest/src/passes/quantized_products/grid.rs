//! Values on a grid of at most 256 points, as `FakeQuantize` makes them.

use crate::build::{integer, number, select};
use crate::ir::{Binary, Kind, Scalar, Stage, Unary, as_binary, as_select, float, part_of};
use vinelift_tensor::ElementType;

/// The values of a stage, all of which are `(code - zero) · scale` for a `code` in `0..=steps`, up to the
/// rounding of an `f32`, or NaN where `x` is.
#[derive(Clone)]
pub(super) struct Grid {
    /// The value that was rounded to the grid.
    pub(super) x: Scalar,
    /// Which code that has.
    code: Code,
    pub(super) zero: i64,
    pub(super) scale: f64,
}

#[derive(Clone)]
struct Code {
    /// `round(..)` of what lies between the ends.
    inner: Scalar,
    low: f64,
    high: f64,
    steps: i64,
}

/// How far from an integer a zero point may be, as a part of the largest value: less than values are rounded.
const ROUNDING: f64 = 1.0 / (1 << 22) as f64;

impl Grid {
    /// The grid that a stage's value is on, if it is: with constants `low < high` and `n`
    ///
    /// > `x > high ? top : (x <= low ? bottom : round((x - low) / (high - low) · n) / n · (top - bottom) + bottom)`
    pub(super) fn of(stage: &Stage) -> Option<Grid> {
        if stage.value.ty() != ElementType::F32 || !matches!(stage.value.kind(), Kind::Select(..)) {
            return None;
        }
        let (above, top, below) = as_select(&stage.value)?;
        let (at_most, bottom, between) = as_select(below)?;
        let (x, high) = as_binary(Binary::Gt, above)?;
        let (same, low) = as_binary(Binary::Le, at_most)?;
        let (top, bottom, high, low) = (float(top)?, float(bottom)?, float(high)?, float(low)?);
        let (scaled, offset) = as_binary(Binary::Add, between)?;
        let (part, range) = as_binary(Binary::Mul, scaled)?;
        let inner = rounded_in(part)?;
        let Kind::Unary(Unary::Round, rounded) = inner.kind() else {
            return None;
        };
        let (relative, steps) = as_binary(Binary::Mul, rounded)?;
        let (moved, width) = as_binary(Binary::Div, relative)?;
        let (again, start) = as_binary(Binary::Sub, moved)?;
        let (range, steps) = (float(range)?, float(steps)?);
        let is_grid = same == x
            && again == x
            && float(offset)? == bottom
            && float(start)? == low
            && (1.0..=255.0).contains(&steps)
            && steps.fract() == 0.0
            && *part == part_of(inner, steps as u32)
            && float(width)? == f64::from(high as f32 - low as f32);
        let fits = is_grid
            && low < high
            && range == f64::from(top as f32 - bottom as f32)
            && top != bottom;
        if !fits {
            return None;
        }
        let scale = (top - bottom) / steps;
        let zero = -bottom / scale;
        let is_integer =
            (zero - zero.round()).abs() * scale.abs() <= ROUNDING * top.abs().max(bottom.abs());
        (is_integer && zero.abs() <= 512.0).then(|| Grid {
            x: x.clone(),
            code: Code {
                inner: inner.clone(),
                low,
                high,
                steps: steps as i64,
            },
            zero: zero.round() as i64,
            scale,
        })
    }

    /// How much less codes of a type are than those from 0 on.
    pub(super) fn less(ty: ElementType) -> i64 {
        if ty == ElementType::I8 { 128 } else { 0 }
    }

    /// No value is larger.
    pub(super) fn largest(&self) -> f64 {
        let steps = self.code.steps as f64;
        let ends = [0.0, steps].map(|code| ((code - self.zero as f64) * self.scale).abs());
        ends[0].max(ends[1])
    }

    /// Whether codes of both stand for the same values.
    pub(super) fn is_same(&self, other: &Grid) -> bool {
        (self.zero, self.scale.to_bits()) == (other.zero, other.scale.to_bits())
    }

    /// The value, `(code - zero) · scale`.
    pub(super) fn value(&self) -> Scalar {
        let Code {
            inner,
            low,
            high,
            steps,
        } = &self.code;
        let float = |x: f64| number(x, ElementType::F32);
        let above = select(self.x.le(float(*low)), float(0.0), inner.clone());
        let code = select(self.x.gt(float(*high)), float(*steps as f64), above);
        let distance = match self.zero {
            0 => code,
            zero => code - float(zero as f64),
        };
        distance * float(self.scale)
    }

    /// The code as a `u8`, or [`less`](Self::less) that as an `i8`. Anything where `x` is NaN.
    pub(super) fn code(&self, ty: ElementType) -> Scalar {
        let less = Grid::less(ty);
        let Code {
            inner,
            low,
            high,
            steps,
        } = &self.code;
        let float = |x: f64| number(x, ElementType::F32);
        let between = match less {
            0 => inner.clone(),
            _ => inner.clone() - float(less as f64),
        };
        let above = select(
            self.x.le(float(*low)),
            integer(-less, ty),
            between.cast(ElementType::I32).cast(ty),
        );
        select(self.x.gt(float(*high)), integer(steps - less, ty), above)
    }
}

/// The first value that `x` rounds to an integer.
fn rounded_in(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Unary(Unary::Round, _) => Some(x),
        Kind::Binary(_, a, b) => rounded_in(a).or_else(|| rounded_in(b)),
        _ => None,
    }
}
