//! `Broadcast`: `out[at] = data[from]`, where dim `k` of `data` runs along dim `map(k)` of the output,
//! or is stretched if its extent is 1.
//!
//! Specifications: Broadcast-1 and -3. By mode, `map(k)` is `k` aligned with the last dims (`numpy`,
//! `bidirectional`), `axes_mapping[k]` (`explicit`), or `k` (`pdpd`). The output has `target_shape`,
//! but for `bidirectional`, where `target_shape` is itself stretched to `data`.

use super::extent::{countable, natural_extents, naturals};
use crate::attrs::{AttrError, Attributes};
use crate::error::ensure;
use crate::infer::normalize_axes;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::index;
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static V1: OpDef = broadcast(&["opset1"], Build::Op(without_bidirectional));
pub(crate) static V3: OpDef = broadcast(&["opset3"], Build::Op(parse::<Broadcast>));

const fn broadcast(versions: &'static [&'static str], build: Build) -> OpDef {
    let signature = Signature::new(&["data", "target_shape", "axes_mapping"]).optional(1);
    OpDef {
        name: "Broadcast",
        versions,
        signature,
        family: Family::Layout,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Broadcast {
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Numpy,
    /// Files also write `none` for it.
    #[serde(alias = "none")]
    Explicit,
    Bidirectional,
    Pdpd,
}

fn without_bidirectional(attributes: &Attributes<'_>) -> Result<Box<dyn Op>, OpError> {
    let op: Broadcast = attributes.parse()?;
    if op.mode == Mode::Bidirectional {
        return Err(AttrError::new("mode", "one of numpy, explicit, pdpd", "bidirectional").into());
    }
    Ok(Box::new(op))
}

impl Op for Broadcast {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let symbolic = cx.formulas("target_shape");
        let symbolic = symbolic.map(|target| natural_extents("target_shape", &target));
        let symbolic = symbolic.transpose()?;
        let target = match symbolic {
            Some(_) => None,
            None => cx.integers("target_shape")?,
        };
        let mapping = match self.mode {
            Mode::Explicit => {
                ensure!(
                    cx.has("axes_mapping"),
                    "mode explicit needs the input `axes_mapping`"
                );
                cx.integers("axes_mapping")?
            }
            _ => None,
        };
        let shape = match target {
            Some(target) => {
                let target = naturals("target_shape", &target, 0)?;
                let target = PartialShape::from(target.as_slice());
                countable(self.shape(cx.shape("data"), target, mapping.as_deref())?)?
            }
            None if symbolic.is_some() => {
                let target = symbolic.unwrap_or_default().into_iter();
                let target = PartialShape::ranked(target.map(Dim::from).collect());
                countable(self.shape(cx.shape("data"), target, mapping.as_deref())?)?
            }
            None => {
                let target = match (cx.extents("target_shape"), cx.length("target_shape")) {
                    (Some(dims), _) => PartialShape::ranked(dims),
                    (None, Some(rank)) => PartialShape::any_of_rank(rank),
                    (None, None) => PartialShape::DYNAMIC,
                };
                match self.mode {
                    Mode::Bidirectional => {
                        let both = cx.shape("data").broadcast(&target);
                        both.unwrap_or(PartialShape::DYNAMIC)
                    }
                    _ => target,
                }
            }
        };
        Ok(vec![TensorType::new(cx.element("data"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let mapping = match self.mode {
            Mode::Explicit => cx.integers("axes_mapping"),
            _ => None,
        };
        cx.define(cx.output(0), |cx, at| {
            let map = self
                .map(shape.len(), at.len(), mapping.as_deref())
                .unwrap_or_default();
            let place = |(&n, d): (&Extent, usize)| match at.get(d) {
                Some(i) if n != 1 => i.clone(),
                _ => index(0),
            };
            let from: Vec<Scalar> = shape.iter().zip(map).map(place).collect();
            cx.load("data", &from)
        });
    }
}

impl Broadcast {
    /// The shape of the output; an error unless `data` stretches to it.
    fn shape(
        &self,
        data: &PartialShape,
        wanted: PartialShape,
        mapping: Option<&[i64]>,
    ) -> Result<PartialShape, OpError> {
        let target = wanted.dims().unwrap_or_default();
        let misfit = || OpError::Shape(format!("`data` {data} cannot be broadcast to {wanted}"));
        if self.mode == Mode::Bidirectional {
            return data.broadcast(&wanted).ok_or_else(misfit);
        }
        let Some(dims) = data.dims() else {
            return Ok(wanted);
        };
        if self.mode == Mode::Explicit && mapping.is_none() {
            return Ok(wanted);
        }
        let map = self.map(dims.len(), target.len(), mapping)?;
        let fits = |(dim, d): (&Dim, usize)| {
            dim.contains(1) || target.get(d).is_some_and(|n| dim.intersect(*n).is_some())
        };
        if !dims.iter().zip(map).all(fits) {
            return Err(misfit());
        }
        Ok(wanted)
    }

    /// For each of `rank` dims of `data`, the dim of the output that it runs along.
    fn map(&self, rank: usize, out: usize, mapping: Option<&[i64]>) -> Result<Vec<usize>, OpError> {
        match (self.mode, mapping) {
            (Mode::Explicit, Some(mapping)) => {
                ensure!(
                    mapping.len() == rank,
                    "`axes_mapping` {mapping:?} must have {rank} elements"
                );
                ensure!(
                    mapping.iter().all(|d| *d >= 0),
                    "`axes_mapping` {mapping:?} must be at least 0"
                );
                normalize_axes(mapping, out)
            }
            (Mode::Pdpd, _) => Ok((0..rank).collect()),
            _ => {
                ensure!(
                    rank <= out,
                    "`data` of rank {rank} cannot be broadcast to rank {out}"
                );
                Ok((out - rank..out).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    fn to(mode: &str, data: Tensor, target: &[i64], mapping: Option<&[i64]>) -> Tensor {
        let mut inputs = vec![data, i64s(&[target.len()], target)];
        inputs.extend(mapping.map(|m| i64s(&[m.len()], m)));
        run(&V3, &[("mode", mode)], &inputs)
    }

    /// The examples of the specification, made smaller.
    #[test]
    fn modes_of_the_specification() {
        let x = i32s(&[2, 1, 1], &[7, 8]);
        let want = i32s(&[1, 2, 2, 2], &[7, 7, 7, 7, 8, 8, 8, 8]);
        assert_eq!(to("numpy", x.clone(), &[1, 2, 2, 2], None), want);
        assert_eq!(to("bidirectional", x, &[1, 1, 2, 2], None), want);
        assert_eq!(
            to("explicit", i32s(&[2], &[7, 8]), &[1, 2, 2, 2], Some(&[1])),
            want
        );
        let out = to(
            "explicit",
            i32s(&[2, 2], &[1, 2, 3, 4]),
            &[1, 2, 2, 2],
            Some(&[1, 2]),
        );
        assert_eq!(out, i32s(&[1, 2, 2, 2], &[1, 1, 2, 2, 3, 3, 4, 4]));
        let out = to("pdpd", i32s(&[2, 1], &[1, 2]), &[2, 3], None);
        assert_eq!(out, i32s(&[2, 3], &[1, 1, 1, 2, 2, 2]));
    }

    #[test]
    fn of_scalars_and_to_nothing() {
        assert_eq!(to("numpy", i32s(&[], &[7]), &[], None), i32s(&[], &[7]));
        assert_eq!(to("numpy", i32s(&[1], &[7]), &[0, 2], None).shape(), [0, 2]);
        assert_eq!(
            to("bidirectional", i32s(&[2], &[7, 8]), &[], None),
            i32s(&[2], &[7, 8])
        );
        let flag = Tensor::from_slice(&[], &[0u8]).unwrap();
        let inputs = [i32s(&[1], &[7]), i64s(&[1], &[2]), flag];
        assert_eq!(run(&V1, &[("mode", "numpy")], &inputs), i32s(&[2], &[7, 7]));
    }

    #[test]
    fn what_does_not_fit() {
        let message = |mode: &str, target: &[i64]| {
            let inputs = [
                i32s(&[2], &[7, 8]),
                i64s(&[target.len()], target),
                i64s(&[1], &[3]),
            ];
            error(&V3, &[("mode", mode)], &inputs)
        };
        assert_eq!(
            message("numpy", &[3]),
            "`data` [2] cannot be broadcast to [3]"
        );
        assert_eq!(
            message("numpy", &[1]),
            "`data` [2] cannot be broadcast to [1]"
        );
        assert_eq!(
            message("numpy", &[]),
            "`data` of rank 1 cannot be broadcast to rank 0"
        );
        assert_eq!(
            message("numpy", &[-1]),
            "`target_shape` [-1] must be at least 0"
        );
        assert_eq!(
            message("explicit", &[2]),
            "axis 3 is out of range for rank 1"
        );
        let message =
            "attribute `mode` must be one of numpy, explicit, pdpd, found `bidirectional`";
        let inputs = [i32s(&[], &[7]), i64s(&[0], &[])];
        assert_eq!(error(&V1, &[("mode", "bidirectional")], &inputs), message);
    }
}
