//! Bounds of index arithmetic as formulas, for extents that have symbols.
//!
//! [`Ranges`] has intervals of numbers. Where an extent has symbols, that an index lies inside of it is proven for all
//! their values at once: `i + s1` with `i < s0` is at most `s0 + s1 - 1`, and so an index of a dim of `s0 + s1` points.

use crate::analysis::formula_bounds::{
    Bounds, alternating, bounds_of_binary, each, is_at_most, is_at_most_by_two,
};
use crate::analysis::{Linear, Ranges};
use crate::ir::{Binary, Kind, Scalar, Unary};
use vinelift_tensor::{ElementType, Extent, Formula, Symbol};

/// How deep in a scalar is looked.
const DEPTH: usize = 24;

impl Ranges {
    /// Whether `x` lies in `0..extent`, whatever the symbols are.
    pub fn is_index(&mut self, x: &Scalar, extent: Extent) -> bool {
        self.is_bounded(x, extent)
            || self.has_facts() && self.simplified(x, |ranges, x| ranges.is_bounded(x, extent))
            || self.is_sum_of_digits(x, extent)
    }

    fn is_bounded(&mut self, x: &Scalar, extent: Extent) -> bool {
        if self.of(x).is_index_of(extent.least()) {
            return true;
        }
        if !self.has_symbols && !extent.is_symbolic() {
            return false;
        }
        let bounds = self.bounds(x, DEPTH);
        let Some(last) = extent.formula().minus(&Formula::number(1)) else {
            return false;
        };
        let is_natural = bounds.is_natural() || self.of(x).low >= 0;
        let highs = &bounds.highs;
        let below = |proves: fn(&Formula, &Formula, &[Formula]) -> bool| {
            highs
                .iter()
                .any(|high| proves(high, &last, &self.relations))
        };
        is_natural && (below(is_at_most) || below(is_at_most_by_two))
    }

    /// Bounds of `x`, an index.
    pub(super) fn bounds(&mut self, x: &Scalar, depth: usize) -> Bounds {
        let Some(depth) = depth.checked_sub(1) else {
            return Bounds::default();
        };
        if let Some(number) = x.as_index() {
            return Bounds::exactly(Formula::number(number));
        }
        let mut bounds = self.bounds_of_kind(x, depth);
        let range = self.of(x);
        // A bound beyond this is only the default for a symbol; one within it comes from numbers or guards.
        if range.high < Extent::MOST as i64 - 1 {
            bounds.highs.push(Formula::number(range.high));
        }
        if range.low > -(Extent::MOST as i64) {
            bounds.lows.push(Formula::number(range.low));
        }
        for (fact, known) in &self.formula_facts {
            if fact == x {
                bounds = known.clone().and(bounds);
            }
        }
        let zero = Formula::number(0);
        if !bounds.is_natural() && self.is_at_least(&zero, &bounds.lows) {
            bounds.lows.push(zero);
        }
        bounds
    }

    /// Whether a value with these lower bounds is certainly at least `least`.
    fn is_at_least(&self, least: &Formula, lows: &[Formula]) -> bool {
        let mut lows = lows.iter();
        lows.any(|low| is_at_most(least, low, &self.relations))
    }

    fn bounds_of_kind(&mut self, x: &Scalar, depth: usize) -> Bounds {
        match x.kind() {
            Kind::Axis(id) => match self.axes.get(id) {
                Some(extent) => Bounds::index_of(*extent),
                None => Bounds::default(),
            },
            Kind::Extent(extent) => Bounds::exactly(*extent.formula()),
            Kind::Wrap(w) => Bounds::index_of(w.extent),
            Kind::Unary(Unary::Neg, y) if x.ty() == ElementType::I64 => {
                let y = self.bounds(y, depth);
                let negated = |of: &[Formula]| {
                    let zero = [Formula::number(0)];
                    each(&zero, of, Formula::minus)
                };
                Bounds {
                    lows: negated(&y.highs),
                    highs: negated(&y.lows),
                }
            }
            Kind::Select(_, yes, no) => {
                let (yes, no) = (self.bounds(yes, depth), self.bounds(no, depth));
                yes.or(&no, &[])
            }
            Kind::Binary(op, a, b) if x.ty() == ElementType::I64 => {
                let is_of_ring = matches!(op, Binary::Add | Binary::Sub | Binary::Mul);
                let [is_a, is_b] = [a, b].map(|x| is_of_ring || self.is_exact(x));
                // The lesser and the larger one of two are bounded by each that is exact.
                let needs_both = !matches!(op, Binary::Min | Binary::Max);
                if needs_both && !(is_a && is_b) {
                    return Bounds::default();
                }
                let mut of = |x: &Scalar, is_exact: bool| match is_exact {
                    true => self.bounds(x, depth),
                    false => Bounds::default(),
                };
                let (mut a, mut b) = (of(a, is_a), of(b, is_b));
                let one = Formula::number(1);
                let is_known = b.lows.iter().any(|low| is_at_most(&one, low, &[]));
                let divides = matches!(op, Binary::Div | Binary::Rem) && !is_known;
                if divides && self.is_at_least(&one, &b.lows) {
                    b.lows.push(one);
                }
                if *op == Binary::Div {
                    let (ends, others) = self.implied_highs(&a.highs, &b.lows);
                    a.highs = alternating(&a.highs, &ends);
                    a.highs.extend(others);
                }
                bounds_of_binary(*op, a, b)
            }
            _ => Bounds::default(),
        }
    }

