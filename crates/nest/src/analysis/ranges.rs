//! Interval arithmetic: the values that an index can take.

mod facts;

use crate::analysis::formula_bounds::Bounds;
use crate::analysis::interval::binary;
use crate::analysis::{Interval, Linear};
use crate::ir::{Axis, AxisId, Binary, Kind, Nest, Scalar, Stage, Unary, visit_folds};
use rustc_hash::FxHashMap;
use vinelift_tensor::{ElementType, Extent, Formula};

/// The facts that hold where an expression stands: the extents of the axes in scope, and what the
/// conditions of the selects around it imply.
#[derive(Default)]
pub struct Ranges {
    pub(super) axes: FxHashMap<AxisId, Extent>,
    /// Whether an axis in scope has an extent with symbols.
    pub(super) has_symbols: bool,
    /// Formulas over symbols that are never negative.
    pub(super) relations: Vec<Formula>,
    /// How many of these hold whatever the conditions are.
    always: usize,
    facts: Vec<(Scalar, Interval)>,
    /// Whether the conditions that are taken to hold cannot all hold: nothing is evaluated there.
    is_unreachable: bool,
    /// Facts that are formulas: none where no axis has symbols.
    pub(super) formula_facts: Vec<(Scalar, Bounds)>,
    /// One table per set of facts; the innermost is last. Keeps the scalar, so that its address stays its own.
    memo: Vec<FxHashMap<usize, (Scalar, Interval)>>,
    budget: usize,
    /// Whether [`Ranges::by_facts`] is running: it is not applied to the sums that it looks into.
    in_sum: bool,
}

/// Nodes looked at in one nest before everything counts as unknown: nested guards over shared
/// expressions could otherwise take exponential time.
const BUDGET: usize = 2_000_000;

impl Ranges {
    /// Nothing is in scope.
    pub fn new() -> Ranges {
        Ranges {
            memo: vec![FxHashMap::default()],
            budget: BUDGET,
            ..Ranges::default()
        }
    }

    /// With what is known of the symbols of a nest.
    pub fn with_symbols(mut self, nest: &Nest) -> Ranges {
        self.relations.clone_from(&nest.relations);
        self.always = nest.relations.len();
        self.has_symbols |= nest.is_symbolic();
        self
    }

    /// The axes of a stage are in scope, and nothing else.
    pub fn of_stage(stage: &Stage) -> Ranges {
        let mut ranges = Ranges::new();
        ranges.bind(&stage.domain);
        ranges
    }

    /// Puts axes into scope. Ids are unique, so nothing needs to be taken out again.
    pub fn bind(&mut self, axes: &[Axis]) {
        self.has_symbols |= axes.iter().any(|a| a.extent.is_symbolic());
        self.axes.extend(axes.iter().map(|a| (a.id, a.extent)));
    }

    /// The values that `x`, of any integer type, can take as an `i64`.
    pub fn of(&mut self, x: &Scalar) -> Interval {
        if self.is_unreachable {
            return Interval::NONE;
        }
        if let Some(value) = x.as_index() {
            return Interval::exactly(value);
        }
        if self.facts.is_empty() && matches!(x.kind(), Kind::Axis(_)) {
            return self.structural(x);
        }
        if let Some((_, known)) = self.memo.last().and_then(|m| m.get(&x.address())) {
            return *known;
        }
        if self.budget == 0 {
            return Interval::FULL;
        }
        self.budget -= 1;
        let mut range = self.structural(x).intersect(Interval::of_type(x.ty()));
        for (fact, interval) in &self.facts {
            if fact == x {
                range = range.intersect(*interval);
            }
        }
        if matches!(x.kind(), Kind::Binary(Binary::Add | Binary::Sub, ..)) {
            range = range.intersect(self.by_facts(x));
        }
        if let Some(memo) = self.memo.last_mut() {
            memo.insert(x.address(), (x.clone(), range));
        }
        range
    }

    /// The range of a sum in which what is known of other sums is put in: with `0 <= i - j < 3` known,
    /// `4·i - 4·j + k` is `4·(i - j) + k`.
    fn by_facts(&mut self, x: &Scalar) -> Interval {
        if x.ty() != ElementType::I64 || self.facts.is_empty() || self.in_sum {
            return Interval::FULL;
        }
        let is_sum = |(fact, _): &&(Scalar, Interval)| {
            matches!(fact.kind(), Kind::Binary(Binary::Add | Binary::Sub, ..)) && fact != x
        };
        let sums: Vec<(Scalar, Interval)> = self.facts.iter().filter(is_sum).cloned().collect();
        if sums.is_empty() {
            return Interval::FULL;
        }
        self.in_sum = true;
        let mut rest = Linear::of(x);
        let mut total = Interval::exactly(0);
        for (fact, interval) in sums {
            let form = Linear::of(&fact);
            let Some(times) = form.factor_in(&rest) else {
                continue;
            };
            let same = self.facts.iter().filter(|(other, _)| *other == fact);
            let known = same.fold(interval, |all, (_, i)| all.intersect(*i));
            let known = self.structural(&fact).intersect(known);
            let part = known.corners(Interval::exactly(times), |a, b| a * b);
            total = binary(Binary::Add, total, part);
            rest = rest.plus(&form, times.wrapping_neg());
        }
        for (atom, coefficient) in &rest.terms {
            let range = self.of(atom);
            let part = range.corners(Interval::exactly(*coefficient), |a, b| a * b);
            total = binary(Binary::Add, total, part);
        }
        self.in_sum = false;
        binary(Binary::Add, total, Interval::exactly(rest.constant))
    }

