//! The remainder of `f32`, exactly, in `f64` and without branches.

use super::words::{MAGIC, c, copy_sign};
use crate::build::{fma, number, select};
use crate::ir::Scalar;
use vinelift_tensor::ElementType::*;

/// Bits of the quotient that a step finds, and the most steps that a quotient of two `f32`, below 2²⁷⁷, takes.
const STEP: i32 = 50;
const STEPS: i32 = 6;

/// `x - y trunc(x / y)`, with the sign of `x`; NaN if `x` is infinite or `y` is 0.
///
/// Long division, from `r = |x| 2^(-50 · 6)`: a step makes 50 bits more of `r` whole and leaves `2⁵⁰ r - |y| n` for the whole number `n`
/// next to `2⁵⁰ r / |y|`, which is below 2⁵⁰. What is computed of the quotient is off by less than 1/4, so that `3/4 |y|` are left at
/// most. No step rounds: what it leaves is a multiple of the last bit of its `r` or of `y`, whichever is less, and no larger than
/// twice of either.
pub(super) fn remainder(x: &Scalar, y: &Scalar) -> Scalar {
    let (wide, divisor) = (x.clone().cast(F64), y.clone().cast(F64).abs());
    // Its negative, to save what would take a product off.
    let inverse = c(-2f64.powi(STEP)) / &divisor;
    let first = wide.abs() * 2f64.powi(-STEP * STEPS);
    let near = (0..STEPS).fold(first, |rest, _| {
        let n = fma(&rest, &inverse, &c(MAGIC)) - MAGIC;
        fma(&n, &divisor, &(rest * 2f64.powi(STEP)))
    });
    let rest = select(near.lt(c(0.0)), &near + divisor, near);
    let value = copy_sign(&rest, &wide).cast(F32);
    let value = select(x.abs().lt(y.abs()), x.clone(), value);
    select(value.eq(value.clone()), value, number(f64::NAN, F32))
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
