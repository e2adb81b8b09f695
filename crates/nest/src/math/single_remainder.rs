//! The remainder of `f32`, exactly: of quotients below 2²⁴ in `f32`, below 2⁵³ in `f64`, and of others by long division.

use super::words::{MAGIC, c};
use crate::build::{fma, number, rarely, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// `x - y trunc(x / y)`, with the sign of `x`; NaN if `x` is infinite or `y` is 0.
pub(super) fn remainder(x: &Scalar, y: &Scalar) -> Scalar {
    let word = |x: &Scalar| x.clone().bitcast(U32);
    let sign = word(x) & Scalar::constant(1 << 31, U32);
    let signed = |size: Scalar| (word(&size) | sign.clone()).bitcast(F32);
    let [size, divisor] = [x.abs(), y.abs()];
    let (near, is_near) = by_one_quotient(&size, &divisor);
    let [wide, wide_divisor] = [&size, &divisor].map(|x| x.clone().cast(F64));
    let (farther, is_farther) = by_one_quotient(&wide, &wide_divisor);
    let far = signed(by_long_division(&wide, &wide_divisor).cast(F32));
    let far = select(size.lt(divisor), x.clone(), far);
    let far = select(far.eq(far.clone()), far, number(f64::NAN, F32));
    let far = select(rarely(!is_farther), far, signed(farther.cast(F32)));
    select(rarely(!is_near), far, signed(near))
}

/// The remainder of what is not negative, and whether that is it: if the quotient is below 2ᵖ, with the `p` bits of the type, and
/// both are finite.
///
/// Such a quotient is rounded to a number between the two whole ones that it lies between, so that its whole part `n` is the right one
/// or one more. Then `x - n y` is from `-y` up to `y`, and exact: a multiple of the last place of `y`, unless `x` has a smaller last
/// place, and so is less than `y`; then `n` is 0, or 1 if `x` is next to `y`. In the same way, `y` is added exactly to what is less than 0.
fn by_one_quotient(x: &Scalar, y: &Scalar) -> (Scalar, Scalar) {
    let number = |x| number(x, y.ty());
    let quotient = x / y;
    let rest = fma(&-quotient.trunc(), y, x);
    let rest = select(rest.lt(number(0.0)), &rest + y, rest);
    let bits = if y.ty() == F32 { 24 } else { 53 };
    let is_small = quotient.lt(number(2f64.powi(bits)));
    (rest, is_small & y.lt(number(f64::INFINITY)))
}

/// Bits of the quotient that a step finds, and the most steps that a quotient of two `f32`, below 2²⁷⁷, takes.
const STEP: i32 = 50;
const STEPS: i32 = 6;

/// The remainder of two `f32` that are not negative, in `f64`.
///
/// From `r = x 2^(-50 · 6)`: a step makes 50 bits more of `r` whole and leaves `2⁵⁰ r - y n` for the whole number `n` next to
/// `2⁵⁰ r / y`, which is below 2⁵⁰. What is computed of the quotient is off by less than 1/4, so that `3/4 y` are left at most. No
/// step rounds: what it leaves is a multiple of the last bit of its `r` or of `y`, whichever is less, and no larger than twice of
/// either.
fn by_long_division(x: &Scalar, y: &Scalar) -> Scalar {
    // Its negative, to save what would take a product off.
    let inverse = c(-2f64.powi(STEP)) / y;
    let first = x * 2f64.powi(-STEP * STEPS);
    let near = (0..STEPS).fold(first, |rest, _| {
        let n = fma(&rest, &inverse, &c(MAGIC)) - MAGIC;
        fma(&n, y, &(rest * 2f64.powi(STEP)))
    });
    select(near.lt(c(0.0)), &near + y, near)
}

#[cfg(test)]
mod tests {
    use crate::interpret::tests::map;
    use crate::math::tests::random;
    use vinelift_tensor::ElementType::F32;

    /// Rust's remainder is exact.
    fn check(pairs: &[(f32, f32)]) {
        let bits = |x: f32| u64::from(x.to_bits());
        let (xs, ys): (Vec<u64>, Vec<u64>) =
            pairs.iter().map(|(x, y)| (bits(*x), bits(*y))).unzip();
        let found = map([(F32, &xs), (F32, &ys)], |[x, y]| x.rem(y));
        for ((x, y), found) in pairs.iter().zip(found) {
            let (found, expected) = (f32::from_bits(found as u32), x % y);
            let are_same = found.to_bits() == expected.to_bits();
            assert!(
                are_same || found.is_nan() && expected.is_nan(),
                "{x:e} % {y:e} is {found:e}, not {expected:e}"
            );
        }
    }

    #[test]
    fn of_any_two_numbers() {
        let of = |bits: u64| {
            (
                f32::from_bits(bits as u32),
                f32::from_bits((bits >> 32) as u32),
            )
        };
        check(&random(100_000).map(of).collect::<Vec<_>>());
    }

    #[test]
    fn of_numbers_whose_quotient_is_small() {
        let of = |bits: u64| {
            let near = |bits: u64| f32::from_bits((bits as u32 & 0x83ff_ffff) + (120 << 23));
            (near(bits), near(bits >> 32))
        };
        check(&random(100_000).map(of).collect::<Vec<_>>());
    }

    /// Where the way changes that it is found in.
    #[test]
    fn of_quotients_next_to_the_thresholds() {
        let divisors = [
            1.0,
            3.0,
            0.1,
            1e-20,
            f32::MIN_POSITIVE,
            1e-40,
            f32::from_bits(1),
        ];
        let mut pairs = vec![];
        for (y, log2) in divisors
            .into_iter()
            .flat_map(|y: f32| [0, 23, 24, 25, 52, 53, 54].map(|log2| (y, log2)))
        {
            for y in [y, y.next_up(), y * 1.5] {
                let mut x = (f64::from(y) * 2f64.powi(log2)) as f32;
                for _ in 0..20 {
                    x = x.next_down();
                }
                for _ in 0..40 {
                    pairs.extend([(x, y), (-x, y), (x, -y)]);
                    x = x.next_up();
                }
            }
        }
        check(&pairs);
    }

    #[test]
    fn edges_and_multiples() {
        let least = f32::from_bits(1);
        let numbers = [
            0.0,
            least,
            3.0 * least,
            f32::MIN_POSITIVE,
            1e-30,
            0.1,
            1.0,
            1.5,
            3.0,
            7.0,
            1e10,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        let mut all: Vec<f32> = numbers
            .iter()
            .flat_map(|x| [*x, -x, x.next_down()])
            .collect();
        all.extend((0..200).map(|k| k as f32 * 0.1));
        all.extend((0..24).map(|k| (0.1f32).next_up() * 2f32.powi(k)));
        let pairs = all.iter().flat_map(|x| all.iter().map(move |y| (*x, *y)));
        check(&pairs.collect::<Vec<_>>());
    }
}
