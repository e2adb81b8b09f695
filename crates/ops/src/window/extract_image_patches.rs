//! `ExtractImagePatches`: `out[n, (k · width + l) · depth + c, i, j]` is element `[k, l]` of patch `[i, j]`
//! of `data[n, c]`: that at row `i · stride - begin + k · rate`, and so for the columns; 0 in the padding.
//!
//! Specification: ExtractImagePatches-3. Chosen where it is silent, as OpenVINO does: with `valid` there
//! is no patch where none fits; an image without rows or columns is returned as it is.

#[cfg(test)]
mod tests;

use super::dim_windows::DimWindows;
use super::slide::{AutoPad, Rounding, Slide};
use crate::error::ensure;
use crate::layout::extent::{countable, product};
use crate::layout::index_map::{extent, within_extent};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{select, zero};
use vinelift_nest::{Mode, Scalar};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "ExtractImagePatches",
    versions: &["opset3"],
    signature: Signature::new(&["data"]),
    family: Family::Window,
    build: Build::Op(parse::<ExtractImagePatches>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtractImagePatches {
    sizes: Vec<usize>,
    strides: Vec<usize>,
    rates: Vec<usize>,
    auto_pad: AutoPad,
}

impl Op for ExtractImagePatches {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.element("data");
        ensure!(
            self.auto_pad != AutoPad::Explicit,
            "`auto_pad` must be valid, same_upper or same_lower, found explicit"
        );
        for (name, list, least) in [
            ("sizes", &self.sizes, 0),
            ("strides", &self.strides, 1),
            ("rates", &self.rates, 1),
        ] {
            ensure!(
                list.len() == 2 && list.iter().all(|n| (least..FAR).contains(n)),
                "`{name}` {list:?} must be two numbers from {least} on, below 2^31"
            );
        }
        cx.expect_rank("data", 4)?;
        let any = vec![Dim::ANY; 4];
        let data = cx.dims("data").map_or(any, <[_]>::to_vec);
        if data[2..].contains(&Dim::fixed(0)) {
            return Ok(vec![cx.input("data").clone()]);
        }
        let places = product("sizes", &self.sizes)?;
        let mut out = vec![data[0], data[1].mul(Dim::fixed(places))];
        for (d, dim) in data[2..].iter().enumerate() {
            ensure!(
                dim.is_symbolic() || dim.min() < FAR,
                "dim {} of `data` {} must be below 2^31",
                d + 2,
                cx.shape("data")
            );
            let patches = |n: usize| self.along_number(d, n).patches.example();
            out.push(match dim.extent() {
                Some(n) => self.along(d, n).patches.into(),
                // An image without rows is another case altogether.
                None if dim.contains(0) => Dim::between(0, dim.max().map(patches)),
                None => Dim::between(patches(dim.min()), dim.max().map(patches)),
            });
        }
        if data[2..].iter().any(|d| d.contains(0)) {
            out[1] = Dim::ANY;
        }
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty, out) = (cx.extents("data"), cx.element("data"), cx.output(0));
        if cx.extents_of(out).iter().any(|n| *n == 0) {
            return;
        }
        let dims = [self.along(0, shape[2]), self.along(1, shape[3])];
        let image = |cx: &Lower<'_>, n: &Scalar, c: &Scalar, place: [Scalar; 2]| {
            let here = [0, 1].map(|d| dims[d].inside(&place[d], shape[d + 2]));
            let value = cx.load("data", &[&[n.clone(), c.clone()], &place[..]].concat());
            match here.into_iter().flatten().reduce(|a, b| a & b) {
                Some(here) => select(here, value, zero(ty)),
                None => value,
            }
        };
        let padded = self.padded_extents(&dims, &shape).map(|extents| {
            let padded = cx.temporary("padded", ty, &[&shape[..2], &extents].concat());
            cx.define(padded, |cx, at| {
                let place = [0, 1].map(|d| &at[d + 2] - dims[d].begin);
                image(cx, &at[0], &at[1], place)
            });
            padded
        });
        let sizes = [self.sizes[0], self.sizes[1]].map(Extent::from);
        let patches = cx.extents_of(out);
        let domain = [
            shape[0], sizes[0], sizes[1], shape[1], patches[2], patches[3],
        ];
        cx.stage(&domain, out, Mode::Set, |cx, at| {
            let [n, c] = [&at[0], &at[3]];
            let place = [0, 1].map(|d| {
                let (stride, rate) = (extent(self.strides[d]), extent(self.rates[d]));
                &at[d + 4] * stride + &at[d + 1] * rate
            });
            let value = match padded {
                Some(padded) => {
                    cx.load_from(padded, &[&[n.clone(), c.clone()], &place[..]].concat())
                }
                None => {
                    let [row, column] = place;
                    image(cx, n, c, [row - dims[0].begin, column - dims[1].begin])
                }
            };
            let channel =
                (&at[1] * &Scalar::extent(sizes[1]) + &at[2]) * Scalar::extent(shape[1]) + c;
            (
                vec![n.clone(), channel, at[4].clone(), at[5].clone()],
                value,
            )
        });
    }
}

