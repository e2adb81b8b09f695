//! `GridSample`: `out[n, c, i, j]` is `data[n, c]` sampled at row `y` and column `x`, which are
//! `grid[n, i, j, 1]` and `grid[n, i, j, 0]` brought from `-1..1` to `0..extent - 1` (`align_corners`) or to
//! `-0.5..extent - 0.5`: the nearest element, or the sum of 2 · 2 or 4 · 4 neighbours by linear or cubic
//! weights.
//!
//! Specification: GridSample-9. Chosen where it is silent, as OpenVINO does: half way the nearest element
//! is the even one; the cubic parameter is -0.75; padding holds for each neighbour on its own; reflection
//! is about the centres of the elements at the edge with `align_corners`, otherwise about the edge;
//! integers are truncated, here within their type. A coordinate that is NaN samples NaN, or with `nearest`
//! any element or the padding.

mod places;

use self::places::Places;
use super::mixing::{mixing_type, stored, whole};
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::layout::index_map::{extent, extent_float, last, last_float, within_extent};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{clamp, index, integer, number, select, zero};
use vinelift_nest::{BufferId, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "GridSample",
    versions: &["opset9"],
    signature: Signature::new(&["data", "grid"]),
    family: Family::Window,
    build: Build::Op(parse::<GridSample>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridSample {
    #[serde(default)]
    align_corners: bool,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    padding_mode: Padding,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Bilinear,
    Bicubic,
    Nearest,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Padding {
    #[default]
    Zeros,
    Border,
    Reflection,
}

impl Op for GridSample {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "no strings unless the mode is nearest", |t| {
            t != ElementType::String || self.mode == Mode::Nearest
        })?;
        cx.expect("grid", "a float type", |t| t.is_float())?;
        cx.expect_rank("data", 4)?;
        cx.expect_rank("grid", 4)?;
        let any = || vec![Dim::ANY; 4];
        let data = cx.dims("data").map_or_else(any, <[_]>::to_vec);
        let grid = cx.dims("grid").map_or_else(any, <[_]>::to_vec);
        ensure!(
            grid[3].contains(2),
            "the last dim of `grid` {} must be 2",
            cx.shape("grid")
        );
        let Some(batch) = data[0].intersect(grid[0]) else {
            let message = format!(
                "`data` {} and `grid` {} must have the same first dim",
                cx.shape("data"),
                cx.shape("grid")
            );
            return Err(OpError::Shape(message));
        };
        let out = vec![batch, data[1], grid[1], grid[2]];
        let is_positive = |d: &Dim| d.extent().is_some_and(|n| n > 0) || d.min() > 0;
        let some = out.iter().all(is_positive);
        ensure!(
            self.padding_mode == Padding::Zeros || !some || !data.iter().any(|d| d.is(0)),
            "`data` {} has nothing to sample",
            cx.shape("data")
        );
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty, out) = (cx.extents("data"), cx.element("data"), cx.output(0));
        if shape.iter().any(|n| *n == 0) {
            cx.define(out, |_, _| zero(ty));
            return;
        }
        let extents = [shape[2], shape[3]];
        let wide = match cx.element("grid") {
            ElementType::F64 => ElementType::F64,
            _ => mixing_type(ty),
        };
        let position = self.position_type(extents);
        // The axis of the rows comes second in the grid.
        let [rows, columns] =
            [0, 1].map(|k| self.sampled(cx, 1 - k as i64, extents[k], [position, wide]));
        let places = Places::of(self, cx, extents, [&rows, &columns]);
        cx.define(out, |cx, at| {
            let point = [at[0].clone(), at[2].clone(), at[3].clone()];
            // The element at `[i + rows, j + columns]`.
            let element = |cx: &Lower<'_>, [i, j]: [&Scalar; 2], [rows, columns]: [i64; 2]| {
                if let Some(places) = &places {
                    return places.load(cx, [&at[0], &at[1]], &point, [rows, columns], zero(ty));
                }
                let moved = |from: &Scalar, by| from.clone().cast(ElementType::I64) + by;
                let (below, right) = (moved(i, rows), moved(j, columns));
                let row = self.place(&below, extents[0]);
                let column = self.place(&right, extents[1]);
                let value = cx.load("data", &[at[0].clone(), at[1].clone(), row, column]);
                let here = match self.padding_mode {
                    Padding::Zeros if self.mode == Mode::Nearest => {
                        within(i, extents[0]) & within(j, extents[1])
                    }
                    Padding::Zeros => {
                        within_extent(&below, extents[0]) & within_extent(&right, extents[1])
                    }
                    _ => return value,
                };
                select(here, value, zero(ty))
            };
            let position = |buffer| computable(cx.load_from(buffer, &point));
            let (top, left) = (position(rows.position), position(columns.position));
            let (Some(below), Some(right)) = (rows.fraction, columns.fraction) else {
                return element(cx, [&top, &left], [0, 0]);
            };
            let rows = self.weights(cx.load_from(below, &point));
            let columns = self.weights(cx.load_from(right, &point));
            let before = (rows.len() as i64 - 1) / 2;
            let row = |cx: &Lower<'_>, r: i64| {
                weighted(&columns, |k| {
                    let value = element(cx, [&top, &left], [r - before, k - before]);
                    widened(value).cast(wide)
                })
            };
            let sum = weighted(&rows, |r| row(cx, r));
            stored(whole(sum, ty, Scalar::trunc), ty)
        });
    }
}

