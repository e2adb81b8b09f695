//! `RandomUniform`: `out = x · (maxval - minval) + minval` with random `x` in `0..1` for floats, and
//! `out = x mod (maxval - minval) + minval` with random `x` of 32 or 64 bits for integers.
//!
//! Specification: RandomUniform-8. `alignment` says which generator gives `x`, Philox (`tensorflow`) or
//! Mersenne Twister (`pytorch`), and how bits become a float. `f64` and `i64` take two numbers each,
//! `i64` with `pytorch` only if a bound does not fit `u32`. Where the specification is silent, on
//! `i64` with `tensorflow`, it is the second number that makes the upper half, as in OpenVINO.
//!
//! The specification has the seeds alone decide, so each inference gives the same numbers; OpenVINO
//! goes on in the sequence of Philox. With both seeds 0 all are different.

use super::random::{Generator, Mersenne, Philox, Seeds, unit_f64};
use crate::attrs::element_type;
use crate::error::ensure;
use crate::layout::extent::{countable, naturals};
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use half::{bf16, f16};
use serde::Deserialize;
use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};
use vinelift_tensor::{Element, ElementType, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "RandomUniform",
    versions: &["opset8"],
    signature: Signature::new(&["shape", "minval", "maxval"]),
    family: Family::Native,
    build: Build::Native(parse_native::<RandomUniform>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RandomUniform {
    #[serde(deserialize_with = "element_type")]
    output_type: ElementType,
    #[serde(default)]
    global_seed: u64,
    #[serde(default)]
    op_seed: u64,
    #[serde(default)]
    alignment: Alignment,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Alignment {
    #[default]
    Tensorflow,
    Pytorch,
}

impl Native for RandomUniform {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        use ElementType::{BF16, F16, F32, F64, I32, I64};
        let ty = self.output_type;
        ensure!(
            matches!(ty, I32 | I64 | F16 | BF16 | F32 | F64),
            "`output_type` must be i32, i64, f16, bf16, f32 or f64, found {ty}"
        );
        for name in ["minval", "maxval"] {
            cx.expect(name, &format!("of `output_type`, {ty}"), |t| t == ty)?;
            let shape = cx.shape(name);
            let one = shape.dims().is_none_or(|d| d.iter().all(|n| n.contains(1)));
            ensure!(one, "`{name}` must hold one element, found {shape}");
        }
        cx.expect_index("shape")?;
        let shape = match cx.integers("shape")? {
            Some(shape) => PartialShape::from(&naturals("shape", &shape, 0)?[..]),
            None => match cx.length("shape") {
                Some(rank) => PartialShape::any_of_rank(rank),
                None => PartialShape::DYNAMIC,
            },
        };
        Ok(vec![TensorType::new(ty, countable(shape)?)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let shape = naturals("shape", &cx.integers("shape")?, 0)?;
        let seeds = self.seeds();
        let out = match self.alignment {
            Alignment::Tensorflow => self.fill(cx, &shape, &mut Philox::new(seeds)),
            Alignment::Pytorch => self.fill(cx, &shape, &mut Mersenne::new(seeds)),
        };
        Ok(vec![out?])
    }

    fn is_function(&self) -> bool {
        self.seeds().are_fixed()
    }
}

impl RandomUniform {
    fn seeds(&self) -> Seeds {
        Seeds {
            global: self.global_seed,
            op: self.op_seed,
        }
    }

    fn fill(
        &self,
        cx: &Evaluate<'_>,
        shape: &[usize],
        numbers: &mut impl Generator,
    ) -> Result<Tensor, OpError> {
        let torch = self.alignment == Alignment::Pytorch;
        match self.output_type {
            ElementType::F16 => {
                let [low, high] = bounds::<f16>(cx)?;
                tensor(cx, shape, || match (numbers.next(), torch) {
                    (x, false) => scaled(
                        f16::from_bits(15 << 10 | x as u16 & 0x3ff) - f16::ONE,
                        low,
                        high,
                    ),
                    (x, true) => {
                        let (width, low) = ((high - low).to_f32(), low.to_f32());
                        f16::from_f32(fraction(x, 11) * width + low)
                    }
                })
            }
            ElementType::BF16 => {
                let [low, high] = bounds::<bf16>(cx)?;
                tensor(cx, shape, || match (numbers.next(), torch) {
                    (x, false) => scaled(
                        bf16::from_bits(127 << 7 | x as u16 & 0x7f) - bf16::ONE,
                        low,
                        high,
                    ),
                    (x, true) => {
                        let (width, low) = ((high - low).to_f32(), low.to_f32());
                        bf16::from_f32(fraction(x, 8) * width + low)
                    }
                })
            }
            ElementType::F32 => {
                let [low, high] = bounds::<f32>(cx)?;
                tensor(cx, shape, || match (numbers.next(), torch) {
                    (x, false) => {
                        scaled(f32::from_bits(127 << 23 | x & 0x7f_ffff) - 1.0, low, high)
                    }
                    (x, true) => scaled(fraction(x, 24), low, high),
                })
            }
            ElementType::F64 => fill_f64(cx, shape, numbers, torch),
            ElementType::I32 => {
                let [low, high] = bounds::<i32>(cx)?;
                // Not 0: the bounds are different.
                let width = high.wrapping_sub(low) as u32;
                tensor(cx, shape, || {
                    low.wrapping_add((numbers.next() % width) as i32)
                })
            }
            _ => fill_i64(cx, shape, numbers, torch),
        }
    }
}

fn fill_f64(
    cx: &Evaluate<'_>,
    shape: &[usize],
    numbers: &mut impl Generator,
    torch: bool,
) -> Result<Tensor, OpError> {
    let [low, high] = bounds::<f64>(cx)?;
    tensor(cx, shape, || {
        match ((numbers.next(), numbers.next()), torch) {
            ((a, b), false) => scaled(unit_f64(a, b), low, high),
            ((a, b), true) => {
                let digits = (u64::from(a) << 32 | u64::from(b)) & ((1 << 53) - 1);
                scaled(digits as f64 / (1u64 << 53) as f64, low, high)
            }
        }
    })
}

fn fill_i64(
    cx: &Evaluate<'_>,
    shape: &[usize],
    numbers: &mut impl Generator,
    torch: bool,
) -> Result<Tensor, OpError> {
    let [low, high] = bounds::<i64>(cx)?;
    let width = high.wrapping_sub(low) as u64;
    let most = i64::from(u32::MAX);
    let short = torch && low <= most && high <= most;
    tensor(cx, shape, || {
        let a = u64::from(numbers.next());
        let x = match (short, torch) {
            (true, _) => a,
            (false, true) => a << 32 | u64::from(numbers.next()),
            (false, false) => u64::from(numbers.next()) << 32 | a,
        };
        low.wrapping_add((x % width) as i64)
    })
}

/// `minval` and `maxval`, which is more.
fn bounds<T: Element + PartialOrd + std::fmt::Display>(
    cx: &Evaluate<'_>,
) -> Result<[T; 2], OpError> {
    let only = |name: &str| -> Result<T, OpError> {
        let values = cx.input(name).as_slice::<T>()?;
        let value = values.first().copied();
        value.ok_or_else(|| OpError::Shape(format!("`{name}` must hold one element, found none")))
    };
    let (low, high) = (only("minval")?, only("maxval")?);
    ensure!(
        low.partial_cmp(&high) == Some(Ordering::Less),
        "`minval` must be less than `maxval`, found {low} and {high}"
    );
    Ok([low, high])
}

/// How many numbers are made before it is asked whether they are still wanted.
const TURN: usize = 1 << 16;

fn tensor<T: Element>(
    cx: &Evaluate<'_>,
    shape: &[usize],
    mut next: impl FnMut() -> T,
) -> Result<Tensor, OpError> {
    let mut out = Tensor::zeros(T::TYPE, shape)?;
    for turn in out.as_mut_slice::<T>()?.chunks_mut(TURN) {
        cx.go_on()?;
        turn.iter_mut().for_each(|value| *value = next());
    }
    Ok(out)
}

/// `x` in `0..1` brought to `low..high`, each step rounded.
fn scaled<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>>(
    x: T,
    low: T,
    high: T,
) -> T {
    x * (high - low) + low
}

/// The lowest `digits` bits as a number in `0..1`.
fn fraction(x: u32, digits: u32) -> f32 {
    (x & ((1 << digits) - 1)) as f32 / (1u32 << digits) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, infer, run};

    fn of(alignment: &str, seeds: [u64; 2], shape: &[i64], low: Tensor, high: Tensor) -> Tensor {
        let [global, op] = seeds.map(|s| s.to_string());
        let attributes = [
            ("output_type", low.element_type().name()),
            ("global_seed", &global),
            ("op_seed", &op),
            ("alignment", alignment),
        ];
        run(&DEF, &attributes, &[i64s(&[shape.len()], shape), low, high])
    }

    /// The examples of the specification.
    #[test]
    fn philox() {
        let out = of(
            "tensorflow",
            [150, 10],
            &[3, 3],
            f32s(&[], &[0.0]),
            f32s(&[1], &[1.0]),
        );
        let want = [
            0.701_123_6,
            0.305_396_32,
            0.939_310_55,
            0.945_603_5,
            0.116_947_77,
            0.507_700_56,
            0.519_719_7,
            0.227_274_66,
            0.991_374,
        ];
        assert_eq!(out, f32s(&[3, 3], &want));
        let double = |x: f64| Tensor::from_slice(&[], &[x]).unwrap();
        let out = of("TENSORFLOW", [80, 100], &[2, 2], double(2.0), double(10.0));
        let want = [5.659_279_59, 4.231_223_76, 2.670_082_06, 2.364_237_58];
        for (found, want) in out.to_f64_vec().unwrap().iter().zip(want) {
            assert!((found - want).abs() < 1e-8, "{found}");
        }
        let out = of(
            "tensorflow",
            [80, 100],
            &[2, 3],
            i32s(&[], &[50]),
            i32s(&[], &[100]),
        );
        assert_eq!(out, i32s(&[2, 3], &[65, 70, 56, 59, 82, 92]));
    }

    /// Values of OpenVINO 2026.4.1, core.
    #[test]
    fn wider_and_narrower_types() {
        let out = of(
            "tensorflow",
            [80, 100],
            &[4],
            i64s(&[], &[-5]),
            i64s(&[], &[100]),
        );
        assert_eq!(out, i64s(&[4], &[20, 65, 34, 91]));
        let half = |x: f32| Tensor::from_slice(&[], &[f16::from_f32(x)]).unwrap();
        let near = |out: Tensor, want: &[f64]| {
            let found = out.to_f64_vec().unwrap();
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3;
            assert!(
                found.len() == want.len() && found.iter().zip(want).all(close),
                "{found:?}"
            );
        };
        let out = of("tensorflow", [80, 100], &[5], half(0.0), half(1.0));
        near(out, &[0.3877, 0.8613, 0.5957, 0.1943, 0.7695]);
        let out = of("pytorch", [80, 100], &[5], half(0.0), half(1.0));
        near(out, &[0.5854, 0.592, 0.456, 0.103, 0.255]);
    }

    /// Values of OpenVINO 2026.4.1, core; the examples of the specification are of another generator.
    #[test]
    fn mersenne_twister() {
        let out = of(
            "pytorch",
            [150, 0],
            &[3],
            f32s(&[], &[0.0]),
            f32s(&[], &[1.0]),
        );
        assert_eq!(out, f32s(&[3], &[0.597_486_73, 0.544_582, 0.040_740_67]));
        let out = of(
            "pytorch",
            [80, 9],
            &[6],
            i32s(&[], &[50]),
            i32s(&[], &[100]),
        );
        assert_eq!(out, i32s(&[6], &[77, 58, 62, 69, 60, 94]));
        let out = of(
            "pytorch",
            [80, 100],
            &[3],
            i64s(&[], &[-5]),
            i64s(&[], &[100]),
        );
        assert_eq!(out, i64s(&[3], &[47, 93, 97]));
        let out = of(
            "pytorch",
            [80, 100],
            &[2],
            i64s(&[], &[-5]),
            i64s(&[], &[1 << 40]),
        );
        assert_eq!(out, i64s(&[2], &[754_479_564_643, 715_179_838_295]));
        let double = |x: f64| Tensor::from_slice(&[], &[x]).unwrap();
        let out = of("pytorch", [80, 100], &[2], double(2.0), double(10.0));
        for (found, want) in out
            .to_f64_vec()
            .unwrap()
            .iter()
            .zip([9.067_076_4, 5.073_877_45])
        {
            assert!((found - want).abs() < 1e-7, "{found}");
        }
    }

    #[test]
    fn only_without_seeds_it_is_no_function() {
        let function = |global: &str, op: &str| {
            let pairs = [
                ("output_type", "f32"),
                ("global_seed", global),
                ("op_seed", op),
            ];
            let pairs = pairs.map(|(k, v)| (k.to_owned(), v.to_owned()));
            match DEF.instantiate(&crate::Attributes(&pairs)) {
                Ok(Some(crate::Instance::Native(op))) => op.is_function(),
                other => panic!("{other:?}"),
            }
        };
        assert!(function("0", "1") && function("1", "0") && !function("0", "0"));
        let any = || {
            of(
                "pytorch",
                [0, 0],
                &[8],
                f32s(&[], &[0.0]),
                f32s(&[], &[1.0]),
            )
        };
        assert_ne!(any(), any());
    }

    #[test]
    fn what_does_not_fit() {
        let of = |ty: &str, shape: i64, low: i32, high: i32| {
            let inputs = [i64s(&[1], &[shape]), i32s(&[], &[low]), i32s(&[], &[high])];
            error(&DEF, &[("output_type", ty), ("global_seed", "1")], &inputs)
        };
        let message = "`minval` must be less than `maxval`, found 1 and 1";
        assert_eq!(of("i32", 1, 1, 1), message);
        assert_eq!(
            of("f32", 1, 0, 1),
            "`minval` must be of `output_type`, f32, found i32"
        );
        assert_eq!(of("i32", -1, 0, 1), "`shape` [-1] must be at least 0");
        let message = "`output_type` must be i32, i64, f16, bf16, f32 or f64, found u8";
        assert_eq!(of("u8", 1, 0, 1), message);
    }

    #[test]
    fn partial_shapes() {
        let one = || (ElementType::F32, PartialShape::ranked(vec![]), None);
        let shape = PartialShape::from(&[3][..]);
        let inputs = [(ElementType::I32, shape, None), one(), one()];
        assert_eq!(
            infer(&DEF, &[("output_type", "f32")], &inputs).0,
            "f32[?, ?, ?]"
        );
    }
}
