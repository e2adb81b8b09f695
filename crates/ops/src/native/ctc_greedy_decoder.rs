//! `CTCGreedyDecoder` and `CTCGreedyDecoderSeqLen`: of each step of a sequence the most probable class, without
//! the blank one and, if asked for, without those that are the same as in the step before. The rest of
//! the output is -1.
//!
//! Specifications: CTCGreedyDecoder-1, whose sequences end at the first 0 of the mask and whose blank
//! class is the last one, and CTCGreedyDecoderSeqLen-6, which is told the lengths and, if it is not
//! the last one, the blank class, and gives the lengths of what is decoded. Of classes that are
//! equally probable the first is taken.

use super::real::real_type;
use super::tensors::{floats, integers};
use crate::attrs::{element_type, index_type};
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{filled, room_for};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "CTCGreedyDecoder",
    versions: &["opset1"],
    signature: Signature::new(&["data", "sequence_mask"]),
    family: Family::Native,
    build: Build::Native(parse_native::<Masked>),
};

pub(crate) static SEQ_LEN: OpDef = OpDef {
    name: "CTCGreedyDecoderSeqLen",
    versions: &["opset6"],
    signature: Signature::new(&["data", "sequence_length", "blank_index"]).optional(1),
    family: Family::Native,
    build: Build::Native(parse_native::<SeqLen>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Masked {
    #[serde(default = "crate::attrs::yes")]
    ctc_merge_repeated: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeqLen {
    #[serde(default = "crate::attrs::yes")]
    merge_repeated: bool,
    #[serde(default = "crate::attrs::i32_type", deserialize_with = "element_type")]
    classes_index_type: ElementType,
    #[serde(default = "crate::attrs::i32_type", deserialize_with = "element_type")]
    sequence_length_type: ElementType,
}

impl Native for Masked {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "data")?;
        real_type(cx, "sequence_mask")?;
        cx.expect_rank("data", 3)?;
        cx.expect_rank("sequence_mask", 2)?;
        let steps = common(cx, "data", 0, "sequence_mask", 0)?;
        let batch = common(cx, "data", 1, "sequence_mask", 1)?;
        let one = Dim::fixed(1);
        let shape = countable(PartialShape::ranked(vec![batch, steps, one, one]))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let (data, mask) = (cx.f64s("data")?, cx.f64s("sequence_mask")?);
        let &[steps, batch, classes] = cx.shape("data") else {
            return Err(OpError::Shape("`data` must have rank 3".to_owned()));
        };
        let blank = classes as i64 - 1;
        let mut out = filled(batch * steps, -1.0)?;
        for b in 0..batch {
            cx.go_on()?;
            let length = (0..steps)
                .take_while(|t| mask[t * batch + b] != 0.0)
                .count();
            let path = (0..length).map(|t| best(&data[(t * batch + b) * classes..][..classes]));
            let decoded = decode(path, blank, self.ctc_merge_repeated);
            for (place, class) in out[b * steps..].iter_mut().zip(decoded) {
                *place = class as f64;
            }
        }
        let ty = cx.output(0).element;
        Ok(vec![floats(ty, &[batch, steps, 1, 1], &out)?])
    }
}

impl Native for SeqLen {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        real_type(cx, "data")?;
        cx.expect_index("sequence_length")?;
        cx.expect_rank("data", 3)?;
        cx.expect_rank("sequence_length", 1)?;
        if cx.has("blank_index") {
            cx.expect_index("blank_index")?;
            cx.integer("blank_index")?;
        }
        let classes = index_type("classes_index_type", self.classes_index_type)?;
        let lengths = index_type("sequence_length_type", self.sequence_length_type)?;
        let batch = common(cx, "data", 0, "sequence_length", 0)?;
        let steps = cx.dims("data").map_or(Dim::ANY, |d| d[1]);
        let shape = |dims: &[Dim]| PartialShape::ranked(dims.to_vec());
        Ok(vec![
            TensorType::new(classes, countable(shape(&[batch, steps]))?),
            TensorType::new(lengths, shape(&[batch])),
        ])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let (data, lengths) = (cx.f64s("data")?, cx.integers("sequence_length")?);
        let &[batch, steps, classes] = cx.shape("data") else {
            return Err(OpError::Shape("`data` must have rank 3".to_owned()));
        };
        let blank = cx.integer("blank_index")?.unwrap_or(classes as i64 - 1);
        let mut out = filled(batch * steps, -1)?;
        let mut found = room_for(batch)?;
        for (b, &length) in lengths.iter().enumerate() {
            cx.go_on()?;
            let length = usize::try_from(length).ok().filter(|n| *n <= steps);
            let Some(length) = length else {
                let message = format!("`sequence_length` {lengths:?} must lie in 0 to {steps}");
                return Err(OpError::Shape(message));
            };
            let path = (0..length).map(|t| best(&data[(b * steps + t) * classes..][..classes]));
            let decoded = decode(path, blank, self.merge_repeated);
            let mut count = 0;
            for (place, class) in out[b * steps..].iter_mut().zip(decoded) {
                *place = class;
                count += 1;
            }
            found.push(count);
        }
        Ok(vec![
            integers(self.classes_index_type, &[batch, steps], &out)?,
            integers(self.sequence_length_type, &[batch], &found)?,
        ])
    }
}

