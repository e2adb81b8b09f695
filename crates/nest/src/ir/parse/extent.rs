//! Extents and the symbols in them.

use super::{Line, Parsed, fail};
use vinelift_tensor::{Extent, Formula, Symbol};

impl Line<'_> {
    /// `s0=37, s1=12`: the values at the example.
    pub(super) fn symbols(&mut self) -> Parsed<()> {
        loop {
            let start = self.skip();
            let next = format!("s{}", self.nest.symbols.len());
            if self.word() != next {
                return fail(start, format!("expected `{next}`"));
            }
            self.expect("=")?;
            let value = self.number()?;
            self.nest.symbols.push(value);
            if !self.eat(",") {
                return self.end();
            }
        }
    }

    /// `7`, `s0` or `4*s0*s1 + s0 - 3`.
    pub(super) fn extent(&mut self) -> Parsed<Extent> {
        let start = self.skip();
        if let Ok(number) = self.number() {
            if !["*", "+", "-"].iter().any(|sign| self.peek(sign)) {
                return Ok(number.into());
            }
            self.at = start;
        }
        let sum = self.formula()?;
        let value = sum.evaluate(&self.nest.symbols);
        let value = value.and_then(|value| usize::try_from(value).ok());
        let is_fine = |value: &usize| sum.as_number().is_some() || Extent::may_be(*value);
        match value.filter(is_fine) {
            Some(value) => Ok(Extent::new(sum, value)),
            None => fail(start, format!("`{sum}` is no extent at the example")),
        }
    }

    /// `s0 - 8*s1 >= 0`
    pub(super) fn relation(&mut self) -> Parsed<()> {
        let start = self.skip();
        let formula = self.formula()?;
        self.expect(">=")?;
        self.expect("0")?;
        if formula.evaluate(&self.nest.symbols).is_none_or(|n| n < 0) {
            return fail(start, format!("`{formula}` is negative at the example"));
        }
        self.nest.relations.push(formula);
        self.end()
    }

    /// `4*s0*s1 + s0 - 3`
    fn formula(&mut self) -> Parsed<Formula> {
        let start = self.skip();
        let sign = if self.eat("-") { -1 } else { 1 };
        let mut sum = self.product(sign)?;
        loop {
            let sign = match (self.eat("+"), self.peek("-")) {
                (true, _) => 1,
                (false, true) => {
                    self.expect("-")?;
                    -1
                }
                (false, false) => break,
            };
            let next = self.product(sign)?;
            sum = sum
                .plus(&next)
                .ok_or_else(|| (start, "too long a formula".to_owned()))?;
        }
        Ok(sum)
    }

    /// `sign · 4*s0*s1`
    fn product(&mut self, sign: i64) -> Parsed<Formula> {
        let start = self.skip();
        let mut product = Formula::number(sign);
        loop {
            let at = self.skip();
            let factor = match self.word() {
                "" => {
                    let number = self.number()?;
                    i64::try_from(number).ok().map(Formula::number)
                }
                name => {
                    let number = name.strip_prefix('s').and_then(|n| n.parse().ok());
                    let known = number.filter(|n| *n < self.nest.symbols.len());
                    let symbol = known.and_then(Symbol::new);
                    let unknown = || (at, format!("no symbol `{name}`"));
                    Some(Formula::symbol(symbol.ok_or_else(unknown)?))
                }
            };
            let next = factor.and_then(|factor| product.times(&factor));
            product = next.ok_or_else(|| (start, "too long a formula".to_owned()))?;
            if !self.eat("*") {
                return Ok(product);
            }
        }
    }
}
