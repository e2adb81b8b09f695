//! Against arithmetic of wider integers.

use super::*;
use crate::build::integer;
use crate::interpret::tests::map;

/// `x / y` and `x % y` by the edge rules, of numbers as wide as `i128`.
fn expected(op: Binary, rounding: Rounding, x: i128, y: i128, ty: ElementType) -> u64 {
    let rounds_up = y != 0 && x % y != 0 && (x < 0) != (y < 0);
    let down = i128::from(rounding == Rounding::Down && rounds_up);
    let value = match (op, y) {
        (_, 0) => 0,
        (Binary::Div, _) => x / y - down,
        _ => x % y + down * y,
    };
    value as u64 & (u64::MAX >> (64 - ty.bits()))
}

fn bits(x: i128, ty: ElementType) -> u64 {
    x as u64 & (u64::MAX >> (64 - ty.bits()))
}

/// As operators write it.
fn division(op: Binary, rounding: Rounding, x: &Scalar, y: &Scalar) -> Scalar {
    let result = Scalar::binary(op, x.clone(), y.clone());
    if rounding == Rounding::TowardZero {
        return result;
    }
    let (rest, none) = (x.rem(y.clone()), || zero(x.ty()));
    let signs_differ = rest.ne(none()) & rest.lt(none()).ne(y.lt(none()));
    let corrected = match op {
        Binary::Div => &result - 1,
        _ => &result + y,
    };
    select(signs_differ, corrected, result)
}

/// Every pair, with operands that vary and with the divisor a constant.
fn check(ty: ElementType, xs: &[i128], ys: &[i128]) {
    let pairs = xs.iter().flat_map(|x| ys.iter().map(move |y| (*x, *y)));
    let (left, right): (Vec<u64>, Vec<u64>) =
        pairs.map(|(x, y)| (bits(x, ty), bits(y, ty))).unzip();
    let xs_bits: Vec<u64> = xs.iter().map(|x| bits(*x, ty)).collect();
    let roundings: &[Rounding] = match ty.is_signed_integer() {
        true => &[Rounding::TowardZero, Rounding::Down],
        false => &[Rounding::TowardZero],
    };
    let ops = [Binary::Div, Binary::Rem];
    for (op, rounding) in ops
        .into_iter()
        .flat_map(|op| roundings.iter().map(move |r| (op, *r)))
    {
        let got = map([(ty, &left), (ty, &right)], |[x, y]| {
            division(op, rounding, &x, &y)
        });
        for (k, got) in got.into_iter().enumerate() {
            let (x, y) = (xs[k / ys.len()], ys[k % ys.len()]);
            let expected = expected(op, rounding, x, y, ty);
            assert_eq!(got, expected, "{ty}: {op:?} of {x} and {y}, {rounding:?}");
        }
        for y in ys {
            let divisor = integer(*y as i64, ty);
            let got = map([(ty, &xs_bits)], |[x]| division(op, rounding, &x, &divisor));
            for (x, got) in xs.iter().zip(got) {
                let expected = expected(op, rounding, *x, *y, ty);
                assert_eq!(
                    got, expected,
                    "{ty}: {op:?} of {x} and constant {y}, {rounding:?}"
                );
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
    let [quotient, rest] = [Binary::Div, Binary::Rem]
        .map(|op| divisions.binary(op, Rounding::TowardZero, &x, &y).unwrap());
    let divisions = |root: &Scalar| {
        let (mut found, mut open) = (Vec::new(), vec![root.clone()]);
        while let Some(x) = open.pop() {
            if let crate::ir::Kind::Binary(Binary::Div, ..) = x.kind() {
                found.push(x.address());
            }
            open.extend(x.children().cloned());
        }
        found.sort_unstable();
        found.dedup();
        found
    };
    assert_eq!(divisions(&quotient), divisions(&rest));
    // One of small numbers, and one of others.
    assert_eq!(divisions(&quotient).len(), 2);
}

/// Also if simplifying has found out the sign of a divisor.
#[test]
fn a_constant_divisor_is_seen_through() {
    let x = Scalar::load(crate::ir::BufferId(0), vec![], I32);
    for (op, divisor) in [Binary::Div, Binary::Rem]
        .into_iter()
        .flat_map(|op| [7, -7].map(|y| (op, y)))
    {
        let y = integer(divisor, I32);
        let result = Scalar::binary(op, x.clone(), y.clone());
        let corrected = match op {
            Binary::Div => &result - 1,
            _ => &result + &y,
        };
        let rest = x.rem(y.clone());
        let found_out = |is_negative: bool| {
            let is_negative = Scalar::constant(is_negative.into(), Boolean);
            let signs_differ = rest.ne(zero(I32)) & rest.lt(zero(I32)).ne(is_negative);
            select(signs_differ, corrected.clone(), result.clone())
        };
        let is_negative = divisor < 0;
        assert_eq!(rounded_down(&found_out(is_negative)), Some((op, &x, &y)));
        assert_eq!(rounded_down(&found_out(!is_negative)), None);
    }
}

/// By floats alone: the remainder that says where to correct is gone.
#[test]
fn a_corrected_quotient_rounds_down_at_once() {
    let [x, y] = [0, 1].map(|buffer| Scalar::load(crate::ir::BufferId(buffer), vec![], I32));
    for op in [Binary::Div, Binary::Rem] {
        let floored = division(op, Rounding::Down, &x, &y);
        assert_eq!(rounded_down(&floored), Some((op, &x, &y)));
        let otherwise = division(op, Rounding::Down, &y, &x);
        let mixed = Kind::clone(floored.kind());
        let Kind::Select(_, corrected, result) = mixed else {
            panic!("no select");
        };
        let Kind::Select(condition, ..) = otherwise.kind() else {
            panic!("no select");
        };
        assert_eq!(
            rounded_down(&select(condition.clone(), corrected, result)),
            None
        );
    }
}
