//! Shapes, and partial shapes whose dims are intervals.

use std::fmt;

/// Extents of a tensor, outermost first. A scalar has none.
pub type Shape = Vec<usize>;

/// Number of elements of `shape`, or `None` if that does not fit an `isize`.
///
/// An empty tensor has 0 even where the product of its other extents would overflow.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    (count <= isize::MAX as usize).then_some(count)
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

/// One dimension of a partial shape: the interval `min..=max`, open above if `max` is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Smallest extent.
    pub min: usize,
    /// Largest extent, `None` if it is not bounded.
    pub max: Option<usize>,
}

impl Dim {
    /// Any extent.
    pub const ANY: Dim = Dim { min: 0, max: None };

    /// Exactly `extent`.
    pub const fn fixed(extent: usize) -> Dim {
        Dim {
            min: extent,
            max: Some(extent),
        }
    }

    /// The extent, if there is only one.
    pub fn get(self) -> Option<usize> {
        (self.max == Some(self.min)).then_some(self.min)
    }

    /// Whether `extent` lies in the interval.
    pub fn contains(self, extent: usize) -> bool {
        self.min <= extent && self.max.is_none_or(|max| extent <= max)
    }

    /// The interval of extents that both allow, `None` if there is none.
    pub fn intersect(self, other: Dim) -> Option<Dim> {
        let min = self.min.max(other.min);
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        max.is_none_or(|max| min <= max).then_some(Dim { min, max })
    }

    /// The least interval that holds both.
    pub fn hull(self, other: Dim) -> Dim {
        Dim {
            min: self.min.min(other.min),
            max: self.max.zip(other.max).map(|(a, b)| a.max(b)),
        }
    }

    /// The interval of sums; saturates.
    #[allow(
        clippy::should_implement_trait,
        reason = "`+` would not say that it saturates"
    )]
    pub fn add(self, other: Dim) -> Dim {
        Dim {
            min: self.min.saturating_add(other.min),
            max: self.max.zip(other.max).map(|(a, b)| a.saturating_add(b)),
        }
    }

    /// The interval of products; saturates.
    #[allow(
        clippy::should_implement_trait,
        reason = "`*` would not say that it saturates"
    )]
    pub fn mul(self, other: Dim) -> Dim {
        let zero = Some(0);
        let max = if self.max == zero || other.max == zero {
            zero
        } else {
            self.max.zip(other.max).map(|(a, b)| a.saturating_mul(b))
        };
        Dim {
            min: self.min.saturating_mul(other.min),
            max,
        }
    }

    /// The result of broadcasting the two against each other (1 stretches), `None` if none fits.
    pub fn broadcast(self, other: Dim) -> Option<Dim> {
        match (self.get(), other.get()) {
            (Some(1), _) => Some(other),
            (_, Some(1)) => Some(self),
            (Some(n), _) => other.contains_or_one(n).then_some(Dim::fixed(n)),
            (_, Some(n)) => self.contains_or_one(n).then_some(Dim::fixed(n)),
            // Two dims that are both larger than 1 must be equal.
            _ if self.min > 1 && other.min > 1 => self.intersect(other),
            _ if self.min > 1 => Some(self),
            _ if other.min > 1 => Some(other),
            _ => Some(Dim {
                // Against 1, nothing is left of 0.
                min: self.min.min(other.min),
                max: self.max.zip(other.max).map(|(a, b)| a.max(b)),
            }),
        }
    }

    fn contains_or_one(self, extent: usize) -> bool {
        self.contains(extent) || self.contains(1)
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

    /// The shape, if every dim is known.
    pub fn to_static(&self) -> Option<Shape> {
        self.0.as_ref()?.iter().map(|d| d.get()).collect()
    }

    /// Whether every dim is known.
    pub fn is_static(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|dims| dims.iter().all(|d| d.get().is_some()))
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
    /// differ.
    pub fn hull(&self, other: &PartialShape) -> PartialShape {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                PartialShape::ranked(a.iter().zip(b).map(|(a, b)| a.hull(*b)).collect())
            }
            _ => PartialShape::DYNAMIC,
        }
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
        let dim = |min, max| Dim { min, max };
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
        let a = PartialShape::ranked(vec![Dim::fixed(1), Dim { min: 2, max: None }]);
        let b = PartialShape::from(&[4usize, 1][..]);
        assert_eq!(a.hull(&b).to_string(), "[1..4, 1..]");
        assert_eq!(
            a.hull(&PartialShape::from(&[4usize][..])),
            PartialShape::DYNAMIC
        );
    }
}
