//! Symbols while a plan is made: what is decided by their example values is written down.
//!
//! A plan is made at an example, and is right wherever everything that was decided on the way would be decided in the
//! same way. Whoever looks at the number behind a [`Dim`](crate::Dim) or an [`Extent`] that has
//! symbols therefore leaves a [`Condition`] in the recorder of the thread. A number that is taken out of it *pins* it.

use crate::{Extent, Formula, Symbol};
use std::cell::RefCell;
use std::cmp::Ordering;

/// A condition on the symbols that a plan relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// It is 0.
    Zero(Formula),
    /// It is not 0.
    NotZero(Formula),
    /// It is at least 0.
    Natural(Formula),
}

impl Condition {
    /// Whether it holds where the symbol of number `k` is `values[k]`.
    pub fn holds(&self, values: &[usize]) -> bool {
        let (Condition::Zero(formula) | Condition::NotZero(formula) | Condition::Natural(formula)) =
            self;
        formula.evaluate(values).is_some_and(|value| match self {
            Condition::Zero(_) => value == 0,
            Condition::NotZero(_) => value != 0,
            Condition::Natural(_) => value >= 0,
        })
    }
}

/// `4*s0 - 12 = 0`
impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Condition::Zero(formula) => write!(f, "{formula} = 0"),
            Condition::NotZero(formula) => write!(f, "{formula} != 0"),
            Condition::Natural(formula) => write!(f, "{formula} >= 0"),
        }
    }
}

/// Where the number of a symbol comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It is given.
    Given,
    /// `floor(dividend / divisor)`
    Quotient(Formula, Formula),
}

/// The symbols of a plan, and what has been decided about them so far.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// The value at the example and the origin of each symbol; symbols depend on earlier ones alone.
    pub symbols: Vec<(usize, Origin)>,
    /// The conditions that the plan relies on, each with the place that met it first, in the order in which they were met.
    pub conditions: Vec<(Condition, usize)>,
    /// Where the next condition is met.
    place: usize,
}

thread_local! {
    static RECORDER: RefCell<Symbols> = const {
        RefCell::new(Symbols { symbols: Vec::new(), conditions: Vec::new(), place: 0 })
    };
}

impl Symbols {
    /// Runs `f` with these symbols; what it decides about them is written down here.
    pub fn record<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let swap = |own: &mut Symbols| RECORDER.with_borrow_mut(|all| std::mem::swap(all, own));
        swap(self);
        let result = f();
        swap(self);
        result
    }

    /// A new symbol whose number is given; `None` if there are too many, or the example is none for a symbol.
    pub fn add(&mut self, example: usize) -> Option<Extent> {
        self.push(example, Origin::Given)
    }

    fn push(&mut self, example: usize, origin: Origin) -> Option<Extent> {
        if !Extent::may_be(example) {
            return None;
        }
        let symbol = Symbol::new(self.symbols.len())?;
        self.symbols.push((example, origin));
        Some(Extent::new(Formula::symbol(symbol), example))
    }

    /// The values of the symbols at the example.
    pub fn example(&self) -> Vec<usize> {
        self.symbols.iter().map(|(example, _)| *example).collect()
    }

    /// Formulas that are not negative wherever the conditions hold: those of the conditions, those that follow from two of
    /// them of which one is an equation, and of each quotient `q = floor(a / b)`, `a - b·q` and `b - 1 - (a - b·q)`.
    pub fn relations(&self) -> Vec<Formula> {
        let (mut natural, mut zero) = (Vec::new(), Vec::new());
        for (condition, _) in &self.conditions {
            match condition {
                Condition::Natural(formula) => natural.push(*formula),
                Condition::Zero(formula) => zero.push(*formula),
                Condition::NotZero(_) => {}
            }
        }
        let mut relations = natural.clone();
        for equation in &zero {
            relations.push(*equation);
            relations.extend(Formula::number(0).minus(equation));
        }
        for (number, (_, origin)) in self.symbols.iter().enumerate() {
            if let Origin::Quotient(a, b) = origin {
                let rest = Symbol::new(number)
                    .and_then(|quotient| a.minus(&b.times(&Formula::symbol(quotient))?));
                let most = b.minus(&Formula::number(1));
                let missing = rest.and_then(|rest| most?.minus(&rest));
                relations.extend(rest.into_iter().chain(missing));
            }
        }
        // Those that compare symbols: a limit of one symbol follows from that of another, and would be in the way of both.
        for (equation, known) in zero
            .iter()
            .flat_map(|z| natural.iter().map(move |n| (z, n)))
        {
            for sum in [known.plus(equation), known.minus(equation)] {
                let is_wanted = |sum: &Formula| {
                    sum.term_count() > 1 && lacks_symbol(sum, known) && !relations.contains(sum)
                };
                relations.extend(sum.filter(is_wanted));
            }
        }
        relations
    }

    /// The values of all symbols where those that are given have `given`, in order; `None` if one is none for a
    /// symbol, or a condition does not hold.
    pub fn bind(&self, given: &[usize]) -> Option<Vec<usize>> {
        let mut given = given.iter().copied();
        let mut values = Vec::with_capacity(self.symbols.len());
        for (_, origin) in &self.symbols {
            let value = match origin {
                Origin::Given => given.next()?,
                Origin::Quotient(dividend, divisor) => {
                    let (a, b) = (dividend.evaluate(&values)?, divisor.evaluate(&values)?);
                    usize::try_from(a.checked_div_euclid(b).filter(|_| b > 0)?).ok()?
                }
            };
            if !Extent::may_be(value) {
                return None;
            }
            values.push(value);
        }
        self.conditions
            .iter()
            .all(|(condition, _)| condition.holds(&values))
            .then_some(values)
    }
}

