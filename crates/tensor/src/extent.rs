//! Extents: numbers, or formulas with the number that they have in one example.

use crate::{Formula, Symbol};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A number of points: a number, or a [`Formula`] over symbols.
///
/// A formula comes with its value at an example, the shapes for which a plan was first made. What is decided by that
/// value must be right for every other, too: it may choose what is faster, and never what is correct.
///
/// Invariant: an extent that has symbols lies in [`Extent::LEAST`]`..=`[`Extent::MOST`] wherever it is used; whoever
/// binds symbols to numbers sees to that. Comparisons with numbers say what is known: where both may be, `==`, `<` and
/// `>` are all false.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    // First, as it tells most that differ apart.
    example: usize,
    formula: Formula,
}

impl Extent {
    /// No extent that has symbols is less.
    pub const LEAST: usize = Symbol::LEAST;

    /// No extent that has symbols is more.
    pub const MOST: usize = 1 << 30;

    /// Whether an extent that has symbols may be this number.
    pub fn may_be(number: usize) -> bool {
        (Extent::LEAST..=Extent::MOST).contains(&number)
    }

    /// The number 1.
    pub const ONE: Extent = Extent {
        example: 1,
        formula: Formula::number(1),
    };

    /// A formula whose value at the example is `example`; a number if it has no symbols.
    pub fn new(formula: Formula, example: usize) -> Extent {
        Extent { formula, example }
    }

    /// The number, if it is one.
    pub fn number(self) -> Option<usize> {
        self.formula.as_number().is_some().then_some(self.example)
    }

    /// The value at the example.
    pub fn example(self) -> usize {
        self.example
    }

    /// As a formula.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// Whether it has symbols.
    pub fn is_symbolic(self) -> bool {
        self.number().is_none()
    }

    /// The least number that it may be.
    pub fn least(self) -> usize {
        self.number().unwrap_or_else(|| {
            let least = self.formula.least();
            let least = least.and_then(|least| usize::try_from(least).ok());
            least.unwrap_or(0).max(Extent::LEAST)
        })
    }

    /// The largest number that it may be.
    pub fn most(self) -> usize {
        self.number().unwrap_or(Extent::MOST)
    }

    /// Whether it is at most `other`, whatever the symbols are.
    pub fn fits(self, other: Extent) -> bool {
        match (self.number(), other.number()) {
            (Some(a), Some(b)) => a <= b,
            _ => {
                let gap = other
                    .formula
                    .minus(&self.formula)
                    .and_then(|gap| gap.least());
                gap.is_some_and(|least| least >= 0) || self.most() <= other.least()
            }
        }
    }

    /// Whether it is a multiple of `factor`, whatever the symbols are.
    pub fn is_multiple_of(self, factor: usize) -> bool {
        match self.number() {
            Some(number) => number.is_multiple_of(factor),
            None => self.over(factor.into()).is_some(),
        }
    }

    /// `self + other`; `None` if there is no formula for it.
    pub fn plus(self, other: Extent) -> Option<Extent> {
        let example = self.example.checked_add(other.example)?;
        Some(Extent::new(self.formula.plus(&other.formula)?, example))
    }

    /// `self - other`; `None` if there is no formula for it, or it is negative at the example.
    pub fn minus(self, other: Extent) -> Option<Extent> {
        let example = self.example.checked_sub(other.example)?;
        Some(Extent::new(self.formula.minus(&other.formula)?, example))
    }

    /// `self · other`; `None` if there is no formula for it.
    pub fn times(self, other: Extent) -> Option<Extent> {
        let example = self.example.checked_mul(other.example)?;
        Some(Extent::new(self.formula.times(&other.formula)?, example))
    }

    /// `self / other`; `None` if there may be a remainder.
    pub fn over(self, other: Extent) -> Option<Extent> {
        let formula = self.formula.over(&other.formula)?;
        Some(Extent::new(
            formula,
            self.example.checked_div(other.example)?,
        ))
    }

    /// The number that it is where the symbols have `values`; `None` if it is none, or negative.
    pub fn at(self, values: &[usize]) -> Option<usize> {
        match self.number() {
            Some(number) => Some(number),
            None => usize::try_from(self.formula.evaluate(values)?).ok(),
        }
    }
}

impl From<usize> for Extent {
    /// A number. Those that no memory has are kept as the largest that an `i64` holds.
    fn from(number: usize) -> Extent {
        let formula = Formula::number(i64::try_from(number).unwrap_or(i64::MAX));
        Extent::new(formula, number)
    }
}

impl Hash for Extent {
    /// Nests have many extents, nearly all of them numbers.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.example);
    }
}

impl PartialEq<usize> for Extent {
    fn eq(&self, number: &usize) -> bool {
        self.number() == Some(*number)
    }
}

impl PartialOrd<usize> for Extent {
    fn partial_cmp(&self, number: &usize) -> Option<Ordering> {
        match self.number() {
            Some(known) => Some(known.cmp(number)),
            None if self.least() > *number => Some(Ordering::Greater),
            None if self.most() < *number => Some(Ordering::Less),
            None => None,
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "{number}"),
            None => write!(f, "{}", self.formula),
        }
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A shape of extents.
pub fn extents(shape: &[impl Into<Extent> + Copy]) -> Vec<Extent> {
    shape.iter().map(|n| (*n).into()).collect()
}

/// The numbers of a shape, if all are.
pub fn numbers(shape: &[Extent]) -> Option<Vec<usize>> {
    shape.iter().map(|extent| extent.number()).collect()
}

/// The shape at the example.
pub fn example(shape: &[Extent]) -> Vec<usize> {
    shape.iter().map(|extent| extent.example()).collect()
}
