//! Formulas over symbols: extents that are not known while a plan is made, as far as they are.

use std::fmt;
use std::num::NonZeroU8;

/// A number that a run gives: an extent of at least 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(NonZeroU8);

impl Symbol {
    /// No symbol stands for less: 0 and 1 mean something else in broadcasting and for empty tensors.
    pub const LEAST: usize = 2;

    /// The symbol of this number, counted from 0; `None` if there are not that many.
    pub fn new(number: usize) -> Option<Symbol> {
        let number = u8::try_from(number.checked_add(1)?).ok()?;
        NonZeroU8::new(number).map(Symbol)
    }

    /// Its number, counted from 0.
    pub fn number(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// `s0`, `s1`, …
impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.number())
    }
}

/// The most factors of a product.
const FACTORS: usize = 4;

/// The most products of a sum.
const TERMS: usize = 4;

/// `coefficient · Π factors`; of coefficient 0 if there is no such term. Factors are in descending order, so that
/// those that are missing come last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Term {
    factors: [Option<Symbol>; FACTORS],
    coefficient: i32,
}

impl Term {
    fn symbols(&self) -> impl Iterator<Item = Symbol> {
        self.factors.into_iter().flatten()
    }

    /// `None` if it has too many factors, or too large a coefficient.
    fn times(self, other: Term) -> Option<Term> {
        let mut factors: Vec<Symbol> = self.symbols().chain(other.symbols()).collect();
        factors.sort_unstable_by_key(|factor| std::cmp::Reverse(*factor));
        let mut term = Term {
            factors: [None; FACTORS],
            coefficient: self.coefficient.checked_mul(other.coefficient)?,
        };
        for (k, factor) in factors.into_iter().enumerate() {
            *term.factors.get_mut(k)? = Some(factor);
        }
        Some(term)
    }

    /// `self / other`, if that leaves no remainder whatever the symbols are.
    fn over(self, other: Term) -> Option<Term> {
        let mut left: Vec<Symbol> = self.symbols().collect();
        for factor in other.symbols() {
            let known = left.iter().position(|f| *f == factor)?;
            left.remove(known);
        }
        let divisible = other.coefficient != 0 && self.coefficient % other.coefficient == 0;
        let mut term = Term {
            factors: [None; FACTORS],
            coefficient: divisible.then(|| self.coefficient.wrapping_div(other.coefficient))?,
        };
        for (to, factor) in term.factors.iter_mut().zip(left) {
            *to = Some(factor);
        }
        Some(term)
    }

    /// `self / other` with a coefficient that is rounded up, if the symbols leave no remainder.
    fn over_rounded_up(self, other: Term) -> Option<Term> {
        let coefficient = divided_up(self.coefficient.into(), other.coefficient)?;
        let mut symbols = other;
        symbols.coefficient = 1;
        let mut quotient = self.over(symbols)?;
        quotient.coefficient = i32::try_from(coefficient).ok()?;
        Some(quotient)
    }

    fn evaluate(&self, values: &[usize]) -> Option<i64> {
        let mut symbols = self.factors.iter().map_while(|factor| *factor);
        symbols.try_fold(i64::from(self.coefficient), |product, symbol| {
            product.checked_mul(i64::try_from(*values.get(symbol.number())?).ok()?)
        })
    }
}

/// The largest number of which both are multiples; 0 of two zeros, and 1 if it does not fit.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// `number / by`, rounded up; `by` is positive.
fn divided_up(number: i64, by: i32) -> Option<i64> {
    let down = number.checked_neg()?.div_euclid(by.into());
    down.checked_neg()
}

/// `constant + Σ coefficient · Π symbols`, in a canonical form: two formulas are the same polynomial only if they are
/// equal. It is small and can be copied; arithmetic gives `None` where a result would be too long for that.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Formula {
    constant: i64,
    /// In descending order of their factors; those that are missing come last.
    terms: [Term; TERMS],
}

impl Formula {
    /// A number.
    pub const fn number(number: i64) -> Formula {
        const NONE: Term = Term {
            factors: [None; FACTORS],
            coefficient: 0,
        };
        Formula {
            constant: number,
            terms: [NONE; TERMS],
        }
    }

    /// A symbol.
    pub fn symbol(symbol: Symbol) -> Formula {
        let mut formula = Formula::number(0);
        formula.terms[0].factors[0] = Some(symbol);
        formula.terms[0].coefficient = 1;
        formula
    }

