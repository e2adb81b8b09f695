//! Sums of digits `y·n + z`, where `n` is an extent with symbols.
//!
//! * Such a sum lies in `0..m·n` if `y` lies in `0..m` and `z` in `0..n`. Bounds of the whole sum do not show that where `y` is bounded
//!   by what is known of the symbols in `m` alone, or a condition says something of `z`, whose terms stand apart in the sum.
//! * `(x / n)·n + x % n` is `x`, as a reshape of a reshape has it.

use crate::analysis::delinearized::divided;
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

impl Linear {
    /// `(x / n)·n + x % n = x`, wherever the two stand in the right proportion.
    pub(super) fn with_joined_digits(mut self) -> Linear {
        while let Some(joined) = self.join_digits() {
            self = joined;
        }
        self
    }

    fn join_digits(&self) -> Option<Linear> {
        self.terms.iter().find_map(|(rest, k)| {
            let (x, n) = divided(rest, Binary::Rem).filter(|(_, n)| n.is_symbolic())?;
            let by = Scalar::extent(n);
            let (mut high, low) = split(self, n);
            let quotient = (x / by.clone(), *k);
            let place = high.terms.iter().position(|term| *term == quotient)?;
            high.terms.remove(place);
            let low = low.plus(&Linear::atom(rest), k.wrapping_neg());
            let multiple = match (&high.terms[..], high.constant) {
                ([], constant) => Linear::default().plus(&Linear::atom(&by), constant),
                _ => Linear::atom(&(high.into_scalar() * by)),
            };
            Some(low.plus(&Linear::of(x), *k).plus(&multiple, 1))
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
        let extents = [blocks[0], 8.into(), blocks[1], 8.into()];
        let (mut ranges, [i, j, k, l]) = Ranges::over(extents);
        ranges.relations = symbols.relations();
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

    /// `((x / n + 1)·n + x % n) / 2n` of `x = i·(2n - 1) + j`: the rows of a matrix with a column more in each, less the first `n`.
    #[test]
    fn digits_of_a_shifted_index_are_joined() {
        let mut symbols = Symbols::default();
        let n = symbols.add(5).unwrap();
        let wide = symbols.record(|| n.product(2.into()));
        let columns = symbols.record(|| wide.difference(1.into()));
        let (mut ranges, [i, j]) = Ranges::over([n, columns]);
        let [n_, columns] = [n, columns].map(Scalar::extent);
        let x = i * columns + j;
        let sum = (&x / &n_ + 1) * &n_ + x.rem(n_.clone());
        let joined = Linear::of(&sum).with_joined_digits();
        assert_eq!(joined, Linear::of(&(&x + &n_)));
        let row = joined.into_scalar() / Scalar::extent(wide);
        assert!(ranges.is_index(&row, n));
        let apart = (&x / &n_ + 1) * &n_ * 2 + x.rem(n_);
        assert_eq!(Linear::of(&apart).with_joined_digits(), Linear::of(&apart));
    }

    /// `(i + j - 1)·s1 + k + l - 1` where both digits are in range.
    #[test]
    fn conditions_on_digits_bound_the_sum() {
        let mut symbols = Symbols::default();
        let [lines, columns] = [5, 7].map(|n| symbols.add(n).unwrap());
        let all = symbols.record(|| lines.product(columns));
        let (mut ranges, [i, j, k, l]) = Ranges::over([lines, 3.into(), columns, 3.into()]);
        ranges.relations = symbols.relations();
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
