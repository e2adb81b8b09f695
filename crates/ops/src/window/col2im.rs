//! `Col2Im`: `out[n, c, i, j]` is the sum of `data[n, (c · height + k) · width + l, b · columns + d]` over the
//! places `[k, l]` of a block and the blocks `[b, d]` whose place is element `[i, j]`:
//! `i = b · stride - begin + k · dilation`, and so for the columns.
//!
//! Specification: Col2Im-15. Its data may also lack the batch, as in OpenVINO. Integers wrap.

use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::{countable, divided, natural_extents, naturals, product};
use crate::layout::index_map::{extent, flatten, within_extent};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Binary;
use vinelift_nest::build::{index, select, zero};
use vinelift_tensor::{Dim, Extent, Formula, PartialShape, example};

pub(crate) static DEF: OpDef = OpDef {
    name: "Col2Im",
    versions: &["opset15"],
    signature: Signature::new(&["data", "output_size", "kernel_size"]),
    family: Family::Window,
    build: Build::Op(parse::<Col2Im>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Col2Im {
    #[serde(default = "ones")]
    strides: Vec<usize>,
    #[serde(default = "ones")]
    dilations: Vec<usize>,
    #[serde(default = "zeros")]
    pads_begin: Vec<usize>,
    #[serde(default = "zeros")]
    pads_end: Vec<usize>,
}

fn ones() -> Vec<usize> {
    vec![1; 2]
}

fn zeros() -> Vec<usize> {
    vec![0; 2]
}

impl Op for Col2Im {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
        for (name, list, least) in [
            ("strides", &self.strides, 1),
            ("dilations", &self.dilations, 1),
            ("pads_begin", &self.pads_begin, 0),
            ("pads_end", &self.pads_end, 0),
        ] {
            ensure!(
                list.len() == 2 && list.iter().all(|n| (least..FAR).contains(n)),
                "`{name}` {list:?} must be two numbers from {least} on, below 2^31"
            );
        }
        let size = image_size(cx.elements("output_size")?)?;
        let kernel = kernel_size(cx.integers("kernel_size")?)?;
        let Some(data) = cx.dims("data") else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        let found = cx.shape("data");
        let (batch, depth, blocks) = match data {
            [depth, blocks] => (None, *depth, *blocks),
            [batch, depth, blocks] => (Some(*batch), *depth, *blocks),
            _ => {
                let message = format!("`data` must have rank 2 or 3, found {found}");
                return Err(OpError::Shape(message));
            }
        };
        let mut channels = Dim::ANY;
        if let Some(kernel) = &kernel {
            let places = product("kernel_size", kernel)?;
            let Some(each) = divided(depth, places) else {
                let message = format!(
                    "the channels of `data` {found} must be a multiple of the {places} places of a block"
                );
                return Err(OpError::Shape(message));
            };
            channels = each;
        }
        if let (Some(size), Some(kernel)) = (&size, &kernel) {
            let grid = [0, 1].map(|d| self.blocks(d, size[d], kernel[d]));
            let expected = grid[0].product(grid[1]);
            ensure!(
                blocks.intersect(expected.into()).is_some(),
                "`data` {found} must have {expected} blocks, {} by {}",
                grid[0],
                grid[1]
            );
        }
        let space = size.map_or(vec![Dim::ANY; 2], |size| size.map(Dim::from).to_vec());
        let out = batch.into_iter().chain([channels]).chain(space).collect();
        let shape = countable(PartialShape::ranked(out))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (ty, out) = (cx.element("data"), cx.output(0));
        let size = cx.extents_of(out);
        let space = size.len() - 2;
        if size.iter().any(|n| *n == 0) {
            return;
        }
        let kernel = cx.integers("kernel_size").unwrap_or_default();
        let kernel = naturals("kernel_size", &kernel, 1).unwrap_or_default();
        let grid = [0, 1].map(|d| self.blocks(d, size[space + d], kernel[d]));
        let wide = ty.compute();
        if grid.iter().any(|n| *n == 0) {
            cx.define(out, |_, _| zero(ty));
            return;
        }
        cx.define(out, |cx, at| {
            let sum = cx.reduce(Binary::Add, &kernel, zero(wide), |cx, k| {
                let along = |d: usize| {
                    let stride = extent(self.strides[d]);
                    let ahead = &at[space + d] + extent(self.pads_begin[d])
                        - &k[d] * extent(self.dilations[d]);
                    let block = &ahead / stride;
                    let whole = ahead.rem(index(stride)).eq(index(0));
                    let here = within_extent(&block, grid[d]) & whole;
                    (block, here)
                };
                let ((row, first), (column, second)) = (along(0), along(1));
                let place = [at[space - 1].clone(), k[0].clone(), k[1].clone()];
                let mut from = at[..space - 1].to_vec();
                let block = [size[space - 1], kernel[0].into(), kernel[1].into()];
                from.push(flatten(&place, &block));
                from.push(flatten(&[row, column], &grid));
                let value = widened(cx.load("data", &from));
                select(first & second, value, zero(wide))
            });
            sum.cast(ty)
        });
    }
}

/// Keeps sums of products of two numbers within an `i64`.
const FAR: usize = 1 << 31;

/// The height and width of the image, if they are known.
fn image_size(values: Option<Vec<Formula>>) -> Result<Option<[Extent; 2]>, OpError> {
    let Some(values) = values else {
        return Ok(None);
    };
    let found = natural_extents("output_size", &values)?;
    let is_near = |n: &Extent| n.is_symbolic() || n.example() < FAR;
    match found[..] {
        [height, width] if found.iter().all(is_near) => Ok(Some([height, width])),
        _ => Err(not_two("output_size", &example(&found))),
    }
}

/// The height and width of a block, if they are known.
fn kernel_size(values: Option<Vec<i64>>) -> Result<Option<Vec<usize>>, OpError> {
    let Some(values) = values else {
        return Ok(None);
    };
    let found = naturals("kernel_size", &values, 1)?;
    let fine = found.len() == 2 && found.iter().all(|&n| n < FAR);
    match fine {
        true => Ok(Some(found)),
        false => Err(not_two("kernel_size", &found)),
    }
}

fn not_two(name: &str, found: &[usize]) -> OpError {
    OpError::Shape(format!("`{name}` {found:?} must be two numbers below 2^31"))
}

impl Col2Im {
    /// How many blocks lie along one dim of the image.
    fn blocks(&self, d: usize, size: Extent, kernel: usize) -> Extent {
        let reach = Extent::from(self.dilations[d] * (kernel - 1) + 1);
        let padded = size.sum((self.pads_begin[d] + self.pads_end[d]).into());
        if !reach.at_most(padded) {
            return 0.into();
        }
        let stride = Extent::from(self.strides[d]);
        padded.sum(stride).difference(reach).quotient(stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, i32s, i64s, infer, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn col2im(
        attributes: &[(&str, &str)],
        data: Tensor,
        size: [i64; 2],
        kernel: [i64; 2],
    ) -> Tensor {
        run(
            &DEF,
            attributes,
            &[data, i64s(&[2], &size), i64s(&[2], &kernel)],
        )
    }

    /// By the formula of the specification: each element counts the blocks that hold it.
    #[test]
    fn overlapping_blocks_add_up() {
        let ones = |shape: &[usize]| i32s(shape, &vec![1; shape.iter().product()]);
        let out = col2im(&[], ones(&[1, 4, 4]), [3, 3], [2, 2]);
        assert_eq!(out, i32s(&[1, 1, 3, 3], &[1, 2, 1, 2, 4, 2, 1, 2, 1]));
        let pads = [
            ("pads_begin", "0, 1"),
            ("pads_end", "0, 0"),
            ("strides", "1, 2"),
        ];
        let out = col2im(&pads, ones(&[2, 9]), [3, 5], [1, 2]);
        assert_eq!(out, ones(&[1, 3, 5]));
    }

    /// By the formula: places two apart, of blocks two apart.
    #[test]
    fn strides_and_dilations() {
        let attributes = [("strides", "1, 2"), ("dilations", "1, 2")];
        let data = i32s(&[1, 4, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
        let out = col2im(&attributes, data, [1, 6], [1, 2]);
        let want = [1, 0, 5, 0, 4, 0, 5, 0, 13, 0, 8, 0];
        assert_eq!(out, i32s(&[1, 2, 1, 6], &want));
    }

    #[test]
    fn shapes() {
        let data = |shape| (ElementType::F32, shape, None);
        let pair = |values: Option<[i64; 2]>| {
            let value = values.map(|v| i64s(&[2], &v));
            (ElementType::I64, PartialShape::from(&[2usize][..]), value)
        };
        let any = PartialShape::any_of_rank(3);
        let found = infer(
            &DEF,
            &[],
            &[data(any.clone()), pair(Some([4, 5])), pair(None)],
        );
        assert_eq!(found, ("f32[?, ?, 4, 5]".to_owned(), vec![2]));
        let dims = PartialShape::ranked(vec![Dim::fixed(8), Dim::ANY]);
        let found = infer(&DEF, &[], &[data(dims), pair(None), pair(Some([2, 2]))]);
        assert_eq!(found, ("f32[2, ?, ?]".to_owned(), vec![1]));
        let of = |shape: &[usize], size: [i64; 2], kernel: [i64; 2]| {
            let data = Tensor::zeros(ElementType::F32, shape).unwrap();
            error(&DEF, &[], &[data, i64s(&[2], &size), i64s(&[2], &kernel)])
        };
        let message = "`data` [1, 4, 5] must have 4 blocks, 2 by 2";
        assert_eq!(of(&[1, 4, 5], [3, 3], [2, 2]), message);
        let message =
            "the channels of `data` [1, 5, 4] must be a multiple of the 4 places of a block";
        assert_eq!(of(&[1, 5, 4], [3, 3], [2, 2]), message);
        let message = "`kernel_size` [0, 2] must be at least 1";
        assert_eq!(of(&[1, 4, 4], [3, 3], [0, 2]), message);
        let message = "`data` must have rank 2 or 3, found [4]";
        assert_eq!(of(&[4], [3, 3], [2, 2]), message);
    }

    /// The class gives what each image gives alone; data that has another number of blocks is in no class.
    #[test]
    fn a_class_of_images() {
        let attributes = [
            ("strides", "2, 1"),
            ("dilations", "1, 2"),
            ("pads_begin", "0, 1"),
            ("pads_end", "1, 0"),
        ];
        let (i32, i64) = (ElementType::I32, ElementType::I64);
        let class = Class::new(&DEF, &attributes, &[2, 20, 9, 7], |s| {
            let lists = [vec![s[2], s[3]], vec![2.into(), 3.into()]];
            let data = (i32, vec![s[0], 12.into(), s[1]], None);
            let lists = lists.map(|list| (i64, vec![2.into()], Some(list)));
            [vec![data], lists.to_vec()].concat()
        });
        let inputs = |shape: &[usize], size: [i64; 2]| {
            let count = shape.iter().product::<usize>() as i32;
            let data = i32s(shape, &(0..count).map(|k| k * k).collect::<Vec<_>>());
            [data, i64s(&[2], &size), i64s(&[2], &[2, 3])]
        };
        // Rows: (9 + 1 - 2) / 2 + 1 = 5; columns: 7 + 1 - 5 + 1 = 4.
        for [n, blocks, h, w] in [[2, 20, 9, 7], [3, 20, 8, 8], [2, 36, 12, 9]] {
            let inputs = inputs(&[n, 12, blocks], [h as i64, w as i64]);
            let found = class.run(&[n, blocks, h, w], &inputs);
            assert_eq!(found, Some(vec![run(&DEF, &attributes, &inputs)]));
        }
        let wrong = inputs(&[2, 12, 21], [9, 7]);
        assert_eq!(class.run(&[2, 21, 9, 7], &wrong), None);
        let message = "`data` [2, 12, 21] must have 20 blocks, 5 by 4";
        assert_eq!(error(&DEF, &attributes, &wrong), message);
    }
}
