//! Quotients by a constant, without a division.

use super::Scalar;
use super::build::{fma, number};
use std::iter::successors;
use vinelift_tensor::ElementType::F32;

/// `x / whole` for an `x` that is one of the integers from 0 to `whole`; for any other `x` some number.
///
/// The bits are those of the quotient. Where `fma(x, high, x · low)`, with `high + low ≈ 1 / whole`, has them for all these
/// integers, it takes the place of the division, which takes three times as long.
pub fn part_of(x: &Scalar, whole: u32) -> Scalar {
    let factors = (x.ty() == F32).then(|| factors_of_whole(whole)).flatten();
    match factors {
        Some([high, low]) => {
            let [high, low] = [high, low].map(|factor| number(f64::from(factor), F32));
            fma(x, &high, &(x * &low))
        }
        None => x / number(f64::from(whole), x.ty()),
    }
}

/// `high` and `low` for which `round(fma(x, high, x · low) · steps)` is `round(x / divisor · steps)` for all `x` from 0 to
/// `divisor`; `None` if there are none, or the divisor is not between 2⁻⁶⁰ and 2⁶⁰.
///
/// `high` is the reciprocal as it is rounded, and `low` is what it lacks. The sum has the bits of the quotient, except for the few
/// significands of `x` that [`Unlike`] finds, and of these the integers are compared.
pub(crate) fn reciprocal(divisor: f32, steps: f32) -> Option<[f32; 2]> {
    const LEAST: f32 = 1.0 / (1u64 << 60) as f32;
    if !(LEAST..=1.0 / LEAST).contains(&divisor) {
        return None;
    }
    let factors = parts(divisor);
    let is_same = |x: f32| {
        let integer = |quotient: f32| (quotient * steps).round_ties_even();
        integer(by_factors(x, factors)) == integer(x / divisor)
    };
    let has_factors = Unlike { divisor, factors }.significands().all(|a| {
        // Smaller ones are rounded to 0 both ways.
        let least = divisor / (4.0 * steps);
        let halves = successors(Some(scaled_below(a, divisor)), |x| Some(x / 2.0));
        halves.take_while(|x| *x >= least).all(is_same)
    });
    has_factors.then_some(factors)
}

/// `a · 2ⁿ` with the largest integer `n` for which that is at most `most`.
fn scaled_below(a: u64, most: f32) -> f32 {
    let exponents_of = |x: f32| x.to_bits() & !SIGNIFICAND;
    let x = f32::from_bits(exponents_of(most) | (a as f32).to_bits() & SIGNIFICAND);
    if x <= most { x } else { x / 2.0 }
}

/// The numbers whose quotient by a constant has other bits than `fma(x, high, x · low)`. Those are looked for which are finite and
/// not -0, and of which neither the quotient nor a product overflows or underflows.
///
/// The sum before its only rounding differs from the quotient `q` by less than `q · 2⁻⁴⁷ · (1 + 2⁻⁵)`, so it is rounded in another way
/// only if a number halfway between two neighbours is as near. With the significands `a` and `d` of both, integers of 24 bits, that
/// is one for which
///
/// > `a · 2ᵏ = m · d + r` with an odd `m`, `k` = 24 (or 25 if `a < d`), and `|r| ≤ 4`
///
/// and these few `a` are tried. (After N. Brisebarre, J.-M. Muller and S. K. Raina, "Accelerating correctly rounded
/// floating-point division when the divisor is known in advance", 2004.)
struct Unlike {
    divisor: f32,
    factors: [f32; 2],
}

impl Unlike {
    /// Their significands, integers of 24 bits; some may come twice.
    fn significands(self) -> impl Iterator<Item = u64> {
        let significand = u64::from(self.divisor.to_bits() & SIGNIFICAND) | FIRST;
        let twos = significand.trailing_zeros();
        let odd = significand >> twos;
        let rests = (1..=MOST_REST).flat_map(|r| [(r, 24), (r, 25)]);
        // Of a power of two `low` is 0, and no product is rounded.
        let possible = rests.filter(move |(r, _)| odd > 1 && r % (1 << twos) == 0);
        let near = possible.flat_map(move |(r, k)| {
            // a · 2ᵏ⁻ᵗʷᵒˢ ≡ ± r / 2ᵗʷᵒˢ
            let half = odd.div_ceil(2);
            let inverse = (twos..k).fold(1, |power, _| power * half % odd);
            let rest = (r >> twos) * inverse % odd;
            [rest, odd - rest].into_iter().flat_map(move |first| {
                let skipped = FIRST.saturating_sub(first).div_ceil(odd) * odd;
                (first + skipped..2 * FIRST).step_by(odd as usize)
            })
        });
        near.filter(move |a| !is_quotient(*a as f32, self.divisor, self.factors))
    }
}

/// `high` and `low` for [`part_of`].
fn factors_of_whole(whole: u32) -> Option<[f32; 2]> {
    if !(1..=MOST_WHOLE).contains(&whole) {
        return None;
    }
    let divisor = whole as f32;
    let factors = parts(divisor);
    let is_quotient = |x: u32| is_quotient(x as f32, divisor, factors);
    (0..=whole).all(is_quotient).then_some(factors)
}

