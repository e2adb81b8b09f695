//! The direct sub-expressions of a scalar: walked, replaced and dropped.

use super::{Const, Kind, Node, Scalar, Wrap};
use std::sync::Arc;

impl Scalar {
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
}

impl Kind {
    pub(super) fn children(&self) -> Children<'_> {
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
pub(super) struct Children<'a> {
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
