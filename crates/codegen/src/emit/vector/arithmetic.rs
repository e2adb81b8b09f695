//! Arithmetic in every lane: by an operation on lanes or, where there is none, lane by lane on scalars.

use crate::emit::emitter::{Emitter, Result, no_primitive};
use crate::target::clif128::{Clif128, Lanes128};
use crate::vector_ir::ops::{Op, cast_steps, is_float};
use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType::{self, Boolean, U8};

impl<'f> Emitter<'_, 'f> {
    pub(super) fn clif128(&mut self) -> Clif128<'_, 'f> {
        Clif128 {
            lanes: self.vectors.lanes(),
            is_x86: self.is_x86,
            builder: &mut self.builder,
        }
    }

    pub(super) fn vector_unary(
        &mut self,
        op: Unary,
        ty: ElementType,
        x: &Lanes128,
    ) -> Result<Lanes128> {
        match Op::of_unary(op).and_then(|op| self.clif128().apply(op, ty, &[x])) {
            Some(lanes) => Ok(lanes),
            None => self.lane_by_lane(ty, &[(ty, x)], |e, x| e.unary(op, ty, x[0])),
        }
    }

    /// `y_bits` are the bits of `y` if it is a constant.
    pub(super) fn vector_binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        [x, y]: [&Lanes128; 2],
        y_bits: Option<u64>,
    ) -> Result<Lanes128> {
        let lanes = match Op::of_shift(op, ty, y_bits) {
            Some(shift) => self.clif128().apply(shift, ty, &[x]),
            None => Op::of_binary(op).and_then(|op| self.clif128().apply(op, ty, &[x, y])),
        };
        match lanes {
            Some(lanes) => Ok(lanes),
            None if ty == Boolean => no_primitive(format_args!("{op:?} of booleans")),
            None => {
                let operands = [(ty, x), (ty, y)];
                self.lane_by_lane(ty, &operands, |e, x| e.binary(op, ty, x[0], x[1], y_bits))
            }
        }
    }

    /// `sum` and the term `x · y`.
    pub(super) fn vector_add_term(
        &mut self,
        ty: ElementType,
        sum: &Lanes128,
        [x, y]: [&Lanes128; 2],
    ) -> Result<Lanes128> {
        if is_float(ty)
            && let Some(sum) = self.clif128().apply(Op::MulAdd, ty, &[x, y, sum])
        {
            return Ok(sum);
        }
        let term = self.vector_binary(Binary::Mul, ty, [x, y], None)?;
        self.vector_binary(Binary::Add, ty, [sum, &term], None)
    }

    /// As the scalar cast.
    pub(super) fn vector_cast(
        &mut self,
        x: &Lanes128,
        from: ElementType,
        to: ElementType,
    ) -> Result<Lanes128> {
        let mut found = cast_steps(from, to).map(|steps| (x.clone(), steps));
        if let Some((lanes, steps)) = &mut found {
            for (op, ty) in steps.iter() {
                match self.clif128().apply(*op, *ty, &[lanes]) {
                    Some(next) => *lanes = next,
                    None => {
                        found = None;
                        break;
                    }
                }
            }
        }
        match found {
            Some((lanes, _)) => Ok(lanes),
            None => self.lane_by_lane(to, &[(from, x)], |e, x| e.cast(x[0], from, to)),
        }
    }

    pub(super) fn vector_bitcast(
        &mut self,
        x: &Lanes128,
        from: ElementType,
        to: ElementType,
    ) -> Lanes128 {
        match (from, to) {
            (Boolean, Boolean) => x.clone(),
            (Boolean, _) => self.ones(x),
            (_, Boolean) => self.clif128().is_not_zero(from, x),
            _ => self.clif128().reinterpreted(x, to),
        }
    }

    /// A mask as bytes of 0 and 1.
    pub(super) fn ones(&mut self, mask: &Lanes128) -> Lanes128 {
        let ones = self.clif128().apply(Op::MaskedConstant(1), U8, &[mask]);
        ones.unwrap_or_else(|| mask.clone())
    }
}
