//! The best element of each slice as a loop nest: a fold of the elements, and one of the positions that have the result.
//!
//! ```text
//! best[..]    = max[j](data[.., j, ..])
//! code[..]    = min[j](data[.., j, ..] == best[..] ? 2 · j + negative(data[.., j, ..]) : 2 · extent)
//! indices[..] = code[..] / 2, 0 for 2 · extent
//! values[..]  = best[..] with the sign of the element at indices[..], NaN for 2 · extent
//! ```
//!
//! Zeros of either sign are equal, so that the sign comes with the position. Folds pass over NaN: there may be no element
//! that is `best`. Unlike a function on tensors, the nest is fused with what is around it, has vectors as wide as the
//! machine's, and is divided among threads.

use super::TopK;
use crate::elementwise::widened;
use crate::{Infer, Lower, Native, Op, OpError, TensorType};
use vinelift_nest::build::{highest, integer, lowest, number, select, zero};
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::ElementType;
use vinelift_tensor::order::Direction;

/// `TopK` with a `k` of 1.
#[derive(Debug)]
pub(super) struct TopOne {
    pub(super) op: TopK,
    pub(super) axis: usize,
}

/// The most positions that there is a table of. A function that remembers the position goes through the elements once, which
/// is faster in the end.
const MOST: usize = 4096;

impl TopOne {
    /// Whether there is a nest for the best one along dim `axis`, and that is all that is wanted.
    pub(super) fn is_wanted(cx: &Infer<'_>, axis: usize) -> bool {
        let extent = cx
            .dims("data")
            .and_then(|dims| dims[axis].extent()?.number());
        let is_one = cx.formulas("k").is_none() && cx.integer("k") == Ok(Some(1));
        is_one && extent.is_some_and(|extent| extent <= MOST)
    }
}

impl Op for TopOne {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        Native::infer(&self.op, cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let axis = self.axis;
        let extent = shape[axis].pin();
        let ty = cx.element("data");
        let compute = ty.compute();
        let (fold, worst) = match self.op.mode.direction() {
            Direction::Descending => (Binary::Max, lowest(compute)),
            Direction::Ascending => (Binary::Min, highest(compute)),
        };
        let slice = |at: &[Scalar], j: &Scalar| {
            let mut from = at.to_vec();
            from[axis] = j.clone();
            from
        };
        let [values, indices] = [cx.output(0), cx.output(1)];
        let found = cx.extents_of(values);
        let is_float = ty.is_float();
        // Integers that are equal are the same.
        let best = match is_float {
            true => cx.temporary("best", compute, &found),
            false => values,
        };
        cx.define(best, |cx, at| {
            let best = cx.reduce(fold, &[extent], worst, |cx, j| {
                widened(cx.load("data", &slice(at, &j[0])))
            });
            best.cast(if is_float { compute } else { ty })
        });
        // As wide as the elements, so that vectors have as many of both.
        let bits = match compute.bits() {
            64 => ElementType::I64,
            _ => ElementType::I32,
        };
        let sign = integer(bits.bits() as i64 - 1, bits);
        let codes: Vec<i64> = (0..extent as i64).map(|j| 2 * j).collect();
        let codes = cx.table_of("codes", bits, &codes);
        let none = integer(2 * extent as i64, bits);
        let code = cx.temporary("code", bits, &found);
        cx.define(code, |cx, at| {
            let best = widened(cx.load_from(best, at));
            cx.reduce(Binary::Min, &[extent], none.clone(), |cx, j| {
                let x = widened(cx.load("data", &slice(at, &j[0])));
                let mut code = cx.load_from(codes, j);
                if is_float {
                    // The sign bits of a negative number are -1.
                    code = code - x.clone().bitcast(bits).shr(sign.clone());
                }
                select(x.eq(best), code, none.clone())
            })
        });
        cx.define(indices, |cx, at| {
            let code = cx.load_from(code, at);
            let half = code.shr(integer(1, bits));
            select(code.lt(none.clone()), half, zero(bits)).cast(cx.type_of(indices))
        });
        if is_float {
            cx.define(values, |cx, at| {
                let code = cx.load_from(code, at);
                let magnitude = cx.load_from(best, at).abs().bitcast(bits);
                let value = (magnitude | code.shl(sign)).bitcast(compute);
                select(code.lt(none), value, number(f64::NAN, compute)).cast(ty)
            });
        }
    }
}
