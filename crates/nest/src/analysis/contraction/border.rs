//! Borders of zeros: what is known of the padding around a picture that windows read.

use super::numbered::Numbered;
use super::{Contraction, offset};
use crate::ir::{Nest, Stage};
use std::cmp::Reverse;
use std::ops::Range;

/// Elements of the first factor of a contraction that are zero: that of offset `o` from the factor's first element, unless the
/// digit
///
/// > `first + o / stride % extent`
///
/// is in `inside`, where no offset that the contraction reads carries over to the digit or from it to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Border {
    /// How far apart elements are whose digits differ by one.
    pub stride: usize,
    /// How many digits there are.
    pub extent: usize,
    /// The digit of the first element, and what is left over below it.
    pub first: (usize, usize),
    /// The digits of elements that may be other than zero.
    pub inside: Range<usize>,
}

impl Contraction {
    /// The borders of the first factor, which has `len` elements and which these stages write, where the symbol of number `k` is
    /// `values[k]`; none if nothing is known of them.
    pub fn left_borders(
        &self,
        len: usize,
        writers: &[(&Nest, &Stage)],
        values: &[usize],
    ) -> Vec<Border> {
        let other_than_zero = writers
            .iter()
            .filter(|(_, stage)| stage.value.as_const() != Some(0));
        let steps = other_than_zero.map(|(nest, stage)| Steps::of(nest, stage, values));
        let Some(steps) = steps.collect::<Option<Vec<Steps>>>() else {
            return Vec::new();
        };
        let mut outer = len;
        let mut borders = Vec::new();
        for stride in self.left_dims() {
            if !outer.is_multiple_of(stride) || outer == stride {
                continue;
            }
            let extent = outer / stride;
            let digits = steps.iter().map(|steps| steps.digits(stride, outer));
            let inside = digits.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            if let Some(inside) = inside.filter(|inside| *inside != (0..extent)) {
                let base = self.left.tensor.base;
                borders.push(Border {
                    stride,
                    extent,
                    first: (base / stride % extent, base % stride),
                    inside,
                });
            }
            outer = stride;
        }
        borders
    }

    /// The strides of the dims of the first factor that windows may reach beyond, and of those around them, the largest first. The
    /// outputs and the taps along a dim step over it by multiples of its stride.
    fn left_dims(&self) -> Vec<usize> {
        let (outer, inner) = self.axes.split_at(self.outer);
        let strides = |axes: &[super::Stride], is_shared: bool| {
            let moves = |axis: &&super::Stride| {
                axis.extent > 1 && axis.left > 0 && (is_shared || axis.right == 0)
            };
            let strides = axes.iter().filter(moves).map(|axis| axis.left);
            let mut strides: Vec<usize> = strides.collect();
            strides.sort_unstable_by_key(|stride| Reverse(*stride));
            strides
        };
        let (points, taps) = (strides(outer, false), strides(inner, true));
        let reach = inner.iter().map(|axis| (axis.extent - 1) * axis.left).sum();
        let around = points.iter().take_while(|stride| **stride > reach).count();
        let pairs = points[around..].iter().zip(&taps);
        let dims = pairs.map(|(point, tap)| greatest_common_divisor(*point, *tap));
        points[..around].iter().copied().chain(dims).collect()
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}

/// The offsets that a stage writes: the first one, and the strides and extents of the axes that it moves along.
struct Steps {
    base: usize,
    axes: Vec<(usize, usize)>,
}

impl Steps {
    /// `None` if offsets are not affine.
    fn of(nest: &Nest, stage: &Stage, values: &[usize]) -> Option<Steps> {
        let numbered = Numbered::at(nest, values);
        let form = offset(numbered, stage.target, &stage.at)?;
        let axes = stage.domain.iter().map(|axis| {
            let extent = numbered.number(axis.extent)?;
            Some((form.step(axis.id), extent))
        });
        Some(Steps {
            base: form.base,
            axes: axes.collect::<Option<_>>()?,
        })
    }

    /// A range in which the digits `o / stride % (outer / stride)` of all offsets lie.
    fn digits(&self, stride: usize, outer: usize) -> Range<usize> {
        let mut most = self.base % outer;
        for (step, extent) in &self.axes {
            if step % outer != 0 {
                most = most.saturating_add(step.saturating_mul(extent.saturating_sub(1)));
            }
        }
        match most < outer {
            true => self.base % outer / stride..most / stride + 1,
            false => 0..outer / stride,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// The borders of a picture of 12 lines of 13 pixels, of which `lines` and `columns` hold another one, beside 16 windows of 3×3
    /// of its points, `step` and `dilation` apart.
    fn borders([lines, columns]: [Range<usize>; 2], [step, dilation]: [usize; 2]) -> Vec<Border> {
        let points = [12, 13].map(|n| (n - 2 * dilation - 1) / step + 1);
        let [rows, pixels] = points;
        let (height, width) = (lines.len(), columns.len());
        let (top, left) = (lines.start, columns.start);
        let text = format!(
            "input x: f32[{height}, {width}, 8]
            input w: f32[16, 8, 3, 3]
            temporary t: f32[12, 13, 8]
            output y: f32[{rows}, {pixels}, 16]
            for i<12, j<13, k<8: t[i, j, k] = 0.0
            for i<{height}, j<{width}, k<8: t[(i + {top}), (j + {left}), k] = x[i, j, k]
            for i<{rows}, j<{pixels}, k<16: y[i, j, k] = add[l<8, m<3, n<3; 0.0](term(\
             t[((i * {step}) + (m * {dilation})), ((j * {step}) + (n * {dilation})), l], w[k, l, m, n]))"
        );
        let nest = parse(&text).unwrap();
        let (window, writers) = nest.stages.split_last().unwrap();
        let writers: Vec<_> = writers.iter().map(|stage| (&nest, stage)).collect();
        let contraction = Contraction::of(&nest, window).unwrap();
        contraction.left_borders(12 * 13 * 8, &writers, &[])
    }

    fn border(stride: usize, extent: usize, inside: Range<usize>) -> Border {
        Border {
            stride,
            extent,
            first: (0, 0),
            inside,
        }
    }

    #[test]
    fn lines_and_columns_around_a_picture() {
        let expected = [border(13 * 8, 12, 1..10), border(8, 13, 2..12)];
        for steps in [[1, 1], [2, 1], [1, 4], [2, 3]] {
            assert_eq!(borders([1..10, 2..12], steps), expected);
        }
        // There are none beside lines.
        assert_eq!(borders([1..10, 0..13], [1, 1]), expected[..1]);
        assert_eq!(borders([0..12, 0..13], [1, 1]), []);
    }
}