/// Whether a formula has not all symbols of another one.
fn lacks_symbol(formula: &Formula, other: &Formula) -> bool {
    let mut others = other.symbols();
    others.any(|symbol| !formula.symbols().any(|own| own == symbol))
}

/// The values of all symbols at the example, and formulas over them that are not negative wherever the conditions hold.
pub fn known() -> (Vec<usize>, Vec<Formula>) {
    RECORDER.with_borrow(|all| (all.example(), all.relations()))
}

/// From now on, conditions are met at this place: a number that means something to whoever records them.
pub fn at(place: usize) {
    RECORDER.with_borrow_mut(|all| all.place = place);
}

/// Writes down that `condition` was found to hold, unless it always does.
fn note(condition: Condition) {
    let always = match &condition {
        Condition::Zero(f) => f.as_number() == Some(0),
        Condition::NotZero(f) => f.as_number().is_some_and(|n| n != 0) || f.least() > Some(0),
        Condition::Natural(f) => f.least() >= Some(0),
    };
    if !always {
        RECORDER.with_borrow_mut(|all| {
            if !all.conditions.iter().any(|(known, _)| *known == condition) {
                let place = all.place;
                all.conditions.push((condition, place));
            }
        });
    }
}

/// The value of `formula` at the example; nothing is written down. `None` if it does not fit.
pub fn example(formula: &Formula) -> Option<i64> {
    match formula.as_number() {
        Some(number) => Some(number),
        None => RECORDER.with_borrow(|all| formula.evaluate(&all.example())),
    }
}

/// The value of `formula` at the example; from now on the plan is for that number alone. `None` if it does not fit.
pub fn pin(formula: &Formula) -> Option<i64> {
    let value = example(formula)?;
    if formula.as_number().is_none() {
        match formula.minus(&Formula::number(value)) {
            Some(gap) => note(Condition::Zero(gap)),
            None => pin_symbols(formula)?,
        }
    }
    Some(value)
}

/// Pins every symbol of `formula`. `None` if a number does not fit.
pub fn pin_symbols(formula: &Formula) -> Option<()> {
    for symbol in formula.symbols() {
        let symbol = Formula::symbol(symbol);
        let value = Formula::number(example(&symbol)?);
        note(Condition::Zero(symbol.minus(&value)?));
    }
    Some(())
}

/// How `formula` compares with 0, which the plan relies on from now on.
pub fn compare(formula: &Formula) -> Option<Ordering> {
    let order = example(formula)?.cmp(&0);
    let one = Formula::number(1);
    note(match order {
        Ordering::Equal => Condition::Zero(*formula),
        Ordering::Greater => Condition::Natural(formula.minus(&one)?),
        Ordering::Less => Condition::Natural(one.plus(formula)?.times(&Formula::number(-1))?),
    });
    Some(order)
}

