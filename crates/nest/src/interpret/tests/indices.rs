//! Indices that are checked at run time: policies, and the faults of wrong ones.

use super::*;
use crate::ir::{LayerId, Policy, Site};

/// `y[i] = x[wrap(at[i])]`, or `y[wrap(at[i])] = x[i]`.
fn gather(ty: ElementType, policy: Policy, scatter: bool) -> Nest {
    let mut nest = Nest::new();
    let layer: LayerId = nest.layer("g", "Gather, opset8");
    let x = nest.buffer("x", I32, &[3], Role::Input);
    let at = nest.buffer("at", ty, &[3], Role::Input);
    let y = nest.buffer("y", I32, &[3], Role::Output);
    let axis = nest.axis(3);
    let i = Scalar::axis(axis.id);
    let index = nest.load(at, vec![i.clone()]);
    let site = Site {
        layer,
        input: "indices".into(),
    };
    let wrapped = nest.wrap(index, 3, policy, site, vec![i.clone()]);
    let (at, from) = if scatter { (wrapped, i) } else { (i, wrapped) };
    let value = nest.load(x, vec![from]);
    nest.stages.push(Stage {
        domain: vec![axis],
        target: y,
        at: vec![at],
        mode: Mode::Set,
        value,
        layers: vec![layer],
        group: None,
    });
    nest
}

fn fault(got: Result<(), InterpretError>) -> (Vec<i64>, i128, usize) {
    match got {
        Err(InterpretError::Fault(f)) => (f.position, f.index, f.extent),
        other => panic!("{other:?}"),
    }
}

#[test]
fn wraps_follow_their_policy() {
    let policy = |negative, zero| Policy { negative, zero };
    let x: &[i64] = &[10, 20, 30];
    let of = |ty, policy, at: &[i64]| run(&gather(ty, policy, false), &[x, at]);
    assert_eq!(of(I64, policy(true, false), &[0, -1, -3]).0, [10, 30, 10]);
    assert_eq!(of(I8, policy(true, true), &[3, -4, 2]).0, [0, 0, 30]);
    assert_eq!(of(U8, policy(true, true), &[255, 1, 2]).0, [0, 20, 30]);
    assert_eq!(
        of(I64, policy(false, true), &[-1, i64::MIN, 1]).0,
        [0, 0, 20]
    );
    let (got, result) = of(I32, policy(true, false), &[1, 3, 0]);
    assert_eq!((got, fault(result)), (vec![20, 0, 0], (vec![1], 3, 3)));
    assert_eq!(
        fault(of(I64, policy(false, false), &[0, 0, -1]).1),
        (vec![2], -1, 3)
    );
    assert_eq!(
        fault(of(U64, policy(true, false), &[-1, 0, 0]).1),
        (vec![0], u64::MAX.into(), 3)
    );
}

#[test]
fn a_store_out_of_range_is_skipped() {
    let nest = gather(
        I64,
        Policy {
            negative: true,
            zero: true,
        },
        true,
    );
    assert_eq!(run(&nest, &[&[10, 20, 30], &[2, 3, -3]]).0, [30, 0, 10]);
}

#[test]
fn a_fault_names_its_layer() {
    let nest = gather(
        I64,
        Policy {
            negative: true,
            zero: false,
        },
        false,
    );
    let Err(InterpretError::Fault(fault)) = run(&nest, &[&[10, 20, 30], &[0, 9, 0]]).1 else {
        panic!()
    };
    assert_eq!(
        fault.message(&nest),
        "layer 'g' (Gather, opset8): `indices`[1] is 9, expected -3..=2"
    );
}

#[test]
fn the_first_of_several_wrong_indices_is_told_on_a_side_that_is_taken() {
    let mut nest = Nest::new();
    let layer = nest.layer("g", "Gather, opset8");
    let data = nest.buffer("data", I32, &[2], Role::Input);
    let indices = nest.buffer("indices", I64, &[2], Role::Input);
    let y = nest.buffer("y", I32, &[1], Role::Output);
    nest.define(vec![], y, |nest, _| {
        let mut element = |k| {
            let found = nest.load(indices, vec![index(k)]);
            let site = Site {
                layer,
                input: "indices".into(),
            };
            let found = nest.wrap(found, 2, Policy::CHECK, site, vec![index(k)]);
            nest.load(data, vec![found])
        };
        let sum = element(0) + element(1);
        let first = nest.load(data, vec![index(0)]);
        select(first.gt(zero(I32)), sum, zero(I32))
    });
    let (_, result) = run(&nest, &[&[1, 1], &[7, 9]]);
    assert_eq!(fault(result), (vec![0], 7, 2));
}
