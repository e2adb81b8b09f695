//! Sums of digits: `y·n + z` lies in `0..m·n` if `y` lies in `0..m` and `z` in `0..n`.
//!
//! Bounds of the whole sum do not show that where `y` is bounded by what is known of the symbols in `m` alone, or a condition
//! says something of `z`, whose terms stand apart in the sum.

use crate::analysis::{Linear, Ranges};
use crate::ir::{Binary, Kind, Scalar};
use vinelift_tensor::Extent;

impl Ranges {
    /// Whether `x` is a sum of digits and so lies in `0..extent`, whatever the symbols are.
    pub(super) fn is_sum_of_digits(&mut self, x: &Scalar, extent: Extent) -> bool {
        if !extent.is_symbolic() {
            return false;
        }
        let sum = Linear::of(x);
        let mut factors: Vec<Extent> = Vec::new();
        for (_, factor) in sum.terms.iter().filter_map(|(atom, _)| multiple(atom)) {
            if !factors.contains(&factor) {
                factors.push(factor);
            }
        }
        factors.into_iter().any(|n| {
            let (high, low) = split(&sum, n);
            let fits = |ranges: &mut Ranges, rows| {
                ranges.is_index(&low.into_scalar(), n) && ranges.is_index(&high.into_scalar(), rows)
            };
            extent.over(n).is_some_and(|rows| fits(self, rows))
        })
    }
}

/// `(y, z)` with `sum = y·n + z`.
fn split(sum: &Linear, n: Extent) -> (Linear, Linear) {
    let mut parts = (Linear::default(), Linear::default());
    parts.1.constant = sum.constant;
    for (atom, k) in &sum.terms {
        match multiple(atom).filter(|(_, factor)| *factor == n) {
            Some((y, _)) => parts.0 = parts.0.plus(&y, *k),
            None => parts.1.terms.push((atom.clone(), *k)),
        }
    }
    parts
}

/// `(y, n)` if `atom` is `y·n` with an extent `n` that has symbols.
fn multiple(atom: &Scalar) -> Option<(Linear, Extent)> {
    match atom.kind() {
        Kind::Extent(n) => Some((Linear::of(&crate::build::index(1)), *n)),
        Kind::Binary(Binary::Mul, a, b) => match (a.kind(), b.kind()) {
            (_, Kind::Extent(n)) => Some((Linear::of(a), *n)),
            (Kind::Extent(n), _) => Some((Linear::of(b), *n)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::index;
    use crate::ir::Nest;
    use vinelift_tensor::symbols::Symbols;

    /// `(8·i + j)·s1 + 8·k + l` of blocks of 8×8 that cover a picture of `s0` lines, of which the last may be left out.
    #[test]
    fn pixels_of_blocks_are_pixels() {
        let mut symbols = Symbols::default();
        let [lines, columns] = [19, 21].map(|n| symbols.add(n).unwrap());
        let (all, blocks) = symbols.record(|| {
            let blocks = [lines, columns].map(|n| n.quotient(8.into()));
            (lines.product(columns), blocks)
        });
        let mut nest = Nest::new();
        let axes = [blocks[0], 8.into(), blocks[1], 8.into()].map(|n| nest.axis(n));
        let mut ranges = Ranges::new();
        ranges.bind(&axes);
        ranges.relations = symbols.relations();
        let [i, j, k, l] = axes.map(|axis| Scalar::axis(axis.id));
        let line = i * 8 + j;
        let pixel = |line: &Scalar| (line.clone() * Scalar::extent(columns) + &k * 8) + &l;
        assert!(ranges.is_index(&pixel(&line), all));
        assert!(
            !ranges.is_index(&pixel(&(&line + 1)), all),
            "a line further"
        );
        assert!(
            !ranges.is_index(&(pixel(&line) + 1), all),
            "a column further"
        );
    }

    /// `(i + j - 1)·s1 + k + l - 1` where both digits are in range.
    #[test]
    fn conditions_on_digits_bound_the_sum() {
        let mut symbols = Symbols::default();
        let [lines, columns] = [5, 7].map(|n| symbols.add(n).unwrap());
        let all = symbols.record(|| lines.product(columns));
        let mut nest = Nest::new();
        let axes = [lines, 3.into(), columns, 3.into()].map(|n| nest.axis(n));
        let mut ranges = Ranges::new();
        ranges.bind(&axes);
        ranges.relations = symbols.relations();
        let [i, j, k, l] = axes.map(|axis| Scalar::axis(axis.id));
        let (line, column) = (i + j - 1, &k + &l - 1);
        let inside = |x: &Scalar, n| x.ge(index(0)) & x.lt(Scalar::extent(n));
        let pixel = &line * Scalar::extent(columns) + &k + &l - 1;
        let guards = [inside(&line, lines), inside(&column, columns)];
        let both = guards[0].clone() & guards[1].clone();
        assert!(ranges.assuming(&both, true, |ranges, _| ranges.is_index(&pixel, all)));
        for guard in &guards {
            assert!(!ranges.assuming(guard, true, |ranges, _| ranges.is_index(&pixel, all)));
        }
    }
}
