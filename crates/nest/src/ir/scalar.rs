//! Scalars: pure expressions evaluated at one point of a stage's domain.

use crate::ir::{Axis, AxisId, Binary, BufferId, SiteId, Unary};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vinelift_tensor::{ElementType, Extent};

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

/// A data-dependent index and what to do when it is out of range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wrap {
    /// An integer of any type; its mathematical value counts (a `u64` is never negative).
    pub index: Scalar,
    /// The dim's extent.
    pub extent: Extent,
    /// The rule for an index out of range.
    pub policy: Policy,
    /// Whose index this is.
    pub site: SiteId,
    /// Coordinates of the index in the tensor of indices; only evaluated for the message.
    pub position: Vec<Scalar>,
}

impl Wrap {
    /// The index without its conversion from `i32` to `i64`, if that is what it is.
    pub fn narrow(&self) -> &Scalar {
        match self.index.kind() {
            Kind::Cast(x) if self.index.ty() == ElementType::I64 && x.ty() == ElementType::I32 => x,
            _ => &self.index,
        }
    }
}

/// The rule for a data-dependent index over a dim of extent `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Whether `-n..=-1` means counting from the end. Otherwise these are out of range.
    pub negative: bool,
    /// Whether an index out of range reads 0 and writes nothing (`true`) or ends the run with an
    /// error (`false`). A wrap that reads zero may stand only as an index of a load or of a stage's
    /// `at`.
    pub zero: bool,
}

impl Policy {
    /// Negative values count from the end; out of range is an error.
    pub const WRAP: Policy = Policy {
        negative: true,
        zero: false,
    };
    /// Only `0..n` is allowed; the rest is an error.
    pub const CHECK: Policy = Policy {
        negative: false,
        zero: false,
    };
    /// Negative values count from the end; out of range reads zero.
    pub const WRAP_OR_ZERO: Policy = Policy {
        negative: true,
        zero: true,
    };
}

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

    /// The direct sub-expressions, in order of evaluation. The position of a [`Wrap`] is included.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = &Scalar> {
        self.kind().children()
    }

    /// The same node over other children, which come in the order of [`Scalar::children`].
    ///
    /// Returns `self` if none of them changed, so that sharing survives a pass.
    pub fn with_children(&self, mut child: impl FnMut(&Scalar) -> Scalar) -> Scalar {
        self.with_children_by(&mut child)
    }

    /// [`Scalar::with_children`], compiled once and not again for each function that callers pass.
    fn with_children_by(&self, child: &mut dyn FnMut(&Scalar) -> Scalar) -> Scalar {
        let kind = match self.kind() {
            Kind::Const(_) | Kind::Axis(_) | Kind::Extent(_) => None,
            Kind::Load { buffer, at } => mapped(at, child).map(|at| Kind::Load {
                buffer: *buffer,
                at,
            }),
            Kind::Unary(op, x) => changed([x], child).map(|[x]| Kind::Unary(*op, x)),
            Kind::Cast(x) => changed([x], child).map(|[x]| Kind::Cast(x)),
            Kind::Bitcast(x) => changed([x], child).map(|[x]| Kind::Bitcast(x)),
            Kind::Binary(op, x, y) => changed([x, y], child).map(|[x, y]| Kind::Binary(*op, x, y)),
            Kind::Select(c, x, y) => {
                changed([c, x, y], child).map(|[c, x, y]| Kind::Select(c, x, y))
            }
            Kind::Reduce {
                op,
                axes,
                init,
                body,
            } => changed([init, body], child).map(|[init, body]| Kind::Reduce {
                op: *op,
                axes: axes.clone(),
                init,
                body,
            }),
            Kind::Wrap(w) => {
                let index = changed([&w.index], child);
                let position = mapped(&w.position, child);
                let same = index.is_none() && position.is_none();
                (!same).then(|| {
                    Kind::Wrap(Box::new(Wrap {
                        index: index.map_or_else(|| w.index.clone(), |[index]| index),
                        position: position.unwrap_or_else(|| w.position.clone()),
                        ..**w
                    }))
                })
            }
        };
        kind.map_or_else(|| self.clone(), |kind| Scalar::new(kind, self.ty()))
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

impl Kind {
    fn children(&self) -> Children<'_> {
        let (first, list): ([Option<&Scalar>; 3], &[Scalar]) = match self {
            Kind::Const(_) | Kind::Axis(_) | Kind::Extent(_) => ([None; 3], &[]),
            Kind::Load { at, .. } => ([None; 3], at),
            Kind::Unary(_, x) | Kind::Cast(x) | Kind::Bitcast(x) => ([Some(x), None, None], &[]),
            Kind::Binary(_, x, y) => ([Some(x), Some(y), None], &[]),
            Kind::Select(c, x, y) => ([Some(c), Some(x), Some(y)], &[]),
            Kind::Reduce { init, body, .. } => ([Some(init), Some(body), None], &[]),
            Kind::Wrap(w) => ([Some(&w.index), None, None], &w.position),
        };
        let list = list.iter();
        Children { first, list }
    }
}

