//! `CTCLoss`: `out[n] = -ln Σ_S Π_t p[n, t, S_t]` over the paths `S` of length `logit_length[n]` that decode to
//! the target, `p` being the softmax of the logits over the classes.
//!
//! A path decodes to what is left of it without blanks, and with `ctc_merge_repeated` without
//! repetitions that no blank separates. The target is the first `label_length[n]` labels; without
//! those that occurred before (`unique`), or else without those that are the same as the one before
//! (`preprocess_collapse_repeated`).
//!
//! Specification: CTCLoss-4. Computed in `f64`, as sums of logarithms, and rounded once at the end. A
//! target that no path decodes to has an infinite loss.

use super::real::real_type;
use super::tensors::floats;
use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, Stop, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{collected, filled, room_for};
use vinelift_tensor::{Dim, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "CTCLoss",
    versions: &["opset4"],
    signature: Signature::new(&[
        "logits",
        "logit_length",
        "labels",
        "label_length",
        "blank_index",
    ])
    .optional(1),
    family: Family::Native,
    build: Build::Native(parse_native::<CtcLoss>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CtcLoss {
    #[serde(default)]
    preprocess_collapse_repeated: bool,
    #[serde(default = "crate::attrs::yes")]
    ctc_merge_repeated: bool,
    #[serde(default)]
    unique: bool,
}

impl Native for CtcLoss {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "logits")?;
        cx.expect_rank("logits", 3)?;
        cx.expect_rank("labels", 2)?;
        let mut batch = Dim::ANY;
        for name in ["logits", "logit_length", "labels", "label_length"] {
            if name != "logits" {
                cx.expect_index(name)?;
            }
            if name.ends_with("length") {
                cx.expect_rank(name, 1)?;
            }
            let own = cx.dims(name).map_or(Dim::ANY, |d| d[0]);
            let common = batch.intersect(own);
            ensure!(
                common.is_some(),
                "`{name}` {} must have a batch of {batch}, as the inputs before",
                cx.shape(name)
            );
            batch = common.unwrap_or(batch);
        }
        if let (Some(logits), Some(labels)) = (cx.dims("logits"), cx.dims("labels")) {
            ensure!(
                logits[1].intersect(labels[1]).is_some(),
                "`logits` {} and `labels` {} must have the same second dim",
                cx.shape("logits"),
                cx.shape("labels")
            );
        }
        if cx.has("blank_index") {
            cx.expect_index("blank_index")?;
            cx.integer("blank_index")?;
        }
        Ok(vec![TensorType::new(
            element,
            PartialShape::ranked(vec![batch]),
        )])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let logits = cx.f64s("logits")?;
        let &[batch, steps, classes] = cx.shape("logits") else {
            return Err(OpError::Shape("`logits` must have rank 3".to_owned()));
        };
        let lengths = cx.integers("logit_length")?;
        let (labels, counts) = (cx.integers("labels")?, cx.integers("label_length")?);
        let blank = cx.integer("blank_index")?.unwrap_or(classes as i64 - 1);
        let blank = class("blank_index", blank, classes)?;
        let mut losses = room_for(batch)?;
        for b in 0..batch {
            cx.go_on()?;
            let fits = |n: i64, most: usize| usize::try_from(n).ok().filter(|n| *n <= most);
            let length = fits(lengths[b], steps);
            let both = length.and_then(|length| Some((length, fits(counts[b], length)?)));
            let Some((length, count)) = both else {
                let (count, length) = (counts[b], lengths[b]);
                return Err(OpError::Shape(format!(
                    "`label_length` {count} must be at most `logit_length` {length}, and that {steps}"
                )));
            };
            let target = self.target(&labels[b * steps..][..count], classes)?;
            let logits = &logits[b * steps * classes..][..length * classes];
            let scores = collected(logits.chunks_exact(classes).flat_map(log_softmax))?;
            let sum = match self.ctc_merge_repeated {
                true => merged(&scores, classes, &target, blank, cx.stop())?,
                false => unmerged(&scores, classes, &target, blank, cx.stop())?,
            };
            // Not -0.
            losses.push(0.0 - sum);
        }
        let ty = cx.output(0).element;
        Ok(vec![floats(ty, &[batch], &losses)?])
    }
}

