//! Division of index arithmetic by constants: quotients and remainders in their simplest forms.

use crate::analysis::{Linear, Ranges};
use crate::ir::build::index;
use crate::ir::{Binary, Kind, Scalar};
use vinelift_tensor::gcd;

/// `Σ at[d] · strides[d]`, simplified: the offset of an access in elements.
pub(crate) fn flat_offset(at: &[Scalar], strides: &[usize], ranges: &mut Ranges) -> Scalar {
    Linear::of_access(at, strides)
        .recombined(ranges)
        .into_scalar()
}

impl Linear {
    /// `(x / c) · c + x % c = x`, wherever the two stand in the right proportion.
    pub(crate) fn recombined(self, ranges: &mut Ranges) -> Linear {
        self.with_joined_digits().recombined_by_constants(ranges)
    }

    fn recombined_by_constants(mut self, ranges: &mut Ranges) -> Linear {
        let mut tried = 0;
        while let Some((atom, k)) = self.terms.get(tried).cloned() {
            tried += 1;
            let Some((x, c)) = by_constant(&atom, Binary::Rem) else {
                continue;
            };
            let ways = [
                |x: &_, c, ranges: &mut _| Some(divided(x, c, ranges)),
                divided_at_once,
            ];
            let joined = ways.into_iter().find_map(|way| {
                let quotient = way(&x, c, ranges)?;
                let joined = self.clone().plus(&Linear::atom(&atom), k.wrapping_neg());
                let joined = joined
                    .plus(&quotient, k.wrapping_mul(c).wrapping_neg())
                    .plus(&Linear::of(&x), k);
                self.improved_by(joined, ranges)
            });
            if let Some(joined) = joined {
                self = joined;
                tried = 0;
            }
        }
        self
    }

    /// `joined`, which is the same number in other terms, with its own terms joined as well; `None` if `self` is the better form.
    fn improved_by(&self, joined: Linear, ranges: &mut Ranges) -> Option<Linear> {
        let (old, new) = (self.divisions(), joined.divisions());
        let fewer = joined.terms.len() < self.terms.len();
        // Where a quotient remains, less is known of how large the sum is.
        let both_gone = new + 2 <= old;
        if both_gone || (fewer && new <= old) {
            return Some(joined);
        }
        if new >= old {
            return None;
        }
        // `x` may hold a quotient of which another term is the remainder: so the digits of one index are joined one by one. In the end
        // none that was not there before may be left: other terms may have been joined, which can be without this.
        let joined = joined.recombined_by_constants(ranges);
        let is_known = |term: &(Scalar, i64)| self.terms.contains(term);
        let are_known = joined.division_terms().all(is_known);
        are_known.then_some(joined)
    }

    /// Its terms that are quotients or rests.
    fn division_terms(&self) -> impl Iterator<Item = &(Scalar, i64)> {
        self.terms.iter().filter(|(atom, _)| {
            let found = by_constant(atom, Binary::Div).or_else(|| by_constant(atom, Binary::Rem));
            found.is_some()
        })
    }

    /// How many these are.
    fn divisions(&self) -> usize {
        self.division_terms().count()
    }
}

