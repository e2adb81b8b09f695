//! Sets of symbols.

use crate::{Extent, Symbol};

/// The symbols that something depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolSet([u64; 4]);

impl SymbolSet {
    /// The symbols of some extents.
    pub fn of(extents: impl IntoIterator<Item = Extent>) -> SymbolSet {
        let mut set = SymbolSet::default();
        for extent in extents {
            extent.formula().symbols().for_each(|s| set.insert(s));
        }
        set
    }

    /// The symbols of which two bindings give different values: that of number `k` is `before[k]` in one and `after[k]` in the
    /// other.
    pub fn of_changes(before: &[usize], after: &[usize]) -> SymbolSet {
        let mut set = SymbolSet::default();
        for number in 0..before.len().max(after.len()) {
            if let Some(symbol) = Symbol::new(number)
                && before.get(number) != after.get(number)
            {
                set.insert(symbol);
            }
        }
        set
    }

    /// Adds those of another set.
    pub fn extend(&mut self, other: &SymbolSet) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
    }

    /// Whether a symbol is in both.
    pub fn meets(&self, other: &SymbolSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    fn insert(&mut self, symbol: Symbol) {
        self.0[symbol.number() / 64] |= 1 << (symbol.number() % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Formula;

    #[test]
    fn the_first_and_the_last_symbols_are_told_apart() {
        let extent = |number| {
            let symbol = Symbol::new(number).unwrap();
            Extent::new(Formula::symbol(symbol), 7)
        };
        let all: Vec<usize> = (0..300).take_while(|n| Symbol::new(*n).is_some()).collect();
        for &a in &all {
            let mut after = vec![7; all.len()];
            after[a] = 8;
            let changed = SymbolSet::of_changes(&vec![7; all.len()], &after);
            assert_eq!(changed, SymbolSet::of([extent(a)]));
            let meets = |b: &usize| SymbolSet::of([extent(*b)]).meets(&changed);
            assert_eq!(
                all.iter().copied().filter(|b| meets(b)).collect::<Vec<_>>(),
                [a]
            );
        }
    }

    #[test]
    fn a_set_has_all_symbols_of_formulas() {
        let [a, b] = [0, 100].map(|n| Formula::symbol(Symbol::new(n).unwrap()));
        let product = Extent::new(a.times(&b).unwrap(), 49);
        let both = SymbolSet::of([product]);
        let mut sum = SymbolSet::of([Extent::new(a, 7)]);
        assert!(sum.meets(&both) && !sum.meets(&SymbolSet::of([Extent::new(b, 7)])));
        sum.extend(&SymbolSet::of([Extent::new(b, 7)]));
        assert_eq!(sum, both);
        assert!(!SymbolSet::of([Extent::from(3)]).meets(&both));
    }
}
