//! Shapes, and partial shapes whose dims are intervals.

use crate::Extent;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Extents of a tensor, outermost first. A scalar has none.
pub type Shape = Vec<usize>;

/// Number of elements of `shape`, or `None` if that does not fit an `isize`.
///
/// An empty tensor has 0 even where the product of its other extents would overflow.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    count_of(shape.iter().copied())
}

/// [`element_count`] of the shape that these extents are.
pub fn count_of(mut extents: impl Iterator<Item = usize>) -> Option<usize> {
    let count = extents.try_fold(1usize, |n, d| match n.checked_mul(d) {
        Some(product) if product <= isize::MAX as usize => Ok(product),
        _ => Err(()),
    });
    match count {
        Ok(count) => Some(count),
        Err(()) => extents.any(|d| d == 0).then_some(0),
    }
}

/// Whether the offsets `Σ_d i_d · stride_d` over all `0 <= i_d < extent_d` differ from each other, by a sufficient
/// rule: in ascending order, each stride is more than the largest offset that the smaller ones reach together.
/// `axes` are pairs of stride and extent.
pub fn is_injective(axes: impl IntoIterator<Item = (usize, usize)>) -> bool {
    let mut axes: Vec<(usize, usize)> = axes.into_iter().collect();
    if axes.iter().any(|(_, extent)| *extent == 0) {
        return true;
    }
    axes.retain(|(_, extent)| *extent > 1);
    axes.sort_unstable();
    let mut reach = 0usize;
    axes.into_iter().all(|(stride, extent)| {
        let apart = stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(extent - 1));
        apart
    })
}

/// One dimension of a partial shape: the interval `min..=max`, open above if `max` is `None`; or an [`Extent`].
///
/// Of an extent that has symbols, the interval is its number at the example. Whatever looks at that number pins it, and
/// equality relies on it ([`symbols`](crate::symbols)); sums and products keep symbols.
#[derive(Clone, Copy, Debug)]
pub struct Dim {
    min: usize,
    max: Option<usize>,
    /// The extent, if it has symbols.
    symbolic: Option<Extent>,
}

impl Dim {
    /// Any extent.
    pub const ANY: Dim = Dim::between(0, None);

    /// Exactly `extent`.
    pub const fn fixed(extent: usize) -> Dim {
        Dim::between(extent, Some(extent))
    }

    /// The extents from `min` to `max`, or all from `min` on.
    pub const fn between(min: usize, max: Option<usize>) -> Dim {
        Dim {
            min,
            max,
            symbolic: None,
        }
    }

    /// Smallest extent.
    pub fn min(self) -> usize {
        self.pinned().min
    }

    /// Largest extent, `None` if it is not bounded.
    pub fn max(self) -> Option<usize> {
        self.pinned().max
    }

    /// The extent, if there is only one.
    pub fn get(self) -> Option<usize> {
        self.is_known().then(|| self.pinned().min)
    }

    /// The extent, a number or a formula, if there is only one.
    pub fn extent(self) -> Option<Extent> {
        self.symbolic.or(self.is_known().then(|| self.min.into()))
    }

    /// Whether it is an extent that has symbols.
    pub fn is_symbolic(self) -> bool {
        self.symbolic.is_some()
    }

    /// All extents from 0 to this one. Of one that has symbols nothing is relied on: then they are not bounded.
    pub fn up_to(self) -> Dim {
        match self.symbolic {
            Some(_) => Dim::ANY,
            None => Dim::between(0, self.max),
        }
    }

    /// Whether there is only one extent.
    pub fn is_known(self) -> bool {
        self.max == Some(self.min)
    }

    /// Whether it is exactly `extent`. One that has symbols is neither 0 nor 1, and pinned if asked for more.
    pub fn is(self, extent: usize) -> bool {
        let never = self.symbolic.is_some() && extent < Extent::LEAST;
        !never && self.get() == Some(extent)
    }

    /// Whether `extent` lies in the interval.
    pub fn contains(self, extent: usize) -> bool {
        let never = self.symbolic.is_some() && extent < Extent::LEAST;
        !never && self.min() <= extent && self.max().is_none_or(|max| extent <= max)
    }