    fn structural(&mut self, x: &Scalar) -> Interval {
        match x.kind() {
            Kind::Axis(id) => match self.axes.get(id) {
                Some(&extent) => Interval {
                    low: 0,
                    high: i64::try_from(extent.most()).unwrap_or(i64::MAX) - 1,
                },
                None => Interval::FULL,
            },
            Kind::Extent(extent) => Interval {
                low: extent.least() as i64,
                high: extent.most() as i64,
            },
            Kind::Const(c) if x.ty().is_unsigned_integer() && x.ty() != ElementType::U64 => {
                Interval::exactly(c.0 as i64)
            }
            Kind::Cast(y)
                if x.ty() == ElementType::I64
                    && (y.ty().is_integer() || y.ty() == ElementType::Boolean) =>
            {
                if y.ty() == ElementType::U64 {
                    Interval::FULL
                } else {
                    self.of(y)
                }
            }
            Kind::Unary(Unary::Neg, y) if x.ty() == ElementType::I64 => {
                let y = self.of(y);
                Interval::from_wide(-i128::from(y.high), -i128::from(y.low))
            }
            Kind::Binary(op, a, b) if x.ty() == ElementType::I64 => {
                let (a, b) = (self.of(a), self.of(b));
                binary(*op, a, b)
            }
            Kind::Select(c, yes, no) => {
                let a = self.assuming(c, true, |r, _| r.of(yes));
                let b = self.assuming(c, false, |r, _| r.of(no));
                a.union(b)
            }
            Kind::Wrap(w) => Interval {
                low: 0,
                high: i64::try_from(w.extent.most()).unwrap_or(i64::MAX) - 1,
            },
            Kind::Reduce {
                op: Binary::Add,
                axes,
                init,
                body,
            } if x.ty() == ElementType::I64 => {
                self.bind(axes);
                let (init, body) = (self.of(init), self.of(body));
                binary(Binary::Add, init, repeated(body, axes))
            }
            _ => Interval::FULL,
        }
    }
}

/// A sum of as many values of `body` as the axes have points.
fn repeated(body: Interval, axes: &[Axis]) -> Interval {
    let points = axes
        .iter()
        .map(|a| a.extent.most() as i128)
        .fold(1i128, i128::saturating_mul);
    let points = Interval::exactly(i64::try_from(points).unwrap_or(i64::MAX));
    points.corners(body, i128::saturating_mul)
}

/// The ranges of all axes of a stage, those of folds included.
pub(crate) fn ranges_of(stage: &Stage) -> Ranges {
    let mut ranges = Ranges::of_stage(stage);
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            ranges.bind(axes);
        }
    });
    ranges
}

#[cfg(test)]
impl Ranges {
    /// The ranges of new axes of these extents, and the axes.
    pub(crate) fn over<const N: usize>(extents: [impl Into<Extent>; N]) -> (Ranges, [Scalar; N]) {
        let mut nest = Nest::new();
        let axes = extents.map(|extent| nest.axis(extent));
        let mut ranges = Ranges::new();
        ranges.bind(&axes);
        (ranges, axes.map(|axis| Scalar::axis(axis.id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{index, inside, select};

    #[test]
    fn follows_index_arithmetic() {
        let (mut ranges, [i, j]) = Ranges::over([3, 5]);
        let mut of = |x: Scalar| {
            let r = ranges.of(&x);
            (r.low, r.high)
        };
        let flat = &i * 5 + &j;
        assert_eq!(of(flat.clone()), (0, 14));
        assert_eq!(of(&flat / 5), (0, 2));
        assert_eq!(of(flat.rem(index(4))), (0, 3));
        assert_eq!(of(index(4) - &j), (0, 4));
        assert_eq!(of((&i - 7).rem(index(3))), (-2, 0));
        assert_eq!(of((&i - 1).max(index(0)).min(index(1))), (0, 1));
        assert_eq!(of(&i * i64::MAX), (i64::MIN, i64::MAX));
    }

    #[test]
    fn a_guard_narrows_what_it_guards() {
        let (mut ranges, [i, j]) = Ranges::over([6, 3]);
        let x = &i * 2 + &j - 1;
        assert!(!ranges.of(&x).is_index_of(8));
        let guarded = select(inside(&x, 0, 8), x.clone(), index(0));
        assert!(ranges.of(&guarded).is_index_of(8));
        // Also in another sum.
        let other = &i * 5 + &j - 1;
        let in_sum = select((&j - 1).ge(index(0)), other.clone(), index(0));
        assert_eq!(ranges.of(&in_sum), Interval { low: 0, high: 26 });
        // And as a part of one.
        let (a, b) = (&i - &j, &j + &j * 2);
        let part = &i * 4 - &j * 4 + &b + 1;
        let in_part = select(inside(&a, 0, 3), part, index(1));
        assert_eq!(ranges.of(&in_part), Interval { low: 1, high: 15 });
        let twice = select((&j * 2).gt(index(1)), &j + 4, index(5));
        assert_eq!(ranges.of(&twice), Interval { low: 5, high: 6 });
        let (back, left) = (&j * -1, index(4) - &i);
        let turned = select(back.ge(index(0)), back, &j - 1);
        assert_eq!(ranges.of(&turned), Interval { low: 0, high: 1 });
        let turned = select(left.ge(index(1)), left, &i - 2);
        assert_eq!(ranges.of(&turned), Interval { low: 1, high: 4 });
        let negative = select(x.lt(index(0)), &x + 8, x.min(index(7)));
        assert!(ranges.of(&negative).is_index_of(8));
        assert!(!ranges.of(&x).is_index_of(8));
    }
}
