//! Quotients and remainders of 64 bits by vectors, against arithmetic of 128 bits.

use crate::common::{COMPILER, bytes, cases, output, pointwise, values, vector_loops};
use proptest::prelude::*;
use vinelift_codegen::{Options, Vectors};
use vinelift_nest::{Binary, Nest, Scalar, build::*};
use vinelift_tensor::ElementType::I64;

const OPS: [Binary; 2] = [Binary::Div, Binary::Rem];

/// As operators write it: rounded toward zero, or down.
fn division(op: Binary, is_down: bool, x: &Scalar, y: &Scalar) -> Scalar {
    let result = Scalar::binary(op, x.clone(), y.clone());
    if !is_down {
        return result;
    }
    let (rest, zero) = (x.rem(y.clone()), || integer(0, I64));
    let signs_differ = rest.ne(zero()) & rest.lt(zero()).ne(y.lt(zero()));
    let corrected = match op {
        Binary::Div => &result - 1,
        _ => &result + y,
    };
    select(signs_differ, corrected, result)
}

fn expected(op: Binary, is_down: bool, x: i64, y: i64) -> i64 {
    let (x, y) = (i128::from(x), i128::from(y));
    let value = match (op, is_down) {
        _ if y == 0 => 0,
        (Binary::Div, false) => x / y,
        // Of a positive divisor these are Euclid's.
        (Binary::Div, true) => (x * y.signum()).div_euclid(y.abs()),
        (_, false) => x % y,
        (_, true) => (x * y.signum()).rem_euclid(y.abs()) * y.signum(),
    };
    value as i64
}

fn by_constant(op: Binary, is_down: bool, y: i64, count: usize) -> Nest {
    let divisor = integer(y, I64);
    pointwise(&[I64], I64, count, |x| {
        division(op, is_down, &x[0], &divisor)
    })
}

fn check_constant(xs: &[i64], y: i64) {
    for (op, is_down) in OPS.into_iter().flat_map(|op| [(op, false), (op, true)]) {
        let found = output(&by_constant(op, is_down, y, xs.len()), &[bytes(xs)]);
        let all: Vec<i64> = xs.iter().map(|x| expected(op, is_down, *x, y)).collect();
        assert_eq!(found, bytes(&all), "{op:?} of {xs:?} by {y}, {is_down}");
    }
}

fn check_pairs(pairs: &[(i64, i64)]) {
    let (xs, ys): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    for (op, is_down) in OPS.into_iter().flat_map(|op| [(op, false), (op, true)]) {
        let nest = pointwise(&[I64, I64], I64, xs.len(), |x| {
            division(op, is_down, &x[0], &x[1])
        });
        let found: Vec<i64> = values(&output(&nest, &[bytes(&xs), bytes(&ys)]));
        for ((x, y), found) in pairs.iter().zip(found) {
            let expected = expected(op, is_down, *x, *y);
            assert_eq!(found, expected, "{op:?} of {x} by {y}, {is_down}");
        }
    }
}

/// Small ones, powers of two and their neighbours, and the ends.
fn edges() -> Vec<i64> {
    let near = |k: u32| [-1, 0, 1].map(|near| (1i64 << k).wrapping_add(near));
    let powers = (0..64).flat_map(near);
    let some = powers.chain([5, 6, 10, 100, 641, 86_400, 1_000_000_007]);
    let mut all: Vec<i64> = some.flat_map(|x| [x, x.wrapping_neg()]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Numbers next to multiples of the divisor, up to the largest.
fn near_multiples(y: i64) -> Vec<i64> {
    let Some(most) = i64::MAX.checked_div(y) else {
        return vec![];
    };
    let times = [1, 2, 3, most / 3, most / 2, most, -1].map(|n: i64| [n, -n, most.wrapping_sub(n)]);
    let products = times.as_flattened().iter().map(|n| n.wrapping_mul(y));
    products
        .flat_map(|x| [-1, 0, 1].map(|by| x.wrapping_add(by)))
        .collect()
}

#[test]
fn edges_by_constants() {
    for y in edges() {
        let mut xs = near_multiples(y);
        xs.extend(edges());
        check_constant(&xs, y);
    }
}

#[test]
fn edges_by_edges() {
    let edges = edges();
    let pairs = edges
        .iter()
        .flat_map(|x| edges.iter().map(move |y| (*x, *y)));
    check_pairs(&pairs.collect::<Vec<_>>());
    let near = edges
        .iter()
        .flat_map(|y| near_multiples(*y).into_iter().map(move |x| (x, *y)));
    check_pairs(&near.collect::<Vec<_>>());
}

/// Both sides of where floats are exact, in each operand, for turns that are all small, all large, and mixed.
#[test]
fn sizes_next_to_the_threshold() {
    let limit = 1i64 << 50;
    let near = [-limit - 1, -limit, 1 - limit, limit - 1, limit, limit + 1];
    for k in [1, 3, 7, limit / 3] {
        let pairs = near
            .iter()
            .flat_map(|x| [(*x, k), (*x, -k), (k, *x), (*x, *x), (k, 0)]);
        check_pairs(&pairs.collect::<Vec<_>>());
        for x in near {
            check_pairs(&vec![(x, k); 37]);
            check_pairs(&vec![(k, x); 37]);
        }
    }
}

#[test]
fn a_constant_divides_by_vectors() {
    if !vector_loops()[0] {
        return;
    }
    for (op, is_down) in OPS.into_iter().flat_map(|op| [(op, false), (op, true)]) {
        for y in [7, 16, 0] {
            let nest = by_constant(op, is_down, y, 100);
            let options = Options {
                capture_text: true,
                vectors: Vectors::Bits256,
            };
            let code = COMPILER.compile(&[&nest], &options).unwrap();
            let text = &code.text(0).unwrap().clif;
            assert!(text.contains("on 256 bits"), "{text}");
        }
    }
}

/// Of any size: few numbers of 64 bits are small.
fn of_any_size() -> impl Strategy<Value = i64> {
    (any::<i64>(), 0..64u32).prop_map(|(bits, by)| bits >> by)
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn any_numbers_by_constants(
        xs in prop::collection::vec(of_any_size(), 32),
        y in of_any_size(),
    ) {
        let mut xs = xs;
        xs.extend(near_multiples(y));
        check_constant(&xs, y);
    }

    #[test]
    fn any_numbers_by_any(pairs in prop::collection::vec((of_any_size(), of_any_size()), 100)) {
        check_pairs(&pairs);
        let near = pairs.iter().flat_map(|(_, y)| near_multiples(*y).into_iter().map(move |x| (x, *y)));
        check_pairs(&near.collect::<Vec<_>>());
    }
}