    /// The upper bounds of a dividend that follow from `highs` and a relation each, those of fewer terms first: ends of multiples of
    /// one of the divisors, and others that lack a symbol of the bound, which may be one that the extent is not made of.
    fn implied_highs(
        &self,
        highs: &[Formula],
        divisors: &[Formula],
    ) -> (Vec<Formula>, Vec<Formula>) {
        let one = Formula::number(1);
        let (mut ends, mut others) = (Vec::new(), Vec::new());
        for high in highs {
            for sum in self.relations.iter().filter_map(|known| high.plus(known)) {
                let Some(end) = sum.plus(&one) else {
                    continue;
                };
                let is_gone = |own: Symbol| sum.symbols().all(|symbol| symbol != own);
                if divisors.iter().any(|d| end.over(d).is_some()) {
                    ends.push(sum);
                } else if sum.term_count() <= high.term_count() && high.symbols().any(is_gone) {
                    others.push(sum);
                }
            }
        }
        // A relation that says something of a bound has terms in common with it.
        ends.sort_by_key(Formula::term_count);
        others.sort_by_key(Formula::term_count);
        (ends, others)
    }

    /// Whether `x` is certainly the exact integer, not wrapped. Wrapped values are right again after more sums and products, but
    /// not after a comparison or a division. What is loaded is what it is, and so are the lesser and the larger of two.
    fn is_exact(&mut self, x: &Scalar) -> bool {
        let range = self.of(x);
        let is_bounded = range.low > i64::MIN && range.high < i64::MAX;
        is_bounded
            || match x.kind() {
                Kind::Load { .. } => true,
                Kind::Binary(Binary::Min | Binary::Max, a, b) => {
                    self.is_exact(a) && self.is_exact(b)
                }
                _ => false,
            }
    }