/// Where the points of the grid lie along one axis of the data, as temporaries `[n, i, j]`: all channels share them.
struct Sampled {
    /// The nearest element, or the one before the point.
    position: BufferId,
    /// How far behind that element the point is, unless the nearest element is what is sampled.
    fraction: Option<BufferId>,
}

impl GridSample {
    /// The type of positions in dims of these extents: `i32`, of which twice as many fit into a vector, where positions far
    /// outside need not be told apart, else `i64`.
    fn position_type(&self, extents: [Extent; 2]) -> ElementType {
        let is_small = |n: &Extent| n.number().is_some_and(|n| n <= MOST_SMALL);
        match self.padding_mode != Padding::Reflection && extents.iter().all(is_small) {
            true => ElementType::I32,
            false => ElementType::I64,
        }
    }

    /// Where the points lie along an axis of extent `n`, which is `axis` in the grid: positions and fractions of these types.
    fn sampled(
        &self,
        cx: &mut Lower<'_>,
        axis: i64,
        n: Extent,
        [ty, wide]: [ElementType; 2],
    ) -> Sampled {
        let points = &cx.extents("grid")[..3];
        let position = cx.temporary("position", ty, points);
        let position_of = move |x: Scalar| match (ty, n.number()) {
            (ElementType::I32, Some(n)) => {
                let beyond = BEYOND as f64;
                clamp(x, -beyond, n as f64 + beyond).cast(ty)
            }
            _ => within_far(&clamp(x, -FAR, FAR).cast(ty)),
        };
        let coordinate = |cx: &Lower<'_>, at: &[Scalar]| {
            let from = [at[0].clone(), at[1].clone(), at[2].clone(), index(axis)];
            self.coordinate(widened(cx.load("grid", &from)), n)
        };
        if self.mode == Mode::Nearest {
            cx.define(position, |cx, at| position_of(coordinate(cx, at).round()));
            return Sampled {
                position,
                fraction: None,
            };
        }
        let fraction = cx.temporary("fraction", wide, points);
        cx.define(position, |cx, at| position_of(coordinate(cx, at).floor()));
        cx.define(fraction, |cx, at| {
            let x = coordinate(cx, at);
            (&x - &x.floor()).cast(wide)
        });
        Sampled {
            position,
            fraction: Some(fraction),
        }
    }

    /// The coordinate in a dim of extent `n` for `x` in `-1..1`, in the order of the reference.
    fn coordinate(&self, x: Scalar, n: Extent) -> Scalar {
        let ty = x.ty();
        match self.align_corners {
            true => (x + 1.0) * last_float(n, ty) / 2.0,
            false => ((x + 1.0) * extent_float(n, ty) - 1.0) / 2.0,
        }
    }

    /// The index into a dim of extent `n` for position `i`: any where that lies outside with `zeros`.
    fn place(&self, i: &Scalar, n: Extent) -> Scalar {
        match self.padding_mode {
            // One load is cheaper than a branch around it; of several, branches leave out those outside.
            Padding::Zeros if self.mode != Mode::Nearest => i.clone(),
            Padding::Zeros | Padding::Border => i.max(index(0)).min(last(n)),
            Padding::Reflection => {
                // A period runs forth and back; with aligned corners the edges count once.
                let period = match (self.align_corners, n.number().map(extent)) {
                    (true, Some(n)) => index((2 * (n - 1)).max(1)),
                    (false, Some(n)) => index(2 * n),
                    (true, None) => last(n) * 2,
                    (false, None) => Scalar::extent(n) * 2,
                };
                let phase = (i.rem(period.clone()) + &period).rem(period.clone());
                let back = match (self.align_corners, period.as_index()) {
                    (true, _) => period - &phase,
                    (false, Some(period)) => index(period - 1) - &phase,
                    (false, None) => period - 1 - &phase,
                };
                let place = phase.min(back).min(last(n));
                match n.is_symbolic() {
                    // It is never less than 0, but nobody proves that of a remainder by an extent that has symbols.
                    true => place.max(index(0)),
                    false => place,
                }
            }
        }
    }

    /// The same, within the dim in any case, of the type of `i`: `i32` for small dims.
    fn clamped(&self, i: &Scalar, n: Extent) -> Scalar {
        let i = match self.padding_mode {
            Padding::Zeros | Padding::Border => i.clone(),
            Padding::Reflection => self.place(i, n),
        };
        match (i.ty(), n.number()) {
            (ElementType::I32, Some(n)) => {
                let number = |x| integer(x, ElementType::I32);
                i.max(number(0)).min(number(n as i64 - 1))
            }
            _ => i.max(index(0)).min(last(n)),
        }
    }

    /// The weights of the neighbours of a coordinate with fraction `s`.
    fn weights(&self, s: Scalar) -> Vec<Scalar> {
        let rest = number(1.0, s.ty()) - &s;
        if self.mode == Mode::Bilinear {
            return vec![rest, s];
        }
        let near = |d: &Scalar| ((d * (A + 2.0) - (A + 3.0)) * d) * d + 1.0;
        let far = |d: Scalar| ((&d * A - 5.0 * A) * &d + 8.0 * A) * &d - 4.0 * A;
        vec![
            far(&s + 1.0),
            near(&s),
            near(&rest),
            far(rest.clone() + 1.0),
        ]
    }
}

