//! Parts of a whole number.

use super::Scalar;
use super::build::{fma, number};
use super::reciprocal::{is_quotient, parts};
use vinelift_tensor::ElementType::F32;

/// The largest `whole` that is looked at: all parts of it are computed once, to compare.
const MOST: u32 = u16::MAX as u32;

/// `x / whole` for an `x` that is one of the integers from 0 to `whole`; anything, without a fault, for any other.
///
/// The bits are those of the quotient. Where `fma(x, high, x · low)`, with `high + low ≈ 1 / whole`, has them for all these
/// integers, that is what is computed: it takes a third of the time of a division.
pub fn part_of(x: &Scalar, whole: u32) -> Scalar {
    let factors = (x.ty() == F32).then(|| factors(whole)).flatten();
    match factors {
        Some([high, low]) => {
            let [high, low] = [high, low].map(|factor| number(f64::from(factor), F32));
            fma(x, &high, &(x * &low))
        }
        None => x / number(f64::from(whole), x.ty()),
    }
}

/// `high` and `low`.
fn factors(whole: u32) -> Option<[f32; 2]> {
    if !(1..=MOST).contains(&whole) {
        return None;
    }
    let divisor = whole as f32;
    let factors = parts(divisor);
    let is_quotient = |x: u32| is_quotient(x as f32, divisor, factors);
    (0..=whole).all(is_quotient).then_some(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of levels that networks have, less one.
    #[test]
    fn usual_wholes_need_no_division() {
        for whole in [
            1, 2, 3, 7, 15, 31, 63, 127, 254, 255, 511, 1023, 4095, 65535,
        ] {
            assert!(factors(whole).is_some(), "{whole}");
        }
        assert_eq!(factors(0), None);
        assert_eq!(factors(MOST + 1), None);
    }
}
