//! Linear forms of index arithmetic: `c + k0·a0 + k1·a1 + …` over atoms that are not linear.

use crate::build::index;
use crate::range::Ranges;
use crate::scalar::{Binary, Kind, Scalar};

/// `constant + Σ coefficient · atom`, with no atom twice and no coefficient 0.
///
/// Index arithmetic wraps, so a form equals the expression it came from whatever the values are.
/// Division does not commute with wrapping: its rules below ask [`Ranges`] first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Linear {
    pub(crate) terms: Vec<(Scalar, i64)>,
    pub(crate) constant: i64,
}

impl Linear {
    /// The form of an `i64` scalar whose children are simplified already.
    pub(crate) fn of(x: &Scalar) -> Linear {
        if let Some(constant) = x.as_index() {
            return Linear {
                terms: Vec::new(),
                constant,
            };
        }
        match x.kind() {
            Kind::Binary(Binary::Add, a, b) => Linear::of(a).plus(&Linear::of(b), 1),
            Kind::Binary(Binary::Sub, a, b) => Linear::of(a).plus(&Linear::of(b), -1),
            Kind::Binary(Binary::Mul, a, b) => match (a.as_index(), b.as_index()) {
                (_, Some(k)) => Linear::default().plus(&Linear::of(a), k),
                (Some(k), _) => Linear::default().plus(&Linear::of(b), k),
                _ => Linear::atom(x),
            },
            _ => Linear::atom(x),
        }
    }

    pub(crate) fn atom(x: &Scalar) -> Linear {
        Linear {
            terms: vec![(x.clone(), 1)],
            constant: 0,
        }
    }

    /// `Σ at[d] · strides[d]`: the offset of an access in elements.
    pub(crate) fn of_access(at: &[Scalar], strides: &[usize]) -> Linear {
        let terms = at.iter().zip(strides);
        terms.fold(Linear::default(), |sum, (i, &stride)| {
            sum.plus(&Linear::of(i), stride as i64)
        })
    }

    /// `self + factor · other`
    pub(crate) fn plus(mut self, other: &Linear, factor: i64) -> Linear {
        self.constant = self
            .constant
            .wrapping_add(other.constant.wrapping_mul(factor));
        for (atom, k) in &other.terms {
            let k = k.wrapping_mul(factor);
            match self.terms.iter_mut().find(|(a, _)| a == atom) {
                Some((_, known)) => *known = known.wrapping_add(k),
                None => self.terms.push((atom.clone(), k)),
            }
        }
        self.terms.retain(|(_, k)| *k != 0);
        self
    }

    /// The form that is not negative where `a op b` holds.
    pub(crate) fn of_comparison(op: Binary, a: &Scalar, b: &Scalar) -> Option<Linear> {
        let (more, less, by) = match op {
            Binary::Ge => (a, b, 0),
            Binary::Gt => (a, b, 1),
            Binary::Le => (b, a, 0),
            Binary::Lt => (b, a, 1),
            _ => return None,
        };
        let mut form = Linear::of(more).plus(&Linear::of(less), -1);
        form.constant = form.constant.checked_sub(by)?;
        Some(form)
    }

    /// How many times all atoms of this form are in `other`, if they are equally often.
    pub(crate) fn factor_in(&self, other: &Linear) -> Option<i64> {
        let of = |atom: &Scalar| other.terms.iter().find(|(a, _)| a == atom).map(|(_, k)| *k);
        let (first, k) = self.terms.first()?;
        let times = of(first)?.checked_div_euclid(*k)?;
        let fits = |(atom, k): &(Scalar, i64)| of(atom) == k.checked_mul(times);
        (times != 0 && self.terms.iter().all(fits)).then_some(times)
    }

    /// `(quotient, rest)` with `self = c · quotient + rest`, coefficient by coefficient.
    fn split_by(&self, c: i64) -> (Linear, Linear) {
        let mut quotient = Linear {
            terms: Vec::new(),
            constant: self.constant.div_euclid(c),
        };
        let mut rest = Linear {
            terms: Vec::new(),
            constant: self.constant.rem_euclid(c),
        };
        for (atom, k) in &self.terms {
            // Towards zero: `-1·a` belongs to the rest whole, not as `c-1` less one quotient.
            let (q, r) = (k / c, k % c);
            if q != 0 {
                quotient.terms.push((atom.clone(), q));
            }
            if r != 0 {
                rest.terms.push((atom.clone(), r));
            }
        }
        (quotient, rest)
    }

