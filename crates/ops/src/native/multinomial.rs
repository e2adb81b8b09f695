//! `Multinomial`: classes at random: for each of `num_samples` random `x` in `0..1` the first class `k`
//! of a row with `x ≤ (p[0] + … + p[k]) / Σ p`, `p` being the probabilities, or `e^` of them with
//! `log_probs`. Without replacement a class that was taken has the probability 0 afterwards.
//!
//! Specification: Multinomial-13. The random numbers are those of `RandomUniform` with the type `f64`
//! and the same seeds; OpenVINO has others. A row whose probabilities have no sum above 0 is not
//! defined: it gives the last class, or the last that was not taken.

use super::random::{Philox, Seeds};
use super::real::real_type;
use super::tensors::integers;
use crate::attrs::{element_type, index_type};
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{collected, filled, room_for};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor, element_count};

pub(crate) static DEF: OpDef = OpDef {
    name: "Multinomial",
    versions: &["opset13"],
    signature: Signature::new(&["probs", "num_samples"]),
    family: Family::Native,
    build: Build::Native(parse_native::<Multinomial>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Multinomial {
    #[serde(deserialize_with = "element_type")]
    convert_type: ElementType,
    with_replacement: bool,
    log_probs: bool,
    #[serde(default)]
    global_seed: u64,
    #[serde(default)]
    op_seed: u64,
}

impl Native for Multinomial {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        real_type(cx, "probs")?;
        let ty = index_type("convert_type", self.convert_type)?;
        cx.expect_index("num_samples")?;
        let samples = match cx.integer("num_samples")? {
            Some(count) => Dim::fixed(natural(count)?),
            None => Dim::ANY,
        };
        let Some(probs) = cx.dims("probs") else {
            return Ok(vec![TensorType::new(ty, PartialShape::DYNAMIC)]);
        };
        // Rank 1 as in OpenVINO, a single row.
        let (batch, classes) = match probs {
            [classes] => (None, *classes),
            [batch, classes] => (Some(*batch), *classes),
            _ => {
                let shape = cx.shape("probs");
                return Err(OpError::Shape(format!(
                    "`probs` must have rank 2, found {shape}"
                )));
            }
        };
        ensure!(
            self.with_replacement || classes.max().is_none_or(|n| samples.min() <= n),
            "without replacement `num_samples` must be at most {classes}, the number of classes, \
             found {samples}"
        );
        let shape = PartialShape::ranked(batch.into_iter().chain([samples]).collect());
        Ok(vec![TensorType::new(ty, countable(shape)?)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let probs = cx.f64s("probs")?;
        let mut shape = cx.shape("probs").to_vec();
        let classes = shape.pop().unwrap_or_default();
        let rows: usize = shape.iter().product();
        let samples = natural(cx.integer("num_samples")?.unwrap_or_default())?;
        shape.push(samples);
        ensure!(
            classes > 0 || rows == 0 || samples == 0,
            "`probs` {:?} has no classes",
            cx.shape("probs")
        );
        let mut random = Philox::new(self.seeds());
        let mut out = room_for(element_count(&shape).unwrap_or(usize::MAX))?;
        for row in probs.chunks_exact(classes.max(1)) {
            let mut weights = self.weights(row)?;
            let mut sums = room_for(classes)?;
            running_sums(&weights, &mut sums);
            let mut taken = filled(if self.with_replacement { 0 } else { classes }, false)?;
            for _ in 0..samples {
                cx.go_on()?;
                let x = random.next_f64() * sums.last().copied().unwrap_or_default();
                let found = sums.partition_point(|sum| *sum < x).min(classes - 1);
                if self.with_replacement {
                    out.push(found as i64);
                    continue;
                }
                // Another one where rounding, or a row without a sum, leads to one that was taken.
                let free = |k: &usize| !taken[*k];
                let after = (found..classes).find(free);
                let class = after
                    .or_else(|| (0..found).rev().find(free))
                    .unwrap_or(found);
                out.push(class as i64);
                taken[class] = true;
                weights[class] = 0.0;
                running_sums(&weights, &mut sums);
            }
        }
        Ok(vec![integers(self.convert_type, &shape, &out)?])
    }

    fn is_function(&self) -> bool {
        self.seeds().are_fixed()
    }
}

impl Multinomial {
    fn seeds(&self) -> Seeds {
        Seeds {
            global: self.global_seed,
            op: self.op_seed,
        }
    }

    /// Numbers in the proportions of the probabilities.
    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, OpError> {
        if !self.log_probs {
            return Ok(collected(row.iter().copied())?);
        }
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(collected(row.iter().map(|x| (x - largest).exp()))?)
    }
}

/// Puts into `sums`, which has room for them, the sums of the first weights.
fn running_sums(weights: &[f64], sums: &mut Vec<f64>) {
    let add = |sum: &mut f64, weight: &f64| {
        *sum += weight;
        Some(*sum)
    };
    sums.clear();
    sums.extend(weights.iter().scan(0.0, add));
}

fn natural(samples: i64) -> Result<usize, OpError> {
    usize::try_from(samples)
        .map_err(|_| OpError::Shape(format!("`num_samples` must be at least 0, found {samples}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, infer, run};

    fn of(replace: &str, log: &str, probs: &Tensor, samples: i64) -> Vec<i64> {
        let attributes = [
            ("convert_type", "i32"),
            ("with_replacement", replace),
            ("log_probs", log),
            ("global_seed", "3"),
            ("op_seed", "7"),
        ];
        let out = run(&DEF, &attributes, &[probs.clone(), i64s(&[1], &[samples])]);
        assert_eq!(out.element_type(), ElementType::I32);
        out.to_i64_vec().unwrap()
    }

    /// By the formula, with the numbers that Philox gives for these seeds, in eighths: 6, 0, 6, 4, …
    #[test]
    fn classes_by_their_share() {
        let even = f32s(&[2, 8], &[1.0; 16]);
        let want = [6, 0, 6, 4, 5, 2, 0, 2, 3, 3, 7, 1];
        assert_eq!(of("true", "false", &even, 6), want);
        assert_eq!(of("true", "true", &even, 6), want);
        let row = f32s(&[4], &[1.0, 0.0, 3.0, 4.0]);
        assert_eq!(of("true", "false", &row, 6), [3, 0, 3, 3, 3, 2]);
        let (ln, inf) = (f32::ln, f32::INFINITY);
        let row = f32s(
            &[1, 4],
            &[ln(1.0) + 500.0, -inf, ln(3.0) + 500.0, ln(4.0) + 500.0],
        );
        assert_eq!(of("true", "true", &row, 6), [3, 0, 3, 3, 3, 2]);
    }

    #[test]
    fn without_replacement_each_class_once() {
        for probs in [
            [1.0f32; 8],
            [0.0; 8],
            [f32::NAN; 8],
            [0.0, 0.0, 1e-30, 1e30, 1.0, 2.0, 0.0, 5.0],
        ] {
            let mut found = of("false", "false", &f32s(&[1, 8], &probs), 8);
            found.sort_unstable();
            assert_eq!(found, (0..8).collect::<Vec<i64>>());
        }
        assert_eq!(
            of("false", "false", &f32s(&[1, 8], &[1.0; 8]), 3),
            [6, 0, 5]
        );
    }

    #[test]
    fn what_does_not_fit() {
        let of = |shape: &[usize], samples: i32| {
            let probs = f32s(shape, &vec![1.0; shape.iter().product()]);
            let attributes = [
                ("convert_type", "i64"),
                ("with_replacement", "false"),
                ("log_probs", "false"),
            ];
            error(&DEF, &attributes, &[probs, i32s(&[], &[samples])])
        };
        let message =
            "without replacement `num_samples` must be at most 2, the number of classes, found 3";
        assert_eq!(of(&[1, 2], 3), message);
        assert_eq!(
            of(&[1, 2], -1),
            "`num_samples` must be at least 0, found -1"
        );
        assert_eq!(
            of(&[1, 1, 2], 1),
            "`probs` must have rank 2, found [1, 1, 2]"
        );
    }

    #[test]
    fn partial_shapes() {
        let attributes = [
            ("convert_type", "i64"),
            ("with_replacement", "true"),
            ("log_probs", "true"),
        ];
        let probs = (ElementType::F32, PartialShape::any_of_rank(2), None);
        let samples = i64s(&[], &[5]);
        let samples = (ElementType::I64, samples.shape().into(), Some(samples));
        assert_eq!(infer(&DEF, &attributes, &[probs, samples]).0, "i64[?, 5]");
    }
}
