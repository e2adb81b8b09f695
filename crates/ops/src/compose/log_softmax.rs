//! `LogSoftmax`: `out = x - m - ln(Σ exp(x - m))` along `axis`, `m` being the largest `x` there.
//!
//! Specification: LogSoftmax-5.

use super::slices::Slices;
use super::softmax::{self, one};
use crate::elementwise::widened;
use crate::infer::dim_of_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

pub(crate) static DEF: OpDef = OpDef {
    name: "LogSoftmax",
    versions: &["opset5"],
    signature: Signature::new(&["data"]),
    family: Family::Compose,
    build: Build::Op(parse::<LogSoftmax>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogSoftmax {
    #[serde(default = "one")]
    axis: i64,
}

impl Op for LogSoftmax {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        softmax::infer(cx, self.axis)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let ty = cx.element("data");
        let axis = dim_of_axis(self.axis, shape.len()).unwrap_or_default();
        let rows = Slices::new(&shape, axis.as_slice());
        let largest = rows.largest(cx, "data");
        let log = rows.per_slice(cx, "log", ty.compute(), |cx, row| {
            let sum = rows.sum(cx, row, ty.compute(), |cx, at| {
                let largest = cx.load_from(largest, row);
                softmax::power(widened(cx.load("data", at)), largest)
            });
            sum.log()
        });
        cx.define(cx.output(0), |cx, at| {
            let row = rows.slice_of(at);
            let shifted = widened(cx.load("data", at)) - cx.load_from(largest, &row);
            (shifted - cx.load_from(log, &row)).cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, run};

    /// Values of NumPy.
    #[test]
    fn of_small_and_large_numbers() {
        let out = run(&DEF, &[("axis", "-1")], &[f32s(&[3], &[-1.0, 0.0, 1.0])]);
        let want = [-2.407_605_9, -1.407_605_9, -0.407_605_93];
        for (found, want) in out.to_f64_vec().unwrap().iter().zip(want) {
            assert!((found - want).abs() < 1e-6, "{found}");
        }
        let out = run(&DEF, &[], &[f32s(&[1, 2], &[1e4, 0.0])]);
        assert_eq!(out, f32s(&[1, 2], &[0.0, -1e4]));
        let out = run(&DEF, &[("axis", "-1")], &[f32s(&[], &[7.0])]);
        assert_eq!(out, f32s(&[], &[0.0]));
    }
}
