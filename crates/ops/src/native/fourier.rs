//! Discrete Fourier transforms along the axes of a complex tensor, for the operators of that family.
//!
//! Computed in `f64` whatever the element type is, and rounded once at the end. A length that is no
//! power of two is not padded.

use super::real::real_type;
use super::tensors::float_groups;
use crate::error::ensure;
use crate::infer::normalize_axes;
use crate::{Evaluate, Infer, OpError, Stop};
use rustfft::FftPlanner;
use rustfft::num_complex::Complex64;
use vinelift_tensor::memory::{collected, filled, room_for};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor, element_count};

/// How many numbers the library's tables for a transform have for each of its elements, and more.
const TABLES: usize = 16;

/// The most numbers that are transformed before it is asked whether they are still wanted, unless a single
/// line has more.
const TURN: usize = 1 << 14;

/// How many lines along an axis before the last are copied, transformed and copied back together: as many numbers as a
/// few lines of the cache hold, so that what is transformed stays in it.
const LINES: usize = 8;

/// The direction of a transform; the inverse one divides by the length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Direction {
    Forward,
    Inverse,
}

/// An axis that is transformed, and its `signal_size` unless that is the extent that it has.
pub(super) type Axis = (usize, Option<usize>);

/// A complex tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    shape: Vec<usize>,
    values: Vec<Complex64>,
}

impl Grid {
    /// From real and imaginary parts, which alternate.
    pub(super) fn from_pairs(shape: &[usize], parts: &[f64]) -> Result<Grid, OpError> {
        Grid::collected(
            shape,
            parts
                .as_chunks()
                .0
                .iter()
                .map(|[re, im]| Complex64::new(*re, *im)),
        )
    }

    fn collected(
        shape: &[usize],
        values: impl Iterator<Item = Complex64>,
    ) -> Result<Grid, OpError> {
        Ok(Grid {
            shape: shape.to_vec(),
            values: collected(values)?,
        })
    }

