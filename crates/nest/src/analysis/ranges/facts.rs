//! Facts: what the conditions around an expression imply for the values in it.

use super::Ranges;
use crate::analysis::Interval;
use crate::analysis::interval::binary;
use crate::ir::{Binary, Kind, Scalar, Unary};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

impl Ranges {
    /// Evaluates `inner` knowing that `condition` is `holds`. `inner` is told whether that says anything new.
    pub fn assuming<T>(
        &mut self,
        condition: &Scalar,
        holds: bool,
        inner: impl FnOnce(&mut Ranges, bool) -> T,
    ) -> T {
        let (known, formulas) = (self.facts.len(), self.formula_facts.len());
        let (relations, tables) = (self.relations.len(), self.memo.len());
        let was_unreachable = self.is_unreachable;
        self.learn(condition, holds);
        let learnt = self.facts.len() > known
            || self.formula_facts.len() > formulas
            || self.relations.len() > relations
            || self.is_unreachable != was_unreachable;
        let result = inner(self, learnt);
        if learnt {
            self.memo.truncate(tables);
            self.facts.truncate(known);
            self.formula_facts.truncate(formulas);
            self.relations.truncate(relations);
            self.is_unreachable = was_unreachable;
        }
        result
    }

    /// Evaluates `inner` knowing of no condition.
    pub fn unconditionally<T>(&mut self, inner: impl FnOnce(&mut Ranges) -> T) -> T {
        let facts = std::mem::take(&mut self.facts);
        let formulas = std::mem::take(&mut self.formula_facts);
        let relations = self.relations.split_off(self.always);
        let memo = self.memo.split_off(1);
        let is_unreachable = std::mem::take(&mut self.is_unreachable);
        let result = inner(self);
        self.is_unreachable = is_unreachable;
        self.relations.extend(relations);
        self.memo.extend(memo);
        self.facts = facts;
        self.formula_facts = formulas;
        result
    }

    /// Whether conditions say something of what stands here.
    pub(in crate::analysis) fn has_facts(&self) -> bool {
        !(self.facts.is_empty() && self.formula_facts.is_empty())
    }

    /// Evaluates `inner` of `x` where it and all that the conditions say something of are in their simplest form.
    pub(in crate::analysis) fn simplified<T>(
        &mut self,
        x: &Scalar,
        inner: impl FnOnce(&mut Ranges, &Scalar) -> T,
    ) -> T {
        let known = &mut FxHashMap::default();
        let x = self.simplest(x, known);
        let facts = self.simplest_facts(self.facts.clone(), known);
        let formulas = self.simplest_facts(self.formula_facts.clone(), known);
        let facts = std::mem::replace(&mut self.facts, facts);
        let formulas = std::mem::replace(&mut self.formula_facts, formulas);
        self.memo.push(FxHashMap::default());
        let result = inner(self, &x);
        self.memo.pop();
        self.facts = facts;
        self.formula_facts = formulas;
        result
    }

    /// Takes in that `condition` is `holds`: what it implies of the sides of its comparisons.
    fn learn(&mut self, condition: &Scalar, holds: bool) {
        match condition.kind() {
            Kind::Const(bits) => self.is_unreachable |= (bits.0 != 0) != holds,
            Kind::Unary(Unary::Not, c) => self.learn(c, !holds),
            Kind::Unary(Unary::Rarely, c) => self.learn(c, holds),
            Kind::Binary(Binary::And, a, b) if holds => {
                self.learn(a, true);
                self.learn(b, true);
            }
            Kind::Binary(Binary::Or, a, b) if !holds => {
                self.learn(a, false);
                self.learn(b, false);
            }
            Kind::Binary(op, a, b) if a.ty() == ElementType::I64 => {
                use Binary::*;
                let op = match (op, holds) {
                    (Lt, true) | (Ge, false) => Lt,
                    (Le, true) | (Gt, false) => Le,
                    (Gt, true) | (Le, false) => Gt,
                    (Ge, true) | (Lt, false) => Ge,
                    (Eq, true) | (Ne, false) => Eq,
                    _ => return,
                };
                let (ra, rb) = (self.of(a), self.of(b));
                let below = |high: i64| Interval {
                    low: i64::MIN,
                    high,
                };
                let above = |low: i64| Interval {
                    low,
                    high: i64::MAX,
                };
                let (fa, fb) = match op {
                    Lt => (
                        below(rb.high.saturating_sub(1)),
                        above(ra.low.saturating_add(1)),
                    ),
                    Le => (below(rb.high), above(ra.low)),
                    Gt => (
                        above(rb.low.saturating_add(1)),
                        below(ra.high.saturating_sub(1)),
                    ),
                    Ge => (above(rb.low), below(ra.high)),
                    _ => (rb, ra),
                };
                self.fact(a, ra, fa);
                self.fact(b, rb, fb);
                match op {
                    Lt => self.learn_formulas(a, b, 1),
                    Le => self.learn_formulas(a, b, 0),
                    Gt => self.learn_formulas(b, a, 1),
                    Ge => self.learn_formulas(b, a, 0),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Takes in that `x`, known to lie in `known`, lies in `interval`.
    fn fact(&mut self, x: &Scalar, known: Interval, interval: Interval) {
        if known.intersect(interval).is_empty() {
            self.is_unreachable = true;
            return;
        }
        let informative = interval.low > i64::MIN || interval.high < i64::MAX;
        // A loaded value is no index by itself: facts about it would only cost time.
        if informative && x.as_const().is_none() && !matches!(x.kind(), Kind::Load { .. }) {
            self.facts.push((x.clone(), interval));
            // Ranges found from here on do not hold without the fact: neither on the other side, nor around the condition.
            self.memo.push(FxHashMap::default());
            // An interval of `y + c` gives one of `y`, which may stand in other sums, too.
            if let Some((y, known, interval)) = self.term(x, interval) {
                self.fact(&y, known, interval);
            }
        }
    }

    /// If `x` is `y + c`, `y - c`, `c - y` or `y · c`, and its own range shows that it does not wrap: `y`, and
    /// where it lies, as it is known and if `x` lies in `interval`.
    fn term(&mut self, x: &Scalar, interval: Interval) -> Option<(Scalar, Interval, Interval)> {
        let Kind::Binary(op, a, b) = x.kind() else {
            return None;
        };
        let (y, c) = match (a.as_index(), b.as_index()) {
            (None, Some(c)) => (a, c),
            (Some(c), None) => (b, c),
            _ => return None,
        };
        let of_y = self.of(y);
        let own = binary(*op, self.of(a), self.of(b));
        let is_bounded = |i: Interval| i.low > i64::MIN && i.high < i64::MAX;
        if !is_bounded(of_y) || !is_bounded(own) {
            return None;
        }
        let [c, low, high] = [c, interval.low, interval.high].map(i128::from);
        let (low, high) = match op {
            Binary::Add => (low - c, high - c),
            Binary::Sub if b.as_index().is_some() => (low + c, high + c),
            Binary::Sub => (c - high, c - low),
            Binary::Mul if c != 0 => {
                // `-y · c` lies where `y · -c` does.
                let (low, high) = if c > 0 { (low, high) } else { (-high, -low) };
                let c = c.abs();
                (-(-low).div_euclid(c), high.div_euclid(c))
            }
            _ => return None,
        };
        let narrow = |x: i128| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let interval = Interval {
            low: narrow(low),
            high: narrow(high),
        };
        Some((y.clone(), of_y, interval))
    }
}
