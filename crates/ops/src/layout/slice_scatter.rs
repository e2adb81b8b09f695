//! `SliceScatter`: a copy of `data` with `out[start_d + step_d * i_d, ..] = updates[i..]` for the dims
//! `d` in `axes`, with bounds as in Python's `data[start:stop:step] = updates`.
//!
//! Specification: SliceScatter-15. The bounds are those of `Slice`.

use super::slice::{infer_shape, lower_spans};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::{Mode, Scalar};
use vinelift_tensor::Extent;

pub(crate) static DEF: OpDef = OpDef {
    name: "SliceScatter",
    versions: &["opset15"],
    signature: Signature::new(&["data", "updates", "start", "stop", "step", "axes"]).optional(1),
    family: Family::Layout,
    build: Build::Op(parse::<SliceScatter>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SliceScatter {}

impl Op for SliceScatter {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect_same("data", "updates")?;
        let slice = infer_shape(cx)?;
        ensure!(
            slice.intersect(cx.shape("updates")).is_some(),
            "`updates` {} must have the shape of the slice, {slice}",
            cx.shape("updates")
        );
        Ok(vec![TensorType::new(element, cx.shape("data").clone())])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let out = cx.output(0);
        cx.define(out, |cx, at| cx.load("data", at));
        let spans = lower_spans(cx);
        // The extents of `updates`, in the form in which they are known to fit the data.
        let domain: Vec<Extent> = spans.iter().map(|span| span.count).collect();
        cx.stage(&domain, out, Mode::Set, |cx, p| {
            let at: Vec<Scalar> = p.iter().zip(&spans).map(|(i, span)| span.at(i)).collect();
            (at, cx.load("updates", p))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, i32s, i64s, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn inputs(data: Tensor, updates: Tensor, bounds: [&[i64]; 4]) -> Vec<Tensor> {
        [&[data, updates], &bounds.map(|b| i64s(&[b.len()], b))[..]].concat()
    }

    /// The examples of the specification.
    #[test]
    fn slices() {
        let data = i32s(&[2, 5], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let updates = i32s(&[1, 5], &[10, 20, 30, 40, 50]);
        let out = run(
            &DEF,
            &[],
            &inputs(data.clone(), updates, [&[0], &[1], &[1], &[0]]),
        );
        assert_eq!(out, i32s(&[2, 5], &[10, 20, 30, 40, 50, 5, 6, 7, 8, 9]));
        let updates = i32s(&[2, 3], &[10, 20, 30, 40, 50, 60]);
        let out = run(
            &DEF,
            &[],
            &inputs(data, updates, [&[-25], &[25], &[2], &[1]]),
        );
        assert_eq!(out, i32s(&[2, 5], &[10, 1, 20, 3, 30, 40, 6, 50, 8, 60]));
        let data = i32s(&[3, 5], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        let updates = i32s(&[2, 2], &[50, 60, 70, 80]);
        let all = inputs(data, updates, [&[0, 1], &[3, 5], &[2, 2], &[]]);
        let want = [0, 50, 2, 60, 4, 5, 6, 7, 8, 9, 10, 70, 12, 80, 14];
        assert_eq!(run(&DEF, &[], &all[..5]), i32s(&[3, 5], &want));
    }

    #[test]
    fn backwards_and_empty() {
        let data = i32s(&[4], &[1, 2, 3, 4]);
        let updates = i32s(&[2], &[8, 9]);
        let out = run(
            &DEF,
            &[],
            &inputs(data.clone(), updates, [&[-1], &[-9], &[-3], &[0]]),
        );
        assert_eq!(out, i32s(&[4], &[9, 2, 3, 8]));
        let out = run(
            &DEF,
            &[],
            &inputs(data.clone(), i32s(&[0], &[]), [&[3], &[1], &[1], &[0]]),
        );
        assert_eq!(out, data);
    }

    #[test]
    fn updates_must_fit() {
        let all = inputs(
            i32s(&[4], &[0; 4]),
            i32s(&[3], &[0; 3]),
            [&[0], &[2], &[1], &[0]],
        );
        assert_eq!(
            error(&DEF, &[], &all),
            "`updates` [3] must have the shape of the slice, [2]"
        );
    }

    /// The class gives what each shape gives alone; updates of another shape than the slice are in no class.
    #[test]
    fn a_class_of_shapes() {
        let class = Class::new(&DEF, &[], &[7, 5], |s| {
            let list = |n: usize| (ElementType::I64, vec![1.into()], Some(vec![n.into()]));
            let dims = [vec![s[0], s[1]], vec![s[0].difference(2.into()), s[1]]];
            let [data, updates] = dims.map(|dims| (ElementType::I32, dims, None));
            vec![data, updates, list(2), list(1 << 40), list(1), list(0)]
        });
        let counting = |shape: &[usize]| {
            let count = shape.iter().product::<usize>() as i32;
            i32s(shape, &(0..count).collect::<Vec<_>>())
        };
        for [n, m] in [[7, 5], [9, 2]] {
            let (data, updates) = (counting(&[n, m]), counting(&[n - 2, m]));
            let inputs = inputs(data, updates, [&[2], &[1 << 40], &[1], &[0]]);
            let found = class.run(&[n, m], &inputs).unwrap();
            let count = (n * m) as i32;
            let want: Vec<i32> = (0..count)
                .map(|k| {
                    if k < 2 * m as i32 {
                        k
                    } else {
                        k - 2 * m as i32
                    }
                })
                .collect();
            assert_eq!(found, [i32s(&[n, m], &want)]);
        }
    }
}