/// The reciprocal as it is rounded, and what it lacks.
fn parts(divisor: f32) -> [f32; 2] {
    let exact = f64::from(divisor).recip();
    let high = exact as f32;
    [high, (exact - f64::from(high)) as f32]
}

/// `fma(x, high, x · low)`
fn by_factors(x: f32, [high, low]: [f32; 2]) -> f32 {
    x.mul_add(high, x * low)
}

/// Whether that has the bits of `x / divisor`.
fn is_quotient(x: f32, divisor: f32, factors: [f32; 2]) -> bool {
    by_factors(x, factors).to_bits() == (x / divisor).to_bits()
}

/// The largest `whole` for which [`part_of`] tries factors: it compares all quotients.
const MOST_WHOLE: u32 = u16::MAX as u32;

/// The least significand.
const FIRST: u64 = 1 << 23;

/// The bits of an `f32` that hold its significand, but for the highest.
const SIGNIFICAND: u32 = (1 << 23) - 1;

/// The largest `|r|` that is tried: a little more than is needed.
const MOST_REST: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of about `count` divisors from 1 to 2, those for which [`Unlike`] finds significands, or those for which it finds none.
    fn divisors(count: usize, are_unlike: bool) -> impl Iterator<Item = f32> {
        let one = 1f32.to_bits();
        let all = (one..one + (1 << 23)).step_by(((1 << 23) / count) | 1);
        all.map(f32::from_bits).filter(move |divisor| {
            let (divisor, factors) = (*divisor, parts(*divisor));
            let mut significands = Unlike { divisor, factors }.significands();
            significands.next().is_some() == are_unlike
        })
    }

    /// The few significands that are tried are all of which the bits differ.
    #[test]
    fn all_unlike_significands_are_found() {
        let some = [255.0f32, 48.676_596, 0.1, 3.0, 1.999_999_9, 1.000_000_1];
        let unlike: Vec<f32> = divisors(1000, true).collect();
        assert!(unlike.len() >= 5, "{unlike:?}");
        for divisor in divisors(20, false).chain(unlike).chain(some) {
            let factors = parts(divisor);
            let mut found: Vec<u64> = Unlike { divisor, factors }.significands().collect();
            found.sort_unstable();
            found.dedup();
            let differs = |a: &u64| !is_quotient(*a as f32, divisor, factors);
            let all: Vec<u64> = (FIRST..2 * FIRST).filter(differs).collect();
            assert_eq!(found, all, "{divisor}");
        }
    }

    /// One divisor in a hundred has numbers whose quotients differ; hardly any of these is rounded to another integer.
    #[test]
    fn almost_all_divisors_have_factors() {
        let refused = |steps: f32| {
            let unlike = divisors(8000, true);
            unlike
                .filter(|divisor| reciprocal(*divisor, steps).is_none())
                .count()
        };
        assert!((60..120).contains(&divisors(8000, true).count()));
        assert_eq!([1.0, 15.0, 255.0].map(refused), [0; 3]);
        assert!((1..60).contains(&refused(1048576.0)));
    }

    /// Of divisors with unlike significands, all numbers up to the divisor whose integers could differ.
    #[test]
    fn integers_are_the_same_for_all_numbers() {
        let unlike: Vec<f32> = divisors(100, true).collect();
        assert!(!unlike.is_empty());
        for divisor in unlike {
            let factors = parts(divisor);
            for steps in [1.0f32, 255.0] {
                let integer = |quotient: f32| (quotient * steps).round_ties_even();
                let first = (divisor / (4.0 * steps)).to_bits();
                let mut all = (first..=divisor.to_bits()).map(f32::from_bits);
                let are_same = all.all(|x| integer(by_factors(x, factors)) == integer(x / divisor));
                assert_eq!(reciprocal(divisor, steps).is_some(), are_same, "{divisor}");
            }
        }
    }

    #[test]
    fn powers_of_two_have_factors_and_extremes_have_none() {
        assert_eq!(reciprocal(4.0, 255.0), Some([0.25, 0.0]));
        for divisor in [0.0, -1.0, 1e-30, 1e30, f32::INFINITY, f32::NAN] {
            assert_eq!(reciprocal(divisor, 255.0), None);
        }
    }

    /// The numbers of levels that networks have, less one.
    #[test]
    fn usual_wholes_need_no_division() {
        for whole in [
            1, 2, 3, 7, 15, 31, 63, 127, 254, 255, 511, 1023, 4095, 65535,
        ] {
            assert!(factors_of_whole(whole).is_some(), "{whole}");
        }
        assert_eq!(factors_of_whole(0), None);
        assert_eq!(factors_of_whole(MOST_WHOLE + 1), None);
    }

    proptest! {
        #[test]
        fn integers_are_those_of_the_quotients(
            divisor in 1e-9f32..1e9,
            part in 0f32..1.0,
            steps in prop::sample::select(vec![1f32, 2.0, 15.0, 255.0, 65535.0]),
        ) {
            let x = part * divisor;
            if let Some(factors) = reciprocal(divisor, steps) {
                let integer = |quotient: f32| (quotient * steps).round_ties_even();
                prop_assert_eq!(integer(by_factors(x, factors)), integer(x / divisor));
            }
        }
    }
}
