//! Interval arithmetic.

use crate::ir::Binary;
use vinelift_tensor::ElementType;

/// The values from `low` to `high`, both included; empty if `low > high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Smallest value.
    pub low: i64,
    /// Largest value.
    pub high: i64,
}

impl Interval {
    pub(crate) const FULL: Interval = Interval {
        low: i64::MIN,
        high: i64::MAX,
    };

    pub(crate) const NONE: Interval = Interval { low: 0, high: -1 };

    /// Whether no value lies in it.
    pub(crate) fn is_empty(self) -> bool {
        self.low > self.high
    }

    /// Whether it lies within `0..extent`.
    pub fn is_index_of(self, extent: usize) -> bool {
        self.is_empty() || (self.low >= 0 && (self.high as u64) < extent as u64)
    }

    pub(crate) fn exactly(value: i64) -> Interval {
        Interval {
            low: value,
            high: value,
        }
    }

    /// All values if a bound does not fit, since the arithmetic then wraps.
    pub(crate) fn from_wide(low: i128, high: i128) -> Interval {
        match (i64::try_from(low), i64::try_from(high)) {
            (Ok(low), Ok(high)) => Interval { low, high },
            _ => Interval::FULL,
        }
    }

    pub(crate) fn intersect(self, other: Interval) -> Interval {
        Interval {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }

    pub(crate) fn union(self, other: Interval) -> Interval {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        Interval {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    pub(crate) fn corners(self, other: Interval, f: impl Fn(i128, i128) -> i128) -> Interval {
        let (a, b) = (i128::from(self.low), i128::from(self.high));
        let (c, d) = (i128::from(other.low), i128::from(other.high));
        let all = [f(a, c), f(a, d), f(b, c), f(b, d)];
        let (low, high) = all
            .iter()
            .fold((i128::MAX, i128::MIN), |(l, h), &x| (l.min(x), h.max(x)));
        Interval::from_wide(low, high)
    }

    pub(crate) fn of_type(ty: ElementType) -> Interval {
        match ty {
            ElementType::Boolean => Interval { low: 0, high: 1 },
            ElementType::I64 | ElementType::U64 => Interval::FULL,
            _ if ty.is_signed_integer() => Interval {
                low: -1 << (ty.bits() - 1),
                high: (1 << (ty.bits() - 1)) - 1,
            },
            _ if ty.is_unsigned_integer() => Interval {
                low: 0,
                high: (1 << ty.bits()) - 1,
            },
            _ => Interval::FULL,
        }
    }
}

pub(crate) fn binary(op: Binary, a: Interval, b: Interval) -> Interval {
    if a.is_empty() || b.is_empty() {
        return Interval::NONE;
    }
    match op {
        Binary::Add => a.corners(b, |x, y| x + y),
        Binary::Sub => a.corners(b, |x, y| x - y),
        Binary::Mul => a.corners(b, |x, y| x * y),
        Binary::Min => Interval {
            low: a.low.min(b.low),
            high: a.high.min(b.high),
        },
        Binary::Max => Interval {
            low: a.low.max(b.low),
            high: a.high.max(b.high),
        },
        Binary::Div if b.low > 0 => a.corners(b, |x, y| x / y),
        Binary::Rem if b.low > 0 => {
            let most = b.high - 1;
            let low = if a.low >= 0 {
                0
            } else {
                -most.min(a.low.checked_neg().unwrap_or(i64::MAX))
            };
            Interval {
                low,
                high: if a.high <= 0 { 0 } else { most.min(a.high) },
            }
        }
        Binary::And if a.low >= 0 && b.low >= 0 => Interval {
            low: 0,
            high: a.high.min(b.high),
        },
        Binary::Shr if b.low == b.high && (0..64).contains(&b.low) => Interval {
            low: a.low >> b.low,
            high: a.high >> b.low,
        },
        Binary::Shl if b.low == b.high && (0..63).contains(&b.low) => {
            a.corners(Interval::exactly(1 << b.low), |x, y| x * y)
        }
        _ => Interval::FULL,
    }
}
