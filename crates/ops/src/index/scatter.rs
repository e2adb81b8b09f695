//! The common part of the scatter operators: a copy of the data into which updates are folded.

use crate::Lower;
use vinelift_nest::build::{boolean, highest, index, integer, lowest, number, select, zero};
use vinelift_nest::{Binary, Mode, Scalar};
use vinelift_tensor::{ElementType, Extent};

/// How an update meets what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// It replaces it: the last one in row-major order stays.
    Replace,
    /// `there op update`.
    Combine {
        /// How two values meet.
        op: Binary,
        /// Whether the data takes part, or only the updates do.
        initial: bool,
    },
    /// The mean of the updates, of integers rounded down.
    Mean {
        /// Whether the data takes part.
        initial: bool,
    },
}

/// The fold that stands for `number` among numbers and for `boolean` among booleans.
pub(crate) fn by_type(ty: ElementType, number: Binary, boolean: Binary) -> Binary {
    if ty == ElementType::Boolean {
        boolean
    } else {
        number
    }
}

/// `out = data`, then for every point of `domain` in row-major order `update(point)` is folded into
/// `out[target(point)]`.
///
/// Folds over storage types are computed in a wider type and converted once; elements that no mean
/// touches keep their bits.
pub(crate) fn scatter(
    cx: &mut Lower<'_>,
    fold: Fold,
    domain: &[Extent],
    target: impl Fn(&mut Lower<'_>, &[Scalar]) -> Vec<Scalar>,
    update: impl Fn(&Lower<'_>, &[Scalar]) -> Scalar,
) {
    let out = cx.output(0);
    let (ty, shape) = (cx.type_of(out), cx.extents_of(out));
    match fold {
        Fold::Replace => {
            cx.define(out, |cx, at| cx.load("data", at));
            cx.stage(domain, out, Mode::Set, |cx, p| {
                (target(cx, p), update(cx, p))
            });
        }
        Fold::Combine { op, initial } => {
            let wide = ty.compute();
            let folded = if wide == ty {
                out
            } else {
                cx.temporary("folded", wide, &shape)
            };
            cx.define(folded, |cx, at| cx.load("data", at).cast(wide));
            if !initial {
                cx.stage(domain, folded, Mode::Set, |cx, p| {
                    (target(cx, p), start(op, wide))
                });
            }
            cx.stage(domain, folded, Mode::Combine(op), |cx, p| {
                (target(cx, p), update(cx, p).cast(wide))
            });
            if folded != out {
                cx.define(out, |cx, at| cx.load_from(folded, at).cast(ty));
            }
        }
        Fold::Mean { initial } => scatter_means(cx, initial, domain, target, update),
    }
}

/// [`scatter`] of means: with the element of `data` itself where it counts as `initial`.
fn scatter_means(
    cx: &mut Lower<'_>,
    initial: bool,
    domain: &[Extent],
    target: impl Fn(&mut Lower<'_>, &[Scalar]) -> Vec<Scalar>,
    update: impl Fn(&Lower<'_>, &[Scalar]) -> Scalar,
) {
    let out = cx.output(0);
    let (ty, shape) = (cx.type_of(out), cx.extents_of(out));
    let wide = mean_type(ty);
    let sums = cx.temporary("sums", wide, &shape);
    cx.define(sums, |cx, at| {
        if initial {
            cx.load("data", at).cast(ty.compute()).cast(wide)
        } else {
            zero(wide)
        }
    });
    let counts = cx.temporary("counts", ElementType::I64, &shape);
    cx.define(counts, |_, _| index(0));
    let add = Mode::Combine(Binary::Add);
    cx.stage(domain, sums, add, |cx, p| {
        (target(cx, p), update(cx, p).cast(ty.compute()).cast(wide))
    });
    cx.stage(domain, counts, add, |cx, p| (target(cx, p), index(1)));
    cx.define(out, |cx, at| {
        let count = cx.load_from(counts, at);
        let divisor = (&count + i64::from(initial)).cast(wide);
        let mean = divide_down(cx.load_from(sums, at), divisor).cast(ty);
        select(count.gt(index(0)), mean, cx.load("data", at))
    });
}

/// The type in which values of `ty` are summed for a mean, which may fit `ty` where the sum does not.
pub(crate) fn mean_type(ty: ElementType) -> ElementType {
    match ty {
        _ if ty.is_signed_integer() => ElementType::I64,
        _ if ty.is_unsigned_integer() => ElementType::U64,
        _ => ty.compute(),
    }
}

/// `a / b` for `b > 0`, of integers rounded down.
fn divide_down(a: Scalar, b: Scalar) -> Scalar {
    let ty = a.ty();
    let quotient = &a / &b;
    if !ty.is_signed_integer() {
        return quotient;
    }
    let below = a.rem(b).lt(zero(ty));
    quotient - select(below, integer(1, ty), zero(ty))
}

/// The value that leaves others as they are under `op`.
fn start(op: Binary, ty: ElementType) -> Scalar {
    match op {
        Binary::Mul => number(1.0, ty),
        Binary::And => boolean(true),
        Binary::Min => highest(ty),
        Binary::Max => lowest(ty),
        _ => zero(ty),
    }
}
