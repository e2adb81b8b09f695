//! How a window slides: its stride, its dilation and its pads, and how many windows there are along a dim.
//!
//! Specification: Shape calculation rules for Pooling Operators, and Convolution-1.

use super::dim_windows::DimWindows;
use crate::OpError;
use crate::error::ensure;
use crate::layout::extent::grown;
use crate::layout::index_map::extent;
use serde::Deserialize;
use vinelift_tensor::{Dim, Extent, Formula, symbols};

/// The attribute `auto_pad`: where the pads come from.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum AutoPad {
    /// The attributes `pads_begin` and `pads_end`.
    #[default]
    Explicit,
    /// As many as give `⌈extent / stride⌉` windows, an odd one at the end.
    SameUpper,
    /// As many as give `⌈extent / stride⌉` windows, an odd one at the beginning.
    SameLower,
    /// There are none.
    Valid,
}

/// The attribute `rounding_type`: whether a window that does not fit any more still counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rounding {
    /// No.
    #[default]
    Floor,
    /// Yes.
    Ceil,
    /// Yes, unless it starts in the padding at the end.
    CeilTorch,
}

/// The attributes that say how a window slides, with one number for each spatial dim.
#[derive(Clone, Debug)]
pub(super) struct Slide {
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    pub(super) pads_begin: Vec<usize>,
    pub(super) pads_end: Vec<usize>,
    pub(super) auto_pad: AutoPad,
    pub(super) rounding: Rounding,
}