/// How often each element is read at least of an image that is padded first.
const READS: u128 = 2;

/// Keeps sums of products of two numbers within an `i64`.
const FAR: usize = 1 << 31;

/// The patches along one dim.
struct DimPatches {
    patches: Extent,
    begin: i64,
    /// The same if the extent has symbols.
    of_symbols: Option<DimWindows>,
}

impl DimPatches {
    /// Whether index `i` lies in the dim, of extent `n`; `None` if it does whatever the symbols are. What is so for numbers
    /// is found by their ranges.
    fn inside(&self, i: &Scalar, n: Extent) -> Option<Scalar> {
        match &self.of_symbols {
            Some(windows) => windows.inside(i),
            None => Some(within_extent(i, n)),
        }
    }
}

impl ExtractImagePatches {
    /// The rows and columns of an image of numbers with the padding that patches reach into, if each element of that is in
    /// several patches: to ask at each element of each patch whether it is in the padding takes longer then.
    fn padded_extents(&self, dims: &[DimPatches; 2], shape: &[Extent]) -> Option<[Extent; 2]> {
        let (mut padded, mut reads, mut is_padded) = ([0; 2], 1u128, false);
        for (d, dim) in dims.iter().enumerate() {
            let (n, patches) = (shape[d + 2].number()?, dim.patches.number()?);
            let [size, stride, rate] = [self.sizes[d], self.strides[d], self.rates[d]];
            let last_patch = patches.checked_sub(1)?.checked_mul(stride)?;
            let last = last_patch.checked_add(size.checked_sub(1)?.checked_mul(rate)?)?;
            padded[d] = last.checked_add(1)?;
            is_padded |= dim.begin > 0 || padded[d] > n;
            reads = reads
                .checked_mul(size as u128)?
                .checked_mul(patches as u128)?;
        }
        let elements = padded[0] as u128 * padded[1] as u128;
        let is_worth_it = is_padded && elements.saturating_mul(READS) <= reads;
        is_worth_it.then(|| padded.map(Extent::from))
    }

    /// The patches along the rows or the columns, of which there are `n`.
    fn along(&self, d: usize, n: Extent) -> DimPatches {
        self.along_symbolic(d, n)
            .unwrap_or_else(|| self.along_number(d, n.pin()))
    }

    /// As [`ExtractImagePatches::along`], if there are symbols and a patch is as far from the begin for all their numbers.
    fn along_symbolic(&self, d: usize, n: Extent) -> Option<DimPatches> {
        let slide = Slide {
            strides: self.strides.clone(),
            dilations: self.rates.clone(),
            pads_begin: vec![0; 2],
            pads_end: vec![0; 2],
            auto_pad: self.auto_pad,
            rounding: Rounding::Floor,
        };
        let windows = slide.along_symbolic(d, n, self.sizes[d])?;
        Some(DimPatches {
            patches: windows.windows,
            begin: windows.begin,
            of_symbols: Some(windows),
        })
    }

    /// As [`ExtractImagePatches::along`] for a number.
    fn along_number(&self, d: usize, n: usize) -> DimPatches {
        let (n, stride) = (n.min(FAR) as i128, self.strides[d] as i128);
        let reach = self.rates[d] as i128 * (self.sizes[d] as i128 - 1) + 1;
        let (patches, total) = match self.auto_pad {
            AutoPad::Valid | AutoPad::Explicit => ((n - reach).div_euclid(stride) + 1, 0),
            AutoPad::SameUpper | AutoPad::SameLower => {
                let patches = (n + stride - 1) / stride;
                (patches, ((patches - 1) * stride + reach - n).max(0))
            }
        };
        let begin = match self.auto_pad {
            AutoPad::SameLower => total - total / 2,
            _ => total / 2,
        };
        DimPatches {
            patches: usize::try_from(patches.max(0)).unwrap_or(usize::MAX).into(),
            begin: i64::try_from(begin).unwrap_or(i64::MAX),
            of_symbols: None,
        }
    }
}