/// `x / c` in a simpler form, if it has one; `c > 0`.
pub(crate) fn divide(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<Linear> {
    if c == 1 {
        return Some(Linear::of(x));
    }
    if let Some((inner, d)) = by_constant(x, Binary::Div) {
        // (y / d) / c = y / (d·c) for truncated division of any sign.
        return Some(divided(&inner, d.checked_mul(c)?, ranges));
    }
    let (quotient, rest) = split(x, c, ranges)?;
    let range = ranges.of(&rest);
    if range.high < c {
        return Some(quotient);
    }
    if let Some(line) = through_two_points(&rest, c, ranges) {
        return Some(quotient.plus(&line, 1));
    }
    let rest = match common_factor(&rest, c, ranges) {
        // (g·m + r) / (g·d) = m / d
        Some((g, m, _)) => divided(&m, c / g, ranges),
        None if quotient == Linear::default() => return None,
        None => Linear::atom(&(rest / c)),
    };
    Some(quotient.plus(&rest, 1))
}

/// `x / c` in its simplest form; `c > 0`.
fn divided(x: &Scalar, c: i64, ranges: &mut Ranges) -> Linear {
    divide(x, c, ranges).unwrap_or_else(|| Linear::atom(&(x / c)))
}

/// `x / c` by a single division, if `x` has a quotient itself: `(m + y / d) / c = (m·d + y) / (d·c)`. `c > 0`.
fn divided_at_once(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<Linear> {
    let form = Linear::of(x);
    let mut quotients = form.terms.iter().filter(|(_, factor)| *factor == 1);
    let (quotient, (y, d)) =
        quotients.find_map(|(atom, _)| Some((atom, by_constant(atom, Binary::Div)?)))?;
    // Truncated division of any of them is of numbers that are not negative.
    if ranges.of(x).low < 0 || ranges.of(&y).low < 0 {
        return None;
    }
    let m = form.clone().plus(&Linear::atom(quotient), -1);
    let times = |k: i64| k.checked_mul(d);
    let scaled = m
        .terms
        .iter()
        .map(|(atom, k)| Some((atom.clone(), times(*k)?)));
    let scaled = Linear {
        terms: scaled.collect::<Option<_>>()?,
        constant: times(m.constant)?,
    };
    let whole = scaled.plus(&Linear::of(&y), 1).into_scalar();
    let fits = ranges.of(&whole).low >= 0;
    fits.then(|| Some(divided(&whole, d.checked_mul(c)?, ranges)))?
}

/// `x / c` as a line, if `x` is not negative and depends on one part of two values alone: `(a + 1) / 2 = a` for `a < 2`.
fn through_two_points(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<Linear> {
    let form = Linear::of(x);
    let [(atom, factor)] = &form.terms[..] else {
        return None;
    };
    let range = ranges.of(atom);
    if range.low.checked_add(1) != Some(range.high) {
        return None;
    }
    let at = |a: i64| Some(factor.checked_mul(a)?.checked_add(form.constant)? / c);
    let (first, second) = (at(range.low)?, at(range.high)?);
    let step = second.checked_sub(first)?;
    let mut line = Linear::default().plus(&Linear::atom(atom), step);
    line.constant = first.checked_sub(step.checked_mul(range.low)?)?;
    Some(line)
}

/// `x % c` in a simpler form, if it has one; `c > 0`.
pub(crate) fn remainder(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<Linear> {
    if c == 1 {
        return Some(Linear::default());
    }
    let (quotient, rest) = split(x, c, ranges)?;
    let range = ranges.of(&rest);
    if range.high < c {
        return Some(Linear::of(&rest));
    }
    match common_factor(&rest, c, ranges) {
        // (g·m + r) % (g·d) = g·(m % d) + r
        Some((g, m, r)) => {
            let d = c / g;
            let m = remainder(&m, d, ranges).unwrap_or_else(|| Linear::atom(&m.rem(index(d))));
            Some(Linear::of(&r).plus(&m, g))
        }
        None if quotient == Linear::default() => None,
        None => Some(Linear::atom(&rest.rem(index(c)))),
    }
}

/// `(g, m, r)` with `x = g·m + r`, `0 ≤ r < g`, `m ≥ 0`, and `g > 1` a divisor of `c`; the largest such `g`.
fn common_factor(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<(i64, Scalar, Scalar)> {
    let form = Linear::of(x);
    let mut factors: Vec<i64> = form
        .terms
        .iter()
        .map(|(_, k)| gcd(*k, c))
        .filter(|g| *g > 1)
        .collect();
    factors.sort_unstable();
    factors.dedup();
    factors.into_iter().rev().find_map(|g| {
        let (m, r) = form.split_by(g);
        let (m, r) = (m.into_scalar(), r.into_scalar());
        let (range_m, range_r) = (ranges.of(&m), ranges.of(&r));
        (range_m.low >= 0 && range_r.low >= 0 && range_r.high < g).then_some((g, m, r))
    })
}

/// `x = c · quotient + rest`, with `x ≥ 0` and `rest ≥ 0`, so that truncated division sees the two apart.
fn split(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<(Linear, Scalar)> {
    if ranges.of(x).low < 0 {
        return None;
    }
    let form = Linear::of(x);
    // An extent with symbols is only known as a whole.
    let tears = |(atom, k): &(Scalar, i64)| matches!(atom.kind(), Kind::Extent(_)) && k % c != 0;
    if form.terms.iter().any(tears) {
        return None;
    }
    let (quotient, rest) = form.split_by(c);
    let rest = rest.into_scalar();
    let fits = ranges.of(&rest).low >= 0;
    fits.then_some((quotient, rest))
}

/// `(x, c)` if `whole` is `x op c` with a constant `c > 0`.
fn by_constant(whole: &Scalar, op: Binary) -> Option<(Scalar, i64)> {
    match whole.kind() {
        Kind::Binary(found, x, c) if *found == op => {
            Some((x.clone(), c.as_index().filter(|c| *c > 0)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element `64·i + j` by its digits in `[64, 56, 56]`, of which no division is by a factor of 64.
    #[test]
    fn digits_of_one_index_are_that_index() {
        let (mut ranges, [i, j]) = Ranges::over([3136, 64]);
        let whole = i * 64 + j;
        let mut quotient =
            |x: &Scalar, c| divide(x, c, &mut ranges).map_or(x / c, Linear::into_scalar);
        let line = quotient(&whole, 56);
        let plane = quotient(&line, 56);
        let mut rest = |x: &Scalar| {
            remainder(x, 56, &mut ranges).map_or_else(|| x.rem(index(56)), Linear::into_scalar)
        };
        let digits = [plane, rest(&line), rest(&whole)];
        assert_eq!(flat_offset(&digits, &[56 * 56, 56, 1], &mut ranges), whole);
    }

    /// Element `96·l + 48·k + i` by its digits in `[9, 3, 4, 8]`, of which two are what is left of `16·k + i` on its own.
    #[test]
    fn digits_of_a_part_of_an_index_are_that_part() {
        let (mut ranges, [l, k, i]) = Ranges::over([9, 2, 48]);
        let whole = l * 96 + k * 48 + i;
        let mut digit = |stride, extent| {
            let quotient = divided(&whole, stride, &mut ranges).into_scalar();
            let rest = remainder(&quotient, extent, &mut ranges);
            rest.map_or_else(|| quotient.rem(index(extent)), Linear::into_scalar)
        };
        let digits = [digit(96, 9), digit(32, 3), digit(8, 4), digit(1, 8)];
        let offset = flat_offset(&digits, &[96, 32, 8, 1], &mut ranges);
        assert_eq!(offset, whole, "{digits:?}");
    }

    /// A channel of two groups that are interleaved, and a point by its row and column: the point is one index, while the channel
    /// keeps its digits, of whose sum with a quotient of another weight less would be known.
    #[test]
    fn digits_in_another_order_stay() {
        let (mut ranges, [channel, point]) = Ranges::over([116, 784]);
        let (group, inside) = (channel.rem(index(2)), &channel / 2);
        let digits = [group * 58 + inside, &point / 28, point.rem(index(28))];
        let offset = flat_offset(&digits, &[784, 28, 1], &mut ranges);
        let range = ranges.of(&offset);
        assert_eq!((range.low, range.high), (0, 116 * 784 - 1), "{offset:?}");
    }
}