    /// The interval of extents that both allow, `None` if there is none.
    pub fn intersect(self, other: Dim) -> Option<Dim> {
        if let Some(agreed) = self.agreed(other) {
            return agreed;
        }
        for (a, b) in [(self, other), (other, self)] {
            if let Some(extent) = a.symbolic {
                let most = b.max.map(Extent::from);
                let fits = Extent::from(b.min).at_most(extent)
                    && most.is_none_or(|most| extent.at_most(most));
                return fits.then_some(a);
            }
        }
        let (a, b) = (self, other);
        let min = a.min.max(b.min);
        let max = match (a.max, b.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        max.is_none_or(|max| min <= max)
            .then_some(Dim::between(min, max))
    }

    /// The least interval that holds both.
    pub fn hull(self, other: Dim) -> Dim {
        if let Some((a, b)) = self.extents(other)
            && a == b
        {
            return self;
        }
        let (a, b) = (self.pinned(), other.pinned());
        let max = a.max.zip(b.max).map(|(a, b)| a.max(b));
        Dim::between(a.min.min(b.min), max)
    }

    /// The interval of sums; saturates.
    #[allow(
        clippy::should_implement_trait,
        reason = "`+` would not say that it saturates"
    )]
    pub fn add(self, other: Dim) -> Dim {
        if let Some((a, b)) = self.extents(other) {
            return a.sum(b).into();
        }
        let (a, b) = (self.pinned(), other.pinned());
        let max = a.max.zip(b.max).map(|(a, b)| a.saturating_add(b));
        Dim::between(a.min.saturating_add(b.min), max)
    }

    /// The interval of products; saturates.
    #[allow(
        clippy::should_implement_trait,
        reason = "`*` would not say that it saturates"
    )]
    pub fn mul(self, other: Dim) -> Dim {
        if let Some((a, b)) = self.extents(other) {
            return a.product(b).into();
        }
        let (a, b) = (self.pinned(), other.pinned());
        let zero = Some(0);
        let max = if a.max == zero || b.max == zero {
            zero
        } else {
            a.max.zip(b.max).map(|(a, b)| a.saturating_mul(b))
        };
        Dim::between(a.min.saturating_mul(b.min), max)
    }

    /// The result of broadcasting the two against each other (1 stretches), `None` if none fits.
    pub fn broadcast(self, other: Dim) -> Option<Dim> {
        if self.is(1) {
            return Some(other);
        }
        if other.is(1) {
            return Some(self);
        }
        if let Some(agreed) = self.agreed(other) {
            return agreed;
        }
        let (a, b) = (self.pinned(), other.pinned());
        match (a.get(), b.get()) {
            (Some(n), _) => b.contains_or_one(n).then_some(Dim::fixed(n)),
            (_, Some(n)) => a.contains_or_one(n).then_some(Dim::fixed(n)),
            // Two dims that are both larger than 1 must be equal.
            _ if a.min > 1 && b.min > 1 => a.intersect(b),
            _ if a.min > 1 => Some(a),
            _ if b.min > 1 => Some(b),
            // Against 1, nothing is left of 0.
            _ => Some(Dim::between(
                a.min.min(b.min),
                a.max.zip(b.max).map(|(a, b)| a.max(b)),
            )),
        }
    }

    fn contains_or_one(self, extent: usize) -> bool {
        self.contains(extent) || self.contains(1)
    }

    /// If both extents are known and one has symbols: the extent, if the two are the same.
    fn agreed(self, other: Dim) -> Option<Option<Dim>> {
        let (a, b) = self.extents(other)?;
        let known = if a.is_symbolic() { other } else { self };
        Some(a.same(b).then_some(known))
    }

    /// Both extents, if both are known and one has symbols.
    fn extents(self, other: Dim) -> Option<(Extent, Extent)> {
        let is_symbolic = self.symbolic.is_some() || other.symbolic.is_some();
        self.extent().zip(other.extent()).filter(|_| is_symbolic)
    }

    /// Itself as an interval of numbers.
    fn pinned(self) -> Dim {
        if let Some(extent) = self.symbolic {
            extent.pin();
        }
        Dim {
            symbolic: None,
            ..self
        }
    }
}

