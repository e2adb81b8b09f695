//! `PriorBoxClustered`: for each cell of a grid a box `(centre ± [width, height] / 2) / image` for each pair
//! of `width` and `height`, with the centre at `(cell + offset) · step`; then as many variances.
//!
//! Specification: PriorBoxClustered-1. A step that is 0 is `step`; if both still are 0, they are the cell's
//! size. (The specification says this of both together; of one alone it is what OpenVINO does.)

use super::priors::{self, Length, Prior, Priors, Sizes};
use crate::error::ensure;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

pub(crate) static DEF: OpDef = OpDef {
    name: "PriorBoxClustered",
    versions: &["opset1"],
    signature: Signature::new(&["output_size", "image_size"]),
    family: Family::Compose,
    build: Build::Op(|attributes| {
        let op: PriorBoxClustered = attributes.parse()?;
        ensure!(
            op.width.len() == op.height.len(),
            "`width` {:?} and `height` {:?} must have equally many elements",
            op.width,
            op.height
        );
        priors::variance(&op.variance)?;
        Ok(Box::new(op))
    }),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorBoxClustered {
    #[serde(default = "one")]
    width: Vec<f32>,
    #[serde(default = "one")]
    height: Vec<f32>,
    #[serde(default = "crate::attrs::yes")]
    clip: bool,
    #[serde(default)]
    step: f32,
    #[serde(default)]
    step_w: f32,
    #[serde(default)]
    step_h: f32,
    offset: f32,
    #[serde(default)]
    variance: Vec<f32>,
}

fn one() -> Vec<f32> {
    vec![1.0]
}

impl Op for PriorBoxClustered {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        priors::infer(cx, self.width.len())
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let Some(Sizes { grid, image }) = priors::sizes(cx) else {
            return;
        };
        let [height, width] = image.map(Length::of);
        let [rows, columns] = grid.map(Length::of);
        let given = |step: f32| if step == 0.0 { self.step } else { step };
        let step = match [given(self.step_w), given(self.step_h)] {
            [0.0, 0.0] => [width.over(&columns), height.over(&rows)],
            step => step.map(Length::Number),
        };
        let sides = self.width.iter().zip(&self.height);
        let boxes = sides.map(|(w, h)| Prior {
            edges: [-w / 2.0, -h / 2.0, w / 2.0, h / 2.0],
            cut: false,
            sides: None,
        });
        Priors {
            offset: self.offset,
            step,
            image: [width, height],
            boxes: boxes.collect(),
            unit: Length::Number(1.0),
            clip: self.clip,
            variance: priors::variance(&self.variance).unwrap_or_default(),
        }
        .lower(cx, grid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i64s, run};

    /// By the formula: steps of 64 and 16, boxes of 8 by 4.
    #[test]
    fn steps() {
        let inputs = [i64s(&[2], &[2, 1]), i64s(&[2], &[32, 64])];
        let boxes = [("width", "8"), ("height", "4"), ("offset", "0.5")];
        let out = run(&DEF, &boxes, &inputs);
        let rows = [
            0.4375, 0.1875, 0.5625, 0.3125, 0.4375, 0.6875, 0.5625, 0.8125,
        ];
        assert_eq!(out, f32s(&[2, 8], &[&rows[..], &[0.1; 8]].concat()));
        let step = [
            ("step", "4"),
            ("step_w", "16"),
            ("clip", "false"),
            ("variance", "2"),
        ];
        let out = run(&DEF, &[&boxes[..], &step].concat(), &inputs);
        let rows = [0.0625, 0.0, 0.1875, 0.125, 0.0625, 0.125, 0.1875, 0.25];
        assert_eq!(out, f32s(&[2, 8], &[&rows[..], &[2.0; 8]].concat()));
    }

    #[test]
    fn refusals() {
        let inputs = [i64s(&[2], &[2, 1]), i64s(&[2], &[32, 64])];
        let attributes = [("width", "8, 9"), ("height", "4"), ("offset", "0.5")];
        let message = "`width` [8.0, 9.0] and `height` [4.0] must have equally many elements";
        assert_eq!(error(&DEF, &attributes, &inputs), message);
    }
}
