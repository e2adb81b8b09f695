//! `FakeConvert`: `out = (f8(data · scale - shift) + shift) / scale`, `f8` being the nearest number of
//! `destination_type`, ties to even.
//!
//! Specification: FakeConvert-13, which does not say what happens to numbers that are too large: as in
//! OpenVINO they become the largest finite one, infinities too. NaN stays.

use crate::attrs::AttrError;
use crate::elementwise::{Broadcast, read, widened};
use crate::error::ensure;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::clamp;
use vinelift_tensor::ElementType;

pub(crate) static DEF: OpDef = OpDef {
    name: "FakeConvert",
    versions: &["opset13"],
    signature: Signature::new(&["data", "scale", "shift"]).optional(1),
    family: Family::Compose,
    build: Build::Op(|attributes| {
        let op: FakeConvert = attributes.parse()?;
        let to = op.destination_type;
        if !matches!(to, ElementType::F8E4M3 | ElementType::F8E5M2) {
            let expected = "f8e4m3 or f8e5m2";
            return Err(AttrError::new("destination_type", expected, to.name()).into());
        }
        Ok(Box::new(op))
    }),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FakeConvert {
    #[serde(deserialize_with = "crate::attrs::element_type")]
    destination_type: ElementType,
}

impl Op for FakeConvert {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        use ElementType::{BF16, F16, F32, F64};
        cx.expect("data", "f16, bf16, f32 or f64", |t| {
            matches!(t, F16 | BF16 | F32 | F64)
        })?;
        let data = cx.shape("data");
        cx.expect_same("data", "scale")?;
        let scale = cx.shape("scale");
        let joined = data.broadcast(scale).and_then(|s| s.intersect(data));
        ensure!(
            joined.is_some(),
            "`scale` {scale} cannot be broadcast to `data` {data}"
        );
        if cx.has("shift") {
            cx.expect_same("data", "shift")?;
            let shift = cx.shape("shift");
            ensure!(
                scale.intersect(shift).is_some(),
                "`scale` {scale} and `shift` {shift} must have the same shape"
            );
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("data");
        let largest = match self.destination_type {
            ElementType::F8E4M3 => 448.0,
            _ => 57344.0,
        };
        cx.define(cx.output(0), |cx, at| {
            let input = |name| {
                let alignment = Broadcast::NUMPY.alignment(false);
                widened(read(cx, alignment, cx.input(name), at))
            };
            let (data, scale) = (input("data"), input("scale"));
            let shift = cx.has("shift").then(|| input("shift"));
            let scaled = data * &scale;
            let shifted = match &shift {
                Some(shift) => scaled - shift,
                None => scaled,
            };
            let wide = shifted.ty();
            let rounded = clamp(shifted, -largest, largest)
                .cast(self.destination_type)
                .cast(wide);
            let back = match shift {
                Some(shift) => rounded + shift,
                None => rounded,
            };
            (back / scale).cast(ty)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    /// Worked out by hand from the definitions of the two types.
    #[test]
    fn rounds_to_the_nearest_and_saturates() {
        let inf = f32::INFINITY;
        let of = |to: &str, x: &[f32]| {
            let inputs = [f32s(&[x.len()], x), f32s(&[], &[1.0])];
            run(&DEF, &[("destination_type", to)], &inputs)
        };
        let out = of("f8e4m3", &[0.3, 17.0, 19.0, 465.0, -inf, 0.001]);
        let want = [0.3125, 16.0, 20.0, 448.0, -448.0, 1.0 / 512.0];
        assert_eq!(out, f32s(&[6], &want));
        let out = of("f8e5m2", &[0.3, 9.0, 11.0, 61440.0, inf, -1e-7]);
        let want = [0.3125, 8.0, 12.0, 57344.0, 57344.0, -0.0];
        assert_eq!(out, f32s(&[6], &want));
        assert!(of("f8e4m3", &[f32::NAN]).to_f64_vec().unwrap()[0].is_nan());
    }

    /// 2 · 8.4 - 1 = 15.8 is rounded to 16, 2 · 3 - 1 is exact.
    #[test]
    fn scales_and_shifts() {
        let data = f32s(&[2, 2], &[8.4, 1.0, 3.0, 0.0]);
        let inputs = [data, f32s(&[2], &[2.0, 1.0]), f32s(&[2], &[1.0, 0.0])];
        let out = run(&DEF, &[("destination_type", "f8e4m3")], &inputs);
        assert_eq!(out, f32s(&[2, 2], &[8.5, 1.0, 3.0, 0.0]));
    }

    #[test]
    fn what_does_not_fit() {
        let of = |to: &str, shapes: &[&[usize]]| {
            let zeros = |s: &&[usize]| f32s(s, &vec![0.0; s.iter().product()]);
            let inputs: Vec<_> = shapes.iter().map(zeros).collect();
            error(&DEF, &[("destination_type", to)], &inputs)
        };
        let message = "attribute `destination_type` must be f8e4m3 or f8e5m2, found `f16`";
        assert_eq!(of("f16", &[&[1], &[]]), message);
        let message = "`scale` [2] cannot be broadcast to `data` [1]";
        assert_eq!(of("f8e4m3", &[&[1], &[2]]), message);
        let message = "`scale` [] and `shift` [1] must have the same shape";
        assert_eq!(of("f8e4m3", &[&[1], &[], &[1]]), message);
    }
}
