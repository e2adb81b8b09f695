//! Values on a grid of at most 256 points, as `FakeQuantize` makes them.

use super::largest::Window;
use crate::build::{fma, integer, number, select};
use crate::ir::{Binary, Kind, Scalar, Stage, Unary, as_binary, as_select, float, part_of};
use vinelift_tensor::ElementType;

/// A grid: the values `(code - zero) · scale` for a `code` in `0..=steps`, up to the rounding of an `f32`.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) zero: i64,
    pub(super) scale: f64,
    steps: i64,
}

/// Values that are all on a grid, or NaN.
#[derive(Clone)]
pub(super) enum OnGrid {
    /// They were rounded to it.
    Rounded(Rounded),
    /// The largest in a window of such.
    Largest(Grid, Window),
}

/// The values of a stage that are rounded to a grid, or NaN where `x` is.
#[derive(Clone)]
pub(super) struct Rounded {
    pub(super) grid: Grid,
    /// The value that was rounded to the grid.
    pub(super) x: Scalar,
    /// `round(..)` of what lies between the ends.
    inner: Scalar,
    low: f64,
    high: f64,
}

/// How far from an integer a zero point may be, as a part of the largest value: less than values are rounded.
const ROUNDING: f64 = 1.0 / (1 << 22) as f64;

impl OnGrid {
    pub(super) fn grid(&self) -> &Grid {
        match self {
            OnGrid::Rounded(rounded) => &rounded.grid,
            OnGrid::Largest(grid, _) => grid,
        }
    }
}

impl Rounded {
    /// The values of a stage, if they are rounded to a grid by [`Formula`] with constants.
    pub(super) fn of(stage: &Stage) -> Option<Rounded> {
        let formula = Formula::of(&stage.value)?;
        let ends = [formula.low, formula.high, formula.bottom, formula.top];
        let [low, high, bottom, top] = ends.map(float);
        let (low, high, bottom, top) = (low?, high?, bottom?, top?);
        let is_difference =
            |x: &Scalar, a: f64, b: f64| float(x) == Some(f64::from(a as f32 - b as f32));
        let fits = low < high
            && top != bottom
            && is_difference(formula.width, high, low)
            && is_difference(formula.range, top, bottom);
        let (zero, scale) = points(bottom, top, formula.steps).filter(|_| fits)?;
        let steps = formula.steps as i64;
        Some(Rounded {
            grid: Grid { zero, scale, steps },
            x: formula.x.clone(),
            inner: formula.inner.clone(),
            low,
            high,
        })
    }

    /// The value, `(code - zero) · scale`.
    pub(super) fn value(&self) -> Scalar {
        let float = |x: f64| number(x, ElementType::F32);
        let code = self.by_range(
            float(0.0),
            self.inner.clone(),
            float(self.grid.steps as f64),
        );
        self.grid.value(code, None)
    }

    /// The code as a `u8`, or [`less`](Self::less) that as an `i8`. Anything where `x` is NaN.
    pub(super) fn code(&self, ty: ElementType) -> Scalar {
        let less = Grid::less(ty);
        let inner = self.inner.clone();
        let between = match less {
            0 => inner,
            _ => inner - number(less as f64, ElementType::F32),
        };
        self.by_range(
            integer(-less, ty),
            between.cast(ElementType::I32).cast(ty),
            integer(self.grid.steps - less, ty),
        )
    }

    /// `x > high ? above : (x <= low ? below : between)`
    fn by_range(&self, below: Scalar, between: Scalar, above: Scalar) -> Scalar {
        let float = |x: f64| number(x, ElementType::F32);
        let rest = select(self.x.le(float(self.low)), below, between);
        select(self.x.gt(float(self.high)), above, rest)
    }
}