/// The parameter of the cubic convolution.
const A: f64 = -0.75;

/// Coordinates beyond are taken for this one: exact in `f32`, and far from any overflow of indices.
const FAR: f64 = (1u64 << 60) as f64;

/// The most elements of a dim whose positions are known to be small: every `f32` near to it has all integers.
const MOST_SMALL: usize = 1 << 20;

/// Positions further outside of a small dim are moved to this distance from it: no neighbour of either lies inside.
const BEYOND: i64 = 8;

/// A position as it is: what is computed with it does not overflow.
fn computable(position: Scalar) -> Scalar {
    match position.ty() {
        ElementType::I64 => within_far(&position),
        _ => position,
    }
}

fn within_far(position: &Scalar) -> Scalar {
    position.max(index(-(FAR as i64))).min(index(FAR as i64))
}

/// `0 <= i < n`
fn within(i: &Scalar, n: Extent) -> Scalar {
    match (i.ty(), n.number()) {
        (ElementType::I32, Some(n)) => {
            i.ge(zero(i.ty())) & i.lt(integer(n as i64, ElementType::I32))
        }
        _ => within_extent(i, n),
    }
}

/// `Σ weights[k] · value(k)`
fn weighted(weights: &[Scalar], value: impl Fn(i64) -> Scalar) -> Scalar {
    let mut terms = weights.iter().zip(0..).map(|(w, k)| w * value(k));
    let first = terms
        .next()
        .unwrap_or_else(|| number(0.0, ElementType::F32));
    terms.fold(first, |sum, term| sum + term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, infer, run};
    use vinelift_tensor::Tensor;

    fn attributes<'a>(mode: &'a str, padding: &'a str, align: &'a str) -> [(&'a str, &'a str); 3] {
        [
            ("mode", mode),
            ("padding_mode", padding),
            ("align_corners", align),
        ]
    }

    /// Samples one row of one channel at the columns `x`.
    fn sampled(attributes: &[(&str, &str)], row: &[f32], x: &[f32]) -> Vec<f64> {
        let data = f32s(&[1, 1, 1, row.len()], row);
        let grid: Vec<f32> = x.iter().flat_map(|&x| [x, 0.0]).collect();
        let grid = f32s(&[1, 1, x.len(), 2], &grid);
        run(&DEF, attributes, &[data, grid]).to_f64_vec().unwrap()
    }

    /// By the formulas, worked out by hand.
    #[test]
    fn between_and_beyond() {
        let row = [4.0, 8.0, 16.0];
        let ends = [-1.0, 0.0, 0.5, 1.0];
        let of =
            |padding, align, x: &[f32]| sampled(&attributes("bilinear", padding, align), &row, x);
        assert_eq!(of("border", "true", &ends), [4.0, 8.0, 12.0, 16.0]);
        assert_eq!(of("zeros", "false", &ends), [2.0, 8.0, 14.0, 8.0]);
        assert_eq!(of("border", "false", &ends), [4.0, 8.0, 14.0, 16.0]);
        assert_eq!(of("reflection", "false", &ends), [4.0, 8.0, 14.0, 16.0]);
        assert_eq!(
            of("reflection", "true", &[2.0, -2.5, 5.0]),
            [8.0, 12.0, 16.0]
        );
        assert_eq!(of("zeros", "true", &[2.0, -2.0]), [0.0, 0.0]);
    }

    /// Far outside there is only padding, for dims whose positions are small and for one element more.
    #[test]
    fn far_outside() {
        for width in [3, MOST_SMALL, MOST_SMALL + 1] {
            let mut row = vec![0.5; width];
            (row[0], row[width - 1]) = (2.0, 4.0);
            let far = [-1e30, -f32::INFINITY, -9.0, 9.0, f32::INFINITY, 1e30];
            for mode in ["bilinear", "bicubic", "nearest"] {
                let of = |padding| sampled(&attributes(mode, padding, "true"), &row, &far);
                if mode == "nearest" {
                    assert_eq!(of("border"), [2.0, 2.0, 2.0, 4.0, 4.0, 4.0]);
                    assert_eq!(of("zeros"), [0.0; 6]);
                    continue;
                }
                // The fraction of an infinite coordinate is NaN.
                let [border, zeros] = ["border", "zeros"].map(of);
                for (at, end) in [(0, 2.0), (2, 2.0), (3, 4.0), (5, 4.0)] {
                    assert_eq!((border[at], zeros[at]), (end, 0.0), "{mode} {width}");
                }
            }
        }
    }

    /// By the formulas: columns 0.5, 1.5 and -0.5 round to even.
    #[test]
    fn nearest() {
        let row = [4.0, 8.0, 16.0];
        let of = |padding| {
            sampled(
                &attributes("nearest", padding, "true"),
                &row,
                &[-0.5, 0.5, -1.5, 3.0],
            )
        };
        assert_eq!(of("zeros"), [4.0, 16.0, 4.0, 0.0]);
        assert_eq!(of("border"), [4.0, 16.0, 4.0, 16.0]);
        assert_eq!(of("reflection"), [4.0, 16.0, 4.0, 4.0]);
    }

    /// By the formula: half way the weights are -3/32, 19/32, 19/32, -3/32.
    #[test]
    fn cubic() {
        let row = [32.0, 64.0, 0.0, 32.0];
        let of = |padding| sampled(&attributes("bicubic", padding, "true"), &row, &[0.0, -1.0])[0];
        assert_eq!(of("border"), 38.0 - 6.0);
        assert_eq!(of("zeros"), 38.0 - 6.0);
        let attributes = attributes("bicubic", "border", "false");
        assert_eq!(sampled(&attributes, &[3.0; 5], &[0.3, -0.9]), [3.0, 3.0]);
    }

    #[test]
    fn odd_coordinates_do_no_harm() {
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e38, -3e38];
        for padding in ["zeros", "border", "reflection"] {
            for mode in ["nearest", "bilinear", "bicubic"] {
                for align in ["true", "false"] {
                    let found = sampled(&attributes(mode, padding, align), &[1.0, 2.0], &odd);
                    assert_eq!(found.len(), 5);
                }
            }
        }
    }

    #[test]
    fn integers_are_truncated() {
        let data = Tensor::from_slice(&[1, 1, 1, 2], &[0u8, 255]).unwrap();
        let grid = f32s(&[1, 1, 2, 2], &[0.0, 0.0, 1.0, 0.0]);
        let attributes = attributes("bilinear", "zeros", "true");
        let out = run(&DEF, &attributes, &[data, grid]);
        assert_eq!(out.to_i64_vec().unwrap(), [127, 255]);
        let words = ["a", "b"].map(str::to_owned).to_vec();
        let data = Tensor::from_strings(&[1, 1, 1, 2], words).unwrap();
        let grid = f32s(&[1, 1, 2, 2], &[0.5, 0.0, 5.0, 0.0]);
        let out = run(&DEF, &[("mode", "nearest")], &[data, grid]);
        assert_eq!(out.strings().unwrap(), ["b", ""]);
    }

    #[test]
    fn shapes() {
        let data = (ElementType::F16, PartialShape::DYNAMIC, None);
        let grid =
            PartialShape::ranked(vec![Dim::fixed(3), Dim::ANY, Dim::fixed(5), Dim::fixed(2)]);
        let found = infer(&DEF, &[], &[data, (ElementType::F32, grid, None)]);
        assert_eq!(found, ("f16[3, ?, ?, 5]".to_owned(), vec![]));
        let zeros = |shape: &[usize]| Tensor::zeros(ElementType::F32, shape).unwrap();
        let of = |data: &[usize], grid: &[usize]| error(&DEF, &[], &[zeros(data), zeros(grid)]);
        let message = "the last dim of `grid` [1, 1, 1, 3] must be 2";
        assert_eq!(of(&[1, 1, 1, 1], &[1, 1, 1, 3]), message);
        let message = "`data` [1, 1, 1, 1] and `grid` [2, 1, 1, 2] must have the same first dim";
        assert_eq!(of(&[1, 1, 1, 1], &[2, 1, 1, 2]), message);
        let inputs = [zeros(&[1, 1, 0, 1]), zeros(&[1, 1, 1, 2])];
        let message = "`data` [1, 1, 0, 1] has nothing to sample";
        assert_eq!(error(&DEF, &[("padding_mode", "border")], &inputs), message);
        assert_eq!(run(&DEF, &[], &inputs), zeros(&[1, 1, 1, 1]));
    }
}