impl CtcLoss {
    /// The labels that a path must decode to.
    fn target(&self, labels: &[i64], classes: usize) -> Result<Vec<usize>, OpError> {
        let labels = labels.iter().map(|&label| class("labels", label, classes));
        let mut found = room_for(labels.len())?;
        for label in labels {
            found.push(label?);
        }
        let mut labels = found;
        if self.unique {
            let mut seen = filled(classes, false)?;
            labels.retain(|label| !std::mem::replace(&mut seen[*label], true));
        } else if self.preprocess_collapse_repeated {
            labels.dedup();
        }
        Ok(labels)
    }
}

fn class(name: &str, value: i64, classes: usize) -> Result<usize, OpError> {
    let class = usize::try_from(value).ok().filter(|c| *c < classes);
    class.ok_or_else(|| {
        OpError::Shape(format!(
            "`{name}` must be one of {classes} classes, found {value}"
        ))
    })
}

/// The logarithms of the probabilities of the classes at one step.
fn log_softmax(logits: &[f64]) -> impl Iterator<Item = f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|x| (x - largest).exp()).sum();
    let log = sum.ln();
    logits.iter().map(move |x| x - largest - log)
}

/// `ln(e^a + e^b)`
fn add(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    match large == f64::NEG_INFINITY {
        true => large,
        false => large + (small - large).exp().ln_1p(),
    }
}

/// Over the paths of which labels that are the same are one label, unless a blank is between.
///
/// State `2i` is the blank before label `i`, state `2i + 1` the label.
fn merged(
    scores: &[f64],
    classes: usize,
    target: &[usize],
    blank: usize,
    stop: Stop<'_>,
) -> Result<f64, OpError> {
    let states = 2 * target.len() + 1;
    let class = |s: usize| if s % 2 == 1 { target[s / 2] } else { blank };
    let mut sums = filled(states, f64::NEG_INFINITY)?;
    // Before the first step a path is as if at the first blank: label 0 can follow.
    sums[0] = 0.0;
    for step in scores.chunks_exact(classes) {
        stop.go_on()?;
        // From the back, so that the sums before `s` are still those of the step before.
        for s in (0..states).rev() {
            let mut sum = sums[s];
            if s >= 1 {
                sum = add(sum, sums[s - 1]);
            }
            if s >= 3 && s % 2 == 1 && class(s) != class(s - 2) {
                sum = add(sum, sums[s - 2]);
            }
            sums[s] = sum + step[class(s)];
        }
    }
    Ok(match states {
        1 => sums[0],
        _ => add(sums[states - 1], sums[states - 2]),
    })
}