    /// The scalar that it stands for: terms in the order in which they came in, the constant last.
    pub(crate) fn into_scalar(self) -> Scalar {
        let mut terms = self
            .terms
            .into_iter()
            .map(|(atom, k)| if k == 1 { atom } else { atom * k });
        let Some(first) = terms.next() else {
            return index(self.constant);
        };
        let sum = terms.fold(first, |sum, term| sum + term);
        match self.constant {
            0 => sum,
            c @ i64::MIN..0 if c != i64::MIN => sum - (-c),
            c => sum + c,
        }
    }

    /// How many of its terms are quotients or rests.
    fn divisions(&self) -> usize {
        let divides = |(atom, _): &&(Scalar, i64)| {
            let found = by_constant(atom, Binary::Div).or_else(|| by_constant(atom, Binary::Rem));
            found.is_some()
        };
        self.terms.iter().filter(divides).count()
    }

    /// `(x / c) · c + x % c = x`, wherever the two stand in the right proportion.
    pub(crate) fn recombined(mut self, ranges: &mut Ranges) -> Linear {
        let mut tried = 0;
        while let Some((atom, k)) = self.terms.get(tried).cloned() {
            tried += 1;
            let Some((x, c)) = by_constant(&atom, Binary::Rem) else {
                continue;
            };
            let quotient = divide(&x, c, ranges).unwrap_or_else(|| Linear::atom(&(&x / c)));
            let joined = self.clone().plus(&Linear::atom(&atom), k.wrapping_neg());
            let joined = joined
                .plus(&quotient, k.wrapping_mul(c).wrapping_neg())
                .plus(&Linear::of(&x), k);
            let (fewer, divisions) = (joined.terms.len() < self.terms.len(), joined.divisions());
            // Where a quotient remains, less is known of how large the sum is.
            let both_gone = divisions + 2 <= self.divisions();
            if both_gone || (fewer && divisions <= self.divisions()) {
                self = joined;
                tried = 0;
            }
        }
        self
    }
}

/// Takes from `low..high` where `factor · a + constant` is negative.
pub(crate) fn narrow(factor: i64, constant: i64, (low, high): &mut (i64, i64)) -> Option<()> {
    if factor > 0 {
        // factor · a >= -constant
        let least = constant.checked_neg()?;
        let rounds_up = i64::from(least.rem_euclid(factor) != 0);
        *low = (*low).max(least.div_euclid(factor) + rounds_up);
    } else {
        // -factor · a <= constant
        let most = constant.div_euclid(factor.checked_neg()?);
        *high = (*high).min(most.checked_add(1)?);
    }
    Some(())
}

/// `x / c` in a simpler form, if it has one; `c > 0`.
pub(crate) fn divide(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<Linear> {
    if c == 1 {
        return Some(Linear::of(x));
    }
    if let Some((inner, d)) = by_constant(x, Binary::Div) {
        // (y / d) / c = y / (d·c) for truncated division of any sign.
        let product = d.checked_mul(c)?;
        return Some(
            divide(&inner, product, ranges).unwrap_or_else(|| Linear::atom(&(inner / product))),
        );
    }
    let (quotient, rest) = split(x, c, ranges)?;
    let range = ranges.of(&rest);
    if range.high < c {
        return Some(quotient);
    }
    let rest = match common_factor(&rest, c, ranges) {
        // (g·m + r) / (g·d) = m / d
        Some((g, m, _)) => {
            divide(&m, c / g, ranges).unwrap_or_else(|| Linear::atom(&(m / (c / g))))
        }
        None if quotient == Linear::default() => return None,
        None => Linear::atom(&(rest / c)),
    };
    Some(quotient.plus(&rest, 1))
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

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// `x = c · quotient + rest`, with `x ≥ 0` and `rest ≥ 0`, so that truncated division sees the two apart.
fn split(x: &Scalar, c: i64, ranges: &mut Ranges) -> Option<(Linear, Scalar)> {
    if ranges.of(x).low < 0 {
        return None;
    }
    let (quotient, rest) = Linear::of(x).split_by(c);
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
