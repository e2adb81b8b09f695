//! The values of scalars: computed once in the innermost loop that they depend on, before it, or by the kernel around the program.

use super::build::{Block, Builder};
use super::vector_loop::Argument;
use crate::analysis::walk::operands_first;
use crate::vector_ir::ops::{Op, is_float};
use crate::vector_ir::program::Value;
use vinelift_nest::{Axis, AxisId, Kind, Scalar};
use vinelift_tensor::ElementType::{Boolean, I64};

/// Values of more scalars are not tried: they would have too few registers.
const MOST_NODES: usize = 2000;

impl<'n> Builder<'_, 'n> {
    /// The innermost loop that a scalar depends on, or what may be skipped in it.
    pub(super) fn depth(&self, x: &Scalar) -> usize {
        let free = self.analysis.facts.free(x);
        let inside = |block: &Block| block.axis.is_some_and(|axis| free.contains(&axis.id));
        let depth = self.blocks.iter().rposition(inside).unwrap_or(0);
        let rare = self.blocks[depth + 1..].iter();
        depth + rare.take_while(|block| block.is_rare).count()
    }

    /// Whether a scalar is the same throughout the vector loop, and can be computed before it.
    pub(super) fn is_invariant(&self, x: &Scalar) -> bool {
        let free = self.analysis.facts.free(x);
        self.depth(x) == 0
            && !free.iter().any(|axis| self.fixed.contains_key(axis))
            && !self.analysis.facts.converts_halves(x)
    }

    /// The value of a scalar.
    pub(super) fn value(&mut self, root: &'n Scalar) -> Option<Value> {
        for x in self.pending(root)? {
            let depth = self.depth(x);
            let before = std::mem::replace(&mut self.at, depth);
            let value = match x.kind() {
                Kind::Reduce { .. } if self.is_in_kernel() => self.fold_ahead(x)?,
                _ => self.compute(x)?,
            };
            self.at = before;
            self.know(x, depth, value);
        }
        self.known_value(root)
    }

    pub(super) fn know(&mut self, x: &Scalar, depth: usize, value: Value) {
        self.known.insert(x.address(), (depth, value));
        self.order.push(x.address());
    }

    /// Forgets what is known since `mark` and depends on one of the axes, or on the row.
    pub(super) fn forget(&mut self, mark: usize, axes: &[Axis]) {
        let row = self.jam.as_ref().map(|jam| jam.axis.id);
        let axes = axes.iter().map(|axis| axis.id).chain(row);
        for address in self.order.split_off(mark) {
            let varies = |axis| self.analysis.facts.depends(address, axis);
            match axes.clone().any(varies) {
                true => drop(self.known.remove(&address)),
                false => self.order.push(address),
            }
        }
    }

    /// The scalars under `root` that are not known yet, operands first.
    fn pending(&self, root: &'n Scalar) -> Option<Vec<&'n Scalar>> {
        let is_known = |x: &'n Scalar| {
            self.known.contains_key(&x.address()) || self.is_invariant(x) || self.is_scalar(x)
        };
        let other = |x| match self.division(x) {
            Some(division) => Some(vec![division.x, division.y]),
            None => Some(self.rare_select(x)?.operands()),
        };
        let order = operands_first(root, is_known, other);
        (order.len() <= MOST_NODES).then_some(order)
    }

    /// The value of a scalar that has been computed, or is the same throughout.
    pub(super) fn known_value(&mut self, x: &'n Scalar) -> Option<Value> {
        if let Some((_, value)) = self.known.get(&x.address()) {
            return Some(*value);
        }
        let is_scalar = self.is_scalar(x);
        if !(self.is_invariant(x) || is_scalar) || x.ty().is_packed() {
            return None;
        }
        if let (Some(bits), true) = (x.as_const(), x.ty() != Boolean) {
            return Some(self.constant(bits, x.ty()));
        }
        if is_scalar {
            let depth = self.depth(x);
            let before = self.go_to(depth);
            let value = self.kernel_scalar(x)?;
            self.go_to(before);
            self.know(x, depth, value);
            return Some(value);
        }
        // Computed ahead of its guard.
        if !self.speculable.contains(&x.address()) && self.analysis.facts.has_effect(x) {
            return None;
        }
        let argument = match self.scalars.get(&x.address()) {
            Some(known) => *known,
            None => {
                let argument = self.argument(Argument::Scalar(x));
                self.scalars.insert(x.address(), argument);
                argument
            }
        };
        if x.ty() != Boolean {
            return Some(self.throughout(Op::Argument(argument), x.ty()));
        }
        let before = self.go_to(0);
        let mask = self.apply(Op::MaskArgument(argument), Boolean, &[]);
        self.go_to(before);
        self.known.insert(x.address(), (0, mask));
        Some(mask)
    }

    /// The number of a new argument.
    pub(super) fn argument(&mut self, argument: Argument<'n>) -> u32 {
        self.arguments.push(argument);
        self.arguments.len() as u32 - 1
    }

    /// The points that the lanes are at, of the axis that runs over them if a function goes through all of it.
    fn points_of_lanes(&mut self, axis: AxisId) -> Option<Value> {
        if self.lane != Some(axis) || self.is_in_kernel() || self.blocked.contains(&axis) {
            return None;
        }
        let first = (self.cut == Some(axis)).then(|| self.argument(Argument::First));
        Some(self.apply(Op::Points(first), I64, &[]))
    }

    fn compute(&mut self, x: &'n Scalar) -> Option<Value> {
        if x.ty().is_packed() {
            return None;
        }
        if let Some([sum, a, b]) = x.as_sum().filter(|_| is_float(x.ty())) {
            let sum = self.known_value(sum)?;
            let (a, b) = (self.known_value(a)?, self.known_value(b)?);
            return Some(self.apply(Op::MulAdd, x.ty(), &[a, b, sum]));
        }
        if let Some(division) = self.division(x) {
            return self.divided(division);
        }
        if let Some(select) = self.rare_select(x) {
            return self.chosen_rarely(select);
        }
        match x.kind() {
            Kind::Load { buffer, at } => self.load(x, *buffer, at),
            Kind::Unary(op, a) => {
                let a = self.known_value(a)?;
                self.unary(*op, x.ty(), a)
            }
            Kind::Binary(op, a, b) => {
                let (ty, bits) = (a.ty(), b.as_const());
                let operands = [self.known_value(a)?, self.known_value(b)?];
                self.binary(*op, ty, operands, bits)
            }
            Kind::Select(c, yes, no) => {
                let operands = [c, yes, no].map(|x| self.known_value(x));
                let [Some(c), Some(yes), Some(no)] = operands else {
                    return None;
                };
                Some(self.apply(Op::Select, x.ty(), &[c, yes, no]))
            }
            Kind::Cast(a) => {
                let from = a.ty();
                let a = self.known_value(a)?;
                self.cast(a, from, x.ty())
            }
            Kind::Bitcast(a) => {
                let from = a.ty();
                let a = self.known_value(a)?;
                Some(self.bitcast(a, from, x.ty()))
            }
            Kind::Reduce { .. } => self.fold(x),
            Kind::Axis(id) => self.points_of_lanes(*id),
            Kind::Const(_) | Kind::Extent(_) | Kind::Wrap(_) => None,
        }
    }
}
