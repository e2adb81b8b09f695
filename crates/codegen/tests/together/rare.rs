//! Selects with a side that is rarely taken: code computes that side where some lane takes it, and may skip it elsewhere.

use crate::common::{bytes, output, pointwise, reference, run, values};
use vinelift_nest::{Binary, BufferId, Nest, Role, Scalar, build::*};
use vinelift_tensor::ElementType::{self, *};

const COUNT: usize = 203;

/// Numbers of which none, one, a stretch, every third, or all are above 100.
fn all_inputs() -> Vec<Vec<f32>> {
    let is_large: [fn(usize) -> bool; 5] = [
        |_| false,
        |k| k == 77,
        |k| (30..95).contains(&k),
        |k| k % 3 == 0,
        |_| true,
    ];
    is_large
        .into_iter()
        .map(|is_large| {
            let number = |k| {
                if is_large(k) {
                    101.0 + k as f32
                } else {
                    k as f32 / 3.0
                }
            };
            (0..COUNT).map(number).collect()
        })
        .collect()
}

fn check(ty: ElementType, f: impl Fn(&Scalar) -> Scalar, expected: impl Fn(f32) -> f64) {
    let nest = pointwise(&[F32], ty, COUNT, |x| f(&x[0]));
    for xs in all_inputs() {
        let bytes = output(&nest, &[bytes(&xs)]);
        let found: Vec<f64> = match ty {
            F32 => values::<f32>(&bytes).into_iter().map(f64::from).collect(),
            F64 => values(&bytes),
            _ => values::<i64>(&bytes)
                .into_iter()
                .map(|x| x as f64)
                .collect(),
        };
        let expected: Vec<f64> = xs.iter().map(|x| expected(*x)).collect();
        assert_eq!(found, expected, "{nest}");
    }
}

fn is_large(x: &Scalar) -> Scalar {
    rarely(x.gt(number(100.0, F32)))
}

#[test]
fn one_side() {
    check(
        F32,
        |x| select(is_large(x), x * 2.0, x + 1.0),
        |x| f64::from(if x > 100.0 { x * 2.0 } else { x + 1.0 }),
    );
    check(
        F64,
        |x| select(is_large(x), x.clone().cast(F64) * 0.5, x.clone().cast(F64)),
        |x| f64::from(x) * if x > 100.0 { 0.5 } else { 1.0 },
    );
    let whole = |x: &Scalar| x.clone().cast(I64);
    check(
        I64,
        |x| select(is_large(x), whole(x) * 3, whole(x)),
        |x| x.trunc() as f64 * if x > 100.0 { 3.0 } else { 1.0 },
    );
}

/// One inside the other, one beside it that uses it, and one whose condition is another's.
#[test]
fn several() {
    let far = |x: &Scalar| {
        let farther = rarely(x.gt(number(200.0, F32)));
        select(farther, x * 4.0, x * 2.0)
    };
    check(
        F32,
        |x| select(is_large(x), far(x), x.clone()),
        |x| {
            f64::from(
                x * if x > 200.0 {
                    4.0
                } else if x > 100.0 {
                    2.0
                } else {
                    1.0
                },
            )
        },
    );
    check(
        F32,
        |x| {
            let first = select(is_large(x), x - 7.0, x.clone());
            let second = select(is_large(&first), &first * 0.5, &first + 1.0);
            second + first
        },
        |x| {
            let first = if x > 100.0 { x - 7.0 } else { x };
            f64::from(
                if first > 100.0 {
                    first * 0.5
                } else {
                    first + 1.0
                } + first,
            )
        },
    );
}

/// More values than there are registers, where it is skipped and where it is not.
#[test]
fn more_than_the_registers_hold() {
    let chain = |x: &Scalar| {
        let terms: Vec<Scalar> = (1..40).map(|k| x * f64::from(k)).collect();
        let sum = terms.iter().cloned().reduce(|a, b| a + b).unwrap();
        terms.into_iter().rev().fold(sum, |sum, x| sum.max(x))
    };
    let nest = pointwise(&[F32], F32, COUNT, |x| {
        select(is_large(&x[0]), chain(&x[0]), chain(&(&x[0] + 1.0)))
    });
    assert_is_interpreted(&nest);
}

/// Loads and folds that only the rare side has, and selects inside folds.
#[test]
fn beside_memory() {
    with_rows(|nest, [x, rows], at| {
        let x = nest.load(x, at.to_vec());
        let row = nest.load(rows, vec![index(3), at[0].clone()]);
        select(is_large(&x), row * x.clone() + 1.0, x)
    });
    with_rows(|nest, [x, rows], at| {
        let x = nest.load(x, at.to_vec());
        let axis = nest.axis(5);
        let row = nest.load(rows, vec![Scalar::axis(axis.id), at[0].clone()]);
        let body = select(is_large(&x), &row * &x, row);
        let sum = Scalar::reduce(Binary::Add, vec![axis], number(0.0, F32), body);
        select(is_large(&x), &sum * 2.0, x)
    });
}

/// `y[i] = f(x, rows)`, of rows of the same length.
fn with_rows(f: impl FnOnce(&mut Nest, [BufferId; 2], &[Scalar]) -> Scalar) {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[COUNT], Role::Input);
    let rows = nest.buffer("rows", F32, &[5, COUNT], Role::Input);
    let y = nest.buffer("y", F32, &[COUNT], Role::Output);
    nest.define(vec![], y, |nest, at| f(nest, [x, rows], at));
    assert_is_interpreted(&nest);
}

/// Of one point for each lane, and of every kind of input, as the interpreter says.
fn assert_is_interpreted(nest: &Nest) {
    for xs in all_inputs() {
        let rows: Vec<f32> = (0..5 * COUNT).map(|k| (k * 7 % 300) as f32).collect();
        let inputs = [bytes(&xs), bytes(&rows)];
        let inputs = &inputs[..nest.buffers.len() - 1];
        let (expected, _) = reference(nest, inputs);
        let (found, result) = run(nest, inputs);
        assert_eq!(result, Ok(()));
        assert_eq!(found.last(), expected.last(), "{nest}");
    }
}
