//! `Identity`: `out = x`, to the bit.
//!
//! Specification: Identity-16.

use super::convert;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;

pub(crate) static DEF: OpDef = OpDef {
    name: "Identity",
    versions: &["opset16"],
    signature: Signature::new(&["x"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Identity>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {}

impl Op for Identity {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        convert::infer(cx, "x", cx.element("x"))
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        convert::lower(cx, cx.input("x"), cx.output(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;
    use std::slice::from_ref;
    use vinelift_tensor::{ElementType, Tensor};

    #[test]
    fn keeps_every_bit() {
        let nan = Tensor::from_bytes(ElementType::F16, &[2], [0x01, 0x7c, 0x00, 0x80]).unwrap();
        assert_eq!(run(&DEF, &[], from_ref(&nan)).bytes(), nan.bytes());
        let text = Tensor::from_strings(&[], vec!["a".into()]).unwrap();
        assert_eq!(run(&DEF, &[], from_ref(&text)), text);
    }
}
