//! `Select`: `out = cond ? then : else`, to the bit.
//!
//! Specification: Select-1. `then` and `else` are of any type, strings included. With `pdpd`, `else`
//! and `cond` are stretched to `then`.

use super::{Broadcast, Mode, read};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::select;
use vinelift_tensor::ElementType;

pub(crate) static DEF: OpDef = OpDef {
    name: "Select",
    versions: &["opset1"],
    signature: Signature::new(&["cond", "then", "else"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Select>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Select {
    #[serde(default)]
    auto_broadcast: Mode,
    #[serde(default, alias = "auto_broadcast.auto_broadcast_axis")]
    axis: i64,
}

impl Select {
    fn broadcast(&self) -> Broadcast {
        Broadcast {
            mode: self.auto_broadcast,
            axis: self.axis,
        }
    }
}

impl Op for Select {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("cond", "boolean", |t| t == ElementType::Boolean)?;
        cx.expect_same("then", "else")?;
        let shape = self.broadcast().join(cx, &[1, 2, 0])?;
        Ok(vec![TensorType::new(cx.element("then"), shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (first, other) = (
            self.broadcast().alignment(true),
            self.broadcast().alignment(false),
        );
        cx.define(cx.output(0), |cx, at| {
            let condition = read(cx, other, cx.input("cond"), at);
            let then = read(cx, first, cx.input("then"), at);
            select(condition, then, read(cx, other, cx.input("else"), at))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, run};
    use vinelift_tensor::Tensor;

    fn condition(shape: &[usize], values: &[bool]) -> Tensor {
        Tensor::from_bools(shape, values).unwrap()
    }

    /// The example of the specification.
    #[test]
    fn takes_from_either() {
        let cond = condition(&[3, 2], &[false, false, true, false, true, true]);
        let (yes, no) = (
            i32s(&[3, 2], &[-1, 0, 1, 2, 3, 4]),
            i32s(&[3, 2], &[11, 10, 9, 8, 7, 6]),
        );
        assert_eq!(
            run(&DEF, &[], &[cond, yes, no]),
            i32s(&[3, 2], &[11, 10, 1, 8, 3, 4])
        );
    }

    #[test]
    fn every_input_is_broadcast() {
        let cond = condition(&[2, 1, 1], &[true, false]);
        let out = run(&DEF, &[], &[cond, i32s(&[2, 1], &[1, 2]), i32s(&[], &[0])]);
        assert_eq!(out, i32s(&[2, 2, 1], &[1, 2, 0, 0]));
        let pdpd = [("auto_broadcast", "pdpd")];
        let (yes, no) = (i32s(&[2, 2], &[1, 2, 3, 4]), i32s(&[1], &[0]));
        let out = run(&DEF, &pdpd, &[condition(&[2], &[true, false]), yes, no]);
        assert_eq!(out, i32s(&[2, 2], &[1, 2, 0, 0]));
    }

    #[test]
    fn of_strings() {
        let text = |s: &[&str]| {
            Tensor::from_strings(&[s.len()], s.iter().map(|s| s.to_string()).collect()).unwrap()
        };
        let cond = condition(&[2], &[true, false]);
        let out = run(&DEF, &[], &[cond, text(&["a", "b"]), text(&["c", "d"])]);
        assert_eq!(out, text(&["a", "d"]));
    }

    #[test]
    fn shapes_must_fit() {
        let inputs = [
            condition(&[2], &[true; 2]),
            i32s(&[3], &[0; 3]),
            i32s(&[1], &[0]),
        ];
        let message = "`then` [3] and `cond` [2] must broadcast together";
        assert_eq!(error(&DEF, &[], &inputs), message);
    }
}