    /// The number that it is, if it has no symbol.
    pub fn as_number(&self) -> Option<i64> {
        (self.terms[0].coefficient == 0).then_some(self.constant)
    }

    /// The number in it that is taken times no symbol.
    pub fn constant(&self) -> i64 {
        self.constant
    }

    /// The symbol that it is, if it is one.
    pub fn as_symbol(&self) -> Option<Symbol> {
        let symbol = self.terms[0].factors[0]?;
        (*self == Formula::symbol(symbol)).then_some(symbol)
    }

    /// Whether it is `a·x + b` for one symbol `x`: it has one value of `x` for each of its own.
    pub fn is_linear(&self) -> bool {
        let [first, second, ..] = &self.terms;
        first.symbols().count() == 1 && second.coefficient == 0
    }

    /// Whether it is the difference of two symbols, plus a number.
    pub fn is_difference(&self) -> bool {
        let [first, second, third, ..] = &self.terms;
        let is_one =
            |term: &Term, sign: i32| term.symbols().count() == 1 && term.coefficient == sign;
        let opposite =
            (is_one(first, 1) && is_one(second, -1)) || (is_one(first, -1) && is_one(second, 1));
        opposite && third.coefficient == 0
    }

    /// Two symbols with their coefficients, if it is their sum plus a number.
    pub fn as_sum_of_two(&self) -> Option<[(Symbol, i64); 2]> {
        let [first, second, third, ..] = &self.terms;
        let part = |term: &Term| {
            let [symbol, None, ..] = term.factors else {
                return None;
            };
            Some((symbol?, i64::from(term.coefficient)))
        };
        let parts = [part(first)?, part(second)?];
        (third.coefficient == 0).then_some(parts)
    }

    /// How many products of symbols it adds up.
    pub fn term_count(&self) -> usize {
        self.terms().count()
    }