/// Whether `formula` is negative, which the plan relies on from now on.
pub fn is_negative(formula: &Formula) -> Option<bool> {
    let is_negative = example(formula)? < 0;
    note(Condition::Natural(match is_negative {
        true => Formula::number(-1).minus(formula)?,
        false => *formula,
    }));
    Some(is_negative)
}

impl Extent {
    /// The extent that a formula gives, which the plan relies on from now on; `None` if it is negative.
    pub fn of(formula: Formula) -> Option<Extent> {
        let example = usize::try_from(example(&formula)?).ok()?;
        let extent = Extent::new(formula, example);
        Some(extent.checked().unwrap_or_else(|| extent.pin().into()))
    }

    /// The number at the example; from now on the plan is for that number alone.
    pub fn pin(self) -> usize {
        pin(self.formula());
        self.example()
    }

    /// Whether the two are the same number, which the plan relies on from now on.
    pub fn same(self, other: Extent) -> bool {
        let equal = self.example() == other.example();
        if self.is_symbolic() || other.is_symbolic() {
            match self.formula().minus(other.formula()) {
                Some(gap) if equal => note(Condition::Zero(gap)),
                Some(gap) => note(Condition::NotZero(gap)),
                None => return self.pin() == other.pin(),
            }
        }
        equal
    }

    /// Whether this is at most `other`, which the plan relies on from now on.
    pub fn at_most(self, other: Extent) -> bool {
        let fits = self.example() <= other.example();
        let (less, more) = if fits { (self, other) } else { (other, self) };
        if self.is_symbolic() || other.is_symbolic() {
            let least = Formula::number(i64::from(!fits));
            let gap = more.formula().minus(less.formula());
            match gap.and_then(|gap| gap.minus(&least)) {
                Some(gap) => note(Condition::Natural(gap)),
                None => return self.pin() <= other.pin(),
            }
        }
        fits
    }

    /// `self + other`, pinned if there is no formula for it.
    pub fn sum(self, other: Extent) -> Extent {
        let sum = self.plus(other).and_then(Extent::checked);
        sum.unwrap_or_else(|| self.pin().saturating_add(other.pin()).into())
    }

    /// `self · other`, pinned if there is no formula for it.
    pub fn product(self, other: Extent) -> Extent {
        let product = self.times(other).and_then(Extent::checked);
        product.unwrap_or_else(|| self.pin().saturating_mul(other.pin()).into())
    }

    /// `self - other`, 0 if that is negative, pinned if there is no formula for it.
    pub fn difference(self, other: Extent) -> Extent {
        let difference = self.minus(other).and_then(Extent::checked);
        difference.unwrap_or_else(|| self.pin().saturating_sub(other.pin()).into())
    }

    /// `floor(self / other)`, as a symbol of its own if there is no formula for it. If that is none for a symbol, it is the number at
    /// the example, which the plan relies on from now on; pinned if there is no formula for that. Of division by 0 it is 0.
    pub fn quotient(self, other: Extent) -> Extent {
        if let Some(exact) = self.over(other) {
            return exact
                .checked()
                .unwrap_or_else(|| (self.pin() / other.pin().max(1)).into());
        }
        let number = self.example().checked_div(other.example()).unwrap_or(0);
        if !self.is_symbolic() && !other.is_symbolic() {
            return number.into();
        }
        let origin = Origin::Quotient(*self.formula(), *other.formula());
        let symbol = RECORDER.with_borrow_mut(|all| {
            let known = all.symbols.iter().position(|(_, known)| *known == origin);
            match known {
                Some(known) => {
                    let symbol = Symbol::new(known)?;
                    Some(Extent::new(Formula::symbol(symbol), number))
                }
                None => all.push(number, origin),
            }
        });
        symbol
            .or_else(|| self.is_times(number, other))
            .unwrap_or_else(|| self.pin().checked_div(other.pin()).unwrap_or(0).into())
    }