/// The dim that `a` has at `k` and `b` at `l`.
fn common(
    cx: &Infer<'_>,
    a: &'static str,
    k: usize,
    b: &'static str,
    l: usize,
) -> Result<Dim, OpError> {
    let dim = |name: &str, i: usize| cx.dims(name).map_or(Dim::ANY, |d| d[i]);
    let dim = dim(a, k).intersect(dim(b, l));
    ensure!(
        dim.is_some(),
        "`{a}` {} and `{b}` {} must agree in dims {k} and {l}",
        cx.shape(a),
        cx.shape(b)
    );
    Ok(dim.unwrap_or(Dim::ANY))
}

/// The first of the most probable classes; -1 if there are none.
fn best(scores: &[f64]) -> i64 {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    if scores.is_empty() { -1 } else { best as i64 }
}

/// A path without what is not written.
fn decode(
    path: impl Iterator<Item = i64>,
    blank: i64,
    merge_repeated: bool,
) -> impl Iterator<Item = i64> {
    let mut previous = None;
    path.filter(move |&class| {
        let repeated = previous.replace(class) == Some(class);
        class != blank && !(merge_repeated && repeated)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, infer, run_all};
    use crate::{IndexPolicy, testing::run};

    /// Scores of three classes whose best path is this.
    fn scores(path: &[usize]) -> Vec<f32> {
        path.iter()
            .flat_map(|&c| (0..3).map(move |k| f32::from(k == c)))
            .collect()
    }

    /// The example of the specification: `ABB*B*B`.
    #[test]
    fn merges_and_leaves_out_blanks() {
        let data = f32s(&[1, 7, 3], &scores(&[0, 1, 1, 2, 1, 2, 1]));
        let of = |merge, length: i32, blank: Option<i32>| {
            let mut inputs = vec![data.clone(), i32s(&[1], &[length])];
            inputs.extend(blank.map(|b| i32s(&[], &[b])));
            let attributes = [("merge_repeated", merge), ("sequence_length_type", "i64")];
            run_all(&SEQ_LEN, &attributes, &inputs, IndexPolicy::Spec).unwrap()
        };
        let rows = |row: &[i32], n| vec![i32s(&[1, 7], row), i64s(&[1], &[n])];
        assert_eq!(of("true", 7, None), rows(&[0, 1, 1, 1, -1, -1, -1], 4));
        assert_eq!(of("false", 7, None), rows(&[0, 1, 1, 1, 1, -1, -1], 5));
        assert_eq!(of("true", 3, None), rows(&[0, 1, -1, -1, -1, -1, -1], 2));
        assert_eq!(of("true", 7, Some(1)), rows(&[0, 2, 2, -1, -1, -1, -1], 3));
        assert_eq!(of("true", 0, None), rows(&[-1; 7], 0));
        let message = "`sequence_length` [8] must lie in 0 to 7";
        let inputs = [data, i32s(&[1], &[8])];
        assert_eq!(error(&SEQ_LEN, &[], &inputs), message);
    }

    #[test]
    fn sequences_end_where_the_mask_does() {
        let path = scores(&[0, 1, 0, 2, 1, 0]);
        let data = f32s(&[3, 2, 3], &path);
        let mask = f32s(&[3, 2], &[1.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        let of = |merge| {
            run(
                &DEF,
                &[("ctc_merge_repeated", merge)],
                &[data.clone(), mask.clone()],
            )
        };
        let want = [0.0, 1.0, -1.0, 1.0, -1.0, -1.0];
        assert_eq!(of("true"), f32s(&[2, 3, 1, 1], &want));
        let want = [0.0, 0.0, 1.0, 1.0, -1.0, -1.0];
        assert_eq!(of("false"), f32s(&[2, 3, 1, 1], &want));
        let none = f32s(&[3, 2, 0], &[]);
        assert_eq!(
            run(&DEF, &[], &[none, mask]),
            f32s(&[2, 3, 1, 1], &[-1.0; 6])
        );
    }

    #[test]
    fn shapes() {
        let inputs = [f32s(&[1, 2, 3], &[0.0; 6]), f32s(&[2, 1], &[0.0; 2])];
        let message = "`data` [1, 2, 3] and `sequence_mask` [2, 1] must agree in dims 0 and 0";
        assert_eq!(error(&DEF, &[], &inputs), message);
        let message = "attribute `classes_index_type` must be i32 or i64, found `u8`";
        let inputs = [f32s(&[1, 2, 3], &[0.0; 6]), i32s(&[1], &[0])];
        assert_eq!(
            error(&SEQ_LEN, &[("classes_index_type", "u8")], &inputs),
            message
        );
        let data = PartialShape::ranked(vec![Dim::ANY, Dim::fixed(20), Dim::fixed(128)]);
        let length = PartialShape::ranked(vec![Dim::fixed(8)]);
        let inputs = [
            (ElementType::F16, data, None),
            (ElementType::I64, length, None),
        ];
        assert_eq!(infer(&SEQ_LEN, &[], &inputs).0, "i32[8, 20] i32[8]");
    }
}
