//! Folds between bounds that are data.
//!
//! > `op_k select(b <= k & k < e, x[k], n)`, where `n` is neutral, folds `x[k]` over the `k` from `b` to `e` alone
//!
//! The bounds are loaded, so nobody knows before a run how small a part of the axis lies between them. Whoever runs such a fold
//! visits these points alone; what the others fold in changes nothing.

use super::{Axis, Binary, Kind, Scalar, as_select, free_axes};
use crate::build;
use vinelift_tensor::ElementType::{self, I64};

/// A fold that changes nothing where its guard fails: it starts from a neutral element, and takes in the same there.
pub(crate) struct GuardedFold<'s> {
    pub(crate) axes: &'s [Axis],
    pub(crate) guard: &'s Scalar,
    /// The value where the guard holds.
    pub(crate) value: &'s Scalar,
}

impl<'s> GuardedFold<'s> {
    pub(crate) fn of(fold: &'s Scalar) -> Option<GuardedFold<'s>> {
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = fold.kind()
        else {
            return None;
        };
        let (guard, value, no) = as_select(body)?;
        let neutral = op.neutral(fold.ty())?;
        (*init == neutral && *no == neutral).then_some(GuardedFold { axes, guard, value })
    }
}

/// The bounds of a fold over one axis.
#[derive(Clone, Copy, Debug)]
pub struct FoldBounds<'s> {
    /// The axis.
    pub axis: Axis,
    /// The first point, an `i64` that may be below zero; that of the axis if there is none.
    pub begin: Option<&'s Scalar>,
    /// The point behind the last, an `i64` that may be behind the axis or before `begin`; the extent of the axis if there is none.
    pub end: Option<&'s Scalar>,
    /// The value at a point between them.
    pub value: &'s Scalar,
}

impl<'s> FoldBounds<'s> {
    /// The bounds of `fold`, if it has them, and asking for its ends cannot fail.
    pub fn of(fold: &'s Scalar) -> Option<FoldBounds<'s>> {
        let GuardedFold { axes, guard, value } = GuardedFold::of(fold)?;
        let [axis] = axes else {
            return None;
        };
        let mut bounds = FoldBounds {
            axis: *axis,
            begin: None,
            end: None,
            value,
        };
        match guard.kind() {
            Kind::Binary(Binary::And, a, b) => {
                bounds.narrow(a)?;
                bounds.narrow(b)?;
            }
            _ => bounds.narrow(guard)?,
        }
        let is_end = |x: &&Scalar| x.loads() && !x.wraps() && !free_axes(x).contains(&axis.id);
        bounds.ends().all(|x| is_end(&x)).then_some(bounds)
    }

    /// The ends that it has.
    pub fn ends(self) -> impl Iterator<Item = &'s Scalar> {
        self.begin.into_iter().chain(self.end)
    }

    /// Takes in a comparison of the axis with an end; `None` if it is something else, or that end is known.
    fn narrow(&mut self, comparison: &'s Scalar) -> Option<()> {
        use Binary::{Ge, Gt, Le, Lt};
        let Kind::Binary(op, a, b) = comparison.kind() else {
            return None;
        };
        let is_axis = |x: &Scalar| x.is_axis(self.axis.id);
        let (end, bound) = match (op, is_axis(a), is_axis(b)) {
            (Ge, true, false) => (&mut self.begin, b),
            (Le, false, true) => (&mut self.begin, a),
            (Lt, true, false) => (&mut self.end, b),
            (Gt, false, true) => (&mut self.end, a),
            _ => return None,
        };
        (end.is_none() && bound.ty() == I64).then(|| *end = Some(bound))
    }
}

impl Binary {
    /// The value that a fold which starts from it may take in without a change.
    pub(crate) fn neutral(self, ty: ElementType) -> Option<Scalar> {
        Some(match self {
            Binary::Add => build::zero(ty),
            Binary::Max => build::lowest(ty),
            Binary::Min => build::highest(ty),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::ir::{BufferId, Nest, Role};
    use vinelift_tensor::ElementType::F32;

    /// The ends of the bounds of a fold of ten points whose guard is given.
    fn bounds(
        op: Binary,
        init: Scalar,
        guard: impl Fn(&Nest, BufferId, &Scalar) -> Scalar,
    ) -> Option<[Option<String>; 2]> {
        let mut nest = Nest::new();
        let ends = nest.buffer("ends", I64, &[2], Role::Input);
        let x = nest.buffer("x", F32, &[10], Role::Input);
        let k = nest.axis(10);
        let at = Scalar::axis(k.id);
        let value = nest.load(x, vec![at.clone()]);
        let body = select(guard(&nest, ends, &at), value, init.clone());
        let fold = Scalar::reduce(op, vec![k], init, body);
        let text = |x: &Scalar| match x.kind() {
            Kind::Load { at, .. } => format!("ends[{}]", at[0].as_const().unwrap()),
            _ => "other".to_owned(),
        };
        let bounds = FoldBounds::of(&fold)?;
        Some([bounds.begin.map(text), bounds.end.map(text)])
    }

    #[test]
    fn either_end_and_both_in_any_order() {
        let end = |nest: &Nest, ends, k| nest.load(ends, vec![index(k)]);
        let (first, last) = ("ends[0]".to_owned(), "ends[1]".to_owned());
        let sum = |guard: &dyn Fn(&Nest, BufferId, &Scalar) -> Scalar| {
            bounds(Binary::Add, zero(F32), guard)
        };
        let both = Some([Some(first.clone()), Some(last.clone())]);
        assert_eq!(
            sum(&|n, e, k| k.ge(end(n, e, 0)) & k.lt(end(n, e, 1))),
            both
        );
        assert_eq!(
            sum(&|n, e, k| end(n, e, 1).gt(k.clone()) & end(n, e, 0).le(k.clone())),
            both
        );
        assert_eq!(
            sum(&|n, e, k| k.ge(end(n, e, 0))),
            Some([Some(first), None])
        );
        assert_eq!(sum(&|n, e, k| k.lt(end(n, e, 1))), Some([None, Some(last)]));
    }

    #[test]
    fn other_guards_are_no_bounds() {
        let end = |nest: &Nest, ends| nest.load(ends, vec![index(0)]);
        let sum = |guard: &dyn Fn(&Nest, BufferId, &Scalar) -> Scalar| {
            bounds(Binary::Add, zero(F32), guard)
        };
        // Known ends are cut off by other means.
        assert_eq!(sum(&|_, _, k| k.lt(index(3))), None);
        assert_eq!(sum(&|n, e, k| k.lt(end(n, e) + k)), None);
        assert_eq!(sum(&|n, e, k| k.le(end(n, e))), None);
        assert_eq!(sum(&|n, e, k| k.lt(end(n, e)) & k.lt(end(n, e))), None);
        assert_eq!(sum(&|n, e, k| k.lt(end(n, e)) | k.ge(end(n, e))), None);
    }

    #[test]
    fn what_is_left_out_must_change_nothing() {
        let guard = |n: &Nest, e, k: &Scalar| k.lt(n.load(e, vec![index(0)]));
        assert!(bounds(Binary::Max, lowest(F32), guard).is_some());
        assert!(bounds(Binary::Min, highest(F32), guard).is_some());
        assert_eq!(bounds(Binary::Add, number(1.0, F32), guard), None);
        assert_eq!(bounds(Binary::Max, zero(F32), guard), None);
        assert_eq!(bounds(Binary::Mul, number(1.0, F32), guard), None);
    }
}
