//! `FakeQuantize`: with `[il, ih]` the range of the input and `[ol, oh]` that of the output,
//! `out = ol` where `x ≤ min(il, ih)`, `oh` where `x > max(il, ih)`, otherwise
//! `round((x - il) / (ih - il) · (levels - 1)) / (levels - 1) · (oh - ol) + ol`, ties to even.
//!
//! Specification: FakeQuantize-1.

use crate::elementwise::{self, Broadcast, Class, Mode, Output};
use crate::error::ensure;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{number, select};
use vinelift_nest::part_of;

pub(crate) static DEF: OpDef = OpDef {
    name: "FakeQuantize",
    versions: &["opset1"],
    signature: Signature::new(&[
        "data",
        "input_low",
        "input_high",
        "output_low",
        "output_high",
    ]),
    family: Family::Compose,
    build: Build::Op(parse::<FakeQuantize>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FakeQuantize {
    levels: u32,
    #[serde(default)]
    auto_broadcast: Mode,
    #[serde(default, alias = "auto_broadcast.auto_broadcast_axis")]
    axis: i64,
}

impl FakeQuantize {
    fn broadcast(&self) -> Broadcast {
        Broadcast {
            mode: self.auto_broadcast,
            axis: self.axis,
        }
    }
}

impl Op for FakeQuantize {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let levels = self.levels;
        ensure!(levels >= 2, "`levels` must be at least 2, found {levels}");
        elementwise::infer(cx, Class::Float, Output::Same, self.broadcast())
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        elementwise::lower(cx, self.broadcast(), |inputs| {
            let [x, il, ih, ol, oh] = inputs else {
                unreachable!("the signature has five inputs");
            };
            let steps = number(f64::from(self.levels - 1), x.ty());
            // Where it is used, an integer from 0 to `levels - 1`.
            let step = ((x - il) / (ih - il) * steps).round();
            let inner = part_of(&step, self.levels - 1) * (oh - ol) + ol;
            let below = select(x.le(il.min(ih.clone())), ol.clone(), inner);
            select(x.gt(il.max(ih.clone())), oh.clone(), below)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, run};

    /// Worked out by hand with the formula of the specification.
    #[test]
    fn within_and_outside_of_the_range() {
        let x = f32s(&[1, 6], &[-1.0, 0.0, 0.5, 1.5, 2.6, 9.0]);
        let one = |x: f32| f32s(&[1], &[x]);
        let inputs = [x, one(0.0), one(3.0), one(10.0), one(40.0)];
        let want = f32s(&[1, 6], &[10.0, 10.0, 10.0, 30.0, 40.0, 40.0]);
        assert_eq!(run(&DEF, &[("levels", "4")], &inputs), want);
        let message = "`levels` must be at least 2, found 1";
        assert_eq!(error(&DEF, &[("levels", "1")], &inputs), message);
    }
}
