//! Boxes of given sizes around the centres of a grid's cells, relative to the size of an image, with their
//! variances: what PriorBox and PriorBoxClustered give.

use crate::Lower;
use crate::error::ensure;
use crate::layout::extent::{countable, natural_extents};
use crate::layout::index_map::{extent, flatten};
use crate::{Infer, OpError, TensorType};
use vinelift_nest::build::{clamp, index, number, select};
use vinelift_nest::{Mode, Scalar, build};
use vinelift_tensor::{Dim, ElementType, Extent, Formula, PartialShape};

/// A box: what is added to the centre for its left, upper, right and lower edge.
pub(super) struct Prior {
    pub(super) edges: [f32; 4],
    /// Whether the upper left corner is kept above 0 and the lower right one below 1.
    pub(super) cut: bool,
    /// The width and height that are to be added to the edges, if they are in units that have symbols.
    pub(super) sides: Option<[Side; 2]>,
}

/// A width or height, `size · times / over`.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) size: f32,
    pub(super) times: f32,
    pub(super) over: f32,
}

impl Side {
    pub(super) fn of(size: f32) -> Side {
        Side {
            size,
            times: 1.0,
            over: 1.0,
        }
    }

    /// Half of it, in `unit`s.
    pub(super) fn half(self, unit: f32) -> f32 {
        self.size * unit * 0.5 * self.times / self.over
    }
}

/// A grid of boxes, with horizontal numbers before vertical ones.
pub(super) struct Priors {
    /// Of the first cell's centre, in steps.
    pub(super) offset: f32,
    pub(super) step: [Length; 2],
    pub(super) image: [Length; 2],
    /// The prior boxes of each cell.
    pub(super) boxes: Vec<Prior>,
    /// The unit of their sides.
    pub(super) unit: Length,
    /// Whether all coordinates are brought within 0 and 1.
    pub(super) clip: bool,
    pub(super) variance: [f32; 4],
}

/// The sizes in the inputs: rows and columns of the grid, height and width of the image.
pub(super) struct Sizes {
    pub(super) grid: [Extent; 2],
    pub(super) image: [Extent; 2],
}

/// An `f32` that is a number, or comes from extents that have symbols.
#[derive(Clone)]
pub(super) enum Length {
    Number(f32),
    Symbolic(Scalar),
}

impl Length {
    pub(super) fn of(extent: Extent) -> Length {
        match extent.number() {
            Some(number) => Length::Number(number as f32),
            None => Length::Symbolic(Scalar::extent(extent).cast(ElementType::F32)),
        }
    }

    /// `self · by`
    pub(super) fn times(&self, by: f32) -> Length {
        match self {
            Length::Number(number) => Length::Number(number * by),
            Length::Symbolic(scalar) => Length::Symbolic(scalar * f64::from(by)),
        }
    }

    /// `self / other`
    pub(super) fn over(&self, other: &Length) -> Length {
        match (self, other) {
            (Length::Number(a), Length::Number(b)) => Length::Number(a / b),
            _ => Length::Symbolic(self.scalar() / other.scalar()),
        }
    }

    fn scalar(&self) -> Scalar {
        match self {
            Length::Number(number) => build::number(f64::from(*number), ElementType::F32),
            Length::Symbolic(scalar) => scalar.clone(),
        }
    }
}

