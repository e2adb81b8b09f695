//! Quotients and remainders of integers of at most 32 bits, by floats: vectors divide no integers.
//!
//! `x / y` in `f64`, of integers of 8 and 16 bits in `f32`, truncates to the exact quotient. A quotient that
//! is no whole number lies at least `1 / |y|` below the next whole number `n` in magnitude, which is a part of
//! `1 / |n y|`, above 2⁻³⁴ (2⁻¹⁸ for 16 bits); rounding moves it by a part of 2⁻⁵³ (2⁻²⁴) at most, so it stays
//! below `n`. The remainder `x - trunc(x / y) y` is exact, too: no part of it is larger than `x`.

use crate::build::{number, select, zero};
use crate::ir::{Binary, Scalar};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::{self, *};

/// The divisions of a nest, by the addresses of their operands: a quotient and its remainder share one.
#[derive(Default)]
pub(super) struct Divisions(FxHashMap<[usize; 2], Division>);

impl Divisions {
    /// The definition of `Div` or `Rem` of such integers; the operands live as long as this.
    pub(super) fn binary(&mut self, op: Binary, x: &Scalar, y: &Scalar) -> Option<Scalar> {
        let ty = x.ty();
        let is_defined = matches!(op, Binary::Div | Binary::Rem)
            && matches!(ty, I8 | U8 | I16 | U16 | I32 | U32);
        if !is_defined {
            return None;
        }
        match y.as_const() {
            Some(0) => return Some(zero(ty)),
            // Vectors shift no bytes.
            Some(y) if y.is_power_of_two() && ty.bits() > 8 && !is_lowest(y, ty) => {
                return Some(by_power_of_two(op, x, y.trailing_zeros().into()));
            }
            _ => {}
        }
        let key = [x.address(), y.address()];
        let division = self.0.entry(key).or_insert_with(|| Division::new(x, y));
        Some(from_float(division.result(op), ty))
    }
}

/// A division in floats.
struct Division {
    x: Scalar,
    y: Scalar,
    /// With a fraction.
    quotient: Scalar,
    /// Whether the divisor is 0, if it may be.
    is_by_zero: Option<Scalar>,
}

impl Division {
    fn new(x: &Scalar, y: &Scalar) -> Division {
        let divisor = y.as_const().map(|bits| integer_value(bits, y.ty()));
        let [x, y] = [x, y].map(to_float);
        match divisor {
            Some(divisor) => {
                let y = number(divisor, x.ty());
                // By the reciprocal, larger by a part that is more than rounding takes away, twice, and less than lacks to
                // the next whole number.
                let excess = if x.ty() == F64 {
                    2f64.powi(-36)
                } else {
                    2f64.powi(-20)
                };
                let quotient = &x * ((1.0 + excess) / divisor);
                Division {
                    x,
                    y,
                    quotient,
                    is_by_zero: None,
                }
            }
            None => {
                let quotient = &x / &y;
                let is_by_zero = Some(y.eq(zero(y.ty())));
                Division {
                    x,
                    y,
                    quotient,
                    is_by_zero,
                }
            }
        }
    }

    /// As a float that truncates to it: 0 where the divisor is 0, and of the smallest number by -1 what is one too
    /// large for its type.
    fn result(&self, op: Binary) -> Scalar {
        let value = match op {
            Binary::Rem => &self.x - self.quotient.trunc() * &self.y,
            _ => self.quotient.clone(),
        };
        match &self.is_by_zero {
            Some(is_by_zero) => select(is_by_zero.clone(), zero(value.ty()), value),
            None => value,
        }
    }
}

/// Rounds toward zero, as the division does: what is negative is first moved up by the divisor less 1.
fn by_power_of_two(op: Binary, x: &Scalar, log2: u64) -> Scalar {
    let ty = x.ty();
    let of = |bits: u64| Scalar::constant(bits, ty);
    let mask = of((1 << log2) - 1);
    if !ty.is_signed_integer() {
        return match op {
            Binary::Rem => x & mask,
            _ => x.shr(of(log2)),
        };
    }
    let moved = x + (x.shr(of(ty.bits() as u64 - 1)) & mask.clone());
    match op {
        Binary::Rem => x - (moved & !mask),
        _ => moved.shr(of(log2)),
    }
}

fn is_lowest(bits: u64, ty: ElementType) -> bool {
    ty.is_signed_integer() && bits == 1 << (ty.bits() - 1)
}

fn integer_value(bits: u64, ty: ElementType) -> f64 {
    match ty.is_signed_integer() {
        // Of its own width.
        true => (((bits << (64 - ty.bits())) as i64) >> (64 - ty.bits())) as f64,
        false => bits as f64,
    }
}

/// 2³¹
const TWO_31: f64 = 2_147_483_648.0;

/// Conversions are those of `i32`, for vectors have no others.
fn to_float(x: &Scalar) -> Scalar {
    match x.ty() {
        U32 => top_bit_flipped(x.clone()).bitcast(I32).cast(F64) + TWO_31,
        I32 => x.clone().cast(F64),
        _ => x.clone().cast(F32),
    }
}

