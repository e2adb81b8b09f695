//! Narrowing a pattern: conditions on the symbols of a class say that some of them are numbers, or `a·s + b` of other symbols.

use super::{Affine, Entry, Pin};
use rustc_hash::FxHashMap;
use vinelift_tensor::symbols::{Condition, Origin, Symbols};
use vinelift_tensor::{Formula, Symbol};

/// Replaces symbols in `pattern` by what the conditions say they are, and returns whether there were any:
/// * `s = n` by the number `n`;
/// * `s = t + n` by `t + n`, so that both are one symbol;
/// * `s = n·q + r`, for a quotient `q` of it, by a symbol for `q` in that formula.
///
/// Where symbols are found to be the same, they are not replaced by numbers yet: with fewer symbols there may be a formula where
/// there was none, as in `s·t / (s·u)` once `t` and `u` are one.
pub(super) fn narrow(pattern: &mut [Entry], symbols: &Symbols, pins: &mut Vec<Pin>) -> bool {
    let before = pins.len();
    let mut merged = Merged::of(symbols);
    let mut equations: Vec<&Formula> = Vec::new();
    for (condition, place) in &symbols.conditions {
        let Condition::Zero(formula) = condition else {
            continue;
        };
        merged.add(formula, *place);
        // Of `a = b + c` and `a = d + c` neither says what a symbol is, but both together do.
        if !formula.is_difference() {
            for other in &equations {
                let both = [formula.minus(other), formula.plus(other)];
                let differences = both.into_iter().flatten().filter(Formula::is_difference);
                differences.for_each(|difference| merged.add(&difference, *place));
            }
            equations.push(formula);
        }
    }
    merged.settle_numbers();
    let multiples = merged.multiples();
    for (position, entry) in pattern.iter_mut().enumerate() {
        let Entry::Symbol(of) = entry else {
            continue;
        };
        let found = merged.find(of.symbol);
        if let Some(place) = merged.why[of.symbol] {
            *entry = match found {
                Entry::Number(number) => Entry::Number(of.times * number + of.more),
                Entry::Symbol(is) => Entry::Symbol(of.where_symbol_is(is)),
            };
            pins.push(Pin { position, place });
        }
        if let (Entry::Symbol(of), Entry::Symbol(is)) = (entry, found)
            && let Some((multiple, place)) = multiples.get(&is.symbol)
        {
            *of = of.where_symbol_is(*multiple);
            pins.push(Pin {
                position,
                place: *place,
            });
        }
    }
    pins.len() > before
}

impl Affine {
    /// The same where its symbol is something else.
    fn where_symbol_is(&self, is: Affine) -> Affine {
        Affine {
            symbol: is.symbol,
            times: self.times * is.times,
            more: self.times * is.more + self.more,
        }
    }
}

/// The symbols that are given, some of which are others plus a number, or numbers.
struct Merged {
    /// At the example.
    numbers: Vec<i64>,
    /// For each symbol the number or formula that replaces it; the symbol itself until a condition gives another.
    is: Vec<Entry>,
    /// Where that was found.
    why: Vec<Option<usize>>,
    origins: Vec<Origin>,
    /// Symbols, given or quotients, that are numbers, and where that was found.
    pinned: Vec<(usize, usize)>,
    /// Symbols that are multiples, plus a number, of a quotient of theirs, and where that was found.
    multiples: Vec<(Affine, usize)>,
}

impl Merged {
    fn of(symbols: &Symbols) -> Merged {
        let given = symbols.symbols.iter();
        let given = given.filter(|(_, origin)| *origin == Origin::Given);
        let numbers: Vec<i64> = given.map(|(number, _)| *number as i64).collect();
        Merged {
            is: (0..numbers.len())
                .map(|k| Entry::Symbol(Affine::of(k)))
                .collect(),
            why: vec![None; numbers.len()],
            numbers,
            origins: symbols.symbols.iter().map(|(_, origin)| *origin).collect(),
            pinned: Vec::new(),
            multiples: Vec::new(),
        }
    }