    /// `number`, which is `floor(self / other)` from now on; `None` if there is no formula for that.
    fn is_times(self, number: usize, other: Extent) -> Option<Extent> {
        let times = |n: usize| {
            other
                .formula()
                .times(&Formula::number(i64::try_from(n).ok()?))
        };
        let rest = self.formula().minus(&times(number)?)?;
        let next = times(number.checked_add(1)?)?.minus(&Formula::number(1))?;
        let missing = next.minus(self.formula()).filter(|_| other.example() > 0)?;
        note(Condition::Natural(rest));
        note(Condition::Natural(missing));
        Some(number.into())
    }

    /// Itself if it is one that may have symbols, which the plan relies on from now on.
    fn checked(self) -> Option<Extent> {
        if !self.is_symbolic() {
            return Some(self);
        }
        let fits = Extent::may_be(self.example());
        let above = self.formula().minus(&Formula::number(Extent::LEAST as i64));
        let below = Formula::number(Extent::MOST as i64).minus(self.formula());
        let (above, below) = above.zip(below).filter(|_| fits)?;
        note(Condition::Natural(above));
        // Symbols are in range by themselves: the rest is looked at when they are bound.
        if self.formula().as_symbol().is_none() {
            note(Condition::Natural(below));
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols<const N: usize>(examples: [usize; N]) -> (Symbols, [Extent; N]) {
        let mut symbols = Symbols::default();
        let extents = examples.map(|n| symbols.add(n).unwrap());
        (symbols, extents)
    }

    #[test]
    fn what_is_looked_at_is_written_down() {
        let (mut symbols, [s, t]) = symbols([7, 9]);
        symbols.record(|| {
            assert_eq!(s.sum(t).product(4.into()).to_string(), "4*s1 + 4*s0");
            assert!(!s.same(t) && s.at_most(t) && s.same(s));
            assert_eq!(s.difference(3.into()).to_string(), "s0 - 3");
        });
        assert!(symbols.bind(&[5, 6]).is_some());
        assert!(symbols.bind(&[6, 6]).is_none(), "they must differ");
        assert!(
            symbols.bind(&[4, 6]).is_none(),
            "4 - 3 is no extent of a symbol"
        );
        symbols.record(|| assert_eq!(s.pin(), 7));
        assert!(symbols.bind(&[5, 6]).is_none() && symbols.bind(&[7, 8]).is_some());
    }

    #[test]
    fn an_equation_goes_into_other_relations() {
        let (mut symbols, [past, new, all, room]) = symbols([11, 3, 14, 74]);
        let sum = past.sum(new);
        symbols.record(|| assert!(sum.same(all) && sum.at_most(room)));
        let relations = symbols.relations();
        let gap = room.formula().minus(all.formula()).unwrap();
        assert!(relations.contains(&gap), "{relations:?}");
        let holds = |formula: &Formula| formula.evaluate(&symbols.example()) >= Some(0);
        assert!(relations.iter().all(holds));
    }

    #[test]
    fn quotients_are_symbols() {
        let (mut symbols, [s]) = symbols([9]);
        symbols.record(|| {
            let half = s.difference(1.into()).quotient(2.into());
            assert_eq!((half.example(), half.to_string().as_str()), (4, "s1"));
            assert_eq!(s.difference(1.into()).quotient(2.into()), half);
            assert_eq!(s.product(6.into()).quotient(3.into()).to_string(), "2*s0");
        });
        assert_eq!(symbols.bind(&[12]), Some(vec![12, 5]));
        assert_eq!(symbols.bind(&[4]), None);
        // The remainder `s0 - 1 - 2·s1` is 0 or 1.
        let relations = symbols.relations();
        let is_known = |text: &str| relations.iter().any(|r| r.to_string() == text);
        assert!(is_known("-2*s1 + s0 - 1") && is_known("2*s1 - s0 + 2"));
    }

    #[test]
    fn quotients_that_are_no_symbols_are_numbers_of_a_range() {
        let (mut symbols, [s]) = symbols([10]);
        symbols.record(|| {
            assert_eq!(s.quotient(7.into()), Extent::ONE);
            assert_eq!(s.quotient(11.into()), Extent::from(0));
        });
        let is_bound = |n| symbols.bind(&[n]).is_some();
        assert!(is_bound(7) && is_bound(10) && !is_bound(6) && !is_bound(11));
    }
}