    /// The symbols in it, some of them more than once.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> {
        self.terms
            .into_iter()
            .flat_map(|term| term.factors)
            .flatten()
    }

    /// `self + other`
    pub fn plus(&self, other: &Formula) -> Option<Formula> {
        let constant = self.constant.checked_add(other.constant)?;
        self.combined(other, constant, i32::checked_add)
    }

    /// `self - other`
    pub fn minus(&self, other: &Formula) -> Option<Formula> {
        let constant = self.constant.checked_sub(other.constant)?;
        self.combined(other, constant, i32::checked_sub)
    }

    /// `self · other`
    pub fn times(&self, other: &Formula) -> Option<Formula> {
        let mut terms = Vec::new();
        for a in self.terms() {
            for b in other.terms() {
                terms.push(a.times(b)?);
            }
        }
        for (one, another) in [(self, other), (other, self)] {
            if one.constant != 0 {
                for term in another.terms() {
                    let by = i32::try_from(one.constant).ok()?;
                    let coefficient = term.coefficient.checked_mul(by)?;
                    terms.push(Term {
                        coefficient,
                        ..term
                    });
                }
            }
        }
        Formula::sum(self.constant.checked_mul(other.constant)?, terms)
    }

    /// `self / other`, if that leaves no remainder whatever the symbols are: `other` is one product, or a factor of
    /// the whole sum.
    pub fn over(&self, other: &Formula) -> Option<Formula> {
        if self == other && other.as_number() != Some(0) {
            return Some(Formula::number(1));
        }
        if let Some(by) = other.as_number() {
            return self.over_number(by);
        }
        let mut of = other.terms();
        let (Some(by), None, 0, 0) = (of.next(), of.next(), self.constant, other.constant) else {
            return self.over_sum(other);
        };
        let quotients: Option<Vec<Term>> = self.terms().map(|term| term.over(by)).collect();
        let (numbers, terms): (Vec<Term>, Vec<Term>) = quotients?
            .into_iter()
            .partition(|term| term.factors[0].is_none());
        let constant = numbers.iter().map(|term| i64::from(term.coefficient)).sum();
        Formula::sum(constant, terms)
    }

    /// The largest number of which the constant and all coefficients are multiples; 0 of 0.
    pub fn content(&self) -> i64 {
        let numbers = self.terms().map(|term| i64::from(term.coefficient));
        numbers.fold(gcd(self.constant, 0), gcd)
    }

    fn over_number(&self, by: i64) -> Option<Formula> {
        let divides = |n: i64| n.checked_rem(by) == Some(0);
        let exact = |term: Term| {
            let coefficient = i64::from(term.coefficient);
            let quotient = coefficient
                .checked_div(by)
                .filter(|_| divides(coefficient))?;
            Some(Term {
                coefficient: i32::try_from(quotient).ok()?,
                ..term
            })
        };
        let terms: Option<Vec<Term>> = self.terms().map(exact).collect();
        let constant = self.constant.checked_div(by);
        Formula::sum(constant.filter(|_| divides(self.constant))?, terms?)
    }

    /// `self / other`, if that leaves no remainder.
    fn over_sum(&self, other: &Formula) -> Option<Formula> {
        let (quotient, rest) = self.divided_by_sum(other)?;
        (rest == 0).then_some(quotient)
    }

    /// `self / other` by long division, leading term by leading term, and the remainder, if that is a number.
    fn divided_by_sum(&self, other: &Formula) -> Option<(Formula, i64)> {
        let leading = other.terms().next()?;
        let (mut rest, mut quotient) = (*self, Formula::number(0));
        loop {
            let Some(term) = rest.terms().next() else {
                return Some((quotient, rest.constant));
            };
            let part = term.over(leading)?;
            let part = match part.factors[0] {
                None => Formula::number(part.coefficient.into()),
                Some(_) => Formula::sum(0, vec![part])?,
            };
            rest = rest.minus(&part.times(other)?)?;
            quotient = quotient.plus(&part)?;
        }
    }

    /// A formula that is at least `self / other` wherever `other` is positive. By a number or one product terms are divided, and
    /// rounded up, one by one; by a sum, what is left must be a number of at most 0. `None` if a term lacks a symbol of `other`.
    pub fn over_rounded_up(&self, other: &Formula) -> Option<Formula> {
        let mut of = other.terms();
        let by = match (other.as_number(), of.next(), of.next(), other.constant) {
            (Some(number), ..) => Term {
                factors: [None; FACTORS],
                coefficient: i32::try_from(number).ok()?,
            },
            (None, Some(by), None, 0) => by,
            _ => {
                let (quotient, rest) = self.divided_by_sum(other)?;
                return (rest <= 0).then_some(quotient);
            }
        };
        if by.coefficient <= 0 || (by.factors[0].is_some() && self.constant > 0) {
            return None;
        }
        let quotients: Option<Vec<Term>> =
            self.terms().map(|term| term.over_rounded_up(by)).collect();
        let (numbers, terms): (Vec<Term>, Vec<Term>) = quotients?
            .into_iter()
            .partition(|term| term.factors[0].is_none());
        let numbers: i64 = numbers.iter().map(|term| i64::from(term.coefficient)).sum();
        let constant = match by.factors[0] {
            None => divided_up(self.constant, by.coefficient)?,
            Some(_) => 0,
        };
        Formula::sum(numbers.checked_add(constant)?, terms)
    }

    /// The least value that it may have; `None` if it is not bounded below, or does not fit an `i64`.
    pub fn least(&self) -> Option<i64> {
        self.least_difference(&Formula::number(0))
    }

    /// The least value that `self - other` may have, also where there is no formula for that; `None` if it is not bounded
    /// below, or does not fit an `i64`.
    pub fn least_difference(&self, other: &Formula) -> Option<i64> {
        let constant = self.constant.checked_sub(other.constant)?;
        Pairs::of(self, other).try_fold(constant, |sum, (term, a, b)| {
            let coefficient = u64::try_from(i64::from(a) - i64::from(b)).ok()?;
            let factors = term.symbols().map(|_| Symbol::LEAST as u64);
            let least = factors.fold(coefficient, u64::saturating_mul);
            sum.checked_add(i64::try_from(least).ok()?)
        })
    }

    /// Its value where the symbol of number `k` has `values[k]`; `None` if one is missing, or the value does not fit.
    pub fn evaluate(&self, values: &[usize]) -> Option<i64> {
        let mut terms = self.terms.iter().take_while(|term| term.coefficient != 0);
        terms.try_fold(self.constant, |sum, term| {
            sum.checked_add(term.evaluate(values)?)
        })
    }

    fn terms(&self) -> impl Iterator<Item = Term> {
        self.terms.into_iter().filter(|term| term.coefficient != 0)
    }

    /// The formula of these coefficients, each made of those of both.
    fn combined(
        &self,
        other: &Formula,
        constant: i64,
        coefficient: fn(i32, i32) -> Option<i32>,
    ) -> Option<Formula> {
        let mut all = Formula::number(constant);
        let mut count = 0;
        for (term, a, b) in Pairs::of(self, other) {
            let coefficient = coefficient(a, b)?;
            if coefficient != 0 {
                *all.terms.get_mut(count)? = Term {
                    coefficient,
                    ..term
                };
                count += 1;
            }
        }
        Some(all)
    }

    fn sum(constant: i64, mut terms: Vec<Term>) -> Option<Formula> {
        terms.sort_unstable_by_key(|term| std::cmp::Reverse(term.factors));
        let mut sum = Formula::number(constant);
        let mut count = 0;
        for same in terms.chunk_by(|a, b| a.factors == b.factors) {
            let coefficients = same.iter().map(|term| term.coefficient);
            let coefficient = coefficients.into_iter().try_fold(0i32, i32::checked_add)?;
            if coefficient != 0 {
                *sum.terms.get_mut(count)? = Term {
                    coefficient,
                    ..same[0]
                };
                count += 1;
            }
        }
        Some(sum)
    }
}

