//! The remainder of `f32`, exactly, in `f32`: of quotients below 2²⁴ by one division, of others by long division.

use crate::build::{fma, number, rarely, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// `x - y trunc(x / y)`, with the sign of `x`; NaN if `x` is infinite or `y` is 0.
pub(super) fn remainder(x: &Scalar, y: &Scalar) -> Scalar {
    let word = |x: &Scalar| x.clone().bitcast(U32);
    let sign = word(x) & Scalar::constant(1 << 31, U32);
    let signed = |size: Scalar| (word(&size) | sign.clone()).bitcast(F32);
    let [size, divisor] = [x.abs(), y.abs()];
    let quotient = &size / &divisor;
    let near = by_quotient(&size, &divisor, &quotient);
    let is_near = quotient.lt(single(2f64.powi(24))) & divisor.lt(single(f64::INFINITY));
    let far = by_long_division(&size, &divisor);
    // A divisor that is infinite leaves what it divides, which may be infinite, too.
    let is_number = far.lt(single(f64::INFINITY));
    let far = select(is_number, signed(far), single(f64::NAN));
    select(rarely(!is_near), far, signed(near))
}

fn single(x: f64) -> Scalar {
    number(x, F32)
}

/// The remainder of what is finite and not negative, by what `x / y` is rounded to, which is below 2²⁴.
///
/// Such a quotient is rounded to a number between the two whole ones that it lies between, so that its whole part `n` is the right one
/// or one more. Then `x - n y` is from `-y` up to `y`, and exact: a multiple of the last place of `y`, unless `x` has a smaller last
/// place, and so is less than `y`; then `n` is 0, or 1 if `x` is next to `y`. In the same way, `y` is added exactly to what is less than 0.
fn by_quotient(x: &Scalar, y: &Scalar, quotient: &Scalar) -> Scalar {
    let rest = fma(&-quotient.trunc(), y, x);
    select(rest.lt(single(0.0)), &rest + y, rest)
}

/// Bits of the quotient that a step finds, and the steps that a quotient of two `f32`, below 2²⁷⁷, takes.
const STEP: i32 = 22;
const STEPS: usize = 13;

/// The remainder of what is not negative: that by `y 2^(22 · 12)` is divided by `y 2^(22 · 11)`, and so on, so that each quotient is
/// below 2²². What is divided by infinity stays as it is, before it is divided by the first multiple that is finite.
fn by_long_division(x: &Scalar, y: &Scalar) -> Scalar {
    let mut multiples = vec![y.clone()];
    for _ in 1..STEPS {
        let next = multiples.last().map(|y| y * 2f64.powi(STEP));
        multiples.extend(next);
    }
    multiples.iter().rev().fold(x.clone(), |rest, y| {
        let less = by_quotient(&rest, y, &(&rest / y));
        select(y.eq(single(f64::INFINITY)), rest, less)
    })
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
