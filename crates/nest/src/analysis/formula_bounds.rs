//! Bounds of integers as formulas, and arithmetic on them.

use crate::ir::Binary;
use vinelift_tensor::{Extent, Formula};

/// Bounds of one scalar: all of these hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// It is at least each of these.
    pub(super) lows: Vec<Formula>,
    /// It is at most each of these.
    pub(super) highs: Vec<Formula>,
}

/// The most bounds of a kind that are kept of one scalar.
const MOST: usize = 4;

impl Bounds {
    pub(super) fn exactly(formula: Formula) -> Bounds {
        Bounds {
            lows: vec![formula],
            highs: vec![formula],
        }
    }

    /// `0..extent`
    pub(super) fn index_of(extent: Extent) -> Bounds {
        let last = extent.formula().minus(&Formula::number(1));
        Bounds {
            lows: vec![Formula::number(0)],
            highs: last.into_iter().collect(),
        }
    }

    /// Both hold.
    pub(super) fn and(mut self, other: Bounds) -> Bounds {
        for (own, more) in [(&mut self.lows, other.lows), (&mut self.highs, other.highs)] {
            for bound in more {
                if !own.contains(&bound) {
                    own.push(bound);
                }
            }
            own.truncate(MOST);
        }
        self
    }

    /// One of the two holds, given `relations` that are never negative.
    pub(super) fn or(&self, other: &Bounds, relations: &[Formula]) -> Bounds {
        if (&self.lows, &self.highs) == (&other.lows, &other.highs) {
            return self.clone();
        }
        let above = |known: &[Formula], bound: &Formula| {
            known.contains(bound) || known.iter().any(|k| is_at_most(k, bound, relations))
        };
        let all = |a: &[Formula], b: &[Formula], holds: &dyn Fn(&Formula) -> bool| {
            let mut kept: Vec<Formula> = a.iter().chain(b).copied().filter(|f| holds(f)).collect();
            kept.truncate(MOST);
            kept
        };
        let below = |known: &[Formula], bound: &Formula| {
            known.contains(bound) || known.iter().any(|k| is_at_most(bound, k, relations))
        };
        Bounds {
            lows: all(&self.lows, &other.lows, &|f| {
                below(&self.lows, f) && below(&other.lows, f)
            }),
            highs: all(&self.highs, &other.highs, &|f| {
                above(&self.highs, f) && above(&other.highs, f)
            }),
        }
    }

    /// The number that it is, if its bounds say so.
    fn as_number(&self) -> Option<i64> {
        let is_one = self.lows == self.highs && self.lows.len() == 1;
        self.lows.first().filter(|_| is_one)?.as_number()
    }

    /// `by · self`
    fn times(&self, by: i64) -> Bounds {
        let times = |of: &[Formula]| each(of, &[Formula::number(by)], Formula::times);
        let (lows, highs) = (times(&self.lows), times(&self.highs));
        match by < 0 {
            true => Bounds {
                lows: highs,
                highs: lows,
            },
            false => Bounds { lows, highs },
        }
    }

    pub(super) fn is_natural(&self) -> bool {
        self.lows
            .iter()
            .any(|low| low.least().is_some_and(|l| l >= 0))
    }
}

/// The bounds of both lists in turns: either may have the one that matters, and only the first few are kept.
pub(super) fn alternating(a: &[Formula], b: &[Formula]) -> Vec<Formula> {
    let longest = a.len().max(b.len());
    let turns = (0..longest).flat_map(|k| [a.get(k), b.get(k)]);
    let mut all: Vec<Formula> = Vec::with_capacity(a.len() + b.len());
    for bound in turns.flatten() {
        if !all.contains(bound) {
            all.push(*bound);
        }
    }
    all
}

/// The first bounds of both lists, as many as are kept.
fn in_turns(a: &[Formula], b: &[Formula]) -> Vec<Formula> {
    let mut all = alternating(a, b);
    all.truncate(MOST);
    all
}

/// Whether `a <= b` whatever the symbols are, given `relations` that are never negative.
pub(super) fn is_at_most(a: &Formula, b: &Formula, relations: &[Formula]) -> bool {
    let exceeds = |gap: &Formula, known: &Formula| {
        gap.least_difference(known).is_some_and(|least| least >= 0)
    };
    // Most bounds are compared with themselves.
    a == b
        || exceeds(b, a)
        || b.minus(a).is_some_and(|gap| {
            // A number is what it is, whatever the symbols are.
            gap.as_number().is_none() && relations.iter().any(|known| exceeds(&gap, known))
        })
}

/// The least value that `formula` is known to have whatever the symbols are, given `relations` that are never negative; `None` if it
/// is not bounded below.
pub(crate) fn least_of(formula: &Formula, relations: &[Formula]) -> Option<i64> {
    let given = relations
        .iter()
        .filter_map(|known| formula.least_difference(known));
    given.chain(formula.least()).max()
}

