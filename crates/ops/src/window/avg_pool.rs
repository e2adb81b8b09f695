//! `AvgPool`: `out[n, c, o..] = Σ_k data[n, c, o · stride - begin + k · dilation] / count`, where padding
//! is 0 and `count` is the number of elements of the window, padding left out with `exclude-pad`.
//!
//! Specifications: AvgPool-1, -14 and -16. What rounding up adds behind the padding never counts; a
//! window in which nothing counts is 0. Means of integers, which the specification leaves open, are
//! taken in 64 bits and truncated. Large windows are sums of the sums of their rows ([`RowFolds`]).

use super::dim_windows::{count, guarded, is_fixed, places};
use super::max_pool::{before_14, pooled};
use super::row_folds::RowFolds;
use super::slide::{Rounding, Slide, attributes};
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use vinelift_nest::build::{index, zero};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::ElementType;

pub(crate) static V1: OpDef = version(
    &["opset1"],
    Build::Op(|attributes| {
        let op = without_dilations(attributes)?;
        before_14(op.slide.rounding)?;
        Ok(Box::new(op))
    }),
);

pub(crate) static V14: OpDef = version(
    &["opset14"],
    Build::Op(|attributes| Ok(Box::new(without_dilations(attributes)?))),
);

pub(crate) static V16: OpDef = version(
    &["opset16"],
    Build::Op(|attributes| {
        let a: Attrs = attributes.parse()?;
        Ok(Box::new(a.build()))
    }),
);

const fn version(versions: &'static [&'static str], build: Build) -> OpDef {
    OpDef {
        name: "AvgPool",
        versions,
        signature: Signature::new(&["data"]),
        family: Family::Window,
        build,
    }
}

attributes!(
    #[serde(default)]
    dilations: Vec<usize>,
    kernel: Vec<usize>,
    #[serde(rename = "exclude-pad")]
    exclude_pad: bool,
    #[serde(default)]
    rounding_type: Rounding,
);

impl Attrs {
    fn build(self) -> AvgPool {
        AvgPool {
            slide: self
                .slide(&self.dilations, self.rounding_type)
                .or_undilated(),
            kernel: self.kernel,
            exclude_pad: self.exclude_pad,
        }
    }
}

/// Versions before 16 have no dilations.
fn without_dilations(attributes: &Attributes<'_>) -> Result<AvgPool, OpError> {
    if attributes.0.iter().any(|(name, _)| name == "dilations") {
        let error = serde::de::Error::custom("`dilations` is not known before opset16");
        return Err(OpError::Attribute(error));
    }
    Ok(attributes.parse::<Attrs>()?.build())
}

#[derive(Debug)]
struct AvgPool {
    slide: Slide,
    kernel: Vec<usize>,
    exclude_pad: bool,
}

