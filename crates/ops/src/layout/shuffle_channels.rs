//! `ShuffleChannels`: the dim `axis` as a matrix of `group` rows, transposed:
//! `out[.., k · group + g, ..] = data[.., g · (extent / group) + k, ..]`.
//!
//! Specification: ShuffleChannels-1.

use super::extent::divided;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::index;

pub(crate) static DEF: OpDef = OpDef {
    name: "ShuffleChannels",
    versions: &["opset1"],
    signature: Signature::new(&["data"]),
    family: Family::Layout,
    build: Build::Op(parse::<ShuffleChannels>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShuffleChannels {
    #[serde(default = "crate::attrs::one")]
    axis: i64,
    #[serde(default = "crate::attrs::one")]
    group: i64,
}

impl Op for ShuffleChannels {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let group = self.group;
        ensure!(group >= 1, "`group` must be at least 1, found {group}");
        if let Some(dims) = cx.dims("data") {
            let axis = normalize_axis(self.axis, dims.len())?;
            let divides = divided(dims[axis], group as usize).is_some();
            ensure!(
                divides,
                "`group` {group} must divide dim {axis} of `data` {}",
                cx.shape("data")
            );
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let axis = normalize_axis(self.axis, shape.len()).unwrap_or_default();
        // `infer` has seen to it that nothing remains.
        let rows = shape[axis].quotient((self.group as usize).into());
        let rows = Scalar::extent(rows);
        cx.define(cx.output(0), |cx, at| {
            let mut from = at.to_vec();
            from[axis] = at[axis].rem(index(self.group)) * &rows + &at[axis] / self.group;
            cx.load("data", &from)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, i32s, run};
    use std::slice::from_ref;
    use vinelift_tensor::ElementType;

    /// Values of NumPy's `reshape` and `transpose`, as the specification has it.
    #[test]
    fn transposes_groups() {
        let x = i32s(&[1, 6, 1], &[0, 1, 2, 3, 4, 5]);
        let out = run(&DEF, &[("axis", "1"), ("group", "3")], from_ref(&x));
        assert_eq!(out, i32s(&[1, 6, 1], &[0, 2, 4, 1, 3, 5]));
        let out = run(&DEF, &[("axis", "-2"), ("group", "2")], from_ref(&x));
        assert_eq!(out, i32s(&[1, 6, 1], &[0, 3, 1, 4, 2, 5]));
        assert_eq!(run(&DEF, &[], from_ref(&x)), x);
        let message = "`group` 4 must divide dim 1 of `data` [1, 6, 1]";
        assert_eq!(error(&DEF, &[("group", "4")], from_ref(&x)), message);
        let message = "`group` must be at least 1, found 0";
        assert_eq!(error(&DEF, &[("group", "0")], &[x]), message);
    }

    /// Values of NumPy's `reshape` and `transpose`; extents that the groups do not divide are in no class.
    #[test]
    fn a_class_of_channels() {
        let class = Class::new(&DEF, &[("group", "3")], &[6, 2], |s| {
            vec![(ElementType::I32, vec![1.into(), s[0], s[1]], None)]
        });
        let counting = |n: usize| i32s(&[1, n, 2], &(0..2 * n as i32).collect::<Vec<_>>());
        let want = [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11];
        let found = class.run(&[6, 2], &[counting(6)]).unwrap();
        assert_eq!(found, [i32s(&[1, 6, 2], &want)]);
        let want = [0, 1, 6, 7, 12, 13, 2, 3, 8, 9, 14, 15, 4, 5, 10, 11, 16, 17];
        let found = class.run(&[9, 2], &[counting(9)]).unwrap();
        assert_eq!(found, [i32s(&[1, 9, 2], &want)]);
        assert_eq!(class.run(&[7, 2], &[counting(7)]), None);
        let message = "`group` 3 must divide dim 1 of `data` [1, 7, 2]";
        assert_eq!(error(&DEF, &[("group", "3")], &[counting(7)]), message);
    }
}
