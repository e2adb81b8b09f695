//! Positions and weights along an axis whose extents have symbols: what `coordinates` and `taps` work out for numbers,
//! as scalars that give the same bits.

use super::coordinates::{Axis, Nearest, Transform};
use super::resized::Resized;
use super::taps::Filter;
use crate::layout::index_map::last;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, number, select};
use vinelift_tensor::{ElementType, Extent};

/// Scales below this are left to the tables: coordinates by others stay far from the ends of an `i64`.
const LEAST_SCALE: f64 = 1.0 / 65536.0;

/// Outputs up to this long are looked at for positions that are multiples or quotients of the output's.
const LOOKED_AT: usize = 1 << 14;

/// An axis whose extents have symbols.
pub(super) struct Formulas<'a> {
    axis: &'a Resized,
    transform: Transform,
}

/// Where nearest elements are.
pub(super) enum Near {
    /// `o · by`
    Times(usize),
    /// `o / by`
    Over(usize),
    /// Elsewhere.
    Other,
}

impl<'a> Formulas<'a> {
    /// `None` if both extents are numbers, or there are tables alone: for `filter`, where elements are mixed.
    pub(super) fn new(
        axis: &'a Resized,
        transform: Transform,
        filter: Option<Filter>,
    ) -> Option<Formulas<'a>> {
        let is_symbolic = axis.from.is_symbolic() || axis.to.is_symbolic();
        let taps = filter.and_then(Filter::fewest).unwrap_or(1);
        let fits = is_symbolic
            && axis.scale.is_none_or(|scale| scale >= LEAST_SCALE)
            && Extent::from(taps).at_most(axis.from);
        fits.then_some(Formulas { axis, transform })
    }

    /// How much larger the output is, of type `float`.
    pub(super) fn scale(&self, float: ElementType) -> Scalar {
        let wide = |n: Extent| Scalar::extent(n).cast(ElementType::F64);
        match self.axis.known_scale() {
            Some(scale) => number(scale, ElementType::F64).cast(float),
            None => (wide(self.axis.to) / wide(self.axis.from)).cast(float),
        }
    }

    /// As [`Axis::coordinate`], an `f64`.
    pub(super) fn coordinate(&self, o: &Scalar, exact: bool) -> Scalar {
        let float = match exact {
            true => ElementType::F64,
            false => ElementType::F32,
        };
        let Resized { from, to, .. } = *self.axis;
        let before_last = |n: Extent| Scalar::extent(n).cast(float) - 1.0;
        let o = o.clone().cast(float);
        let centred = || (&o + 0.5) / self.scale(float);
        let coordinate = match self.transform {
            Transform::PytorchHalfPixel | Transform::AlignCorners if to == 1 => number(0.0, float),
            Transform::HalfPixel | Transform::PytorchHalfPixel => centred() - 0.5,
            Transform::Asymmetric => o / self.scale(float),
            Transform::TfHalfPixelForNn => centred(),
            Transform::AlignCorners => o * before_last(from) / before_last(to),
        };
        coordinate.cast(ElementType::F64)
    }

    /// As [`Axis::nearest`].
    pub(super) fn nearest(&self, nearest: Nearest, o: &Scalar) -> Scalar {
        let x = self.coordinate(o, false);
        let near = match nearest {
            Nearest::RoundPreferFloor => (x - 0.5).ceil(),
            Nearest::RoundPreferCeil => (x + 0.5).floor(),
            Nearest::Floor => x.floor(),
            Nearest::Ceil => x.ceil(),
            Nearest::Simple if self.axis.shrinks() => x.ceil(),
            Nearest::Simple => x.floor(),
        };
        let near = near.max(number(0.0, ElementType::F64));
        self.inside(near.cast(ElementType::I64), 1)
    }

    /// Which simple index map nearest elements have, for all extents that the plan allows.
    pub(super) fn near(&self, nearest: Nearest) -> Near {
        let Resized { dim, from, to, .. } = *self.axis;
        let Some(scale) = self.axis.known_scale() else {
            return Near::Other;
        };
        if self.transform == Transform::AlignCorners || !to.at_most(LOOKED_AT.into()) {
            return Near::Other;
        }
        let axis = Axis {
            dim,
            from: usize::MAX >> 16,
            to: LOOKED_AT,
            scale,
        };
        let place = |o: usize| axis.nearest(self.transform, nearest, o);
        let mut places = (0..LOOKED_AT).map(|o| (o, place(o)));
        let times = place(1);
        if times > 0 && places.clone().all(|(o, i)| i == o * times) {
            let reach = to.difference(Extent::ONE).product(times.into());
            if reach.sum(Extent::ONE).at_most(from) {
                return Near::Times(times);
            }
        }
        let over = (0..LOOKED_AT).take_while(|&o| place(o) == 0).count();
        let is_quotient = over > 0 && places.all(|(o, i)| i == o / over);
        match is_quotient && to.at_most(from.product(over.into())) {
            true => Near::Over(over),
            false => Near::Other,
        }
    }

    /// The first of the elements that are mixed for `o`, and the weight of the `k`-th of them, an `f64`.
    pub(super) fn taps(&self, filter: Filter, o: &Scalar, exact: bool) -> (Scalar, Vec<Scalar>) {
        let x = self.coordinate(o, exact);
        match filter {
            Filter::LinearOnnx => self.between(x),
            Filter::Cubic { a } => self.cubic(x, a),
            Filter::Linear { .. } | Filter::Pillow { .. } => self.linear(x, exact),
        }
    }

    fn between(&self, x: Scalar) -> (Scalar, Vec<Scalar>) {
        let end = last(self.axis.from).cast(ElementType::F64);
        let x = x.max(number(0.0, ElementType::F64)).min(end);
        let start = self.inside(x.clone().cast(ElementType::I64), 2);
        let part = x - start.clone().cast(ElementType::F64);
        let rest = number(1.0, ElementType::F64) - part.clone();
        (start, vec![rest, part])
    }

    fn linear(&self, x: Scalar, exact: bool) -> (Scalar, Vec<Scalar>) {
        let float = match exact {
            true => ElementType::F64,
            false => ElementType::F32,
        };
        let start = self.inside(x.floor().cast(ElementType::I64), 2);
        let weight = |k: i64| {
            let distance = x.clone().cast(float) - (&start + k).cast(float);
            let weight = number(1.0, float) - distance.abs();
            weight.max(number(0.0, float)).cast(ElementType::F64)
        };
        let [a, b] = [weight(0), weight(1)];
        let sum = &a + &b;
        let nothing = number(0.0, ElementType::F64);
        let part = |weight: Scalar| {
            select(
                sum.eq(nothing.clone()),
                nothing.clone(),
                weight / sum.clone(),
            )
        };
        (start, vec![part(a), part(b)])
    }

    fn cubic(&self, x: Scalar, a: f64) -> (Scalar, Vec<Scalar>) {
        let float = ElementType::F64;
        let (floor, end) = (x.floor(), last(self.axis.from));
        let s = x - floor.clone();
        let floor = floor.cast(ElementType::I64);
        let start = self.inside(&floor - 1, 4);
        let one = || number(1.0, float);
        let distances = [&s + 1.0, s.clone(), one() - &s, number(2.0, float) - &s];
        let parts: Vec<(Scalar, Scalar)> = (distances.iter().zip(-1..))
            .map(|(distance, k)| {
                let place = (&floor + k).max(index(0)).min(end.clone());
                (place - &start, convolution(distance, a))
            })
            .collect();
        let zero = number(0.0, float);
        let weight = |k: i64| {
            parts.iter().fold(zero.clone(), |sum, (place, part)| {
                sum + select(place.eq(index(k)), part.clone(), zero.clone())
            })
        };
        (start, (0..4).map(weight).collect())
    }

    /// `i`, so that `count` elements from it on lie in the input.
    fn inside(&self, i: Scalar, count: usize) -> Scalar {
        let most = last(self.axis.from.difference(Extent::from(count - 1)));
        i.max(index(0)).min(most)
    }
}

/// As [`super::taps::convolution`].
pub(super) fn convolution(d: &Scalar, a: f64) -> Scalar {
    let float = ElementType::F64;
    let near = ((d * (a + 2.0) - (a + 3.0)) * d) * d + 1.0;
    let far = (((d - 5.0) * d + 8.0) * d - 4.0) * a;
    let far = select(d.lt(number(2.0, float)), far, number(0.0, float));
    select(d.lt(number(1.0, float)), near, far)
}