impl Op for AvgPool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let shape = pooled(cx, &self.slide, &self.kernel)?;
        Ok(vec![TensorType::new(cx.element("data"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty, out) = (cx.extents("data"), cx.element("data"), cx.output(0));
        let dims = self.slide.along_dims(&shape[2..], &self.kernel);
        let wide = accumulator(ty);
        let divisor = |at: &[Scalar]| {
            let points = count(&dims, at, !self.exclude_pad).max(index(1));
            points.cast(wide)
        };
        let rows = RowFolds::of(cx, &dims, Binary::Add, &zero(wide));
        // Where borders depend on symbols, or no padding is left that the loops inside could be peeled from, vectors cannot leave out
        // the count: it is stored, once for all channels.
        let windows = cx.extents_of(out)[2..].to_vec();
        let is_everywhere = rows.is_some() || windows.iter().any(|n| n.is_symbolic());
        let divisors = (is_everywhere && !is_fixed(&dims, !self.exclude_pad)).then(|| {
            let divisors = cx.temporary("points", wide, &windows);
            cx.define(divisors, |_, at| divisor(at));
            divisors
        });
        cx.define(out, |cx, at| {
            let sum = match &rows {
                Some(rows) => rows.fold(cx, at),
                None => cx.reduce(Binary::Add, &self.kernel, zero(wide), |cx, k| {
                    let (places, guard) = places(&dims, &at[2..], k);
                    let x = cx.load("data", &[&at[..2], &places].concat());
                    guarded(guard, x.cast(wide), zero(wide))
                }),
            };
            let divisor = match divisors {
                Some(divisors) => cx.load_from(divisors, &at[2..]),
                None => divisor(&at[2..]),
            };
            (sum / divisor).cast(ty)
        });
    }
}

/// The type in which a mean of elements of `ty` is taken.
fn accumulator(ty: ElementType) -> ElementType {
    match ty {
        ElementType::U64 => ElementType::U64,
        _ if ty.is_integer() => ElementType::I64,
        _ => ty.compute(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};

    fn pool(def: &'static OpDef, exclude: &str, rounding: &str, pads: [&str; 2]) -> Vec<f64> {
        let attributes = [
            ("kernel", "2"),
            ("strides", "2"),
            ("pads_begin", pads[0]),
            ("pads_end", pads[1]),
            ("exclude-pad", exclude),
            ("rounding_type", rounding),
        ];
        let x = f32s(&[1, 1, 3], &[2.0, 4.0, 6.0]);
        run(def, &attributes, &[x]).to_f64_vec().unwrap()
    }

    /// Values of NumPy; those that rounding up adds, of PyTorch's documentation of `AvgPool1d`.
    #[test]
    fn padding_and_rounding() {
        assert_eq!(pool(&V1, "true", "floor", ["1", "0"]), [2.0, 5.0]);
        assert_eq!(pool(&V1, "false", "floor", ["1", "0"]), [1.0, 5.0]);
        assert_eq!(pool(&V1, "false", "ceil", ["0", "0"]), [3.0, 6.0]);
        assert_eq!(pool(&V14, "false", "ceil_torch", ["0", "1"]), [3.0, 3.0]);
        assert_eq!(pool(&V14, "true", "ceil", ["0", "2"]), [3.0, 6.0, 0.0]);
        assert_eq!(pool(&V14, "true", "ceil_torch", ["0", "2"]), [3.0, 6.0]);
    }

    /// The means that loops over the window of each place give, on both sides of the size from which on rows are summed up first.
    #[test]
    fn large_windows() {
        const N: usize = 9;
        let data: Vec<f32> = (0..N * N).map(|k| (k * 37 % 64) as f32).collect();
        let sizes = [[4usize, 6], [5, 5], [7, 5], [3, 9], [25, 1]];
        for (kernel, stride) in sizes.into_iter().flat_map(|k| [(k, 1usize), (k, 2)]) {
            for exclude in ["true", "false"] {
                let pads = kernel.map(|k| k / 2);
                let list = |numbers: [usize; 2]| format!("{},{}", numbers[0], numbers[1]);
                let attributes = [
                    ("kernel", list(kernel)),
                    ("strides", list([stride; 2])),
                    ("pads_begin", list(pads)),
                    ("pads_end", list(pads)),
                    ("exclude-pad", exclude.to_owned()),
                    ("rounding_type", "floor".to_owned()),
                ];
                let attributes = attributes.each_ref().map(|(name, text)| (*name, &**text));
                let out = run(&V14, &attributes, &[f32s(&[1, 1, N, N], &data)]);
                let shape = kernel.map(|k| (N + 2 * (k / 2) - k) / stride + 1);
                assert_eq!(out.shape(), [1, 1, shape[0], shape[1]]);
                for (o, found) in out.to_f64_vec().unwrap().iter().enumerate() {
                    let first = [o / shape[1] * stride, o % shape[1] * stride];
                    let (mut sum, mut count) = (0.0, 0);
                    for k in 0..kernel[0] * kernel[1] {
                        let place = [first[0] + k / kernel[1], first[1] + k % kernel[1]];
                        let [i, j] = [0, 1].map(|d| place[d].wrapping_sub(pads[d]));
                        if i < N && j < N {
                            sum += f64::from(data[i * N + j]);
                            count += 1;
                        }
                    }
                    if exclude == "false" {
                        count = kernel[0] * kernel[1];
                    }
                    let mean = (sum / count as f64) as f32;
                    assert_eq!(*found, f64::from(mean), "{kernel:?} by {stride}: {o}");
                }
            }
        }
    }

    #[test]
    fn integers_and_dilations() {
        let attributes = [
            ("kernel", "2,2"),
            ("strides", "1,1"),
            ("dilations", "2,1"),
            ("auto_pad", "valid"),
            ("exclude-pad", "true"),
        ];
        let x = i32s(&[1, 1, 3, 2], &[i32::MAX, i32::MAX, 0, 0, i32::MAX, 4]);
        let mean = ((3 * i64::from(i32::MAX) + 4) / 4) as i32;
        let out = run(&V16, &attributes, std::slice::from_ref(&x));
        assert_eq!(out, i32s(&[1, 1, 1, 1], &[mean]));
        let message = "attribute `dilations` is not known before opset16";
        assert_eq!(error(&V14, &attributes, &[x]), message);
    }
}
