//! `ExperimentalDetectronTopKROIs`: the `max_rois` boxes with the highest probabilities, the highest
//! first: `out[k, :] = input_rois[i[k], :]`.
//!
//! Specification: ExperimentalDetectronTopKROIs-6, which leaves open what comes behind the boxes that
//! there are (0 here), and the order of equal probabilities (the first box first).

use super::boxes::best_first;
use super::proposals::count;
use super::real::real_type;
use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::collected;
use vinelift_tensor::{Dim, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "ExperimentalDetectronTopKROIs",
    versions: &["opset6"],
    signature: Signature::new(&["input_rois", "rois_probs"]),
    family: Family::Native,
    build: Build::Native(parse_native::<TopKRois>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopKRois {
    #[serde(default)]
    max_rois: i64,
}

impl Native for TopKRois {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = real_type(cx, "input_rois")?;
        cx.expect_same("input_rois", "rois_probs")?;
        cx.expect_rank("input_rois", 2)?;
        cx.expect_rank("rois_probs", 1)?;
        let rois = cx.dims("input_rois").unwrap_or(&[Dim::ANY; 2]);
        let probabilities = cx.dims("rois_probs").unwrap_or(&[Dim::ANY]);
        ensure!(
            rois[1].contains(4) && rois[0].intersect(probabilities[0]).is_some(),
            "`input_rois` {} and `rois_probs` {} must be [n, 4] and [n]",
            cx.shape("input_rois"),
            cx.shape("rois_probs")
        );
        let shape = [count("max_rois", self.max_rois)?, 4];
        Ok(vec![TensorType::new(element, shape.as_slice().into())])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let rois = cx.input("input_rois");
        let probabilities = cx.f64s("rois_probs")?;
        let most = count("max_rois", self.max_rois)?;
        let order = best_first(0..probabilities.len(), most, |i| probabilities[i])?;
        let positions = collected(order.iter().flat_map(|i| 4 * i..4 * i + 4))?;
        let found = rois.take(&[order.len(), 4], &positions)?;
        let mut out = Tensor::zeros(rois.element_type(), &[most, 4])?;
        let bytes = found.bytes();
        if let Some(start) = out.make_mut()?.get_mut(..bytes.len()) {
            start.copy_from_slice(bytes);
        }
        Ok(vec![out])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    /// Values of NumPy, by the formula of the specification.
    #[test]
    fn the_most_probable() {
        let rois = f32s(
            &[3, 4],
            &[1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.],
        );
        let inputs = [rois, f32s(&[3], &[0.2, 0.9, 0.2])];
        let want = [5., 6., 7., 8., 1., 2., 3., 4., 9., 10., 11., 12.];
        let found = |n| run(&DEF, &[("max_rois", n)], &inputs);
        assert_eq!(found("2"), f32s(&[2, 4], &want[..8]));
        assert_eq!(found("4"), f32s(&[4, 4], &[&want[..], &[0.0; 4]].concat()));
        assert_eq!(run(&DEF, &[], &inputs), f32s(&[0, 4], &[]));
    }

    #[test]
    fn says_what_is_wrong() {
        let inputs = [f32s(&[1, 4], &[0.0; 4]), f32s(&[2], &[0.0; 2])];
        assert_eq!(
            error(&DEF, &[], &inputs),
            "`input_rois` [1, 4] and `rois_probs` [2] must be [n, 4] and [n]"
        );
        assert_eq!(
            error(
                &DEF,
                &[("max_rois", "-1")],
                &[inputs[0].clone(), f32s(&[1], &[0.0])]
            ),
            "`max_rois` must not be negative, found -1"
        );
    }
}