impl PartialEq for Dim {
    fn eq(&self, other: &Dim) -> bool {
        match self.extents(*other) {
            Some((a, b)) => a.same(b),
            None => (self.min(), self.max()) == (other.min(), other.max()),
        }
    }
}

impl Eq for Dim {}

impl Hash for Dim {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.min, self.max).hash(state);
    }
}

impl From<Extent> for Dim {
    fn from(extent: Extent) -> Dim {
        Dim {
            symbolic: Some(extent).filter(|extent| extent.is_symbolic()),
            ..Dim::fixed(extent.example())
        }
    }
}

impl From<usize> for Dim {
    fn from(extent: usize) -> Dim {
        Dim::fixed(extent)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, Some(max)) if min == max => write!(f, "{min}"),
            (0, None) => f.write_str("?"),
            (min, None) => write!(f, "{min}.."),
            (min, Some(max)) => write!(f, "{min}..{max}"),
        }
    }
}

/// A shape as far as it is known: a rank with a [`Dim`] each, or nothing at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartialShape(Option<Vec<Dim>>);

impl PartialShape {
    /// Nothing is known, not even the rank.
    pub const DYNAMIC: PartialShape = PartialShape(None);

    /// A shape of known rank.
    pub fn ranked(dims: Vec<Dim>) -> PartialShape {
        PartialShape(Some(dims))
    }

    /// A shape of `rank` dims of any extent.
    pub fn any_of_rank(rank: usize) -> PartialShape {
        PartialShape(Some(vec![Dim::ANY; rank]))
    }

    /// The dims, if the rank is known.
    pub fn dims(&self) -> Option<&[Dim]> {
        self.0.as_deref()
    }

    /// The rank, if known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(Vec::len)
    }

    /// The shape in numbers, if every dim is known.
    pub fn to_static(&self) -> Option<Shape> {
        let shape: Vec<Dim> = self.0.clone()?;
        let is_known = shape.iter().all(|d| d.is_known());
        is_known.then(|| shape.iter().filter_map(|d| d.get()).collect())
    }

    /// The shape, if every dim is known: numbers and formulas.
    pub fn to_extents(&self) -> Option<Vec<Extent>> {
        self.0.as_ref()?.iter().map(|d| d.extent()).collect()
    }

    /// Whether there are dims that have symbols.
    pub fn is_symbolic(&self) -> bool {
        let dims = self.0.iter().flatten();
        dims.into_iter().any(|d| d.symbolic.is_some())
    }

    /// Whether every dim is known.
    pub fn is_static(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|dims| dims.iter().all(|d| d.is_known()))
    }

    /// Whether `shape` is one of the shapes that this stands for.
    pub fn contains(&self, shape: &[usize]) -> bool {
        self.0.as_ref().is_none_or(|dims| {
            dims.len() == shape.len() && dims.iter().zip(shape).all(|(d, &n)| d.contains(n))
        })
    }

    /// The shapes that both allow, `None` if there are none.
    pub fn intersect(&self, other: &PartialShape) -> Option<PartialShape> {
        let (Some(a), Some(b)) = (&self.0, &other.0) else {
            return Some(if self.0.is_some() {
                self.clone()
            } else {
                other.clone()
            });
        };
        if a.len() != b.len() {
            return None;
        }
        let dims: Option<Vec<Dim>> = a.iter().zip(b).map(|(a, b)| a.intersect(*b)).collect();
        dims.map(PartialShape::ranked)
    }

    /// The least partial shape that holds all shapes that either allows: dim by dim, of unknown rank where the ranks
    /// differ. Of a dim that has symbols in one, and is another in the other, nothing is known: no symbol is pinned.
    pub fn hull(&self, other: &PartialShape) -> PartialShape {
        let dim = |(a, b): (&Dim, &Dim)| match a.is_symbolic() || b.is_symbolic() {
            true if a.extent() == b.extent() => *a,
            true => Dim::ANY,
            false => a.hull(*b),
        };
        match (&self.0, &other.0) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                PartialShape::ranked(a.iter().zip(b).map(dim).collect())
            }
            _ => PartialShape::DYNAMIC,
        }
    }

    /// The shape where the symbol of number `k` is `values[k]`; `None` if a dim then is none.
    pub fn bound_to(&self, values: &[usize]) -> Option<PartialShape> {
        let bound = |dim: &Dim| match dim.symbolic {
            Some(extent) => extent.at(values).map(Dim::fixed),
            None => Some(*dim),
        };
        let Some(dims) = &self.0 else {
            return Some(PartialShape::DYNAMIC);
        };
        let dims: Option<Vec<Dim>> = dims.iter().map(bound).collect();
        dims.map(PartialShape::ranked)
    }

    /// NumPy's broadcast of the two, `None` if they do not fit.
    pub fn broadcast(&self, other: &PartialShape) -> Option<PartialShape> {
        let (Some(a), Some(b)) = (&self.0, &other.0) else {
            return Some(PartialShape::DYNAMIC);
        };
        let rank = a.len().max(b.len());
        let at = |dims: &[Dim], i: usize| {
            (i + dims.len())
                .checked_sub(rank)
                .map_or(Dim::fixed(1), |i| dims[i])
        };
        let dims: Option<Vec<Dim>> = (0..rank).map(|i| at(a, i).broadcast(at(b, i))).collect();
        dims.map(PartialShape::ranked)
    }
}