/// Defines `Attrs`: the attributes that all operators of a [`Slide`] have, and these.
macro_rules! attributes {
    ($($(#[$meta:meta])* $name:ident: $ty:ty),* $(,)?) => {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            strides: Vec<usize>,
            #[serde(default)]
            pads_begin: Vec<usize>,
            #[serde(default)]
            pads_end: Vec<usize>,
            #[serde(default)]
            auto_pad: $crate::window::slide::AutoPad,
            $($(#[$meta])* $name: $ty,)*
        }

        impl Attrs {
            fn slide(&self, dilations: &[usize], rounding: Rounding) -> Slide {
                Slide {
                    strides: self.strides.clone(),
                    dilations: dilations.to_vec(),
                    pads_begin: self.pads_begin.clone(),
                    pads_end: self.pads_end.clone(),
                    auto_pad: self.auto_pad,
                    rounding,
                }
            }
        }
    };
}

pub(super) use attributes;

impl Slide {
    /// With dilations of 1 if there are none.
    pub(super) fn or_undilated(mut self) -> Slide {
        if self.dilations.is_empty() {
            self.dilations = vec![1; self.strides.len()];
        }
        self
    }

    /// Checks the attributes for `count` spatial dims.
    pub(super) fn check(&self, count: usize) -> Result<(), OpError> {
        let explicit = self.auto_pad == AutoPad::Explicit;
        for (name, list, needed, least) in [
            ("strides", &self.strides, true, 1),
            ("dilations", &self.dilations, true, 1),
            ("pads_begin", &self.pads_begin, explicit, 0),
            ("pads_end", &self.pads_end, explicit, 0),
        ] {
            ensure!(
                !needed || list.len() == count,
                "`{name}` {list:?} must have {count} elements, one for each spatial dim"
            );
            ensure!(
                list.iter().all(|&n| n >= least),
                "`{name}` {list:?} must be at least {least}"
            );
        }
        Ok(())
    }

    /// How many windows of `kernel` elements there are along spatial dim `d` of extent `n`.
    pub(super) fn windows(&self, d: usize, n: Dim, kernel: Dim) -> Result<Dim, OpError> {
        if let (Some(n), Some(kernel)) = (n.extent(), kernel.get()) {
            return Ok(self.along(d, n, kernel)?.windows.into());
        }
        let windows = |n: usize, kernel: usize| {
            let along = self.along_number(d, n, kernel)?;
            Ok::<usize, OpError>(along.windows.example())
        };
        let most = n.max().map(|n| windows(n, kernel.min().max(1)));
        let least = kernel
            .max()
            .and_then(|kernel| windows(n.min(), kernel).ok());
        Ok(Dim::between(least.unwrap_or(1), most.transpose()?))
    }

    /// The windows of `kernel` elements along spatial dim `d` of extent `n`.
    pub(super) fn along(&self, d: usize, n: Extent, kernel: usize) -> Result<DimWindows, OpError> {
        ensure!(kernel > 0, "the kernel has no elements in spatial dim {d}");
        match self.along_symbolic(d, n, kernel) {
            Some(windows) => Ok(windows),
            None => self.along_number(d, n.pin(), kernel),
        }
    }

    /// The windows of `kernel` along each of the spatial dims, for what has passed [`Slide::windows`].
    pub(super) fn along_dims(
        &self,
        spatial: &[impl Into<Extent> + Copy],
        kernel: &[usize],
    ) -> Vec<DimWindows> {
        let dims = spatial.iter().zip(kernel).enumerate();
        dims.filter_map(|(d, (&n, &k))| self.along(d, n.into(), k).ok())
            .collect()
    }

    /// As [`Slide::along`], if the extent has symbols and the pads are the same for all of its numbers, or for those that
    /// leave the same remainder.
    pub(super) fn along_symbolic(&self, d: usize, n: Extent, kernel: usize) -> Option<DimWindows> {
        let (stride, dilation) = (small(self.strides[d])?, small(self.dilations[d])?);
        let reach = small(kernel)?.checked_sub(1)?.checked_mul(dilation)? + 1;
        let (begin, end) = match self.auto_pad {
            _ if !n.is_symbolic() => return None,
            AutoPad::Explicit => (small(self.pads_begin[d])?, small(self.pads_end[d])?),
            AutoPad::SameUpper if stride == 1 => ((reach - 1) / 2, reach / 2),
            AutoPad::SameLower if stride == 1 => (reach / 2, (reach - 1) / 2),
            AutoPad::Valid => (0, 0),
            AutoPad::SameUpper | AutoPad::SameLower => {
                return self.along_with_same_pads(d, n, small(kernel)?, reach);
            }
        };
        // The elements by which the last window reaches further if the count is rounded up.
        let further = match self.rounding {
            Rounding::Floor => 0,
            Rounding::Ceil | Rounding::CeilTorch => stride - 1,
        };
        let starts = grown(n.into(), i128::from(begin + end - reach + further + stride));
        let mut windows = starts.extent()?.quotient(self.strides[d].into());
        let mut ahead = end - reach + further;
        if self.rounding == Rounding::CeilTorch {
            let before = n.sum(usize::try_from(begin + stride - 1).ok()?.into());
            if !windows.product(self.strides[d].into()).at_most(before) {
                windows = windows.difference(Extent::ONE);
            }
            ahead = ahead.min(-1);
        }
        windows.is_symbolic().then_some(DimWindows {
            extent: n,
            kernel: small(kernel)?,
            stride,
            dilation,
            begin,
            end,
            windows,
            beyond: i128::from(ahead + reach),
        })
    }

    /// As [`Slide::along`] with pads that give `⌈n / stride⌉` windows: the plan is for extents that leave the same remainder.
    fn along_with_same_pads(
        &self,
        d: usize,
        n: Extent,
        kernel: i64,
        reach: i64,
    ) -> Option<DimWindows> {
        let stride = small(self.strides[d])?;
        let windows = n.sum((self.strides[d] - 1).into());
        let windows = windows.quotient(self.strides[d].into());
        let over = windows.formula().times(&Formula::number(stride))?;
        let over = symbols::pin(&over.minus(n.formula())?)?;
        let total = reach - stride + over;
        // A window that is shorter than a step may fit once more.
        if !windows.is_symbolic() || (total < 0 && self.rounding != Rounding::Floor) {
            return None;
        }
        let pads = [total.max(0) / 2, total.max(0) - total.max(0) / 2];
        let [begin, end] = match self.auto_pad {
            AutoPad::SameLower => [pads[1], pads[0]],
            _ => pads,
        };
        Some(DimWindows {
            extent: n,
            kernel,
            stride,
            dilation: small(self.dilations[d])?,
            begin,
            end,
            windows,
            beyond: i128::from(total - begin),
        })
    }

    /// As [`Slide::along`] for an extent that is a number.
    fn along_number(&self, d: usize, n: usize, kernel: usize) -> Result<DimWindows, OpError> {
        let (stride, dilation) = (self.strides[d] as i128, self.dilations[d] as i128);
        let wide = n as i128;
        let reach = (kernel as i128 - 1).saturating_mul(dilation) + 1;
        let same = (wide + stride - 1) / stride;
        let total = ((same - 1) * stride + reach - wide).max(0);
        let (begin, end) = match self.auto_pad {
            AutoPad::Explicit => (self.pads_begin[d] as i128, self.pads_end[d] as i128),
            AutoPad::SameUpper => (total / 2, total - total / 2),
            AutoPad::SameLower => (total - total / 2, total / 2),
            AutoPad::Valid => (0, 0),
        };
        let padded = wide + begin + end;
        let far = padded.max(reach).saturating_add(stride).max(dilation);
        ensure!(
            far < 1 << 62,
            "spatial dim {d}: {padded} elements, a window of {reach} and a stride of {stride} are too large"
        );
        ensure!(
            padded >= reach,
            "spatial dim {d}: a window of {reach} elements does not fit into {padded}"
        );
        let free = padded - reach;
        let mut windows = match self.rounding {
            Rounding::Floor => free / stride + 1,
            Rounding::Ceil | Rounding::CeilTorch => (free + stride - 1) / stride + 1,
        };
        if self.rounding == Rounding::CeilTorch && (windows - 1) * stride >= wide + begin {
            windows -= 1;
        }
        Ok(DimWindows {
            extent: n.into(),
            kernel: extent(kernel),
            stride: stride as i64,
            dilation: dilation as i64,
            begin: begin as i64,
            end: end as i64,
            windows: usize::try_from(windows).unwrap_or(usize::MAX).into(),
            beyond: (windows - 1) * stride - begin + reach - wide,
        })
    }
}

/// `x`, if products of two such numbers are far from the ends of an `i64`.
fn small(x: usize) -> Option<i64> {
    i64::try_from(x).ok().filter(|x| *x <= 1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slide(stride: usize, pads: [usize; 2], auto_pad: AutoPad, rounding: Rounding) -> Slide {
        Slide {
            strides: vec![stride],
            dilations: vec![1],
            pads_begin: vec![pads[0]],
            pads_end: vec![pads[1]],
            auto_pad,
            rounding,
        }
    }

    /// By the formulas of the specification, with an extent of 5 and a kernel of 2.
    #[test]
    fn windows_by_rounding_and_pads() {
        let of = |stride, pads, auto, rounding| {
            let slide = slide(stride, pads, auto, rounding);
            let along = slide.along(0, 5.into(), 2).unwrap();
            let windows = along.windows.example();
            let counts = (0..windows).map(|o| along.count_of(o, 5));
            (windows, counts.collect::<Vec<_>>())
        };
        let explicit = AutoPad::Explicit;
        assert_eq!(of(2, [0, 0], explicit, Rounding::Floor), (2, vec![2, 2]));
        assert_eq!(of(2, [0, 0], explicit, Rounding::Ceil), (3, vec![2, 2, 1]));
        assert_eq!(of(4, [1, 2], explicit, Rounding::Ceil), (3, vec![1, 2, 0]));
        assert_eq!(of(4, [0, 2], explicit, Rounding::Ceil), (3, vec![2, 1, 0]));
        assert_eq!(
            of(4, [0, 2], explicit, Rounding::CeilTorch),
            (2, vec![2, 1])
        );
        let same = of(2, [9, 9], AutoPad::SameUpper, Rounding::Floor);
        assert_eq!(same, (3, vec![2, 2, 1]));
        let same = of(2, [9, 9], AutoPad::SameLower, Rounding::Floor);
        assert_eq!(same, (3, vec![1, 2, 2]));
        assert_eq!(of(1, [9, 9], AutoPad::Valid, Rounding::Floor).0, 4);
    }

    #[test]
    fn windows_of_intervals() {
        let slide = slide(2, [0, 0], AutoPad::Explicit, Rounding::Floor);
        let dim = |min, max| Dim::between(min, max);
        let of = |n, kernel| slide.windows(0, n, kernel).unwrap();
        assert_eq!(of(dim(1, Some(9)), Dim::fixed(3)), dim(1, Some(4)));
        assert_eq!(of(dim(7, None), Dim::fixed(3)), dim(3, None));
        assert_eq!(of(Dim::ANY, Dim::ANY), dim(1, None));
        let error = slide.windows(0, Dim::fixed(2), Dim::fixed(3)).unwrap_err();
        let message = "spatial dim 0: a window of 3 elements does not fit into 2";
        assert_eq!(error.to_string(), message);
    }
}
