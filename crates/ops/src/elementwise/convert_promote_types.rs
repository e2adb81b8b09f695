//! `ConvertPromoteTypes`: both inputs as values of the type that holds either.
//!
//! Specification: ConvertPromoteTypes-14. Boolean gives way to integers, integers to floats; of two
//! integers a signed one wide enough for both, of two floats the wider, `f8e4m3` with `f8e5m2` gives
//! `f16`, and `f16` with `bf16` gives `f32`. Conversion is that of Convert-1.

use super::convert;
use crate::attrs::element_type;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::ElementType::{self, *};

pub(crate) static DEF: OpDef = OpDef {
    name: "ConvertPromoteTypes",
    versions: &["opset14"],
    signature: Signature::new(&["input_0", "input_1"]),
    family: Family::Elementwise,
    build: Build::Op(parse::<ConvertPromoteTypes>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConvertPromoteTypes {
    #[serde(default)]
    promote_unsafe: bool,
    #[serde(default)]
    pytorch_scalar_promotion: bool,
    #[serde(default = "f32_type", deserialize_with = "element_type")]
    u64_integer_promotion_target: ElementType,
}

const fn f32_type() -> ElementType {
    F32
}

impl Op for ConvertPromoteTypes {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let promotes = |t| !matches!(t, String | F8E8M0 | F4E2M1 | NF4);
        let expected = "a boolean, integer or float type";
        let a = cx.expect("input_0", expected, promotes)?;
        let b = cx.expect("input_1", expected, promotes)?;
        let scalar = |name: &str| cx.shape(name).rank() == Some(0);
        let common = self
            .common(a, b, scalar("input_0"), scalar("input_1"))
            .ok_or_else(|| {
                let found = b.to_string();
                let expected = format!("a type that promotes safely together with {a}");
                OpError::Type {
                    input: "input_1",
                    expected,
                    found,
                }
            })?;
        let mut outputs = convert::infer(cx, "input_0", common)?;
        outputs.extend(convert::infer(cx, "input_1", common)?);
        Ok(outputs)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        convert::lower(cx, cx.input("input_0"), cx.output(0));
        convert::lower(cx, cx.input("input_1"), cx.output(1));
    }
}

impl ConvertPromoteTypes {
    /// The type for both, `None` if there is none that is allowed.
    fn common(
        &self,
        a: ElementType,
        b: ElementType,
        a_scalar: bool,
        b_scalar: bool,
    ) -> Option<ElementType> {
        let allowed = |safe: bool, ty: ElementType| (safe || self.promote_unsafe).then_some(ty);
        match (a, b) {
            _ if a == b => return Some(a),
            (Boolean, other) | (other, Boolean) => return Some(other),
            _ => {}
        }
        if a.is_float() != b.is_float() {
            let (float, integer) = if a.is_float() { (a, b) } else { (b, a) };
            return allowed(float.bits() >= 2 * integer.bits(), float);
        }
        if self.pytorch_scalar_promotion && a_scalar != b_scalar {
            let (scalar, target) = if a_scalar { (a, b) } else { (b, a) };
            let room = if signed(target) && !signed(scalar) {
                2
            } else {
                1
            };
            let safe = (signed(target) || !signed(scalar)) && room * target.bits() >= scalar.bits();
            return allowed(safe, target);
        }
        if signed(a) != signed(b) {
            let (integer, natural) = if signed(a) { (a, b) } else { (b, a) };
            let wanted = integer.bits().max(2 * natural.bits());
            let wider = [I4, I8, I16, I32, I64]
                .into_iter()
                .find(|t| t.bits() >= wanted);
            let common = wider.unwrap_or(self.u64_integer_promotion_target);
            return allowed(common == integer, common);
        }
        match (a, b) {
            (F8E4M3, F8E5M2) | (F8E5M2, F8E4M3) => allowed(false, F16),
            (F16, BF16) | (BF16, F16) => allowed(false, F32),
            _ => Some(if a.bits() >= b.bits() { a } else { b }),
        }
    }
}

fn signed(ty: ElementType) -> bool {
    ty.is_float() || ty.is_signed_integer()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};

    fn common(a: ElementType, b: ElementType, promote_unsafe: bool) -> Option<ElementType> {
        let op = ConvertPromoteTypes {
            promote_unsafe,
            pytorch_scalar_promotion: false,
            u64_integer_promotion_target: F32,
        };
        assert_eq!(op.common(a, b, false, false), op.common(b, a, false, false));
        op.common(a, b, false, false)
    }

    /// The examples of the specification: `(a, b, result, whether it is safe)`.
    #[test]
    fn of_the_specification() {
        for (a, b, want, safe) in [
            (I8, F32, F32, true),
            (I32, U8, I32, true),
            (F16, I64, F16, false),
            (F64, U64, F64, false),
            (I8, U8, I16, false),
            (F16, BF16, F32, false),
            (F8E4M3, F8E5M2, F16, false),
            (U64, I8, F32, false),
            (I16, U32, I64, false),
            (F16, F32, F32, true),
            (Boolean, U8, U8, true),
        ] {
            assert_eq!(common(a, b, true), Some(want), "{a} {b}");
            assert_eq!(common(a, b, false), safe.then_some(want), "{a} {b}");
        }
    }

    #[test]
    fn scalars_give_way_where_asked() {
        let op = ConvertPromoteTypes {
            promote_unsafe: true,
            pytorch_scalar_promotion: true,
            u64_integer_promotion_target: F32,
        };
        assert_eq!(op.common(I64, U8, true, false), Some(U8));
        assert_eq!(op.common(F16, I8, true, false), Some(F16));
    }

    #[test]
    fn converts_and_names_what_is_unsafe() {
        let inputs = [i32s(&[2], &[1, -2]), f32s(&[], &[0.5])];
        let message = "`input_1` must be a type that promotes safely together with i32, found f32";
        assert_eq!(error(&DEF, &[], &inputs), message);
        let out = run(&DEF, &[("promote_unsafe", "true")], &inputs);
        assert_eq!(out, f32s(&[2], &[1.0, -2.0]));
    }
}
