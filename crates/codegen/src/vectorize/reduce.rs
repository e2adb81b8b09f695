//! Folds in every lane, with a loop or without.

use super::build::Builder;
use crate::analysis::walk::operands_first;
use crate::vector_ir::ops::{LaneOp, Op, is_float};
use crate::vector_ir::program::Value;
use vinelift_nest::{Axis, Binary, FoldBounds, Kind, Scalar};
use vinelift_tensor::ElementType::{self, Boolean};

/// Folds over at most `MOST_UNROLLED` points are unrolled; so are folds of small bodies, if the number of points times that of
/// registers is at most `MOST_SMALL_UNROLLED`.
const MOST_UNROLLED: usize = 16;
const MOST_SMALL_UNROLLED: usize = 50;
/// Scalars of a small body, which is hardly more than a load.
const SMALL: usize = 4;
impl<'n> Builder<'_, 'n> {
    /// A fold over axes that do not run over lanes, unrolled if it has few points, else with a loop.
    pub(super) fn fold(&mut self, x: &'n Scalar) -> Option<Value> {
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = x.kind()
        else {
            return None;
        };
        // The loop of a function must come right after what is already there.
        if self.at + 1 != self.blocks.len() {
            return None;
        }
        let bounds = FoldBounds::of(x);
        // The loop of the kernel's own visits the points between them, if they are the same ones for all lanes.
        if let Some(bounds) = bounds {
            let is_same = self.is_in_kernel() && bounds.ends().all(|end| self.is_scalar(end));
            self.bounds.push(is_same.then_some(bounds)?);
        }
        let body = bounds.map_or(body, |bounds| bounds.value);
        let start = self.known_value(init)?;
        if axes.iter().any(|axis| axis.extent == 0) {
            return Some(start);
        }
        let ty = x.ty();
        let is_unrolled = |points: &usize| !self.is_in_kernel() && self.is_unrolled(*points, body);
        if let Some(points) = points_of(axes).filter(is_unrolled) {
            return self.fold_unrolled(*op, ty, (axes, points), start, body);
        }
        let is_sum = |op: &Op| ty != Boolean && !matches!(op, Op::Compare(_));
        let fitting = Op::of_binary(*op).filter(|op| is_sum(op) || self.is_in_kernel());
        let vector_op = fitting.or_else(|| self.by_lane(LaneOp::Binary(*op, None)))?;
        let sum = self.apply(Op::Variable, ty, &[start]);
        let depth = self.blocks.len();
        for axis in axes {
            match axis.extent.number() {
                Some(1) if bounds.is_none() => drop(self.fixed.insert(axis.id, 0)),
                _ => self.open_fold(*axis)?,
            }
        }
        self.fold_in((*op, vector_op), sum, body)?;
        while self.blocks.len() > depth {
            self.close();
        }
        for axis in axes {
            self.fixed.remove(&axis.id);
        }
        Some(sum)
    }

    /// Folds the value of `body` at this point into `sum`.
    fn fold_in(
        &mut self,
        (op, vector_op): (Binary, Op),
        sum: Value,
        body: &'n Scalar,
    ) -> Option<()> {
        let ty = body.ty();
        let Some((a, b)) = body.as_term() else {
            let next = self.value(body)?;
            self.assign(vector_op, ty, &op.fold_operands(ty, sum, next), sum);
            return Some(());
        };
        let (a, b) = (self.value(a)?, self.value(b)?);
        if is_float(ty) {
            self.assign(Op::MulAdd, ty, &[a, b, sum], sum);
        } else {
            let term = self.apply(Op::Mul, ty, &[a, b]);
            self.assign(vector_op, ty, &[sum, term], sum);
        }
        Some(())
    }

    /// Builds a fold in the loop that instructions go to, before the loops inside of that.
    pub(super) fn fold_ahead(&mut self, x: &'n Scalar) -> Option<Value> {
        let inner = self.blocks.split_off(self.at + 1);
        let is_inside = |(depth, _): &(usize, Value)| *depth > self.at;
        let inside = |address: &usize| self.known.get(address).is_some_and(is_inside);
        let (hidden, order) = self.order.iter().partition(|address| inside(address));
        self.order = order;
        let hidden: Vec<usize> = hidden;
        let take = |address| Some((address, self.known.remove(&address)?));
        let hidden: Vec<(usize, (usize, Value))> = hidden.into_iter().filter_map(take).collect();
        let sum = self.fold(x);
        self.blocks.extend(inner);
        for (address, known) in hidden {
            self.known.insert(address, known);
            self.order.push(address);
        }
        sum
    }

    /// Whether a fold has no loop.
    pub(super) fn is_unrolled(&self, points: usize, body: &Scalar) -> bool {
        let most = match operands_first(body, |_| false, |_| None).len() <= SMALL {
            true => MOST_SMALL_UNROLLED,
            false => MOST_UNROLLED,
        };
        points <= MOST_UNROLLED || points * self.parts <= most
    }

    fn fold_unrolled(
        &mut self,
        op: Binary,
        ty: ElementType,
        (axes, points): (&'n [Axis], usize),
        start: Value,
        body: &'n Scalar,
    ) -> Option<Value> {
        let mut sum = start;
        for point in 0..points {
            sum = self.fold_point(op, ty, axes, point, sum, body)?;
        }
        for axis in axes {
            self.fixed.remove(&axis.id);
        }
        Some(sum)
    }

    /// `sum` with the value of `body` at one more point taken in; the axes stay at that point.
    pub(super) fn fold_point(
        &mut self,
        op: Binary,
        ty: ElementType,
        axes: &'n [Axis],
        point: usize,
        sum: Value,
        body: &'n Scalar,
    ) -> Option<Value> {
        let mut rest = point;
        for axis in axes.iter().rev() {
            let extent = axis.extent.number()?;
            self.fixed.insert(axis.id, (rest % extent) as i64);
            rest /= extent;
        }
        let mark = self.order.len();
        let sum = match body.as_term() {
            Some((a, b)) if is_float(ty) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.apply(Op::MulAdd, ty, &[a, b, sum])
            }
            Some((a, b)) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let term = self.apply(Op::Mul, ty, &[a, b]);
                self.binary(op, ty, op.fold_operands(ty, sum, term), None)?
            }
            None => {
                let next = self.value(body)?;
                self.binary(op, ty, op.fold_operands(ty, sum, next), None)?
            }
        };
        self.forget(mark, axes);
        Some(sum)
    }
}

/// How many points a fold over these axes has, if that is known.
pub(super) fn points_of(axes: &[Axis]) -> Option<usize> {
    axes.iter().map(|axis| axis.extent.number()).product()
}
