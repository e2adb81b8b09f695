//! The value of a scalar of one unknown.

use super::arith::{add_term, binary, cast, has_binary, has_unary, unary};
use super::compile::castable;
use crate::ir::{Binary, Kind, Scalar, as_binary};

/// The bits of `x`, where those of `unknown` are `bits`; `None` if it consists of more than operations on constants. A scalar that
/// `x` uses more than once is evaluated each time.
pub(crate) fn value_where(x: &Scalar, unknown: &Scalar, bits: u64) -> Option<u64> {
    if x == unknown {
        return Some(bits);
    }
    let of = |x: &Scalar| value_where(x, unknown, bits);
    match x.kind() {
        Kind::Const(bits) => Some(bits.0),
        Kind::Unary(op, a) if has_unary(*op, a.ty()) => Some(unary(*op, a.ty(), of(a)?)),
        Kind::Binary(Binary::Add, sum, term)
            if let Some((a, b)) = as_binary(Binary::Term, term) =>
        {
            has_binary(Binary::Term, x.ty()).then_some(())?;
            Some(add_term(x.ty(), of(sum)?, of(a)?, of(b)?))
        }
        Kind::Binary(op, a, b) if has_binary(*op, a.ty()) => {
            Some(binary(*op, a.ty(), of(a)?, of(b)?))
        }
        Kind::Select(condition, yes, no) => match of(condition)? {
            0 => of(no),
            _ => of(yes),
        },
        Kind::Cast(a) if castable(a.ty()) && castable(x.ty()) => Some(cast(a.ty(), x.ty(), of(a)?)),
        _ => None,
    }
}