/// Over the paths of which each label is a label of the target.
fn unmerged(
    scores: &[f64],
    classes: usize,
    target: &[usize],
    blank: usize,
    stop: Stop<'_>,
) -> Result<f64, OpError> {
    // `sums[s]`: the logarithm of the probability of all paths that have written `s` labels.
    let mut sums = filled(target.len() + 1, f64::NEG_INFINITY)?;
    sums[0] = 0.0;
    for step in scores.chunks_exact(classes) {
        stop.go_on()?;
        for s in (0..sums.len()).rev() {
            let mut sum = sums[s] + step[blank];
            if s >= 1 {
                sum = add(sum, sums[s - 1] + step[target[s - 1]]);
            }
            sums[s] = sum;
        }
    }
    Ok(sums[target.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, infer, run};
    use vinelift_tensor::ElementType;

    const LOGITS: [f32; 12] = [
        0.5, 1.0, -1.0, 2.0, 0.0, 0.3, -0.7, 1.1, 0.9, 0.2, 0.4, -2.0,
    ];

    /// By the definition: over all paths of four steps and three classes.
    fn by_definition(target: &[usize], blank: usize, merge: bool, length: usize) -> f64 {
        let mut total = 0.0;
        for code in 0..3usize.pow(length as u32) {
            let path: Vec<usize> = (0..length)
                .map(|t| code / 3usize.pow(t as u32) % 3)
                .collect();
            let mut decoded = path.clone();
            if merge {
                decoded.dedup();
            }
            decoded.retain(|c| *c != blank);
            if decoded == target {
                let p = |(t, c): (usize, &usize)| {
                    let row = &LOGITS[3 * t..][..3];
                    let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
                    f64::from(row[*c]).exp() / sum
                };
                total += path.iter().enumerate().map(p).product::<f64>();
            }
        }
        -total.ln()
    }

    fn of(attributes: &[(&str, &str)], labels: &[i32], length: i32, blank: Option<i32>) -> f64 {
        let mut row = labels.to_vec();
        row.resize(4, -1);
        let mut inputs = vec![
            f32s(&[1, 4, 3], &LOGITS),
            i32s(&[1], &[length]),
            i32s(&[1, 4], &row),
            i32s(&[1], &[labels.len() as i32]),
        ];
        inputs.extend(blank.map(|b| i32s(&[1], &[b])));
        run(&DEF, attributes, &inputs).to_f64_vec().unwrap()[0]
    }

    #[test]
    fn sums_over_all_paths() {
        for merge in [true, false] {
            let attribute = [("ctc_merge_repeated", if merge { "true" } else { "false" })];
            let targets: [&[usize]; 7] = [
                &[],
                &[0],
                &[1, 0],
                &[0, 0],
                &[1, 1, 0],
                &[0, 1, 0, 1],
                &[0, 0, 0],
            ];
            for target in targets {
                for length in [target.len(), 4] {
                    let labels: Vec<i32> = target.iter().map(|&c| c as i32).collect();
                    let found = of(&attribute, &labels, length as i32, None);
                    let want = by_definition(target, 2, merge, length);
                    assert!(
                        found == want || (found - want).abs() < 1e-5,
                        "{target:?} {found} {want}"
                    );
                }
            }
            let found = of(&attribute, &[2, 1], 4, Some(0));
            assert!((found - by_definition(&[2, 1], 0, merge, 4)).abs() < 1e-5);
        }
    }

    #[test]
    fn targets_are_prepared() {
        let want = by_definition(&[0, 1, 0], 2, true, 4);
        let collapse = [("preprocess_collapse_repeated", "true")];
        assert!((of(&collapse, &[0, 0, 1, 0], 4, None) - want).abs() < 1e-5);
        let want = by_definition(&[0, 1], 2, true, 4);
        let unique = [("unique", "true")];
        assert!((of(&unique, &[0, 0, 1, 0], 4, None) - want).abs() < 1e-5);
    }

    #[test]
    fn what_does_not_fit() {
        let of = |length: i64, label: i64, count: i64| {
            let inputs = [
                f32s(&[1, 1, 2], &[0.0; 2]),
                i64s(&[1], &[length]),
                i64s(&[1, 1], &[label]),
                i64s(&[1], &[count]),
            ];
            error(&DEF, &[], &inputs)
        };
        let message = "`label_length` 1 must be at most `logit_length` 0, and that 1";
        assert_eq!(of(0, 0, 1), message);
        let message = "`label_length` -1 must be at most `logit_length` 1, and that 1";
        assert_eq!(of(1, 0, -1), message);
        assert_eq!(of(1, 2, 1), "`labels` must be one of 2 classes, found 2");
    }

    #[test]
    fn partial_shapes() {
        let any = PartialShape::any_of_rank;
        let lengths = PartialShape::ranked(vec![Dim::fixed(8)]);
        let integers = |s| (ElementType::I32, s, None);
        let logits = (ElementType::F16, any(3), None);
        let inputs = [
            logits,
            integers(lengths),
            integers(any(2)),
            integers(any(1)),
        ];
        assert_eq!(infer(&DEF, &[], &inputs).0, "f16[8]");
    }
}
