//! Scalars: pure expressions evaluated at one point of a stage's domain.

mod children;
mod wrap;

use crate::ir::{Axis, AxisId, Binary, BufferId, Unary};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vinelift_tensor::{ElementType, Extent};
pub use wrap::{Policy, Wrap};

/// A pure expression with its type. Cheap to clone: sub-expressions are shared, and every pass
/// keeps what is shared shared.
#[derive(Clone)]
pub struct Scalar(Arc<Node>);

struct Node {
    kind: Kind,
    ty: ElementType,
    /// A hash of the structure, so that unequal scalars are told apart without walking them.
    hash: u64,
    /// Whether there is a fold in it, itself included.
    folds: bool,
    /// Whether there is a data-dependent index in it, itself included.
    wraps: bool,
    /// Whether there is a load in it, itself included.
    loads: bool,
    /// Whether there is a select in it, itself included.
    selects: bool,
}

/// The operation of a scalar, with its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A constant, by its bits.
    Const(Const),
    /// The value of an axis, an `i64`.
    Axis(AxisId),
    /// The value, an `i64`, of an extent that has symbols; that of any other is a constant.
    Extent(Extent),
    /// `buffer[at]`, of the buffer's element type. Reads 0 where an index is a [`Kind::Wrap`] with
    /// [`Policy::zero`] that is out of range.
    Load {
        /// The buffer read.
        buffer: BufferId,
        /// One `i64` for each dim.
        at: Vec<Scalar>,
    },
    /// A function of one scalar, of the same type.
    Unary(Unary, Scalar),
    /// A function of two scalars of one type; comparisons give a boolean.
    Binary(Binary, Scalar, Scalar),
    /// `if condition { yes } else { no }`: the side not taken is not evaluated, so that a condition
    /// can guard a load or a wrap.
    Select(Scalar, Scalar, Scalar),
    /// Conversion by value to the node's type, as the operator `Convert` defines it.
    Cast(Scalar),
    /// The same bits as another type of the same width.
    Bitcast(Scalar),
    /// `init op body op body …` over `axes` in row-major order.
    Reduce {
        /// How values meet: `acc = op(acc, body)`, of floats `op(body, acc)` for a min or max ([`Binary::fold_operands`]).
        op: Binary,
        /// The axes folded over, outermost first, bound in `body` alone.
        axes: Vec<Axis>,
        /// The start value.
        init: Scalar,
        /// The value at each point.
        body: Scalar,
    },
    /// A data-dependent index, an `i64` in `0..extent`. Apart, as it is large and rare: all scalars are as large as the
    /// largest.
    Wrap(Box<Wrap>),
}

/// The bits of a constant, in the low end; the rest is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Const(pub u64);

impl Scalar {
    /// A constant of type `ty` by its bits.
    pub fn constant(bits: u64, ty: ElementType) -> Scalar {
        Scalar::new(Kind::Const(Const(bits)), ty)
    }

    /// The value of an axis.
    pub fn axis(id: AxisId) -> Scalar {
        Scalar::new(Kind::Axis(id), ElementType::I64)
    }

    /// The value of an extent.
    pub fn extent(extent: Extent) -> Scalar {
        match extent.number() {
            Some(number) => Scalar::constant(number as u64, ElementType::I64),
            None => Scalar::new(Kind::Extent(extent), ElementType::I64),
        }
    }

    /// `buffer[at]` where the buffer's elements are of type `ty`.
    pub fn load(buffer: BufferId, at: Vec<Scalar>, ty: ElementType) -> Scalar {
        Scalar::new(Kind::Load { buffer, at }, ty)
    }

    /// `op(x)`
    pub fn unary(op: Unary, x: Scalar) -> Scalar {
        let ty = x.ty();
        Scalar::new(Kind::Unary(op, x), ty)
    }

    /// `op(x, y)`
    pub fn binary(op: Binary, x: Scalar, y: Scalar) -> Scalar {
        debug_assert_eq!(x.ty(), y.ty(), "operands of {op:?}");
        let ty = if op.is_comparison() {
            ElementType::Boolean
        } else {
            x.ty()
        };
        Scalar::new(Kind::Binary(op, x, y), ty)
    }

