//! Borders of zeros: what is known of the padding around a picture that windows read.

use super::numbered::Numbered;
use super::{Contraction, Stride, offset};
use crate::ir::{Nest, Stage};
use std::cmp::Reverse;
use std::ops::Range;
use vinelift_tensor::gcd;

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

    /// The strides of the dims of the first factor, the largest first. Points of the domain and taps that move along the same dim step
    /// over each other, by multiples of its stride; or the taps are further apart than all points, which no other taps step over. All
    /// other axes step over those with smaller strides.
    fn left_dims(&self) -> Vec<usize> {
        let axes = self.axes.iter().enumerate();
        let axes = axes.filter(|(_, axis)| axis.extent > 1 && axis.left > 0);
        let mut axes: Vec<(&Stride, bool)> = axes.map(|(at, a)| (a, at >= self.outer)).collect();
        axes.sort_by_key(|(axis, is_tap)| Reverse((axis.left, *is_tap)));
        let overlaps = |axis: &Stride, smaller: &[(&Stride, bool)]| {
            let reach = smaller
                .iter()
                .map(|(axis, _)| (axis.extent - 1) * axis.left);
            reach.sum::<usize>() >= axis.left
        };
        let mut dims = Vec::new();
        let mut rest = axes.as_slice();
        while let [(largest, is_tap), smaller @ ..] = rest {
            rest = smaller;
            let mut stride = largest.left;
            if let [(next, next_is_tap), others @ ..] = smaller {
                let is_alone = !next_is_tap && !overlaps(next, others);
                if overlaps(largest, smaller) || *is_tap && is_alone {
                    stride = gcd(stride as i64, next.left as i64) as usize;
                    rest = others;
                }
            }
            dims.push(stride);
        }
        dims
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

    /// The borders of a picture of 12 lines of 13 pixels of 8 channels, of which `lines` and `columns` hold another one, that 16 windows
    /// of 3×3 of its points, `step` and `dilation` apart, slide over. Channels are the first dim, or the last.
    fn borders(
        [lines, columns]: [Range<usize>; 2],
        [step, dilation]: [usize; 2],
        are_first: bool,
    ) -> Vec<Border> {
        let [rows, pixels] = [12, 13].map(|n| (n - 2 * dilation - 1) / step + 1);
        let (height, width) = (lines.len(), columns.len());
        let row = format!("((i * {step}) + (m * {dilation}))");
        let pixel = format!("((j * {step}) + (n * {dilation}))");
        let of = |channel: &str, row: &str, pixel: &str| match are_first {
            true => format!("{channel}, {row}, {pixel}"),
            false => format!("{row}, {pixel}, {channel}"),
        };
        let (top, left) = (
            format!("(i + {})", lines.start),
            format!("(j + {})", columns.start),
        );
        let text = format!(
            "input x: f32[{height}, {width}, 8]
            input w: f32[16, 8, 3, 3]
            temporary t: f32[{}]
            output y: f32[{rows}, {pixels}, 16]
            for i<12, j<13, k<8: t[{}] = 0.0
            for i<{height}, j<{width}, k<8: t[{}] = x[i, j, k]
            for i<{rows}, j<{pixels}, k<16: y[i, j, k] = add[l<8, m<3, n<3; 0.0](term(t[{}], w[k, l, m, n]))",
            of("8", "12", "13"),
            of("k", "i", "j"),
            of("k", &top, &left),
            of("l", &row, &pixel)
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
        for (are_first, pixel) in [(false, 8), (true, 1)] {
            let expected = [border(13 * pixel, 12, 1..10), border(pixel, 13, 2..12)];
            for steps in [[1, 1], [2, 1], [1, 4], [2, 3]] {
                assert_eq!(borders([1..10, 2..12], steps, are_first), expected);
            }
            // There are none beside lines.
            assert_eq!(borders([1..10, 0..13], [1, 1], are_first), expected[..1]);
            assert_eq!(borders([0..12, 0..13], [1, 1], are_first), []);
        }
    }
}
