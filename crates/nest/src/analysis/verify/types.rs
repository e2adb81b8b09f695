//! The element types that each operation is defined on.

use crate::ir::{Binary, Kind, Scalar, Unary};
use vinelift_tensor::ElementType;

/// Whether the operands of `x` have types that it is defined for.
pub(super) fn is_typed(x: &Scalar) -> bool {
    let ty = x.ty();
    match x.kind() {
        Kind::Unary(op, y) => y.ty() == ty && unary_defined(*op, ty),
        Kind::Binary(op, a, b) => a.ty() == b.ty() && defined(*op, a.ty()),
        Kind::Select(c, yes, no) => {
            c.ty() == ElementType::Boolean && yes.ty() == ty && no.ty() == ty
        }
        Kind::Cast(y) => y.ty() != ElementType::String && ty != ElementType::String,
        Kind::Bitcast(y) => y.ty().bits() == ty.bits() && ty != ElementType::Boolean,
        Kind::Reduce { op, init, body, .. } => {
            let folds = !op.is_comparison() && !matches!(op, Binary::Pow | Binary::Term);
            init.ty() == ty && body.ty() == ty && folds && defined(*op, ty)
        }
        Kind::Wrap(w) => w.position.iter().all(|p| p.ty() == ElementType::I64),
        Kind::Const(_) | Kind::Axis(_) | Kind::Extent(_) | Kind::Load { .. } => true,
    }
}

/// Whether a binary operation is defined on operands of a type.
pub(super) fn defined(op: Binary, ty: ElementType) -> bool {
    use Binary::*;
    let float = matches!(ty, ElementType::F32 | ElementType::F64);
    let integer = ty.is_integer() && ty.is_arithmetic();
    let boolean = ty == ElementType::Boolean;
    match op {
        Add | Sub | Mul | Term | Div | Rem | Pow => float || integer,
        Shl | Shr => integer,
        MulHigh => ty == ElementType::U64,
        And | Or | Xor => integer || boolean,
        Min | Max | Lt | Le | Gt | Ge => float || integer || boolean,
        Eq | Ne => float || integer || boolean || ty == ElementType::String,
    }
}

fn unary_defined(op: Unary, ty: ElementType) -> bool {
    let float = matches!(ty, ElementType::F32 | ElementType::F64);
    match op {
        Unary::Not => ty == ElementType::Boolean || (ty.is_integer() && ty.is_arithmetic()),
        Unary::Rarely => ty == ElementType::Boolean,
        Unary::Neg | Unary::Abs => float || (ty.is_integer() && ty.is_arithmetic()),
        _ => float,
    }
}
