use super::*;
use crate::build::{index, inside, number, select};
use crate::ir::Policy;
use ElementType::{F32, I64, U4};

fn messages(nest: &Nest) -> Vec<String> {
    verify(nest)
        .err()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn two_buffers() -> (Nest, BufferId, BufferId) {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4], Role::Input);
    let y = nest.buffer("y", F32, &[4], Role::Output);
    (nest, x, y)
}

#[test]
fn an_access_must_be_proven() {
    let (mut nest, x, y) = two_buffers();
    nest.define(vec![], y, |n, at| n.load(x, vec![&at[0] + 1]));
    assert_eq!(
        messages(&nest),
        ["stage 0: index 0 of `x`, (i + 1), is in 1..=4, not proven in 0..4"]
    );

    let (mut nest, x, y) = two_buffers();
    nest.define(vec![], y, |n, at| {
        let i = &at[0] + 1;
        select(inside(&i, 0, 4), n.load(x, vec![i]), number(0.0, F32))
    });
    assert_eq!(messages(&nest), [""; 0]);
}

/// `i · 2 >= 4` holds on one side alone: the other one, which the second comparison says nothing of either, has to be
/// proven without it.
#[test]
fn what_a_condition_tells_holds_on_its_side() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4], Role::Input);
    let y = nest.buffer("y", F32, &[4, 4], Role::Output);
    nest.define(vec![], y, |n, at| {
        let zero = || number(0.0, F32);
        let back = &at[0] * 2 - 4;
        let both = (&at[0] * 2).ge(index(4)) & back.lt(index(3));
        let inner = select(both, zero(), n.load(x, vec![back]));
        select(at[1].gt(index(0)), inner, zero())
    });
    assert_eq!(
        messages(&nest),
        ["stage 0: index 0 of `x`, ((i * 2) - 4), is in -4..=2, not proven in 0..4"]
    );
}

#[test]
fn an_axis_is_bound_once_and_used_in_scope() {
    let (mut nest, x, y) = two_buffers();
    nest.define(vec![], y, |n, at| n.load(x, at.to_vec()));
    let again = nest.stages[0].clone();
    nest.stages.push(again);
    assert_eq!(messages(&nest), ["stage 1: axis 0 is bound twice"]);

    let (mut nest, x, y) = two_buffers();
    let stray = nest.axis(4);
    nest.define(vec![], y, |n, _| n.load(x, vec![Scalar::axis(stray.id)]));
    assert!(messages(&nest)[0].contains("outside its scope"));
}

/// Each level shares the one before on both sides.
#[test]
fn nested_guards_take_linear_time() {
    let (mut nest, _, y) = two_buffers();
    let z = nest.buffer("z", I64, &[4], Role::Output);
    nest.define(vec![], z, |n, at| {
        let x = n.load(y, at.to_vec()).cast(I64);
        (0..200).fold(x, |x, k| select(at[0].lt(index(k % 4)), &x + 1, &x * 3))
    });
    assert_eq!(messages(&nest), [""; 0]);
}

#[test]
fn types_must_be_arithmetic() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", U4, &[4], Role::Input);
    let y = nest.buffer("y", U4, &[4], Role::Output);
    nest.define(vec![], y, |n, at| {
        let x = n.load(x, at.to_vec());
        &x + &x
    });
    assert_eq!(
        messages(&nest),
        ["stage 0: (x[i] + x[i]) is not defined on its operands' types"]
    );
}

#[test]
fn a_zero_policy_stands_only_as_an_index() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I64, &[4], Role::Input);
    let y = nest.buffer("y", I64, &[4], Role::Output);
    nest.define(vec![], y, |n, at| {
        let layer = n.layer("g", "Gather, opset8");
        let site = crate::Site {
            layer,
            input: "indices".into(),
        };
        let load = n.load(x, at.to_vec());
        n.wrap(load, 4, Policy::WRAP_OR_ZERO, site, at.to_vec()) + index(0)
    });
    assert_eq!(
        messages(&nest),
        ["stage 0: a wrap that reads zero is used as a value"]
    );
}
