//! Sides of selects that are never taken: an axis of one element makes them, and what they read may lie anywhere.

use super::*;
use crate::analysis::verify;
use crate::build::{inside, select};
use crate::interpret::tests::run;
use crate::ir::{Axis, BufferId, Mode, Policy, Role, Site};
use vinelift_tensor::ElementType::I64;

/// The operands of the values below.
struct Point {
    /// How many points come before this one.
    step: Scalar,
    /// The elements of `x` that the numbers here, and at the point before, say.
    here: Scalar,
    before: Scalar,
    /// The element that the stage has written at the point before.
    sum: Scalar,
    /// An axis of `columns` points, of a fold.
    column: Axis,
    /// The element of `x` that the number at the column before says.
    left: Scalar,
}

impl Point {
    fn is_later(&self) -> Scalar {
        self.step.gt(index(0))
    }

    fn add(&self, body: Scalar) -> Scalar {
        Scalar::reduce(Binary::Add, vec![self.column], index(0), body)
    }
}

/// `y[i] = value(…)` with `x` of four elements, over `extent` points from the first or, if `reverse`, from the last.
fn nest(
    extent: usize,
    columns: usize,
    policy: Policy,
    reverse: bool,
    value: fn(&Point) -> Scalar,
) -> Nest {
    let mut nest = Nest::new();
    let layer = nest.layer("g", "GatherElements, opset6");
    let x = nest.buffer("x", I64, &[4], Role::Input);
    let k = nest.buffer("k", I64, &[extent], Role::Input);
    let c = nest.buffer("c", I64, &[columns], Role::Input);
    let y = nest.buffer("y", I64, &[extent], Role::Output);
    let (step, column) = (nest.axis(extent), nest.axis(columns));
    let i = Scalar::axis(step.id);
    let along = |back: i64| match reverse {
        false => &i - back,
        true => index(extent as i64 - 1 + back) - &i,
    };
    let mut gathered = |numbers: BufferId, at: Scalar| {
        let site = Site {
            layer,
            input: "indices".into(),
        };
        let found = nest.load(numbers, vec![at.clone()]);
        let found = nest.wrap(found, 4, policy, site, vec![at]);
        nest.load(x, vec![found])
    };
    let (here, before) = (gathered(k, along(0)), gathered(k, along(1)));
    let left = gathered(c, Scalar::axis(column.id) - 1);
    let value = value(&Point {
        step: i.clone(),
        here,
        before,
        sum: nest.load(y, vec![along(1)]),
        column,
        left,
    });
    nest.stages.push(Stage {
        domain: vec![step],
        target: y,
        at: vec![along(0)],
        mode: Mode::Set,
        value,
        layers: vec![layer],
        group: None,
    });
    nest
}

/// Checks that a value stays proven and means the same, faults included, wherever some of its sides are never taken.
fn check(value: fn(&Point) -> Scalar) {
    let numbers: [&[i64]; 4] = [&[2, 0], &[-1, 3], &[1, 4], &[-5, 7]];
    let mut cases = Vec::new();
    for (extent, columns) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        for (negative, zero) in [(false, false), (false, true), (true, false), (true, true)] {
            let policy = Policy { negative, zero };
            cases.extend([false, true].map(|reverse| (extent, columns, policy, reverse)));
        }
    }
    for (extent, columns, policy, reverse) in cases {
        let whole = nest(extent, columns, policy, reverse, value);
        assert_eq!(verify(&whole), Ok(()), "{whole}");
        let mut simpler = whole.clone();
        simplify(&mut simpler);
        assert_eq!(verify(&simpler), Ok(()), "{whole}\nas\n{simpler}");
        for k in numbers {
            let inputs: [&[i64]; 3] = [&[10, 20, 30, 40], &k[..extent], &k[..columns]];
            let [expected, found] = [&whole, &simpler].map(|nest| run(nest, &inputs));
            assert_eq!(found, expected, "{whole}\nas\n{simpler}");
        }
    }
}

#[test]
fn sums_go_on_from_nothing() {
    check(|p| select(p.is_later(), &p.sum + &p.before, index(0)));
    check(|p| select(p.is_later(), &p.sum + &p.here, p.here.clone()));
    check(|p| {
        select(
            p.step.le(index(0)),
            index(7),
            p.sum.clone() * p.before.clone(),
        )
    });
    check(|p| select(!p.is_later(), p.here.clone(), p.before.clone()));
}

#[test]
fn selects_in_selects() {
    check(|p| {
        let inner = select(p.is_later(), p.before.clone(), p.here.clone());
        select(p.here.gt(index(15)), inner.clone(), inner + 1)
    });
    check(|p| {
        let inner = select(p.before.gt(index(15)), p.sum.clone(), index(1));
        select(p.is_later(), inner, index(2))
    });
}

#[test]
fn around_them_stands_what_may_fault() {
    check(|p| p.here.clone() * select(p.is_later(), p.before.clone(), index(1)) + 1);
    check(|p| &p.here - &p.here + select(p.is_later(), p.before.clone(), p.here.clone()));
    // Nothing is learnt where two numbers differ, so that this side shares what stands before it.
    check(|p| {
        let is_odd = p.step.clone().rem(index(2)).ne(index(0));
        &p.here - &p.here + select(is_odd, &p.here + 1, index(5))
    });
    check(|p| {
        let chosen = select(p.is_later(), p.before.clone(), index(3)).max(index(0));
        select(p.here.gt(chosen), index(5), index(5))
    });
}

#[test]
fn conditions_that_may_fault() {
    check(|p| {
        let both = p.is_later() & p.here.gt(index(15));
        select(both, p.before.clone(), index(2))
    });
    check(|p| {
        let either = p.here.gt(index(15)) | p.step.lt(index(1));
        select(either, p.here.clone(), p.before.clone())
    });
    check(|p| select(p.here.gt(index(15)), p.step.clone(), p.step.clone()));
}

#[test]
fn in_folds_and_around_them() {
    check(|p| {
        let is_right = Scalar::axis(p.column.id).gt(index(0));
        p.add(select(is_right, p.left.clone(), p.here.clone()))
    });
    check(|p| {
        let column = Scalar::axis(p.column.id);
        p.add(select(p.is_later(), &p.before + column, p.here.clone()))
    });
    check(|p| {
        let is_right = inside(&(Scalar::axis(p.column.id) - 1), 0, 4);
        let sum = p.add(select(is_right, p.left.clone(), index(0)));
        select(p.is_later(), &p.before + sum, p.here.clone())
    });
}
