//! `f16` is converted to the same bits wherever its elements lie, by the machine's instructions and without.

use crate::common::{bytes, output, random, reference, run, same, site};
use vinelift_nest::{Binary, Mode, Nest, Policy, Role, Scalar, build::*};
use vinelift_tensor::ElementType::{F16, F32, I32};

const ROWS: usize = 48;
const COLUMNS: usize = 72;

/// A tensor of `f16` of any bits, and indices below [`ROWS`] with a negative one now and then.
fn inputs() -> Vec<Vec<u8>> {
    let mut next = random(7);
    let halves: Vec<u16> = (0..ROWS * COLUMNS).map(|_| next() as u16).collect();
    let indices: Vec<i32> = (0..COLUMNS * ROWS)
        .map(|_| (next() % ROWS as u64) as i32 - i32::from(next().is_multiple_of(9)))
        .collect();
    vec![bytes(&halves), bytes(&indices)]
}

/// `y[i, j] = f(x, …)`, from and to `f16` on the way; `x` and the indices are [`ROWS`] long in their first dim.
fn check(
    f: impl Fn(&mut Nest, [vinelift_nest::BufferId; 2], &[Scalar]) -> Scalar,
    shape: [usize; 2],
) {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F16, &[ROWS, COLUMNS], Role::Input);
    let indices = nest.buffer("indices", I32, &[ROWS, COLUMNS], Role::Input);
    let y = nest.buffer("y", F32, &shape, Role::Output);
    nest.define(vec![], y, |n, at| f(n, [x, indices], at));
    let inputs = inputs();
    for scheduled in [false, true] {
        if scheduled {
            vinelift_nest::schedule(&mut nest);
        }
        let expected = reference(&nest, &inputs).0.pop().unwrap();
        assert!(same(F32, &output(&nest, &inputs), &expected), "{nest}");
    }
}

#[test]
fn in_order_and_across() {
    check(
        |n, [x, _], at| n.load(x, at.to_vec()).cast(F32) * 3.0,
        [ROWS, COLUMNS],
    );
    check(
        |n, [x, _], at| n.load(x, vec![at[1].clone(), at[0].clone()]).cast(F32) + 1.0,
        [COLUMNS, ROWS],
    );
    check(
        |n, [x, _], at| n.load(x, vec![at[1].clone(), at[0].clone()]).cast(F32),
        [COLUMNS, ROWS],
    );
}

#[test]
fn spread_rounded_and_folded() {
    check(
        |n, [x, _], at| {
            let one = n.load(x, vec![index(0), index(5)]).cast(F32);
            let row = n.load(x, vec![at[0].clone(), index(1)]).cast(F32);
            let sum = n.load(x, at.to_vec()).cast(F32) * one + row;
            sum.cast(F16).cast(F32)
        },
        [ROWS, COLUMNS],
    );
    check(
        |n, [x, _], at| {
            let k = n.axis(ROWS);
            let at = vec![Scalar::axis(k.id), at[1].clone()];
            let x = n.load(x, at).cast(F32);
            Scalar::reduce(Binary::Max, vec![k], lowest(F32), x)
        },
        [ROWS, COLUMNS],
    );
}

#[test]
fn behind_indices() {
    check(
        |n, [x, indices], at| {
            let row = n.load(indices, at.to_vec());
            let site = site(n);
            let row = n.wrap(row, ROWS, Policy::WRAP, site, at.to_vec());
            n.load(x, vec![row, at[1].clone()]).cast(F32) * 2.0
        },
        [ROWS, COLUMNS],
    );
    check(
        |n, [x, indices], at| {
            let row = n.load(indices, vec![at[1].clone(), at[0].clone()]);
            let site = site(n);
            let row = n.wrap(row, ROWS, Policy::WRAP, site, at.to_vec());
            n.load(x, vec![row, at[0].clone()]).cast(F32) * 2.0
        },
        [COLUMNS, ROWS],
    );
}

/// Of an index out of range the fault is the same.
#[test]
fn faults_are_those_of_the_interpreter() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F16, &[ROWS, COLUMNS], Role::Input);
    let indices = nest.buffer("indices", I32, &[ROWS, COLUMNS], Role::Input);
    let y = nest.buffer("y", F32, &[COLUMNS, ROWS], Role::Output);
    nest.define(vec![], y, |n, at| {
        let row = n.load(indices, vec![at[1].clone(), at[0].clone()]);
        let site = site(n);
        let row = n.wrap(row, ROWS, Policy::CHECK, site, at.to_vec());
        n.load(x, vec![row, at[0].clone()]).cast(F32)
    });
    let inputs = inputs();
    let (_, expected) = reference(&nest, &inputs);
    assert!(expected.is_err());
    assert_eq!(run(&nest, &inputs).1, expected);
}

/// Rows added where indices say: threads share the columns, so that no loop may go through several rows, and `f16` is
/// converted by the definition.
#[test]
fn columns_of_rows_that_indices_choose() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F16, &[ROWS, COLUMNS], Role::Input);
    let indices = nest.buffer("indices", I32, &[ROWS, COLUMNS], Role::Input);
    let y = nest.buffer("y", F32, &[ROWS, COLUMNS], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], y, |n, at| n.load(x, at.to_vec()).cast(F32));
    nest.define(vec![], y, |n, at| n.load(x, at.to_vec()).cast(F32));
    let at = nest.stages[1].at.clone();
    let row = nest.load(indices, at.clone());
    let row = nest.wrap(row, ROWS, Policy::WRAP, site, at);
    nest.stages[1].at[0] = row;
    nest.stages[1].mode = Mode::Combine(Binary::Add);
    let inputs = inputs();
    let expected = reference(&nest, &inputs).0.pop().unwrap();
    assert!(same(F32, &output(&nest, &inputs), &expected), "{nest}");
}
