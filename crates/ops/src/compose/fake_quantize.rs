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
        let ends = Ends::of(cx);
        elementwise::lower(cx, self.broadcast(), |inputs| {
            let [x, il, ih, ol, oh] = inputs else {
                unreachable!("the signature has five inputs");
            };
            let (ol, oh) = match ends.are_same {
                true => (il, ih),
                false => (ol, oh),
            };
            let (low, high) = match ends.are_ordered {
                true => (il.clone(), ih.clone()),
                false => (il.min(ih.clone()), il.max(ih.clone())),
            };
            let steps = number(f64::from(self.levels - 1), x.ty());
            // Where it is used, an integer from 0 to `levels - 1`.
            let step = ((x - il) / (ih - il) * steps).round();
            let inner = part_of(&step, self.levels - 1) * (oh - ol) + ol;
            let below = select(x.le(low), ol.clone(), inner);
            select(x.gt(high), oh.clone(), below)
        });
    }
}

/// Facts about the ends of the ranges where these are constant. The formula is shorter with them, and gives the same bits.
struct Ends {
    /// `il < ih` for all of them.
    are_ordered: bool,
    /// The ranges of the input and of the output are the same.
    are_same: bool,
}

impl Ends {
    fn of(cx: &Lower<'_>) -> Ends {
        let ends = |low: &str, high: &str| Some([cx.constant(low)?, cx.constant(high)?]);
        let (input, output) = (
            ends("input_low", "input_high"),
            ends("output_low", "output_high"),
        );
        let are_ordered = input.is_some_and(|[low, high]| {
            let (Ok(lows), Ok(highs)) = (low.to_f64_vec(), high.to_f64_vec()) else {
                return false;
            };
            let mut pairs = lows.iter().zip(&highs);
            low.shape() == high.shape() && pairs.all(|(low, high)| low < high)
        });
        Ends {
            are_ordered,
            are_same: input.is_some() && input == output,
        }
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
        // Ranges that are the same, one of them turned round.
        let ranges = |low: &[f32], high: &[f32]| {
            let x = f32s(&[2, 4], &[-1.0, 0.4, 1.6, 9.0, -9.0, -2.0, 0.0, 1.0]);
            let [low, high] = [low, high].map(|ends| f32s(&[2, 1], ends));
            [x, low.clone(), high.clone(), low, high]
        };
        let of = |low: &[f32], high: &[f32]| run(&DEF, &[("levels", "4")], &ranges(low, high));
        let want = f32s(&[2, 4], &[0.0, 0.0, 2.0, 3.0, -6.0, -2.0, 0.0, 0.0]);
        assert_eq!(of(&[0.0, -6.0], &[3.0, 0.0]), want);
        let want = f32s(&[2, 4], &[0.0, 0.0, 2.0, 3.0, 0.0, -2.0, 0.0, -6.0]);
        assert_eq!(of(&[0.0, 0.0], &[3.0, -6.0]), want);
        let message = "`levels` must be at least 2, found 1";
        assert_eq!(error(&DEF, &[("levels", "1")], &inputs), message);
    }
}