    /// `if condition { yes } else { no }`
    pub fn select(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar {
        debug_assert_eq!(yes.ty(), no.ty(), "sides of a select");
        let ty = yes.ty();
        Scalar::new(Kind::Select(condition, yes, no), ty)
    }

    /// `x` converted to `ty`; itself if it is of that type.
    pub fn cast(self, ty: ElementType) -> Scalar {
        if self.ty() == ty {
            return self;
        }
        Scalar::new(Kind::Cast(self), ty)
    }

    /// The bits of `x` as a value of `ty`; itself if it is of that type.
    pub fn bitcast(self, ty: ElementType) -> Scalar {
        if self.ty() == ty {
            return self;
        }
        debug_assert_eq!(
            self.ty().bits(),
            ty.bits(),
            "bitcast from {} to {ty}",
            self.ty()
        );
        Scalar::new(Kind::Bitcast(self), ty)
    }

    /// `init op body op body …` over `axes`.
    pub fn reduce(op: Binary, axes: Vec<Axis>, init: Scalar, body: Scalar) -> Scalar {
        debug_assert_eq!(init.ty(), body.ty(), "start value of a reduction");
        let ty = body.ty();
        Scalar::new(
            Kind::Reduce {
                op,
                axes,
                init,
                body,
            },
            ty,
        )
    }

    /// A data-dependent index; see [`crate::Nest::wrap`].
    pub fn wrap(wrap: Wrap) -> Scalar {
        Scalar::new(Kind::Wrap(Box::new(wrap)), ElementType::I64)
    }

    /// The operation, with its operands.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Its type.
    pub fn ty(&self) -> ElementType {
        self.0.ty
    }

    /// The bits, if it is a constant.
    pub fn as_const(&self) -> Option<u64> {
        match self.kind() {
            Kind::Const(Const(bits)) => Some(*bits),
            _ => None,
        }
    }

    /// The value, if it is an `i64` constant.
    pub fn as_index(&self) -> Option<i64> {
        self.as_const()
            .filter(|_| self.ty() == ElementType::I64)
            .map(|bits| bits as i64)
    }

    /// The value, if it is a constant of an integer type and an `i64` can hold it.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        let (bits, ty) = (self.as_const()?, self.ty());
        if ty.is_signed_integer() {
            let unused = 64 - ty.bits();
            return Some((bits << unused) as i64 >> unused);
        }
        i64::try_from(bits)
            .ok()
            .filter(|_| ty.is_unsigned_integer())
    }

    /// Whether it is the value of this axis.
    pub fn is_axis(&self, axis: AxisId) -> bool {
        matches!(self.kind(), Kind::Axis(id) if *id == axis)
    }

    /// Whether it is a data-dependent index that reads 0, and writes nothing, where it is out of range.
    pub fn reads_zero(&self) -> bool {
        matches!(self.kind(), Kind::Wrap(w) if w.policy.zero)
    }

    /// Whether it is a data-dependent index that ends the run where it is out of range.
    pub fn may_fault(&self) -> bool {
        matches!(self.kind(), Kind::Wrap(w) if !w.policy.zero)
    }

    /// Identity for memo tables that live no longer than this scalar does.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether more than one scalar or stage may hold it. One that is not shared is met once in a walk that visits each
    /// scalar's operands once, so that the walk need not remember it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether there is a fold in it, itself included.
    pub(crate) fn folds(&self) -> bool {
        self.0.folds
    }

    /// Whether there is a data-dependent index in it, itself included.
    pub(crate) fn wraps(&self) -> bool {
        self.0.wraps
    }

    /// Whether there is a load in it, itself included.
    pub(crate) fn loads(&self) -> bool {
        self.0.loads
    }

    /// Whether there is a select in it, itself included.
    pub(crate) fn selects(&self) -> bool {
        self.0.selects
    }

    /// The other summand and the factors, if it is a sum with a term.
    pub fn as_sum(&self) -> Option<[&Scalar; 3]> {
        let Kind::Binary(Binary::Add, sum, term) = self.kind() else {
            return None;
        };
        let (x, y) = term.as_term()?;
        Some([sum, x, y])
    }

    /// The factors, if it is a term of a sum.
    pub fn as_term(&self) -> Option<(&Scalar, &Scalar)> {
        match self.kind() {
            Kind::Binary(Binary::Term, x, y) => Some((x, y)),
            _ => None,
        }
    }

    /// Whether it has no operands.
    pub(crate) fn is_leaf(&self) -> bool {
        matches!(
            self.kind(),
            Kind::Const(_) | Kind::Axis(_) | Kind::Extent(_)
        )
    }

    /// Whether the types and the hashes of the structure are the same: scalars that look different are not equal.
    pub(super) fn looks_like(&self, other: &Scalar) -> bool {
        (self.0.hash, self.0.ty) == (other.0.hash, other.0.ty)
    }

    pub(crate) fn new(kind: Kind, ty: ElementType) -> Scalar {
        let mut hasher = FxHasher::default();
        kind.hash(&mut hasher);
        ty.hash(&mut hasher);
        let mut folds = matches!(kind, Kind::Reduce { .. });
        let mut wraps = matches!(kind, Kind::Wrap(_));
        let mut loads = matches!(kind, Kind::Load { .. });
        let mut selects = matches!(kind, Kind::Select(..));
        for child in kind.children() {
            folds |= child.folds();
            wraps |= child.wraps();
            loads |= child.loads();
            selects |= child.selects();
        }
        Scalar(Arc::new(Node {
            kind,
            ty,
            hash: hasher.finish(),
            folds,
            wraps,
            loads,
            selects,
        }))
    }
}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl std::fmt::Debug for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.kind(), self.ty())
    }
}