    /// Without an imaginary part.
    pub(super) fn from_reals(shape: &[usize], reals: &[f64]) -> Result<Grid, OpError> {
        Grid::collected(shape, reals.iter().map(|x| Complex64::new(*x, 0.0)))
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// A tensor of the real and imaginary parts, each rounded to `ty`; they are a last dim.
    pub(super) fn to_tensor(&self, ty: ElementType) -> Result<Tensor, OpError> {
        let shape = [&self.shape[..], &[2]].concat();
        Ok(float_groups(
            ty,
            &shape,
            self.values.iter().map(|z| [z.re, z.im]),
        )?)
    }

    pub(super) fn reals(&self) -> Result<Vec<f64>, OpError> {
        Ok(collected(self.values.iter().map(|z| z.re))?)
    }

    /// Each axis cut, or filled up with zeros at its end, to the extent that it has in `shape`.
    pub(super) fn resized(self, shape: &[usize]) -> Result<Grid, OpError> {
        if self.shape == shape {
            return Ok(self);
        }
        let count = element_count(shape).unwrap_or(usize::MAX);
        let mut values = filled(count, Complex64::ZERO)?;
        let both = self.shape.iter().zip(shape);
        let common: Vec<usize> = both.map(|(&a, &b)| a.min(b)).collect();
        if common.contains(&0) {
            let shape = shape.to_vec();
            return Ok(Grid { shape, values });
        }
        let rows = common
            .split_last()
            .map_or(1, |(_, outer)| outer.iter().product());
        let width = common.last().copied().unwrap_or(1);
        for row in 0..rows {
            let (mut rest, mut from, mut to) = (row, 0, 0);
            let (mut stride, mut new_stride) = (1, 1);
            for d in (0..shape.len()).rev() {
                if d + 1 < shape.len() {
                    from += rest % common[d] * stride;
                    to += rest % common[d] * new_stride;
                    rest /= common[d];
                }
                stride *= self.shape[d];
                new_stride *= shape[d];
            }
            values[to..to + width].copy_from_slice(&self.values[from..from + width]);
        }
        Ok(Grid {
            shape: shape.to_vec(),
            values,
        })
    }

    /// As [`Grid::resized`], of one axis.
    pub(super) fn with_extent(self, axis: usize, extent: usize) -> Result<Grid, OpError> {
        let mut shape = self.shape.clone();
        shape[axis] = extent;
        self.resized(&shape)
    }

    /// Its last two axes exchanged.
    pub(super) fn with_last_axes_exchanged(mut self) -> Result<Grid, OpError> {
        let rank = self.shape.len();
        let (n, m) = (self.shape[rank - 2], self.shape[rank - 1]);
        let mut values = room_for(self.values.len())?;
        for block in self.values.chunks_exact(n.saturating_mul(m).max(1)) {
            for j in 0..m {
                values.extend((0..n).map(|i| block[i * m + j]));
            }
        }
        self.values = values;
        self.shape.swap(rank - 2, rank - 1);
        Ok(self)
    }

    /// The transform along one axis.
    pub(super) fn transform(
        &mut self,
        axis: usize,
        direction: Direction,
        stop: Stop<'_>,
    ) -> Result<(), OpError> {
        let n = self.shape[axis];
        if n <= 1 || self.values.is_empty() {
            return Ok(());
        }
        // The library allocates its tables itself, and ends the process if it cannot.
        drop(room_for::<Complex64>(n.saturating_mul(TABLES))?);
        let mut planner = FftPlanner::new();
        let fft = match direction {
            Direction::Forward => planner.plan_fft_forward(n),
            Direction::Inverse => planner.plan_fft_inverse(n),
        };
        let inner: usize = self.shape[axis + 1..].iter().product();
        let mut scratch = filled(fft.get_inplace_scratch_len(), Complex64::ZERO)?;
        if inner == 1 {
            for lines in self.values.chunks_mut((TURN / n).max(1) * n) {
                stop.go_on()?;
                fft.process_with_scratch(lines, &mut scratch);
            }
        } else {
            let mut lines = filled(n.saturating_mul(inner.min(LINES)), Complex64::ZERO)?;
            for block in self.values.chunks_exact_mut(n * inner) {
                for first in (0..inner).step_by(LINES) {
                    stop.go_on()?;
                    let columns = first..inner.min(first + LINES);
                    let lines = &mut lines[..n * columns.len()];
                    for (k, row) in block.chunks_exact(inner).enumerate() {
                        let places = lines[k..].iter_mut().step_by(n);
                        places
                            .zip(&row[columns.clone()])
                            .for_each(|(to, z)| *to = *z);
                    }
                    fft.process_with_scratch(lines, &mut scratch);
                    for (k, row) in block.chunks_exact_mut(inner).enumerate() {
                        let found = lines[k..].iter().step_by(n);
                        let places = row[columns.clone()].iter_mut();
                        places.zip(found).for_each(|(to, z)| *to = *z);
                    }
                }
            }
        }
        if direction == Direction::Inverse {
            let scale = 1.0 / n as f64;
            self.values.iter_mut().for_each(|z| *z *= scale);
        }
        Ok(())
    }

    /// The inverse transform along one axis, of which only the first `extent / 2 + 1` elements are
    /// here: element `extent - k` is the conjugate of element `k`. The result is real.
    pub(super) fn inverse_of_half(
        self,
        axis: usize,
        extent: usize,
        stop: Stop<'_>,
    ) -> Result<Grid, OpError> {
        let mut whole = self
            .with_extent(axis, extent / 2 + 1)?
            .with_extent(axis, extent)?;
        if !whole.values.is_empty() {
            let inner: usize = whole.shape[axis + 1..].iter().product();
            for block in whole.values.chunks_exact_mut(extent * inner) {
                for k in 1..extent.div_ceil(2) {
                    for i in 0..inner {
                        block[(extent - k) * inner + i] = block[k * inner + i].conj();
                    }
                }
            }
        }
        whole.transform(axis, Direction::Inverse, stop)?;
        Ok(whole)
    }
}

/// Checks the inputs `data`, `axes` and `signal_size`. Gives the dims of the tensor that is
/// transformed, which for a complex one are those before the last, and the axes if they are known;
/// then the sizes may be left out where `signal_size` is not known.
pub(super) fn infer(cx: &Infer<'_>, complex: bool) -> Result<Inferred, OpError> {
    real_type(cx, "data")?;
    let data = cx.shape("data");
    let least = if complex { 2 } else { 1 };
    ensure!(
        data.rank().is_none_or(|r| r >= least),
        "`data` must have rank at least {least}, found {data}"
    );
    let dims = match (data.dims(), complex) {
        (Some([dims @ .., last]), true) => {
            ensure!(
                last.contains(2),
                "the last dim of `data` {data} must be 2, for real and imaginary part"
            );
            Some(dims.to_vec())
        }
        (dims, _) => dims.map(<[Dim]>::to_vec),
    };
    let axes = cx.integers("axes")?;
    let sizes = cx.integers("signal_size")?;
    if cx.has("signal_size") {
        let (many, sizes) = (cx.length("axes"), cx.length("signal_size"));
        if let (Some(axes), Some(sizes)) = (many, sizes) {
            ensure!(
                axes == sizes,
                "`signal_size` must have as many elements as `axes`, {axes}, found {sizes}"
            );
        }
    }
    let known = match (&dims, axes) {
        (Some(dims), Some(axes)) => Some(self::axes(&axes, sizes.as_deref(), dims.len())?),
        _ => None,
    };
    Ok(Inferred {
        dims,
        axes: known,
        sizes_known: sizes.is_some() || !cx.has("signal_size"),
    })
}

/// The results of [`infer`].
pub(super) struct Inferred {
    dims: Option<Vec<Dim>>,
    axes: Option<Vec<Axis>>,
    sizes_known: bool,
}

impl Inferred {
    /// The shape of the result: `whole` gives the dim of an axis from that of the data, where no
    /// size is given for it, and `cut` makes of that, or of the size, the dim of the last axis.
    pub(super) fn shape(
        self,
        whole: impl Fn(Dim) -> Dim,
        cut: impl Fn(Dim) -> Dim,
        complex: bool,
    ) -> PartialShape {
        let Some(mut dims) = self.dims else {
            return PartialShape::DYNAMIC;
        };
        match &self.axes {
            None => dims.fill(Dim::ANY),
            Some(axes) => {
                for (k, &(axis, size)) in axes.iter().enumerate() {
                    let last = k + 1 == axes.len();
                    let dim = match (size, last) {
                        (Some(size), _) => Dim::fixed(size),
                        (None, _) if !self.sizes_known => Dim::ANY,
                        (None, true) => whole(dims[axis]),
                        (None, false) => dims[axis],
                    };
                    dims[axis] = if last { cut(dim) } else { dim };
                }
            }
        }
        if complex {
            dims.push(Dim::fixed(2));
        }
        PartialShape::ranked(dims)
    }
}

/// The axes of a tensor of `rank` dims, with their sizes.
fn axes(axes: &[i64], sizes: Option<&[i64]>, rank: usize) -> Result<Vec<Axis>, OpError> {
    let axes = normalize_axes(axes, rank)?;
    let size = |k: usize| match sizes.and_then(|s| s.get(k)) {
        None | Some(-1) => Ok(None),
        Some(&size) => usize::try_from(size).map(Some).map_err(|_| {
            OpError::Shape(format!("`signal_size` must be at least -1, found {size}"))
        }),
    };
    let sized = axes.into_iter().enumerate();
    sized.map(|(k, axis)| Ok((axis, size(k)?))).collect()
}

/// The axes to transform in a tensor of `rank` dims.
pub(super) fn axes_of(cx: &Evaluate<'_>, rank: usize) -> Result<Vec<Axis>, OpError> {
    let sizes = match cx.has("signal_size") {
        true => Some(cx.integers("signal_size")?),
        false => None,
    };
    axes(&cx.integers("axes")?, sizes.as_deref(), rank)
}

/// The input `data`, as a complex tensor.
pub(super) fn read(cx: &Evaluate<'_>, complex: bool) -> Result<Grid, OpError> {
    let (data, shape) = (cx.input("data"), cx.shape("data"));
    // Most are of this type: without a copy as f64.
    if data.element_type() == ElementType::F32 {
        let values = data.as_slice::<f32>()?;
        let complex_of = |re: f32, im: f32| Complex64::new(re.into(), im.into());
        return match (shape, complex) {
            ([dims @ .., _], true) => {
                let pairs = values.as_chunks().0.iter();
                Grid::collected(dims, pairs.map(|[re, im]| complex_of(*re, *im)))
            }
            _ => Grid::collected(shape, values.iter().map(|x| complex_of(*x, 0.0))),
        };
    }
    let values = cx.f64s("data")?;
    match (shape, complex) {
        ([dims @ .., _], true) => Grid::from_pairs(dims, &values),
        _ => Grid::from_reals(shape, &values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(shape: &[usize]) -> Grid {
        let n: usize = shape.iter().product();
        Grid::from_reals(shape, &(0..n).map(|x| x as f64).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn cuts_and_fills() {
        let grid = counting(&[2, 3]).resized(&[3, 2]).unwrap();
        assert_eq!(grid.reals().unwrap(), [0.0, 1.0, 3.0, 4.0, 0.0, 0.0]);
        assert_eq!(
            counting(&[0, 3]).resized(&[1, 1]).unwrap().reals().unwrap(),
            [0.0]
        );
        assert_eq!(
            counting(&[2, 0]).resized(&[1, 2]).unwrap().reals().unwrap(),
            [0.0; 2]
        );
        assert_eq!(counting(&[2, 3]).resized(&[2, 0]).unwrap().shape(), [2, 0]);
        assert_eq!(counting(&[]).resized(&[]).unwrap().reals().unwrap(), [0.0]);
        let message = "out of memory: cannot allocate 18446744073709551615 bytes";
        let error = counting(&[1]).resized(&[isize::MAX as usize]).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    /// Against the sum of the definition, for lengths that are prime, powers of two and neither.
    #[test]
    fn as_the_definition_says() {
        let lengths = [1, 2, 3, 4, 6, 7, 16, 31];
        let inners = [1, 3, LINES - 1, LINES, LINES + 1, 3 * LINES];
        for (n, inner) in lengths.into_iter().flat_map(|n| inners.map(|i| (n, i))) {
            let grid = counting(&[2, n, inner]);
            let mut found = grid.clone();
            found.transform(1, Direction::Forward, Stop::NEVER).unwrap();
            for (o, m, i) in [(0, 0, 0), (1, n - 1, inner - 1), (1, n / 2, inner / 2)] {
                let term = |k: usize| {
                    let angle = -std::f64::consts::TAU * (m * k) as f64 / n as f64;
                    grid.values[(o * n + k) * inner + i] * Complex64::from_polar(1.0, angle)
                };
                let want: Complex64 = (0..n).map(term).sum();
                assert!(
                    (found.values[(o * n + m) * inner + i] - want).norm() < 1e-9,
                    "{n}"
                );
            }
            found.transform(1, Direction::Inverse, Stop::NEVER).unwrap();
            let off = found
                .values
                .iter()
                .zip(&grid.values)
                .map(|(a, b)| (a - b).norm());
            assert!(off.fold(0.0, f64::max) < 1e-9, "{n}");
        }
    }
}
