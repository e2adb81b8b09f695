//! Which elements of the input make up an element of the output, and with what weights, along one
//! axis.
//!
//! All modes that mix elements are products of weights along the axes, so that one axis can be resized
//! after the other.

use super::coordinates::{Axis, Transform};

/// How elements are mixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Filter {
    /// `max(0, 1 - |a · d|)` at a distance of `d`, normalized; `antialias` lets `a` be the scale where
    /// the output is smaller along some axis, otherwise it is 1. Elements outside the input are left out.
    Linear { antialias: bool },
    /// Between the two neighbours of the coordinate clamped to the input.
    LinearOnnx,
    /// Four neighbours, weighted by the cubic convolution with parameter `a`; those outside the
    /// input repeat its edge.
    Cubic { a: f64 },
    /// As Pillow: normalized weights over a support that grows as the output shrinks.
    Pillow { cubic: Option<f64> },
}

impl Filter {
    /// How many neighbours make up each element where the input has as many, even if some have no weight; `None` if
    /// that depends on the scale.
    pub(super) fn fewest(self) -> Option<usize> {
        match self {
            Filter::Linear { antialias: false } | Filter::LinearOnnx => Some(2),
            Filter::Cubic { .. } => Some(4),
            Filter::Linear { antialias: true } | Filter::Pillow { .. } => None,
        }
    }
}

/// For each element of the output `count` neighbouring elements of the input, from `starts` on.
pub(super) struct Taps {
    pub(super) starts: Vec<usize>,
    pub(super) count: usize,
    /// The weight of element `k` for output `o` is at `k · starts.len() + o`.
    pub(super) weights: Vec<f64>,
}

impl Taps {
    /// `shrinks` is whether the output is smaller along some axis.
    pub(super) fn new(
        filter: Filter,
        axis: &Axis,
        transform: Transform,
        shrinks: bool,
        exact: bool,
    ) -> Taps {
        let coordinate = |o| axis.coordinate(transform, o, exact);
        let rows = (0..axis.to).map(|o| match filter {
            Filter::Linear { antialias } => {
                let a = if antialias && shrinks {
                    axis.scale
                } else {
                    1.0
                };
                linear(coordinate(o), a, axis.from, exact)
            }
            Filter::LinearOnnx => between(coordinate(o), axis.from),
            Filter::Cubic { a } => cubic(coordinate(o), a, axis.from),
            Filter::Pillow { cubic } => pillow(axis, o, cubic),
        });
        Taps::from_rows(rows.collect(), axis.from, filter.fewest().unwrap_or(1))
    }

    /// Of `fewest` elements each, or more where a row has more.
    fn from_rows(rows: Vec<Row>, from: usize, fewest: usize) -> Taps {
        let count = rows.iter().map(|r| r.weights.len()).max().unwrap_or(0);
        let count = count.max(fewest).min(from);
        let mut starts = Vec::with_capacity(rows.len());
        let mut weights = vec![0.0; rows.len() * count];
        for (o, row) in rows.iter().enumerate() {
            let start = row.start.min(from - count);
            for (k, w) in row.weights.iter().enumerate() {
                weights[(row.start - start + k) * rows.len() + o] = *w;
            }
            starts.push(start);
        }
        Taps {
            starts,
            count,
            weights,
        }
    }
}

/// The weights of the elements from `start` on, all of which lie in the input.
struct Row {
    start: usize,
    weights: Vec<f64>,
}

impl Row {
    /// The elements in `low..high` that lie in the input, with weights that add up to 1, or to 0
    /// if there is nothing to mix.
    fn normalized(low: f64, high: f64, from: usize, weight: impl Fn(f64) -> f64) -> Row {
        let start = (low.max(0.0) as usize).min(from);
        let end = (high.max(0.0) as usize).min(from);
        let mut weights: Vec<f64> = (start..end).map(|i| weight(i as f64)).collect();
        let sum: f64 = weights.iter().sum();
        if sum != 0.0 {
            weights.iter_mut().for_each(|w| *w /= sum);
        }
        // Elements without weight at either end would only lengthen the window.
        let used = |w: &&f64| **w != 0.0;
        let skip = weights.iter().take_while(|w| !used(w)).count();
        let keep = weights.len() - weights.iter().rev().take_while(|w| !used(w)).count();
        Row {
            start: start + skip,
            weights: weights[skip.min(keep)..keep].to_vec(),
        }
    }
}