    /// Learns that a formula is 0, as was found at a place.
    fn add(&mut self, formula: &Formula, place: usize) {
        let formula = &reduced(formula);
        let mut involved: Vec<usize> = formula.symbols().map(Symbol::number).collect();
        involved.dedup();
        if involved.iter().any(|symbol| *symbol >= self.is.len()) {
            if let ([quotient], true) = (&involved[..], formula.is_linear()) {
                self.pinned.push((*quotient, place));
            }
            let multiple = self.multiple(formula);
            self.multiples.extend(multiple.map(|of| (of, place)));
            return;
        }
        match involved[..] {
            [a] if formula.is_linear() => self.pinned.push((a, place)),
            [a, b] if formula.is_difference() => self.merge(a, b, place),
            _ => {}
        }
    }

    /// Learns that the difference of two given symbols is a number.
    fn merge(&mut self, a: usize, b: usize, place: usize) {
        let (Entry::Symbol(a), Entry::Symbol(b)) = (self.find(a), self.find(b)) else {
            return;
        };
        let (a, b) = (a.symbol, b.symbol);
        if a != b {
            // The smaller one stays: the other is more than it.
            let is_larger = (self.numbers[a], a) > (self.numbers[b], b);
            let (from, to) = if is_larger { (a, b) } else { (b, a) };
            let more = self.numbers[from] - self.numbers[to];
            self.is[from] = Entry::Symbol(Affine {
                more,
                ..Affine::of(to)
            });
            self.why[from] = Some(place);
        }
    }

    /// Replaces symbols that are numbers, unless some are the same.
    fn settle_numbers(&mut self) {
        if self.why.iter().all(Option::is_none) {
            for (symbol, place) in std::mem::take(&mut self.pinned) {
                self.pin(symbol, place);
            }
        }
    }

    /// Replaces a symbol by its number, and with a quotient what it is made of.
    fn pin(&mut self, symbol: usize, place: usize) {
        let mut open = vec![symbol];
        while let Some(symbol) = open.pop() {
            match self.origins[symbol] {
                Origin::Given => {
                    if let Entry::Symbol(Affine { symbol: same, .. }) = self.find(symbol) {
                        self.is[same] = Entry::Number(self.numbers[same]);
                        self.why[same] = Some(place);
                    }
                }
                Origin::Quotient(dividend, divisor) => {
                    let parts = dividend.symbols().chain(divisor.symbols());
                    open.extend(parts.map(Symbol::number));
                }
            }
        }
    }

    /// A given symbol as a multiple of a quotient of it, if `formula`, which is 0, says that nothing remains, or always the same:
    /// of `s` and `floor((s + 1) / 2)` it may say `s = 2 * floor((s + 1) / 2) - 1`.
    fn multiple(&self, formula: &Formula) -> Option<Affine> {
        let [a, b] = formula.as_sum_of_two()?;
        let is_given = |symbol: Symbol| symbol.number() < self.is.len();
        let ((given, by), (quotient, times)) = if is_given(a.0) { (a, b) } else { (b, a) };
        let Origin::Quotient(dividend, divisor) = self.origins[quotient.number()] else {
            return None;
        };
        let own = dividend.symbols().all(|symbol| symbol == given) && dividend.is_linear();
        let (times, more) = (-times, -formula.constant());
        let is_whole = times % by == 0 && more % by == 0 && times / by > 1;
        let fits = is_given(given) && own && divisor.as_number() == Some(times.abs()) && is_whole;
        fits.then(|| Affine {
            symbol: given.number(),
            times: times / by,
            more: more / by,
        })
    }

    /// The symbols that are multiples of others that are to take their place.
    fn multiples(&self) -> FxHashMap<usize, (Affine, usize)> {
        let mut all = FxHashMap::default();
        for (of, place) in &self.multiples {
            if let Entry::Symbol(is) = self.find(of.symbol) {
                let own = Affine {
                    symbol: is.symbol,
                    more: of.more - is.more,
                    ..*of
                };
                all.entry(is.symbol).or_insert((own, *place));
            }
        }
        all
    }