impl Grid {
    /// The value that a code stands for, an `f32` from 0 on or what is stored of it, plus what is NaN where the value is, and 0
    /// elsewhere.
    pub(super) fn value(&self, code: Scalar, nan: Option<Scalar>) -> Scalar {
        let zero = self.zero - Grid::less(code.ty());
        let code = code.cast(ElementType::F32);
        let distance = match zero {
            0 => code,
            zero => code - number(zero as f64, ElementType::F32),
        };
        let scale = number(self.scale, ElementType::F32);
        match nan {
            Some(nan) => fma(&distance, &scale, &nan),
            None => distance * scale,
        }
    }

    /// How much less codes of a type are than those from 0 on.
    pub(super) fn less(ty: ElementType) -> i64 {
        if ty == ElementType::I8 { 128 } else { 0 }
    }

    /// No value is larger.
    pub(super) fn largest(&self) -> f64 {
        let steps = self.steps as f64;
        let ends = [0.0, steps].map(|code| ((code - self.zero as f64) * self.scale).abs());
        ends[0].max(ends[1])
    }

    /// Whether codes of both stand for the same values.
    pub(super) fn is_same(&self, other: &Grid) -> bool {
        (self.zero, self.scale.to_bits()) == (other.zero, other.scale.to_bits())
    }
}

/// The parts of `FakeQuantize`, with `n` steps from 1 to 255:
///
/// > `x > high ? top : (x <= low ? bottom : round((x - low) / width · n) / n · range + bottom)`
pub(super) struct Formula<'s> {
    pub(super) x: &'s Scalar,
    pub(super) low: &'s Scalar,
    pub(super) high: &'s Scalar,
    pub(super) bottom: &'s Scalar,
    pub(super) top: &'s Scalar,
    pub(super) width: &'s Scalar,
    pub(super) range: &'s Scalar,
    pub(super) steps: f64,
    /// `round(..)`
    inner: &'s Scalar,
}

impl<'s> Formula<'s> {
    /// The parts of `value`, of type `f32`, if it is this.
    pub(super) fn of(value: &'s Scalar) -> Option<Formula<'s>> {
        if value.ty() != ElementType::F32 || !matches!(value.kind(), Kind::Select(..)) {
            return None;
        }
        let (above, top, below) = as_select(value)?;
        let (at_most, bottom, between) = as_select(below)?;
        let (x, high) = as_binary(Binary::Gt, above)?;
        let (same, low) = as_binary(Binary::Le, at_most)?;
        let (scaled, offset) = as_binary(Binary::Add, between)?;
        let (part, range) = as_binary(Binary::Mul, scaled)?;
        let inner = rounded_in(part)?;
        let Kind::Unary(Unary::Round, rounded) = inner.kind() else {
            return None;
        };
        let (relative, steps) = as_binary(Binary::Mul, rounded)?;
        let (moved, width) = as_binary(Binary::Div, relative)?;
        let (again, start) = as_binary(Binary::Sub, moved)?;
        let steps = float(steps)?;
        let is_end =
            |x: &Scalar, end: &Scalar| x == end || (float(x).is_some() && float(x) == float(end));
        let fits = same == x
            && again == x
            && is_end(offset, bottom)
            && is_end(start, low)
            && (1.0..=255.0).contains(&steps)
            && steps.fract() == 0.0
            && *part == part_of(inner, steps as u32);
        fits.then_some(Formula {
            x,
            low,
            high,
            bottom,
            top,
            width,
            range,
            steps,
            inner,
        })
    }
}

/// The zero point and the scale of `steps + 1` values from `bottom` to `top`, if the zero point is an integer.
pub(super) fn points(bottom: f64, top: f64, steps: f64) -> Option<(i64, f64)> {
    let scale = (top - bottom) / steps;
    let zero = -bottom / scale;
    let is_integer =
        (zero - zero.round()).abs() * scale.abs() <= ROUNDING * top.abs().max(bottom.abs());
    (is_integer && zero.abs() <= 512.0).then_some((zero.round() as i64, scale))
}

/// The first value that `x` rounds to an integer.
fn rounded_in(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Unary(Unary::Round, _) => Some(x),
        Kind::Binary(_, a, b) => rounded_in(a).or_else(|| rounded_in(b)),
        _ => None,
    }
}