/// Unless `exact`, every step is rounded to `f32`, which decides whether an element at the very end of
/// the support counts where there is no other.
fn linear(x: f64, a: f64, from: usize, exact: bool) -> Row {
    let round = |x: f64| if exact { x } else { f64::from(x as f32) };
    let a = round(a);
    let (low, high) = ((x - 1.0 / a).floor(), (x + 1.0 / a).ceil() + 1.0);
    Row::normalized(low, high, from, |i| {
        round(1.0 - round(a * round(x - i)).abs()).max(0.0)
    })
}

fn between(x: f64, from: usize) -> Row {
    let x = x.clamp(0.0, (from - 1) as f64);
    let (start, part) = (x as usize, x.fract());
    let weights = if start + 1 < from {
        vec![1.0 - part, part]
    } else {
        vec![1.0]
    };
    Row { start, weights }
}

fn cubic(x: f64, a: f64, from: usize) -> Row {
    let last = (from - 1) as f64;
    let s = x - x.floor();
    let place = |k: usize| (x.floor() + k as f64 - 1.0).clamp(0.0, last) as usize;
    let start = place(0);
    let mut weights = vec![0.0; place(3) - start + 1];
    for (k, distance) in [s + 1.0, s, 1.0 - s, 2.0 - s].into_iter().enumerate() {
        weights[place(k) - start] += convolution(distance, a);
    }
    Row { start, weights }
}

/// Pillow's windows: the centre of the output's element, with a support of 1 or 2 elements of
/// whichever is coarser.
fn pillow(axis: &Axis, o: usize, cubic: Option<f64>) -> Row {
    let scale = axis.from as f64 / axis.to as f64;
    let stretch = scale.max(1.0);
    let support = if cubic.is_some() { 2.0 } else { 1.0 } * stretch;
    let centre = (o as f64 + 0.5) * scale;
    let (low, high) = (centre - support + 0.5, centre + support + 0.5);
    Row::normalized(low, high, axis.from, |i| {
        let distance = ((i - centre + 0.5) / stretch).abs();
        match cubic {
            Some(a) => convolution(distance, a),
            None => (1.0 - distance).max(0.0),
        }
    })
}

/// The kernel of cubic convolution at a distance of `d`, at least 0.
fn convolution(d: f64, a: f64) -> f64 {
    if d < 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        (((d - 5.0) * d + 8.0) * d - 4.0) * a
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taps(filter: Filter, from: usize, to: usize) -> (Vec<usize>, Vec<Vec<f64>>) {
        let axis = Axis {
            dim: 0,
            from,
            to,
            scale: to as f64 / from as f64,
        };
        let taps = Taps::new(filter, &axis, Transform::HalfPixel, to < from, true);
        let rows = taps.weights.chunks(to).map(<[_]>::to_vec).collect();
        (taps.starts, rows)
    }

    #[test]
    fn windows_stay_inside() {
        let (starts, weights) = taps(Filter::LinearOnnx, 2, 4);
        assert_eq!(starts, [0, 0, 0, 0]);
        assert_eq!(weights, [[1.0, 0.75, 0.25, 0.0], [0.0, 0.25, 0.75, 1.0]]);
        let (starts, weights) = taps(Filter::Cubic { a: -0.75 }, 2, 4);
        assert_eq!(starts, [0; 4]);
        let sums: Vec<f64> = (0..4).map(|o| weights[0][o] + weights[1][o]).collect();
        assert_eq!(sums, [1.0; 4]);
    }

    /// By the formula of the specification: weights 1, 3, 3, 1 at distances 1.5, 0.5, 0.5, 1.5.
    #[test]
    fn antialiased() {
        let (starts, weights) = taps(Filter::Linear { antialias: true }, 6, 3);
        assert_eq!(starts, [0, 1, 2]);
        let middle: Vec<f64> = weights.iter().map(|w| w[1]).collect();
        assert_eq!(middle, [0.125, 0.375, 0.375, 0.125]);
        let (starts, weights) = taps(Filter::Linear { antialias: false }, 6, 3);
        assert_eq!((starts, weights.len()), (vec![0, 2, 4], 2));
    }
}