/// As [`is_at_most`], given two of the relations at a time: of `a = b` and `b = c` follows `a = c`.
pub(super) fn is_at_most_by_two(a: &Formula, b: &Formula, relations: &[Formula]) -> bool {
    let Some(gap) = b.minus(a) else {
        return false;
    };
    // A relation that says nothing of the gap has no terms in common with it, and leaves more of them.
    let shorter = |known: &Formula| {
        let less = gap.minus(known)?;
        (less.term_count() <= gap.term_count()).then_some(less)
    };
    let zero = Formula::number(0);
    relations
        .iter()
        .filter_map(shorter)
        .any(|less| is_at_most(&zero, &less, relations))
}

/// All results of `f` for a bound of each.
pub(super) fn each(
    a: &[Formula],
    b: &[Formula],
    f: impl Fn(&Formula, &Formula) -> Option<Formula>,
) -> Vec<Formula> {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    let mut all: Vec<Formula> = Vec::new();
    for result in pairs.filter_map(|(a, b)| f(a, b)) {
        if all.len() < MOST && !all.contains(&result) {
            all.push(result);
        }
    }
    all
}

/// [`each`] of upper bounds, with that of the least numbers among them, which may come last.
fn each_high(
    a: &[Formula],
    b: &[Formula],
    f: impl Fn(&Formula, &Formula) -> Option<Formula>,
) -> Vec<Formula> {
    let mut all = each(a, b, &f);
    let number = |of: &[Formula]| of.iter().filter_map(Formula::as_number).min();
    let numbers = number(a).zip(number(b));
    let of_numbers = numbers.and_then(|(a, b)| f(&Formula::number(a), &Formula::number(b)));
    all.extend(of_numbers.filter(|high| !all.contains(high)));
    all
}

/// A bound of `x / d` where `x` is at most `high`: `q - 1` where `high` is less than `q·d`.
fn quotient(high: &Formula, d: &Formula) -> Option<Formula> {
    let one = Formula::number(1);
    let next = high.plus(&one)?;
    let whole = next.over(d).or_else(|| next.over_rounded_up(d))?;
    whole.minus(&one)
}

/// The bounds of `a / b`, where `a` is not negative and `b` is positive. Of `q·d - 1`, and of what is less, the quotient
/// by `d` is at most `q - 1`.
fn bounds_of_quotient(a: Bounds, b: Bounds) -> Bounds {
    let pairs = a
        .highs
        .iter()
        .flat_map(|high| b.lows.iter().map(move |d| (high, d)));
    let numbers = pairs.filter_map(|(high, d)| quotient(high, d)?.as_number());
    let least = numbers.min().map(Formula::number);
    let mut highs = each(&a.highs, &b.lows, quotient);
    highs.extend(a.highs);
    highs.truncate(MOST);
    // Near the front, as sums have few of all pairs of bounds.
    let place = highs.len().min(1);
    highs.splice(place..place, least);
    Bounds {
        lows: vec![Formula::number(0)],
        highs,
    }
}

/// The bounds of `a op b`.
pub(super) fn bounds_of_binary(op: Binary, a: Bounds, b: Bounds) -> Bounds {
    let one = Formula::number(1);
    match op {
        Binary::Add => Bounds {
            lows: each(&a.lows, &b.lows, Formula::plus),
            highs: each_high(&a.highs, &b.highs, Formula::plus),
        },
        Binary::Sub => Bounds {
            lows: each(&a.lows, &b.highs, Formula::minus),
            highs: each(&a.highs, &b.lows, Formula::minus),
        },
        Binary::Mul if a.is_natural() && b.is_natural() => {
            let natural = |lows: &[Formula]| -> Vec<Formula> {
                let least = lows.iter().filter(|low| low.least() >= Some(0));
                least.copied().collect()
            };
            Bounds {
                lows: each(&natural(&a.lows), &natural(&b.lows), Formula::times),
                highs: each_high(&a.highs, &b.highs, Formula::times),
            }
        }
        Binary::Mul => match (a.as_number(), b.as_number()) {
            (_, Some(by)) => a.times(by),
            (Some(by), _) => b.times(by),
            (None, None) => Bounds::default(),
        },
        Binary::Min => Bounds {
            lows: a.or(&b, &[]).lows,
            highs: in_turns(&a.highs, &b.highs),
        },
        Binary::Max => Bounds {
            lows: in_turns(&a.lows, &b.lows),
            highs: a.or(&b, &[]).highs,
        },
        Binary::Div if a.is_natural() && b.lows.iter().any(|low| is_at_most(&one, low, &[])) => {
            bounds_of_quotient(a, b)
        }
        Binary::Rem if a.is_natural() && b.lows.iter().any(|low| is_at_most(&one, low, &[])) => {
            let below = Bounds {
                lows: vec![Formula::number(0)],
                highs: each(&b.highs, &[one], Formula::minus),
            };
            below.and(Bounds {
                lows: Vec::new(),
                highs: a.highs,
            })
        }
        _ => Bounds::default(),
    }
}
