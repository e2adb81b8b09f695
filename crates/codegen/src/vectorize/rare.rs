//! Selects one side of which is rarely taken: a turn that takes it in no lane skips what it alone needs.

use super::build::Builder;
use crate::analysis::walk::{Visit, visit};
use crate::vector_ir::ops::Op;
use crate::vector_ir::program::Value;
use vinelift_nest::{Kind, Scalar, Unary};
use vinelift_tensor::ElementType;

/// `select(rarely(condition), yes, no)`
pub(super) struct RareSelect<'n> {
    condition: &'n Scalar,
    yes: &'n Scalar,
    no: &'n Scalar,
    ty: ElementType,
}

impl<'n> RareSelect<'n> {
    /// The scalars that every turn computes: the condition, `no`, and all loads, folds and checked indices under `yes`. Only
    /// arithmetic is skipped.
    pub(super) fn operands(&self) -> Vec<&'n Scalar> {
        let mut operands = vec![self.condition, self.no];
        visit(self.yes, |x| match x.kind() {
            Kind::Unary(..)
            | Kind::Binary(..)
            | Kind::Select(..)
            | Kind::Cast(_)
            | Kind::Bitcast(_) => Visit::Children,
            _ => {
                operands.push(x);
                Visit::Past
            }
        });
        operands
    }
}

impl<'n> Builder<'_, 'n> {
    /// The select that a scalar is, if its value belongs into the innermost loop.
    pub(super) fn rare_select(&self, x: &'n Scalar) -> Option<RareSelect<'n>> {
        let Kind::Select(condition, yes, no) = x.kind() else {
            return None;
        };
        let is_rare = matches!(condition.kind(), Kind::Unary(Unary::Rarely, _));
        let is_innermost = self.depth(x) + 1 == self.blocks.len();
        let fits = is_rare && is_innermost && x.ty() != ElementType::Boolean;
        fits.then_some(RareSelect {
            condition,
            yes,
            no,
            ty: x.ty(),
        })
    }

    pub(super) fn chosen_rarely(&mut self, select: RareSelect<'n>) -> Option<Value> {
        let mask = self.known_value(select.condition)?;
        let no = self.known_value(select.no)?;
        self.rarely(mask, select.ty, no, |this| this.value(select.yes))
    }

    /// `mask ? yes : no` where `yes` is computed only if the mask has lanes.
    pub(super) fn rarely(
        &mut self,
        mask: Value,
        ty: ElementType,
        no: Value,
        yes: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        // Steps that may be skipped come right after what is already there.
        if self.at + 1 != self.blocks.len() {
            let yes = yes(self)?;
            return Some(self.apply(Op::Select, ty, &[mask, yes, no]));
        }
        let chosen = self.apply(Op::Variable, ty, &[no]);
        self.open_rare(mask);
        let yes = yes(self)?;
        self.assign(Op::Select, ty, &[mask, yes, chosen], chosen);
        self.close();
        Some(chosen)
    }
}