/// The direct sub-expressions of a scalar. Every walk goes through these: iterators put together take several times as
/// long.
struct Children<'a> {
    first: [Option<&'a Scalar>; 3],
    list: std::slice::Iter<'a, Scalar>,
}

impl<'a> Iterator for Children<'a> {
    type Item = &'a Scalar;

    fn next(&mut self) -> Option<&'a Scalar> {
        let first = self.first.iter_mut().find_map(Option::take);
        first.or_else(|| self.list.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.first.iter().flatten().count() + self.list.len();
        (count, Some(count))
    }
}

impl<'a> DoubleEndedIterator for Children<'a> {
    fn next_back(&mut self) -> Option<&'a Scalar> {
        let first = &mut self.first;
        let last = self.list.next_back();
        last.or_else(|| first.iter_mut().rev().find_map(Option::take))
    }
}

/// The results of `f` for each scalar, in order; `None` if it changes none.
fn changed<const N: usize>(
    all: [&Scalar; N],
    f: &mut dyn FnMut(&Scalar) -> Scalar,
) -> Option<[Scalar; N]> {
    let new = all.map(f);
    let differ = |(x, y): (&Scalar, &Scalar)| x.address() != y.address();
    all.into_iter().zip(&new).any(differ).then_some(new)
}

/// As [`changed`], of a list.
fn mapped(all: &[Scalar], f: &mut dyn FnMut(&Scalar) -> Scalar) -> Option<Vec<Scalar>> {
    let mut new: Option<Vec<Scalar>> = None;
    for (k, x) in all.iter().enumerate() {
        let y = f(x);
        match &mut new {
            Some(new) => new.push(y),
            None if y.address() == x.address() => {}
            None => {
                let mut list = Vec::with_capacity(all.len());
                list.extend_from_slice(&all[..k]);
                list.push(y);
                new = Some(list);
            }
        }
    }
    new
}

/// Without recursion: a chain of any length must not overflow the stack when it goes.
impl Drop for Node {
    fn drop(&mut self) {
        let mut open = Vec::new();
        take_children(&mut self.kind, &mut open);
        while let Some(scalar) = open.pop() {
            if let Some(mut node) = Arc::into_inner(scalar.0) {
                take_children(&mut node.kind, &mut open);
            }
        }
    }
}

/// Takes the children out of `kind`. Those that nothing else holds are added to `into`, unless they are leaves: they are
/// dropped there, one after the other.
fn take_children(kind: &mut Kind, into: &mut Vec<Scalar>) {
    let mut take = |x: Scalar| {
        if !x.is_leaf() && !x.is_shared() {
            into.push(x);
        }
    };
    match std::mem::replace(kind, Kind::Const(Const(0))) {
        Kind::Const(_) | Kind::Axis(_) | Kind::Extent(_) => {}
        Kind::Load { at, .. } => at.into_iter().for_each(take),
        Kind::Unary(_, x) | Kind::Cast(x) | Kind::Bitcast(x) => take(x),
        Kind::Binary(_, x, y) => [x, y].into_iter().for_each(take),
        Kind::Select(c, x, y) => [c, x, y].into_iter().for_each(take),
        Kind::Reduce { init, body, .. } => [init, body].into_iter().for_each(take),
        Kind::Wrap(w) => {
            take(w.index);
            w.position.into_iter().for_each(take);
        }
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
