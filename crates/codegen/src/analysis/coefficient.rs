//! By how much offsets move: numbers, or numbers times extents that have symbols.

use std::fmt;
use vinelift_nest::Buffer;
use vinelift_tensor::{Extent, Formula};

/// `number · factor`, in elements. Two are equal only if they are the same number: what can be taken out of the factor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Coefficient {
    number: i64,
    /// A product of extents that have symbols, which is never 0; the number 1 if there are none.
    factor: Formula,
}

const ONE: Formula = Formula::number(1);

impl From<i64> for Coefficient {
    fn from(number: i64) -> Coefficient {
        Coefficient {
            number,
            factor: ONE,
        }
    }
}

impl Coefficient {
    /// The number, if it is one.
    pub(crate) fn number(self) -> Option<i64> {
        // A factor without symbols is 1.
        self.factor.as_number().map(|_| self.number)
    }

    /// The number, and the product of extents that it is taken times, if there is one.
    pub(crate) fn parts(self) -> (i64, Option<Formula>) {
        (self.number, Some(self.factor).filter(|f| *f != ONE))
    }

    /// `self · by`, which wraps as index arithmetic does.
    pub(crate) fn times(self, by: i64) -> Coefficient {
        Coefficient::new(self.number.wrapping_mul(by), self.factor)
    }

    /// The same; `None` if the number does not fit.
    pub(crate) fn checked_times(self, by: i64) -> Option<Coefficient> {
        let number = self.number.checked_mul(by)?;
        Some(Coefficient::new(number, self.factor))
    }

    /// `self · by`; `None` if there is no formula for it.
    pub(crate) fn by(self, by: Extent) -> Option<Coefficient> {
        let content = by.formula().content();
        let rest = match content {
            0 => ONE,
            _ => by.formula().over(&Formula::number(content))?,
        };
        Some(Coefficient::new(
            self.number.wrapping_mul(content),
            self.factor.times(&rest)?,
        ))
    }

    /// The same; `None` also if it does not fit.
    pub(crate) fn checked_by(self, by: Extent) -> Option<Coefficient> {
        self.number.checked_mul(by.formula().content())?;
        self.by(by)
    }

    /// `self + other`, if both are of the same factor.
    pub(crate) fn plus(self, other: Coefficient) -> Option<Coefficient> {
        let sum = || self.number.wrapping_add(other.number);
        (self.factor == other.factor).then(|| Coefficient::new(sum(), self.factor))
    }

    fn new(number: i64, factor: Formula) -> Coefficient {
        let factor = if number == 0 { ONE } else { factor };
        Coefficient { number, factor }
    }

    /// As a formula, if it is one.
    fn formula(self) -> Option<Formula> {
        Formula::number(self.number).times(&self.factor)
    }

    /// Whether it is at most `other`, whatever the symbols are.
    pub(crate) fn is_at_most(self, other: Coefficient) -> bool {
        match (self.number(), other.number()) {
            (Some(a), Some(b)) => a <= b,
            _ => {
                let gap = other.formula().zip(self.formula());
                let least = gap.and_then(|(other, own)| other.minus(&own)?.least());
                least.is_some_and(|least| least >= 0)
            }
        }
    }

    /// The whole number `self / other`, if both are positive and that is the same for all values of the symbols.
    pub(crate) fn in_multiples_of(self, other: Coefficient) -> Option<usize> {
        let (own, other) = match self.factor == other.factor {
            true => (self.number, other.number),
            false => return None,
        };
        let is_multiple = own > 0 && other > 0 && own % other == 0;
        usize::try_from(own / other.max(1))
            .ok()
            .filter(|_| is_multiple)
    }

    /// Its value where the symbol of number `k` has `values[k]`; `None` if it does not fit.
    pub(crate) fn at(self, values: &[usize]) -> Option<i64> {
        self.number.checked_mul(self.factor.evaluate(values)?)
    }

    /// Without its sign.
    pub(crate) fn magnitude(self) -> Coefficient {
        Coefficient::new(self.number.wrapping_abs(), self.factor)
    }
}

/// `64*s0`
impl fmt::Display for Coefficient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (number, None) => write!(f, "{number}"),
            (1, Some(factor)) => write!(f, "{factor}"),
            (number, Some(factor)) => match self.formula() {
                Some(product) => write!(f, "{product}"),
                None => write!(f, "{number}*({factor})"),
            },
        }
    }
}

/// Elements between neighbours along each dim; `None` if there is no formula for that.
pub(crate) fn strides(buffer: &Buffer) -> Option<Vec<Coefficient>> {
    let mut stride = Coefficient::from(1);
    let mut strides = vec![stride; buffer.shape.len()];
    for d in (1..buffer.shape.len()).rev() {
        stride = stride.by(buffer.shape[d])?;
        strides[d - 1] = stride;
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift_nest::parse;

    #[test]
    fn strides_are_numbers_times_extents() {
        let text = "symbols s0=5, s1=7\ninput x: f32[3, s0, 2, s1 + 1, 4]\n";
        let nest = parse(text).unwrap();
        let strides: Vec<Coefficient> = strides(&nest.buffers[0]).unwrap();
        let text: Vec<String> = strides.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["8*s0*s1 + 8*s0", "8*s1 + 8", "4*s1 + 4", "4", "1"]);
        assert_eq!(strides[1].parts().0, 8, "and `s1 + 1`");
        let apart = Coefficient::from(8).by(nest.buffers[0].shape[3]);
        assert_eq!(apart, Some(strides[1]));
        assert!(strides[2].is_at_most(strides[1]) && !strides[1].is_at_most(strides[2]));
        assert!(strides[3].is_at_most(strides[2]));
    }
}