    /// Records the bounds of `a` and of `b` that follow from `a + gap <= b`.
    pub(super) fn learn_formulas(&mut self, a: &Scalar, b: &Scalar, gap: i64) {
        if !self.has_symbols || !self.is_exact(a) || !self.is_exact(b) {
            return;
        }
        let gap = [Formula::number(gap)];
        let (of_a, of_b) = (self.bounds(a, DEPTH), self.bounds(b, DEPTH));
        let facts = [
            (
                a,
                Bounds {
                    lows: Vec::new(),
                    highs: each(&of_b.highs, &gap, Formula::minus),
                },
            ),
            (
                b,
                Bounds {
                    lows: each(&of_a.lows, &gap, Formula::plus),
                    highs: Vec::new(),
                },
            ),
        ];
        // Bounds with symbols relate the symbols to each other, too.
        let has_symbols = |formula: &&Formula| formula.as_number().is_none();
        for low in of_a.lows.iter().filter(has_symbols) {
            let gaps = of_b
                .highs
                .iter()
                .filter_map(|high| high.minus(low)?.minus(&gap[0]));
            self.relations.extend(gaps);
        }
        for (x, bounds) in facts {
            if x.as_const().is_some() {
                continue;
            }
            // A fact about `y + 2` is one about `y`, too.
            let form = Linear::of(x);
            if let ([(y, 1)], more @ (..=-1 | 1..)) = (&form.terms[..], form.constant)
                && self.is_exact(y)
            {
                let more = [Formula::number(more)];
                let bounds = Bounds {
                    lows: each(&bounds.lows, &more, Formula::minus),
                    highs: each(&bounds.highs, &more, Formula::minus),
                };
                self.formula_facts.push((y.clone(), bounds));
            }
            self.formula_facts.push((x.clone(), bounds));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::BufferId;
    use vinelift_tensor::symbols::Symbols;

    /// The coordinates of a point of `[2, s0, s1]`, of those in blocks of 16 and of those from 16 before the last on.
    #[test]
    fn coordinates_of_a_position_are_indices() {
        let mut symbols = Symbols::default();
        let [a, b] = [6, 5].map(|n| symbols.add(n).unwrap());
        let (all, blocks) = symbols.record(|| {
            let all = a.product(b).product(2.into());
            assert!(Extent::from(24).at_most(all));
            (all, all.quotient(16.into()))
        });
        let (mut ranges, [block, lane]) = Ranges::over([blocks, 16.into()]);
        ranges.relations = symbols.relations();
        let last = Scalar::extent(all) - 16 + &lane;
        let before_last = Scalar::extent(all) - 16 + &lane.min(crate::build::index(10));
        for position in [block * 16 + &lane, last, before_last] {
            let row = &position / Scalar::extent(b);
            assert!(ranges.is_index(&(&row / Scalar::extent(a)), 2.into()));
            assert!(!ranges.is_index(&row, a), "there are twice as many");
            assert!(ranges.is_index(&row.rem(Scalar::extent(a)), a));
        }
    }

    /// Windows of 7 of a line of `s0` points with one point more, which is whole windows.
    #[test]
    fn windows_of_a_padded_line_are_indices() {
        let mut symbols = Symbols::default();
        let n = symbols.add(13).unwrap();
        let windows = symbols.record(|| {
            let padded = n.sum(1.into());
            let windows = padded.quotient(7.into());
            assert!(windows.product(7.into()).same(padded));
            windows
        });
        let (mut ranges, [point]) = Ranges::over([n]);
        ranges.relations = symbols.relations();
        assert!(ranges.is_index(&(&point / 7), windows));
        assert!(!ranges.is_index(&(&point / 6), windows));
    }

    /// A loaded value that is cut to the indices of a dim, in either order.
    #[test]
    fn what_is_cut_to_a_dim_is_an_index() {
        let mut symbols = Symbols::default();
        let n = symbols.add(5).unwrap();
        let (mut ranges, [_]) = Ranges::over([n]);
        let x = Scalar::load(BufferId(0), Vec::new(), ElementType::I64);
        let last = Scalar::extent(n) - 1;
        let zero = crate::build::index(0);
        let cut = x.max(zero.clone()).min(last.clone());
        assert!(ranges.is_index(&cut, n));
        assert!(ranges.is_index(&x.min(last.clone()).max(zero.clone()), n));
        // A sum that may wrap says nothing of its terms.
        let wrapped = (&x + 1).min(last.clone()).max(zero);
        assert!(!ranges.is_index(&(&wrapped + 1), n));
        assert!(!ranges.is_index(&x.min(last), n));
    }

    /// The number that bounds one term is not lost among the formulas that bound it.
    #[test]
    fn numbers_bound_sums_of_quotients() {
        let mut symbols = Symbols::default();
        let n = symbols.add(8).unwrap();
        let (all, part) = symbols.record(|| {
            let part = n.quotient(4.into());
            assert!(part.product(4.into()).same(n));
            (n.product(4.into()), part)
        });
        let (mut ranges, [i]) = Ranges::over([all]);
        ranges.relations = symbols.relations();
        let place = (&i / 4) / Scalar::extent(part);
        let rest = i.rem(crate::build::index(4)) * 2 + 1;
        let row = ((&rest / 2) * 2 + &place / 2) * 2 + rest.rem(crate::build::index(2));
        let channel = (&i / 4).rem(Scalar::extent(part)) * 4 + row / 4;
        assert!(ranges.is_index(&channel, n));
    }

    /// Rows of `s0·s1` points of which two others have as many.
    #[test]
    fn equal_to_the_same_is_equal() {
        let mut symbols = Symbols::default();
        let [a, b, c, d, e, f] = [3, 8, 4, 6, 2, 12].map(|n| symbols.add(n).unwrap());
        let rows = symbols.record(|| {
            let rows = [[a, b], [c, d], [e, f]].map(|[m, n]| m.product(n));
            assert!(rows[0].same(rows[1]) && rows[1].same(rows[2]));
            rows
        });
        let (mut ranges, [i, j]) = Ranges::over([a, b]);
        let place = i * Scalar::extent(b) + j;
        assert!(!ranges.is_index(&place, rows[2]));
        ranges.relations = symbols.relations();
        assert!(ranges.is_index(&place, rows[2]));
        assert!(!ranges.is_index(&(place + 1), rows[2]));
    }
}
