//! A tensor taken apart into slices: some dims are folded over, the others tell the slices apart.

use crate::Lower;
use crate::elementwise::widened;
use vinelift_nest::build::{lowest, number, zero};
use vinelift_nest::{Binary, BufferId, Scalar};
use vinelift_tensor::{ElementType, Extent, numbers};

/// Which dims of a shape are folded over.
pub(super) struct Slices {
    shape: Vec<Extent>,
    folded: Vec<bool>,
}

impl Slices {
    /// Folds over `axes`, which count from the front.
    pub(super) fn new(shape: &[Extent], axes: &[usize]) -> Slices {
        let folded = (0..shape.len()).map(|d| axes.contains(&d)).collect();
        Slices {
            shape: shape.to_vec(),
            folded,
        }
    }

    /// The coordinates of the slice in which `at` lies.
    pub(super) fn slice_of(&self, at: &[Scalar]) -> Vec<Scalar> {
        let kept = at.iter().zip(&self.folded).filter(|(_, f)| !**f);
        kept.map(|(i, _)| i.clone()).collect()
    }

    /// A temporary with one value of type `ty` for each slice, where `value` gets the coordinates of
    /// the slice.
    pub(super) fn per_slice(
        &self,
        cx: &mut Lower<'_>,
        name: &str,
        ty: ElementType,
        value: impl FnOnce(&mut Lower<'_>, &[Scalar]) -> Scalar,
    ) -> BufferId {
        let target = cx.temporary(name, ty, &self.extents(false));
        cx.define(target, value);
        target
    }

    /// The fold of `body` over the elements of `slice`; `body` gets the coordinates of an element.
    pub(super) fn fold(
        &self,
        cx: &mut Lower<'_>,
        op: Binary,
        slice: &[Scalar],
        init: Scalar,
        body: impl FnOnce(&mut Lower<'_>, &[Scalar]) -> Scalar,
    ) -> Scalar {
        cx.reduce(op, &self.extents(true), init, |cx, point| {
            let (mut outer, mut inner) = (slice.iter(), point.iter());
            let next = |&folded: &bool| if folded { inner.next() } else { outer.next() };
            let at: Vec<Scalar> = self.folded.iter().filter_map(next).cloned().collect();
            body(cx, &at)
        })
    }

    /// `Σ body` over the elements of `slice`.
    pub(super) fn sum(
        &self,
        cx: &mut Lower<'_>,
        slice: &[Scalar],
        ty: ElementType,
        body: impl FnOnce(&mut Lower<'_>, &[Scalar]) -> Scalar,
    ) -> Scalar {
        self.fold(cx, Binary::Add, slice, zero(ty), body)
    }

    /// The number of elements of a slice, as a float of type `ty`.
    pub(super) fn count(&self, ty: ElementType) -> Scalar {
        let extents = self.extents(true);
        if let Some(extents) = numbers(&extents) {
            let count: f64 = extents.iter().map(|&n| n as f64).product();
            return number(count, ty);
        }
        let count = extents.into_iter().fold(1.into(), Extent::product);
        Scalar::extent(count).cast(ty)
    }

    /// A temporary with the largest element of each slice of input `name`.
    pub(super) fn largest(&self, cx: &mut Lower<'_>, name: &str) -> BufferId {
        let ty = cx.element(name).compute();
        self.per_slice(cx, "largest", ty, |cx, slice| {
            self.fold(cx, Binary::Max, slice, lowest(ty), |cx, at| {
                widened(cx.load(name, at))
            })
        })
    }

    fn extents(&self, folded: bool) -> Vec<Extent> {
        let dims = self.shape.iter().zip(&self.folded);
        dims.filter(|(_, f)| **f == folded)
            .map(|(&n, _)| n)
            .collect()
    }
}