/// The products that two formulas have, in descending order, each with its coefficients in both.
struct Pairs<'a> {
    left: &'a [Term],
    right: &'a [Term],
}

impl<'a> Pairs<'a> {
    fn of(a: &'a Formula, b: &'a Formula) -> Pairs<'a> {
        Pairs {
            left: &a.terms,
            right: &b.terms,
        }
    }
}

impl Iterator for Pairs<'_> {
    type Item = (Term, i32, i32);

    fn next(&mut self) -> Option<(Term, i32, i32)> {
        let next = |terms: &[Term]| terms.first().copied().filter(|term| term.coefficient != 0);
        let (a, b) = (next(self.left), next(self.right));
        let factors = a.map(|term| term.factors).max(b.map(|term| term.factors))?;
        let take = |term: Option<Term>, from: &mut &[Term]| match term {
            Some(term) if term.factors == factors => {
                *from = &from[1..];
                term.coefficient
            }
            _ => 0,
        };
        let (a, b) = (take(a, &mut self.left), take(b, &mut self.right));
        let term = Term {
            factors,
            coefficient: 0,
        };
        Some((term, a, b))
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// `4*s0*s1 + s0 - 3`
impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sign = "";
        for term in self.terms() {
            let negative = term.coefficient < 0;
            f.write_str(match (sign, negative) {
                ("", false) => "",
                ("", true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            })?;
            if term.coefficient.unsigned_abs() != 1 {
                write!(f, "{}*", term.coefficient.unsigned_abs())?;
            }
            let symbols: Vec<String> = term.symbols().map(|s| s.to_string()).collect();
            let mut symbols = symbols;
            symbols.reverse();
            f.write_str(&symbols.join("*"))?;
            sign = " ";
        }
        match (sign, self.constant) {
            ("", constant) => write!(f, "{constant}"),
            (_, 0) => Ok(()),
            (_, constant) if constant < 0 => write!(f, " - {}", constant.unsigned_abs()),
            (_, constant) => write!(f, " + {constant}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols<const N: usize>() -> [Formula; N] {
        std::array::from_fn(|k| Formula::symbol(Symbol::new(k).unwrap()))
    }

    #[test]
    fn arithmetic_is_that_of_polynomials() {
        let [s, t] = symbols();
        let n = Formula::number;
        let sum = s.times(&n(4)).unwrap().plus(&t).unwrap();
        assert_eq!(sum.to_string(), "s1 + 4*s0");
        let product = sum.times(&s).unwrap().minus(&t).unwrap();
        for (a, b) in [(2, 2), (5, 7), (100, 3)] {
            let want = (4 * a + b) * a - b;
            assert_eq!(product.evaluate(&[a as usize, b as usize]), Some(want));
        }
        assert_eq!(sum.times(&s).unwrap().over(&sum), Some(s));
        let [more, less] = [s.plus(&n(1)).unwrap(), t.minus(&n(2)).unwrap()];
        let both = more.times(&less).unwrap();
        assert_eq!(both.over(&more), Some(less));
        assert_eq!(both.over(&less), Some(more));
        assert_eq!(both.plus(&n(1)).unwrap().over(&more), None);
        let four = sum.times(&s.minus(&n(3)).unwrap()).unwrap();
        assert_eq!(four.times(&t.plus(&n(1)).unwrap()), None, "more terms");
        assert_eq!(sum.minus(&sum), Some(n(0)));
        let six = s.times(&t).unwrap().times(&n(6)).unwrap();
        assert_eq!(six.over(&t.times(&n(2)).unwrap()), s.times(&n(3)));
        assert_eq!(six.over(&n(4)), None);
        assert_eq!(sum.over(&s), None);
        assert_eq!(n(12).over(&n(0)), None);
        assert_eq!(six.plus(&n(-4)).map(|sum| sum.content()), Some(2));
        assert_eq!([n(0), n(-9), s].map(|formula| formula.content()), [0, 9, 1]);
    }

    /// Numbers have 64 bits, whatever coefficients have.
    #[test]
    fn numbers_are_exact_or_none() {
        let n = Formula::number;
        assert_eq!(n(i64::MIN).plus(&n(5)), Some(n(i64::MIN + 5)));
        assert_eq!(n(-(1 << 31)).minus(&n(-(1 << 31))), Some(n(0)));
        assert_eq!(n(1 << 40).times(&n(3)), Some(n(3 << 40)));
        assert_eq!(n(3 << 40).over(&n(1 << 40)), Some(n(3)));
        assert_eq!(n(i64::MIN).over(&n(-1)), None);
        assert_eq!(n(i64::MIN).minus(&n(1)), None);
        let [s] = symbols();
        assert_eq!(s.plus(&n(1 << 40)).unwrap().minus(&s), Some(n(1 << 40)));
        assert_eq!(s.times(&n(1 << 40)), None);
    }

    /// At least the quotient, and as little as terms allow.
    #[test]
    fn quotients_are_rounded_up() {
        let [s, t] = symbols();
        let n = Formula::number;
        let ten = s.times(&n(10)).unwrap().minus(&n(7)).unwrap();
        assert_eq!(ten.over_rounded_up(&n(4)).unwrap().to_string(), "3*s0 - 1");
        let area = s.times(&t).unwrap().times(&n(5)).unwrap();
        let two = t.times(&n(2)).unwrap();
        let found = area.minus(&n(1)).unwrap().over_rounded_up(&two);
        assert_eq!(found, s.times(&n(3)));
        assert_eq!(area.plus(&n(1)).unwrap().over_rounded_up(&two), None);
        assert_eq!(s.over_rounded_up(&t), None);
        assert_eq!(n(0).minus(&s).unwrap().over_rounded_up(&n(2)), Some(n(0)));
        assert_eq!(s.over_rounded_up(&n(0)), None);
        // By a sum.
        let less = |x: &Formula| x.minus(&n(2)).unwrap();
        let inner = less(&s).times(&less(&t)).unwrap();
        assert_eq!(
            inner.minus(&n(49)).unwrap().over_rounded_up(&less(&t)),
            Some(less(&s))
        );
        assert_eq!(inner.plus(&n(1)).unwrap().over_rounded_up(&less(&t)), None);
    }

    #[test]
    fn the_least_value() {
        let [s, t] = symbols();
        assert_eq!(s.times(&t).unwrap().least(), Some(4));
        assert_eq!(s.minus(&t).unwrap().least(), None);
        let n = Formula::number;
        let more = s.times(&n(3)).unwrap().plus(&n(1)).unwrap();
        assert_eq!(more.least_difference(&s), Some(5));
        assert_eq!(s.least_difference(&more), None);
        assert_eq!(n(i64::MIN).least_difference(&n(1)), None);
    }

    /// A sum of many products of which another one takes some away has a least value, though it may be too long.
    #[test]
    fn the_least_difference_of_long_sums() {
        let [a, b, c, d, e] = symbols();
        let sum = |all: &[Formula]| all.iter().try_fold(Formula::number(0), |x, y| x.plus(y));
        let (long, other) = (sum(&[a, b, c, d]).unwrap(), sum(&[a, b]).unwrap());
        assert_eq!(long.plus(&e), None);
        assert_eq!(long.least_difference(&other), Some(4));
        let negative = Formula::number(0).minus(&e).unwrap();
        assert_eq!(long.minus(&negative), None);
        assert_eq!(long.least_difference(&negative), Some(10));
    }
}
