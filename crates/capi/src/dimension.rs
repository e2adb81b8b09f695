//! `ov_dimension.h`: an interval of extents.

use vinelift::Dim;

/// `ov_dimension_t`. A `max` of -1 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Dimension {
    pub(crate) min: i64,
    pub(crate) max: i64,
}

impl Dimension {
    pub(crate) fn fixed(extent: i64) -> Dimension {
        Dimension {
            min: extent,
            max: extent,
        }
    }

    /// The number, if there is only one.
    pub(crate) fn get(self) -> Option<usize> {
        usize::try_from(self.max)
            .ok()
            .filter(|_| self.min == self.max)
    }

    /// The interval, if it is one: -1 is no limit.
    pub(crate) fn to_dim(self) -> Option<Dim> {
        let min = usize::try_from(self.min.max(0)).ok()?;
        let max = match self.max {
            -1 => None,
            max => Some(usize::try_from(max).ok()?),
        };
        let holds = self.min >= -1 && max.is_none_or(|max| min <= max);
        holds.then_some(Dim::between(min, max))
    }

    pub(crate) fn from_dim(dim: Dim) -> Dimension {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        Dimension {
            min: number(dim.min()),
            max: dim.max().map_or(-1, number),
        }
    }
}

/// Whether it is more than one extent.
#[unsafe(no_mangle)]
extern "C" fn ov_dimension_is_dynamic(dim: Dimension) -> bool {
    dim.get().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_one_is_no_limit() {
        let dim = |min, max| Dimension { min, max };
        assert_eq!(dim(-1, -1).to_dim(), Some(Dim::ANY));
        assert_eq!(dim(0, -1).to_dim(), Some(Dim::ANY));
        assert_eq!(dim(2, 5).to_dim(), Some(Dim::between(2, Some(5))));
        assert_eq!(dim(-1, 5).to_dim(), Some(Dim::between(0, Some(5))));
        for wrong in [dim(5, 2), dim(-2, 5), dim(0, -2)] {
            assert_eq!(wrong.to_dim(), None, "{wrong:?}");
        }
        assert_eq!(Dimension::from_dim(Dim::ANY), dim(0, -1));
        assert!(ov_dimension_is_dynamic(dim(0, -1)));
        assert!(ov_dimension_is_dynamic(dim(-1, -1)));
        assert!(!ov_dimension_is_dynamic(dim(0, 0)));
    }
}