impl From<&[Extent]> for PartialShape {
    fn from(shape: &[Extent]) -> PartialShape {
        PartialShape(Some(shape.iter().map(|&d| d.into()).collect()))
    }
}

impl From<&[usize]> for PartialShape {
    fn from(shape: &[usize]) -> PartialShape {
        PartialShape(Some(shape.iter().map(|&d| Dim::fixed(d)).collect()))
    }
}

/// `[2, 3]`, `[?, 1..7, 3]`, or `[...]` where the rank is unknown.
impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = &self.0 else {
            return f.write_str("[...]");
        };
        f.write_str("[")?;
        for (i, d) in dims.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_keep_elements_apart() {
        // Row-major, column-major and padded matrices.
        assert!(is_injective([(3, 2), (1, 3)]) && is_injective([(1, 2), (2, 3)]));
        assert!(is_injective([(8, 2), (1, 3)]));
        // Two rows share an element, or all; one row and none share nothing.
        assert!(!is_injective([(2, 2), (1, 3)]) && !is_injective([(0, 2), (1, 3)]));
        assert!(is_injective([(0, 1), (1, 3)]) && is_injective([(0, 0), (1, 3)]));
        assert!(!is_injective([(usize::MAX, 3), (usize::MAX, 3)]));
    }

    #[test]
    fn counts_do_not_wrap() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(element_count(&[usize::MAX, 0, 3]), Some(0));
        assert_eq!(element_count(&[1 << 32, 1 << 32]), None);
    }

    #[test]
    fn broadcast_stretches_ones_and_keeps_intervals() {
        let dim = Dim::between;
        let (two, one) = (dim(2, Some(5)), dim(1, None));
        assert_eq!(two.broadcast(one), Some(two));
        assert_eq!(two.broadcast(dim(4, None)), Some(dim(4, Some(5))));
        assert_eq!(two.broadcast(dim(6, None)), None);
        assert_eq!(
            dim(0, Some(3)).broadcast(dim(1, Some(5))),
            Some(dim(0, Some(5)))
        );
        let a = PartialShape::ranked(vec![Dim::fixed(1), dim(2, Some(5))]);
        let b = PartialShape::ranked(vec![dim(3, None), Dim::fixed(7), Dim::fixed(4)]);
        assert_eq!(a.broadcast(&b).unwrap().to_string(), "[3.., 7, 4]");
        let c = PartialShape::from(&[3usize, 6][..]);
        assert_eq!(c.broadcast(&PartialShape::from(&[2usize, 6][..])), None);
        assert_eq!(a.broadcast(&c), None);
    }

    #[test]
    fn a_hull_holds_both() {
        let a = PartialShape::ranked(vec![Dim::fixed(1), Dim::between(2, None)]);
        let b = PartialShape::from(&[4usize, 1][..]);
        assert_eq!(a.hull(&b).to_string(), "[1..4, 1..]");
        assert_eq!(
            a.hull(&PartialShape::from(&[4usize][..])),
            PartialShape::DYNAMIC
        );
    }
}