    /// The number that a symbol equals, or a symbol of which nothing else is known plus a number.
    fn find(&self, symbol: usize) -> Entry {
        let mut found = Affine::of(symbol);
        loop {
            match self.is[found.symbol] {
                Entry::Number(number) => return Entry::Number(number + found.more),
                Entry::Symbol(is) if is.symbol == found.symbol => return Entry::Symbol(found),
                Entry::Symbol(is) => found = found.where_symbol_is(is),
            }
        }
    }
}

/// Of `3·a - 3·b` the difference `a - b`, which is 0 where it is.
fn reduced(formula: &Formula) -> Formula {
    let difference = match formula.as_sum_of_two() {
        Some([(_, by), (_, other)]) if by == -other => formula.over(&Formula::number(by.abs())),
        _ => None,
    };
    difference.unwrap_or(*formula)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift_tensor::Extent;

    /// The pattern that is left of symbols of which `decide` decides something.
    fn narrowed(numbers: &[usize], decide: impl FnOnce(&[Extent])) -> Vec<Entry> {
        let mut symbols = Symbols::default();
        let extents: Vec<Extent> = numbers.iter().map(|n| symbols.add(*n).unwrap()).collect();
        symbols.record(|| decide(&extents));
        let mut pattern: Vec<Entry> = (0..numbers.len())
            .map(|k| Entry::Symbol(Affine::of(k)))
            .collect();
        narrow(&mut pattern, &symbols, &mut Vec::new());
        pattern
    }

    fn affine(symbol: usize, times: i64, more: i64) -> Entry {
        Entry::Symbol(Affine {
            symbol,
            times,
            more,
        })
    }

    #[test]
    fn what_must_be_a_multiple_is_one() {
        let found = narrowed(&[12, 13, 7], |s| {
            let part = s[0].quotient(3.into());
            assert!(part.product(3.into()).same(s[0]));
            assert!(s[0].sum(1.into()).same(s[1]));
        });
        assert_eq!(found, [affine(0, 3, 0), affine(0, 3, 1), affine(2, 1, 0)]);
        let found = narrowed(&[9], |s| {
            let half = s[0].sum(1.into()).quotient(2.into());
            assert!(half.product(2.into()).same(s[0].sum(1.into())));
        });
        assert_eq!(found, [affine(0, 2, -1)]);
    }

    #[test]
    fn equal_multiples_are_of_equal_symbols() {
        let found = narrowed(&[5, 5, 4], |s| {
            assert!(s[0].product(3.into()).same(s[1].product(3.into())));
            assert!(!s[1].product(3.into()).same(s[2].product(2.into())));
        });
        assert_eq!(found, [affine(0, 1, 0), affine(0, 1, 0), affine(2, 1, 0)]);
    }

    #[test]
    fn multiples_of_other_symbols_stay() {
        let found = narrowed(&[12, 8], |s| {
            let part = s[1].quotient(2.into());
            assert!(part.product(3.into()).same(s[0]));
        });
        assert_eq!(found, [affine(0, 1, 0), affine(1, 1, 0)]);
    }

    #[test]
    fn the_same_symbols_are_found_before_numbers() {
        let found = narrowed(&[2, 30, 2], |s| {
            assert_eq!(s[1].product(s[2]).quotient(s[0]).pin(), 30);
            assert_eq!(s[1].pin(), 30);
            assert!(s[0].same(s[2]));
        });
        assert_eq!(found, [affine(0, 1, 0), affine(1, 1, 0), affine(0, 1, 0)]);
    }

    #[test]
    fn numbers_stay_what_they_are() {
        let found = narrowed(&[12], |s| {
            assert!(s[0].quotient(3.into()).product(3.into()).same(s[0]));
            assert_eq!(s[0].pin(), 12);
        });
        assert_eq!(found, [Entry::Number(12)]);
    }
}