/// The low bits of a number without its fraction.
fn from_float(x: Scalar, ty: ElementType) -> Scalar {
    match ty {
        U32 => top_bit_flipped((x.trunc() - TWO_31).cast(I32).bitcast(U32)),
        _ => x.cast(I32).cast(ty),
    }
}

fn top_bit_flipped(x: Scalar) -> Scalar {
    x ^ Scalar::constant(1 << 31, U32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::integer;
    use crate::interpret::tests::map;

    /// `x / y` and `x % y` by the edge rules, of numbers as wide as `i128`.
    fn expected(op: Binary, x: i128, y: i128, ty: ElementType) -> u64 {
        let value = match (op, y) {
            (_, 0) => 0,
            (Binary::Div, _) => x / y,
            _ => x % y,
        };
        value as u64 & (u64::MAX >> (64 - ty.bits()))
    }

    fn bits(x: i128, ty: ElementType) -> u64 {
        x as u64 & (u64::MAX >> (64 - ty.bits()))
    }

    /// Every pair, with operands that vary and with the divisor a constant.
    fn check(ty: ElementType, xs: &[i128], ys: &[i128]) {
        let pairs = xs.iter().flat_map(|x| ys.iter().map(move |y| (*x, *y)));
        let (left, right): (Vec<u64>, Vec<u64>) =
            pairs.map(|(x, y)| (bits(x, ty), bits(y, ty))).unzip();
        for op in [Binary::Div, Binary::Rem] {
            let got = map([(ty, &left), (ty, &right)], |[x, y]| {
                Scalar::binary(op, x, y)
            });
            for (k, got) in got.into_iter().enumerate() {
                let (x, y) = (xs[k / ys.len()], ys[k % ys.len()]);
                assert_eq!(got, expected(op, x, y, ty), "{ty}: {op:?} of {x} and {y}");
            }
            let xs_bits: Vec<u64> = xs.iter().map(|x| bits(*x, ty)).collect();
            for y in ys {
                let divisor = integer(*y as i64, ty);
                let got = map([(ty, &xs_bits)], |[x]| {
                    Scalar::binary(op, x, divisor.clone())
                });
                for (x, got) in xs.iter().zip(got) {
                    let expected = expected(op, *x, *y, ty);
                    assert_eq!(got, expected, "{ty}: {op:?} of {x} and constant {y}");
                }
            }
        }
    }

    #[test]
    fn all_bytes() {
        let signed: Vec<i128> = (-128..128).collect();
        let unsigned: Vec<i128> = (0..256).collect();
        check(I8, &signed, &signed);
        check(U8, &unsigned, &unsigned);
    }

    /// Small ones, powers of two and their neighbours, and multiples of divisors and their neighbours.
    #[test]
    fn edges_of_wider_integers() {
        for ty in [I16, U16, I32, U32] {
            let signed = i32::from(ty.is_signed_integer());
            let (least, most) = match signed {
                1 => (-(1i128 << (ty.bits() - 1)), (1i128 << (ty.bits() - 1)) - 1),
                _ => (0, (1i128 << ty.bits()) - 1),
            };
            let powers = (0..ty.bits()).flat_map(|k| [-1, 0, 1].map(|near| (1i128 << k) + near));
            let some = powers.chain([5, 6, 7, 10, 100, 641, 9973, 65_521]);
            let mut numbers: Vec<i128> = some.flat_map(|x| [x, -x, most - x, least + x]).collect();
            numbers.retain(|x| (least..=most).contains(x));
            numbers.sort_unstable();
            numbers.dedup();
            check(ty, &numbers, &numbers);
            for y in numbers.iter().filter(|y| **y != 0) {
                let near = [1, 2, 3, most / y, most / y / 2, most / y - 1, least / y];
                let products = near
                    .iter()
                    .flat_map(|n| [-1, 0, 1].map(|near| n * y + near));
                let xs: Vec<i128> = products.filter(|x| (least..=most).contains(x)).collect();
                check(ty, &xs, &[*y]);
            }
        }
    }

    #[test]
    fn a_quotient_and_its_remainder_share_a_division() {
        let mut divisions = Divisions::default();
        let [x, y] = [0, 1].map(|buffer| Scalar::load(crate::ir::BufferId(buffer), vec![], I32));
        let [quotient, rest] =
            [Binary::Div, Binary::Rem].map(|op| divisions.binary(op, &x, &y).unwrap());
        let divisions = |root: &Scalar| {
            let (mut found, mut open) = (Vec::new(), vec![root.clone()]);
            while let Some(x) = open.pop() {
                if let crate::ir::Kind::Binary(Binary::Div, ..) = x.kind() {
                    found.push(x.address());
                }
                open.extend(x.children().cloned());
            }
            found
        };
        assert_eq!(divisions(&quotient), divisions(&rest));
        assert_eq!(divisions(&quotient).len(), 1);
    }
}
