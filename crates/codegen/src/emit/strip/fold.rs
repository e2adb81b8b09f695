//! Folds in every lane, with a loop or without.

use super::build::{Builder, Lanes};
use super::lanes::instruction;
use super::opcodes;
use crate::emit::vector::operands_first;
use crate::strip::program::{Class, Form, Instruction, Operand};
use crate::strip::{Opcode, Target};
use vinelift_nest::{Axis, Binary, Kind, Scalar};
use vinelift_tensor::ElementType::{self, Boolean};

/// Folds over at most so many points have no loop; of what is hardly more than a load, over so many registers.
const MOST_UNROLLED: usize = 16;
const MOST_SMALL_UNROLLED: usize = 50;
/// Scalars in what is hardly more than a load.
const SMALL: usize = 4;
impl<'n> Builder<'_, 'n, '_> {
    /// A fold with a loop, or none if it has few points, over axes that do not run over lanes.
    pub(super) fn fold(&mut self, x: &'n Scalar) -> Option<Lanes> {
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = x.kind()
        else {
            return None;
        };
        // The loop must come right after what is already there.
        if self.at + 1 != self.blocks.len() {
            return None;
        }
        let start = self.lanes_of(init)?;
        if axes.iter().any(|axis| axis.extent == 0) {
            return Some(start);
        }
        let ty = x.ty();
        let points: usize = axes.iter().map(|axis| axis.extent).product();
        if self.is_unrolled(points, body) {
            return self.fold_unrolled(*op, ty, axes, start, body);
        }
        let code =
            opcodes::binary(*op, ty, self.width(ty), self.target).filter(|_| ty != Boolean)?;
        let factors = body.as_term();
        if factors.is_some() && !opcodes::is_float(ty) {
            return None;
        }
        let sum = self.variables(&start)?;
        let depth = self.blocks.len();
        for axis in axes {
            match axis.extent {
                1 => drop(self.fixed.insert(axis.id, 0)),
                _ => self.open(*axis)?,
            }
        }
        match factors {
            Some((a, b)) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.accumulate_product(&sum, &a, &b);
            }
            None => {
                let next = self.value(body)?;
                self.accumulate(code, &sum, &next);
            }
        }
        while self.blocks.len() > depth {
            self.close();
        }
        for axis in axes {
            self.fixed.remove(&axis.id);
        }
        Some(sum)
    }

    /// Whether a fold has no loop.
    pub(super) fn is_unrolled(&self, points: usize, body: &Scalar) -> bool {
        let most = match operands_first(body, |_| false).len() <= SMALL {
            true => MOST_SMALL_UNROLLED,
            false => MOST_UNROLLED,
        };
        points <= MOST_UNROLLED || points * self.parts <= most
    }

    fn fold_unrolled(
        &mut self,
        op: Binary,
        ty: ElementType,
        axes: &'n [Axis],
        start: Lanes,
        body: &'n Scalar,
    ) -> Option<Lanes> {
        let points: usize = axes.iter().map(|axis| axis.extent).product();
        let mut sum = start;
        for point in 0..points {
            sum = self.fold_point(op, ty, axes, point, &sum, body)?;
        }
        for axis in axes {
            self.fixed.remove(&axis.id);
        }
        Some(sum)
    }

    /// A fold with one more point, whose axes are left fixed.
    pub(super) fn fold_point(
        &mut self,
        op: Binary,
        ty: ElementType,
        axes: &'n [Axis],
        point: usize,
        sum: &Lanes,
        body: &'n Scalar,
    ) -> Option<Lanes> {
        let mut rest = point;
        for axis in axes.iter().rev() {
            self.fixed.insert(axis.id, (rest % axis.extent) as i64);
            rest /= axis.extent;
        }
        let mark = self.order.len();
        let sum = match body.as_term() {
            Some(_) if !opcodes::is_float(ty) => return None,
            Some((a, b)) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.multiply_add(&a, &b, sum)
            }
            None => {
                let next = self.value(body)?;
                self.binary(op, ty, sum, &next, None)?
            }
        };
        self.forget(mark, axes);
        Some(sum)
    }

    /// New values that start as `start`, to be written again and again.
    fn variables(&mut self, start: &Lanes) -> Option<Lanes> {
        let width = start.width;
        let copy = opcodes::load(64, 4, Target::Avx2);
        let i = instruction(Form::Two, copy, self.bytes(width));
        let count = if self.lane.is_some() { self.parts } else { 1 };
        let mut parts = Vec::with_capacity(count);
        for part in 0..count {
            let from = [Some(start.part(part)), None, None];
            parts.push(self.give(Instruction { from, ..i }, Class::Vector));
        }
        Some(Lanes::new(parts, width))
    }

    /// `sum = a · b + sum`
    fn accumulate_product(&mut self, sum: &Lanes, a: &Lanes, b: &Lanes) {
        for (part, operand) in sum.parts.iter().enumerate() {
            let Operand::Value(to) = *operand else {
                continue;
            };
            let op = opcodes::multiply_add(sum.width);
            let mut i = instruction(Form::MulAdd, op, self.bytes(sum.width));
            i.to = Some(to);
            i.from = [Some(a.part(part)), Some(b.part(part)), Some(*operand)];
            self.add(i);
        }
    }

    /// `sum = op(sum, next)`
    fn accumulate(&mut self, code: Opcode, sum: &Lanes, next: &Lanes) {
        for (part, operand) in sum.parts.iter().enumerate() {
            let Operand::Value(to) = *operand else {
                continue;
            };
            let mut i = instruction(Form::Three, code, self.bytes(sum.width));
            i.to = Some(to);
            i.from = [Some(*operand), Some(next.part(part)), None];
            self.add(i);
        }
    }
}
