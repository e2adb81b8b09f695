//! From a coordinate of the output to one of the input, along one axis.

use serde::Deserialize;

/// The attribute `coordinate_transformation_mode`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transform {
    /// `(o + 0.5) / scale - 0.5`
    #[default]
    HalfPixel,
    /// As `half_pixel`, 0 where the output has a single element.
    PytorchHalfPixel,
    /// `o / scale`
    Asymmetric,
    /// `(o + 0.5) / scale`
    TfHalfPixelForNn,
    /// `o · (n - 1) / (m - 1)`, 0 where the output has a single element.
    AlignCorners,
}

/// The attribute `nearest_mode`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Nearest {
    /// Of two equally near the first.
    #[default]
    RoundPreferFloor,
    /// Of two equally near the second.
    RoundPreferCeil,
    /// The first of the two neighbours.
    Floor,
    /// The second of the two neighbours.
    Ceil,
    /// As `ceil` where the output is smaller, else without the fraction.
    Simple,
}

/// An axis that is resized.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Which dim it is.
    pub(super) dim: usize,
    /// The extent of the input, pads included; at least 1.
    pub(super) from: usize,
    /// The extent of the output.
    pub(super) to: usize,
    /// How much larger the output is, as the model says it.
    pub(super) scale: f64,
}

impl Axis {
    /// The coordinate in the input for `o` in the output.
    ///
    /// Unless `exact`, every step is rounded to `f32`, which decides ties of the nearest element.
    pub(super) fn coordinate(&self, transform: Transform, o: usize, exact: bool) -> f64 {
        let round = |x: f64| if exact { x } else { f64::from(x as f32) };
        let (scale, o) = (round(self.scale), round(o as f64));
        if scale == 1.0 || self.from == self.to {
            return o;
        }
        let centred = || round(round(o + 0.5) / scale);
        let coordinate = match transform {
            Transform::PytorchHalfPixel | Transform::AlignCorners if self.to == 1 => 0.0,
            Transform::HalfPixel | Transform::PytorchHalfPixel => round(centred() - 0.5),
            Transform::Asymmetric => round(o / scale),
            Transform::TfHalfPixelForNn => centred(),
            Transform::AlignCorners => {
                let (from, to) = (round(self.from as f64), round(self.to as f64));
                round(round(o * round(from - 1.0)) / round(to - 1.0))
            }
        };
        // Far beyond any tensor; keeps fractions finite for the smallest scales.
        coordinate.clamp(-FAR, FAR)
    }

    /// The element of the input nearest to `o` in the output.
    pub(super) fn nearest(&self, transform: Transform, nearest: Nearest, o: usize) -> usize {
        let x = self.coordinate(transform, o, false);
        let i = match nearest {
            Nearest::RoundPreferFloor => (x - 0.5).ceil(),
            Nearest::RoundPreferCeil => (x + 0.5).floor(),
            Nearest::Floor => x.floor(),
            Nearest::Ceil => x.ceil(),
            Nearest::Simple if (self.scale as f32) < 1.0 => x.ceil(),
            Nearest::Simple => x.trunc(),
        };
        (i.max(0.0) as usize).min(self.from.saturating_sub(1))
    }
}

const FAR: f64 = (1u64 << 40) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(from: usize, to: usize) -> Axis {
        let scale = to as f64 / from as f64;
        Axis {
            dim: 0,
            from,
            to,
            scale,
        }
    }

    /// By the formulas of the specification.
    #[test]
    fn transformations() {
        let of = |axis: Axis, transform| {
            let all = (0..axis.to).map(|o| axis.coordinate(transform, o, true));
            all.collect::<Vec<_>>()
        };
        assert_eq!(
            of(axis(2, 4), Transform::HalfPixel),
            [-0.25, 0.25, 0.75, 1.25]
        );
        assert_eq!(of(axis(4, 2), Transform::TfHalfPixelForNn), [1.0, 3.0]);
        assert_eq!(of(axis(4, 2), Transform::Asymmetric), [0.0, 2.0]);
        assert_eq!(
            of(axis(3, 5), Transform::AlignCorners),
            [0.0, 0.5, 1.0, 1.5, 2.0]
        );
        assert_eq!(of(axis(4, 1), Transform::HalfPixel), [1.5]);
        assert_eq!(of(axis(4, 1), Transform::PytorchHalfPixel), [0.0]);
        assert_eq!(of(axis(4, 1), Transform::AlignCorners), [0.0]);
        assert_eq!(of(axis(2, 2), Transform::TfHalfPixelForNn), [0.0, 1.0]);
    }

    /// By the formulas of the specification: the coordinates are 0.5, 2.5, 4.5.
    #[test]
    fn neighbours() {
        let of = |axis: Axis, transform, nearest| {
            let all = (0..axis.to).map(|o| axis.nearest(transform, nearest, o));
            all.collect::<Vec<_>>()
        };
        let half = |nearest| of(axis(6, 3), Transform::HalfPixel, nearest);
        assert_eq!(half(Nearest::RoundPreferFloor), [0, 2, 4]);
        assert_eq!(half(Nearest::RoundPreferCeil), [1, 3, 5]);
        assert_eq!(half(Nearest::Floor), [0, 2, 4]);
        assert_eq!(half(Nearest::Ceil), [1, 3, 5]);
        assert_eq!(half(Nearest::Simple), [1, 3, 5]);
        let grown = of(axis(2, 3), Transform::Asymmetric, Nearest::Simple);
        assert_eq!(grown, [0, 0, 1]);
        let last = of(axis(2, 4), Transform::TfHalfPixelForNn, Nearest::Ceil);
        assert_eq!(last, [1, 1, 1, 1]);
    }
}
