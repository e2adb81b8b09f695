//! Boxes of given sizes around the centres of a grid's cells, relative to the size of an image, with their
//! variances: what PriorBox and PriorBoxClustered give.

use crate::Lower;
use crate::error::ensure;
use crate::layout::extent::{countable, naturals};
use crate::layout::index_map::{extent, flatten};
use crate::{Infer, OpError, TensorType};
use vinelift_nest::Mode;
use vinelift_nest::build::{clamp, index, number, select};
use vinelift_tensor::{Dim, ElementType, PartialShape};

/// A box: what is added to the centre for its left, upper, right and lower edge.
pub(super) struct Prior {
    pub(super) edges: [f32; 4],
    /// Whether the upper left corner is kept above 0 and the lower right one below 1.
    pub(super) cut: bool,
}

/// A grid of boxes, with horizontal numbers before vertical ones.
pub(super) struct Priors {
    /// Of the first cell's centre, in steps.
    pub(super) offset: f32,
    pub(super) step: [f32; 2],
    pub(super) image: [f32; 2],
    /// The prior boxes of each cell.
    pub(super) boxes: Vec<Prior>,
    /// Whether all coordinates are brought within 0 and 1.
    pub(super) clip: bool,
    pub(super) variance: [f32; 4],
}

/// The sizes in the inputs: rows and columns of the grid, height and width of the image.
pub(super) struct Sizes {
    pub(super) grid: [usize; 2],
    pub(super) image: [usize; 2],
}

/// The type of the output for `count` boxes in each cell.
pub(super) fn infer(cx: &Infer<'_>, count: usize) -> Result<Vec<TensorType>, OpError> {
    let grid = pair("output_size", cx.integers("output_size")?)?;
    pair("image_size", cx.integers("image_size")?)?;
    let numbers = match grid {
        Some([rows, columns]) => [rows, columns, count, 4]
            .into_iter()
            .fold(Dim::fixed(1), |n, d| n.mul(Dim::fixed(d))),
        None => Dim::ANY,
    };
    let shape = countable(PartialShape::ranked(vec![Dim::fixed(2), numbers]))?;
    Ok(vec![TensorType::new(ElementType::F32, shape)])
}

/// The values of the inputs, which `infer` has asked for.
pub(super) fn sizes(cx: &Lower<'_>) -> Option<Sizes> {
    let of = |name| pair(name, cx.integers(name)).ok().flatten();
    Some(Sizes {
        grid: of("output_size")?,
        image: of("image_size")?,
    })
}

fn pair(name: &'static str, values: Option<Vec<i64>>) -> Result<Option<[usize; 2]>, OpError> {
    let Some(values) = values else {
        return Ok(None);
    };
    let found = naturals(name, &values, 0)?;
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
    pub(super) fn lower(&self, cx: &mut Lower<'_>, grid: [usize; 2]) {
        let ty = ElementType::F32;
        let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let out = cx.output(0);
        if cx.shape_of(out).contains(&0) {
            return;
        }
        let edges: Vec<f32> = self.boxes.iter().flat_map(|b| b.edges).collect();
        let edges = cx.weights("edges", ty, &wide(&edges));
        let step = cx.weights("step", ty, &wide(&self.step));
        let image = cx.weights("image", ty, &wide(&self.image));
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
        let domain = [grid[0], grid[1], self.boxes.len(), 4];
        cx.stage(&domain, out, Mode::Set, |cx, at| {
            let vertical = at[3].rem(index(2));
            let cell = select(vertical.eq(index(0)), at[1].clone(), at[0].clone());
            let along = |table| cx.load_from(table, std::slice::from_ref(&vertical));
            let centre = (cell.cast(ty) + f64::from(self.offset)) * along(step);
            let place = [flatten(&at[2..], &[self.boxes.len(), 4])];
            let mut edge = (centre + cx.load_from(edges, &place)) / along(image);
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
        let cells = grid[0] * grid[1] * self.boxes.len();
        cx.stage(&[cells, 4], out, Mode::Set, |cx, at| {
            let value = match variance {
                Some(variance) => cx.load_from(variance, &at[1..]),
                None => number(f64::from(first), ty),
            };
            (vec![index(1), &at[0] * extent(4) + &at[1]], value)
        });
    }
}