/// The horizontal or the `vertical` one of two lengths: from a table, if both are numbers.
fn along<'l>(
    cx: &mut Lower<'_>,
    name: &str,
    lengths: &'l [Length; 2],
) -> impl Fn(&Lower<'_>, &Scalar) -> Scalar + use<'l> {
    let table = match lengths {
        [Length::Number(x), Length::Number(y)] => {
            Some(cx.weights(name, ElementType::F32, &[*x, *y].map(f64::from)))
        }
        _ => None,
    };
    move |cx, vertical| match table {
        Some(table) => cx.load_from(table, std::slice::from_ref(vertical)),
        None => {
            let [x, y] = [0, 1].map(|k| lengths[k].scalar());
            select(vertical.eq(index(0)), x, y)
        }
    }
}

/// The type of the output for `count` boxes in each cell.
pub(super) fn infer(cx: &Infer<'_>, count: usize) -> Result<Vec<TensorType>, OpError> {
    let grid = pair("output_size", cx.elements("output_size")?)?;
    pair("image_size", cx.elements("image_size")?)?;
    let numbers = match grid {
        Some([rows, columns]) => [rows, columns, count.into(), 4.into()]
            .into_iter()
            .fold(Dim::fixed(1), |n, d| n.mul(d.into())),
        None => Dim::ANY,
    };
    let shape = countable(PartialShape::ranked(vec![Dim::fixed(2), numbers]))?;
    Ok(vec![TensorType::new(ElementType::F32, shape)])
}

/// The values of the inputs, which `infer` has asked for.
pub(super) fn sizes(cx: &Lower<'_>) -> Option<Sizes> {
    let of = |name| pair(name, cx.elements(name)).ok().flatten();
    Some(Sizes {
        grid: of("output_size")?,
        image: of("image_size")?,
    })
}

fn pair(name: &'static str, values: Option<Vec<Formula>>) -> Result<Option<[Extent; 2]>, OpError> {
    let Some(values) = values else {
        return Ok(None);
    };
    let found = natural_extents(name, &values)?;
    let count = found.len();
    ensure!(count == 2, "`{name}` must hold two elements, found {count}");
    Ok(Some([found[0], found[1]]))
}

/// The variances of the four edges: 0.1 each if none is given.
pub(super) fn variance(values: &[f32]) -> Result<[f32; 4], OpError> {
    match *values {
        [] => Ok([0.1; 4]),
        [v] => Ok([v; 4]),
        [a, b, c, d] => Ok([a, b, c, d]),
        _ => Err(OpError::Shape(format!(
            "`variance` must hold 0, 1 or 4 elements, found {}",
            values.len()
        ))),
    }
}

impl Priors {
    /// Appends the stages: the boxes of the cells in row-major order, then as many variances.
    pub(super) fn lower(&self, cx: &mut Lower<'_>, grid: [Extent; 2]) {
        let ty = ElementType::F32;
        let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let out = cx.output(0);
        if cx.extents_of(out).iter().any(|n| *n == 0) {
            return;
        }
        let edges: Vec<f32> = self.boxes.iter().flat_map(|b| b.edges).collect();
        let edges = cx.weights("edges", ty, &wide(&edges));
        let half_sides = self.half_sides(cx);
        let step = along(cx, "step", &self.step);
        let image = along(cx, "image", &self.image);
        let bounds = self.boxes.iter().any(|b| b.cut).then(|| {
            let cut = |bound: f32, none: f32, edges: std::ops::Range<usize>| -> Vec<f64> {
                let of = |b: &Prior, k: usize| b.cut && edges.contains(&k);
                let all = self.boxes.iter().flat_map(|b| (0..4).map(move |k| (b, k)));
                all.map(|(b, k)| f64::from(if of(b, k) { bound } else { none }))
                    .collect()
            };
            let lows = cx.weights("lows", ty, &cut(0.0, f32::NEG_INFINITY, 0..2));
            let highs = cx.weights("highs", ty, &cut(1.0, f32::INFINITY, 2..4));
            (lows, highs)
        });
        let domain = [grid[0], grid[1], self.boxes.len().into(), 4.into()];
        cx.stage(&domain, out, Mode::Set, |cx, at| {
            let vertical = at[3].rem(index(2));
            let cell = select(vertical.eq(index(0)), at[1].clone(), at[0].clone());
            let centre = (cell.cast(ty) + f64::from(self.offset)) * step(cx, &vertical);
            let place = [flatten(&at[2..], &[self.boxes.len(), 4])];
            let mut from_centre = cx.load_from(edges, &place);
            if let Some(half_sides) = &half_sides {
                from_centre = from_centre + half_sides(cx, &place);
            }
            let mut edge = (centre + from_centre) / image(cx, &vertical);
            if let Some((lows, highs)) = bounds {
                edge = edge
                    .max(cx.load_from(lows, &place))
                    .min(cx.load_from(highs, &place));
            }
            if self.clip {
                edge = clamp(edge, 0.0, 1.0);
            }
            (vec![index(0), flatten(at, &domain)], edge)
        });
        let [first, ..] = self.variance;
        let equal = self.variance == [first; 4];
        let variance = (!equal).then(|| cx.weights("variance", ty, &wide(&self.variance)));
        let cells = grid[0].product(grid[1]).product(self.boxes.len().into());
        cx.stage(&[cells, 4.into()], out, Mode::Set, |cx, at| {
            let value = match variance {
                Some(variance) => cx.load_from(variance, &at[1..]),
                None => number(f64::from(first), ty),
            };
            (vec![index(1), &at[0] * extent(4) + &at[1]], value)
        });
    }

    /// The part of each edge of each box that comes from sides in units with symbols, if there are any: computed in the order in
    /// which [`Side::half`] does.
    fn half_sides(
        &self,
        cx: &mut Lower<'_>,
    ) -> Option<impl Fn(&Lower<'_>, &[Scalar]) -> Scalar + use<>> {
        const NONE: Side = Side {
            size: 0.0,
            times: 1.0,
            over: 1.0,
        };
        if self.boxes.iter().all(|b| b.sides.is_none()) {
            return None;
        }
        let sides = self.boxes.iter().flat_map(|b| {
            let [width, height] = b.sides.unwrap_or([NONE; 2]);
            let before = |side: Side| Side {
                size: -side.size,
                ..side
            };
            [before(width), before(height), width, height]
        });
        let sides: Vec<Side> = sides.collect();
        let mut table = |name: &str, of: fn(&Side) -> f32| {
            let values: Vec<f64> = sides.iter().map(|side| of(side).into()).collect();
            cx.weights(name, ElementType::F32, &values)
        };
        let sizes = table("sizes", |side| side.size);
        let times = table("times", |side| side.times);
        let over = table("over", |side| side.over);
        let unit = self.unit.scalar();
        Some(move |cx: &Lower<'_>, place: &[Scalar]| {
            let half = cx.load_from(sizes, place) * &unit * 0.5;
            half * cx.load_from(times, place) / cx.load_from(over, place)
        })
    }
}
