//! `Convert`: `out = x` as a value of `destination_type`.
//!
//! Specification: Convert-1. Float to integer truncates; out of range it is undefined and gives what
//! casts of a nest give. To boolean it is `x != 0`. Every type but `string` converts to every other.

use super::{Broadcast, read};
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::BufferId;
use vinelift_tensor::ElementType;

pub(crate) static DEF: OpDef = OpDef {
    name: "Convert",
    versions: &["opset1"],
    signature: Signature::new(&["x"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<Convert>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Convert {
    #[serde(deserialize_with = "crate::attrs::element_type")]
    destination_type: ElementType,
}

impl Op for Convert {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx, "x", self.destination_type)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx, cx.input("x"), cx.output(0));
    }
}

/// The type of `input` with its elements converted.
pub(super) fn infer(
    cx: &Infer<'_>,
    input: &'static str,
    to: ElementType,
) -> Result<Vec<TensorType>, OpError> {
    let from = cx.element(input);
    let string = ElementType::String;
    if from != to && (from == string || to == string) {
        let expected = format!("a type that converts to {to}");
        return Err(OpError::Type {
            input,
            expected,
            found: from.to_string(),
        });
    }
    Ok(vec![TensorType::new(to, cx.shape(input).clone())])
}

/// `out = x`, converted; the same bits if the types are equal.
pub(super) fn lower(cx: &mut Lower<'_>, x: BufferId, out: BufferId) {
    let ty = cx.type_of(out);
    cx.define(out, |cx, at| {
        read(cx, Broadcast::NUMPY.alignment(true), x, at).cast(ty)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};
    use vinelift_tensor::Tensor;

    fn to(ty: &str, x: Tensor) -> Tensor {
        run(&DEF, &[("destination_type", ty)], &[x])
    }

    #[test]
    fn truncates_wraps_and_tests() {
        let x = f32s(&[4], &[-1.9, 0.0, 2.7, f32::NAN]);
        assert_eq!(to("i32", f32s(&[2], &[-1.9, 2.7])), i32s(&[2], &[-1, 2]));
        let truth = Tensor::from_bools(&[4], &[true, false, true, true]).unwrap();
        assert_eq!(to("boolean", x), truth);
        let bytes = Tensor::from_slice(&[2], &[44u8, 255]).unwrap();
        assert_eq!(to("u8", i32s(&[2], &[300, -1])), bytes);
        assert_eq!(to("f32", truth), f32s(&[4], &[1.0, 0.0, 1.0, 1.0]));
    }

    #[test]
    fn between_storage_types() {
        let i4 = Tensor::from_bytes(ElementType::I4, &[3], [0x7f, 0x08]).unwrap();
        assert_eq!(to("f32", i4.clone()), f32s(&[3], &[-1.0, 7.0, -8.0]));
        let f16 = to("f16", i4.clone());
        assert_eq!(f16.bytes(), [0x00, 0xbc, 0x00, 0x47, 0x00, 0xc8]);
        assert_eq!(to("i4", f16), i4);
    }

    #[test]
    fn strings_stay_strings() {
        let text = Tensor::from_strings(&[1], vec!["a".into()]).unwrap();
        let message = "`x` must be a type that converts to f32, found string";
        assert_eq!(
            error(&DEF, &[("destination_type", "f32")], &[text]),
            message
        );
        let message = "attribute unknown element type `f33`";
        assert_eq!(
            error(&DEF, &[("destination_type", "f33")], &[f32s(&[0], &[])]),
            message
        );
    }
}
