//! Flat offsets: the indices of all dims as one sum.

use super::coefficient::Coefficient;
use vinelift_nest::{AxisId, Binary, BufferId, Kind, Scalar};

/// `constant + Σ symbolic + Σ leaf · coefficient`, a flat element offset. Index arithmetic wraps, so it may be
/// taken apart and put together again freely.
pub(crate) struct Linear<'n> {
    /// No two are of the same leaf and of the same factor.
    pub(super) terms: Vec<(&'n Scalar, Coefficient)>,
    pub(super) constant: i64,
    /// Constants that have symbols.
    pub(super) symbolic: Vec<Coefficient>,
    /// The panel that it is counted from, if that is not where the buffer begins.
    pub(super) panel: Option<usize>,
}

impl<'n> Linear<'n> {
    /// The offset 0.
    pub(super) fn zero() -> Linear<'n> {
        Linear {
            terms: Vec::new(),
            constant: 0,
            symbolic: Vec::new(),
            panel: None,
        }
    }

    /// The scalars that must be computed first, in order of evaluation.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &'n Scalar> + use<'_, 'n> {
        self.terms.iter().map(|(leaf, _)| *leaf)
    }

    /// The leaves with their coefficients.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&'n Scalar, Coefficient)> + use<'_, 'n> {
        self.terms.iter().copied()
    }

    /// The leaves with their coefficients, if these are numbers.
    pub(crate) fn numbers(&self) -> Option<Vec<(&'n Scalar, i64)>> {
        let number = |(leaf, k): (&'n Scalar, Coefficient)| Some((leaf, k.number()?));
        self.terms().map(number).collect()
    }

    /// The part of the constant that is a number.
    pub(crate) fn constant(&self) -> i64 {
        self.constant
    }

    /// The constants that have symbols.
    pub(crate) fn symbolic(&self) -> &[Coefficient] {
        &self.symbolic
    }

    /// The panel that it is counted from.
    pub(crate) fn panel(&self) -> Option<usize> {
        self.panel
    }

    /// The sum without the constant that is a number.
    pub(crate) fn at_zero(mut self) -> Linear<'n> {
        self.constant = 0;
        self
    }

    /// The sum without the leaves that are `other`.
    pub(crate) fn without(mut self, other: impl Fn(&Scalar) -> bool) -> Linear<'n> {
        self.terms.retain(|(leaf, _)| !other(leaf));
        self
    }

    /// The sum with these of its terms alone.
    pub(crate) fn with_terms(&self, terms: Vec<(&'n Scalar, Coefficient)>) -> Linear<'n> {
        Linear {
            terms,
            constant: self.constant,
            symbolic: self.symbolic.clone(),
            panel: self.panel,
        }
    }

    pub(super) fn add(&mut self, leaf: &'n Scalar, coefficient: Coefficient) {
        let same = |known: &Scalar| match (known.kind(), leaf.kind()) {
            (Kind::Axis(a), Kind::Axis(b)) => a == b,
            _ => known.address() == leaf.address(),
        };
        for (_, known) in self.terms.iter_mut().filter(|(known, _)| same(known)) {
            if let Some(sum) = known.plus(coefficient) {
                *known = sum;
                return;
            }
        }
        self.terms.push((leaf, coefficient));
    }

    /// Takes out a quotient and a rest by the same extent that are one number, `x / n · (k·n) + x % n · k = x · k`, and gives
    /// that number and `k`: so the dims of a folded axis are one where they lie one behind the other.
    pub(super) fn take_quotient_and_rest(&mut self) -> Option<(&'n Scalar, Coefficient)> {
        let divided = |x: &'n Scalar, wanted: Binary| match x.kind() {
            Kind::Binary(op, whole, by) if *op == wanted => match by.kind() {
                Kind::Extent(extent) => Some((whole, *extent)),
                _ => None,
            },
            _ => None,
        };
        let pairs = self.terms().enumerate().find_map(|(at, (rest, k))| {
            let (whole, extent) = divided(rest, Binary::Rem)?;
            let other = self.terms().position(|(quotient, times)| {
                let is_of = divided(quotient, Binary::Div) == Some((whole, extent));
                is_of && k.by(extent) == Some(times)
            });
            Some(([at, other?], whole, k))
        });
        let (mut places, whole, k) = pairs?;
        places.sort_unstable();
        self.terms.remove(places[1]);
        self.terms.remove(places[0]);
        Some((whole, k))
    }

    pub(crate) fn add_constant(&mut self, constant: Coefficient) {
        if let Some(number) = constant.number() {
            self.constant = self.constant.wrapping_add(number);
            return;
        }
        for known in &mut self.symbolic {
            if let Some(sum) = known.plus(constant) {
                *known = sum;
                return;
            }
        }
        self.symbolic.push(constant);
    }

    /// The coefficient of the axis by itself; 0 if it is in no term, `None` if it is in several.
    pub(crate) fn of_axis(&self, axis: AxisId) -> Option<Coefficient> {
        let mut terms = self.terms().filter(|(leaf, _)| leaf.is_axis(axis));
        let first = terms.next().map_or(Coefficient::from(0), |(_, k)| k);
        terms.next().is_none().then_some(first)
    }
}

/// A panel: the columns that a block of points may read, packed into scratch memory row after row.
pub(crate) struct PackedColumns<'n> {
    /// Whose elements these are: `buffer[at]`.
    pub(crate) buffer: BufferId,
    pub(crate) at: &'n [Scalar],
    /// Where a row begins in the buffer, but for its number.
    pub(crate) linear: Linear<'n>,
    /// Rows, and how many elements they are apart in the buffer.
    pub(crate) extent: usize,
    pub(crate) step: i64,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Where it begins in scratch memory.
    pub(crate) offset: usize,
    /// The terms of an element's offset in the panel, counted from where the first column would lie if all were packed.
    pub(crate) terms: [(&'n Scalar, i64); 2],
}

impl PackedColumns<'_> {
    /// Whether it holds what is loaded from `at`.
    pub(crate) fn holds(&self, at: &[Scalar]) -> bool {
        std::ptr::eq(self.at, at)
    }

    /// Bytes of `columns` columns.
    pub(crate) fn bytes(&self, columns: usize) -> usize {
        self.extent.saturating_mul(columns * self.size)
    }
}
