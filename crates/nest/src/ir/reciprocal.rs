//! Quotients by a constant, without a division.

use super::Scalar;
use super::build::{fma, number};
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

/// `high` and `low` for which `fma(x, high, x · low)` has the bits of `x / divisor`, for all finite `x` but -0 of which neither the
/// quotient nor a product overflows or underflows; `None` if there are none, or the divisor is not between 2⁻⁶⁰ and 2⁶⁰.
///
/// `high` is the reciprocal as it is rounded, and `low` is what it lacks. The sum before its only rounding differs from the quotient
/// `q` by less than `q · 2⁻⁴⁷ · (1 + 2⁻⁵)`, so it is rounded in another way only if a number halfway between two neighbours
/// is as near. With the significands `a` and `d` of both, integers of 24 bits, that is one for which
///
/// > `a · 2ᵏ = m · d + r` with an odd `m`, `k` = 24 (or 25 if `a < d`), and `|r| ≤ 4`
///
/// and these few `a` are tried. (After N. Brisebarre, J.-M. Muller and S. K. Raina, "Accelerating correctly rounded
/// floating-point division when the divisor is known in advance", 2004.)
pub(crate) fn reciprocal(divisor: f32) -> Option<[f32; 2]> {
    const LEAST: f32 = 1.0 / (1u64 << 60) as f32;
    if !(LEAST..=1.0 / LEAST).contains(&divisor) {
        return None;
    }
    let factors = parts(divisor);
    let is_quotient = |a: u64| is_quotient(a as f32, divisor, factors);
    let significand = u64::from(divisor.to_bits()) & 0x7f_ffff | 0x80_0000;
    let twos = significand.trailing_zeros();
    let odd = significand >> twos;
    // Of a power of two `low` is 0, and no product is rounded.
    let mut are_quotients = true;
    for (r, k) in (1..=MOST_REST).flat_map(|r| [(r, 24), (r, 25)]) {
        if odd == 1 || r % (1 << twos) != 0 {
            continue;
        }
        // a · 2ᵏ⁻ᵗʷᵒˢ ≡ ± r / 2ᵗʷᵒˢ
        let half = odd.div_ceil(2);
        let inverse = (twos..k).fold(1, |power, _| power * half % odd);
        let rest = (r >> twos) * inverse % odd;
        for first in [rest, odd - rest] {
            let skipped = FIRST.saturating_sub(first).div_ceil(odd) * odd;
            let mut all = (first + skipped..2 * FIRST).step_by(odd as usize);
            are_quotients &= all.all(is_quotient);
        }
    }
    are_quotients.then_some(factors)
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

/// Whether `fma(x, high, x · low)` has the bits of `x / divisor`.
fn is_quotient(x: f32, divisor: f32, [high, low]: [f32; 2]) -> bool {
    x.mul_add(high, x * low).to_bits() == (x / divisor).to_bits()
}

/// The largest `whole` for which [`part_of`] tries factors: it compares all quotients.
const MOST_WHOLE: u32 = u16::MAX as u32;

/// The least significand.
const FIRST: u64 = 1 << 23;

/// The largest `|r|` that is tried: a little more than is needed.
const MOST_REST: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_significands_are_divided_exactly() {
        for divisor in [255.0f32, 48.676_596, 0.1, 3.0, 1.999_999_9, 1.000_000_1] {
            let Some(factors) = reciprocal(divisor) else {
                continue;
            };
            for a in FIRST..2 * FIRST {
                assert!(is_quotient(a as f32, divisor, factors), "{a} / {divisor}");
            }
        }
    }

    /// The test of few significands finds what the test of all finds.
    #[test]
    fn divisors_are_refused_that_must_be() {
        let refused = |bits: u32| reciprocal(f32::from_bits(bits)).is_none();
        let one = 1f32.to_bits();
        let step = 104_729;
        let bits: Vec<u32> = (one..one + (1 << 23)).step_by(step).collect();
        for bits in bits.into_iter().filter(|bits| refused(*bits)) {
            let divisor = f32::from_bits(bits);
            let differs = |a: u64| !is_quotient(a as f32, divisor, parts(divisor));
            assert!((FIRST..2 * FIRST).any(differs), "{divisor}");
        }
    }

    #[test]
    fn most_divisors_have_factors() {
        let one = 1f32.to_bits();
        let all = (one..one + (1 << 23)).step_by(997);
        let (count, found) = all.fold((0, 0), |(count, found), bits| {
            let has_factors = reciprocal(f32::from_bits(bits)).is_some();
            (count + 1, found + usize::from(has_factors))
        });
        assert!(found * 100 > count * 95, "{found} of {count}");
    }

    #[test]
    fn powers_of_two_have_factors_and_extremes_have_none() {
        assert_eq!(reciprocal(4.0), Some([0.25, 0.0]));
        for divisor in [0.0, -1.0, 1e-30, 1e30, f32::INFINITY, f32::NAN] {
            assert_eq!(reciprocal(divisor), None);
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
        fn quotients_have_the_same_bits(divisor in 1e-9f32..1e9, x in -1e9f32..1e9) {
            if let Some(factors) = reciprocal(divisor) {
                prop_assert!(is_quotient(x, divisor, factors));
            }
        }
    }
}
