//! The operands of a contraction over strided tensors: constants are packed as the kernel reads them.

use super::problem::turn;
use crate::compile::Settings;
use crate::compile::coding_source::CodingSource;
use crate::compile::constant_operand::{Constants, is_of_left, is_of_right};
use crate::compile::packed_operands::Unpacked;
use std::sync::Arc;
use vinelift_kernels as kernels;
use vinelift_kernels::{Form, Packed};
use vinelift_nest::{Contraction, Factor};

/// The bytes of an operand that is constant, and how they are coded, if they are.
pub(super) type Constant<'a> = Option<(&'a [u8], Option<CodingSource>)>;

/// The operands, if they are constant; `None` if there is no kernel for one of them.
pub(super) fn constant_operands<'a>(
    constants: &Constants<'a>,
    contraction: &Contraction,
) -> Option<[Constant<'a>; 2]> {
    let (left, right, turn) = (&contraction.left, &contraction.right, turn(contraction));
    Some([
        constants.factor(contraction, left, turn.left, is_of_left)?,
        constants.factor(contraction, right, turn.right, is_of_right)?,
    ])
}

/// How the kernel reads an operand.
pub(super) fn form(operand: &Constant<'_>) -> Form {
    match operand {
        None => Form::Plain,
        Some((_, None)) => Form::Packed,
        Some((_, Some(_))) => Form::Coded,
    }
}

/// The operands as the kernel reads them: constants are packed, the others stay as they are. `None` if memory is short.
pub(super) fn pack(
    kernel: &kernels::PreparedContraction,
    contraction: &Contraction,
    constants: &Constants<'_>,
    [left, right]: [Constant<'_>; 2],
    settings: &Settings<'_>,
) -> Option<[Option<Arc<Packed>>; 2]> {
    let operand = |factor: &Factor, operand: Constant<'_>, is_left: bool| {
        let Some((bytes, source)) = &operand else {
            return Some(None);
        };
        let layout = || match is_left {
            true => kernel.left_layout(),
            false => kernel.right_layout(),
        };
        let packed = || {
            let is_own = if is_left { is_of_left } else { is_of_right };
            let coding = |source| constants.coding(contraction, factor, source, is_own);
            match (source, is_left) {
                (Some(source), true) => kernel.pack_left_coded(bytes, &coding(source)?),
                (Some(source), false) => kernel.pack_right_coded(bytes, &coding(source)?),
                (None, true) => kernel.pack_left(bytes),
                (None, false) => kernel.pack_right(bytes),
            }
        };
        let unpacked = Unpacked {
            constant: constants.address(factor),
            bytes,
            coding: source.as_ref(),
        };
        let of_model = &settings.shared.operands;
        let packed = constants
            .slots
            .packed(of_model, &unpacked, layout, packed)?;
        Some(Some(packed))
    };
    Some([
        operand(&contraction.left, left, true)?,
        operand(&contraction.right, right, false)?,
    ])
}
