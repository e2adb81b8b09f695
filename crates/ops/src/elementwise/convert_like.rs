//! `ConvertLike`: `out = data` as values of the type of `like`.
//!
//! Specification: ConvertLike-1; conversion is that of Convert-1.

use super::convert;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

pub(crate) static DEF: OpDef = OpDef {
    name: "ConvertLike",
    versions: &["opset1"],
    signature: Signature::new(&["data", "like"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<ConvertLike>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConvertLike {}

impl Op for ConvertLike {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        convert::infer(cx, "data", cx.element("like"))
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        convert::lower(cx, cx.input("data"), cx.output(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, i32s, run};

    #[test]
    fn takes_the_type_of_the_second() {
        let (data, like) = (f32s(&[2], &[1.5, -2.5]), i32s(&[0], &[]));
        assert_eq!(run(&DEF, &[], &[data, like]), i32s(&[2], &[1, -2]));
    }
}
