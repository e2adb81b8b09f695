mod arithmetic;
mod indices;

use super::memory::{get, set};
use super::*;
use crate::build::*;
use crate::ir::{Axis, AxisId, Binary, BufferId, Mode, Role, Scalar, Stage, Unary};
use vinelift_tensor::ElementType::{self, *};

/// `f` of each tuple of values, which come and go as bits, one list for each input.
pub(crate) fn map<const N: usize>(
    inputs: [(ElementType, &[u64]); N],
    f: impl FnOnce([Scalar; N]) -> Scalar,
) -> Vec<u64> {
    let mut nest = Nest::new();
    let count = inputs[0].1.len();
    let axis = nest.axis(count);
    let at = Scalar::axis(axis.id);
    let loads = inputs.map(|(ty, _)| {
        let x = nest.buffer("x", ty, &[count], Role::Input);
        nest.load(x, vec![at.clone()])
    });
    run_over(nest, axis, &inputs, f(loads))
}

/// The bits of `value` at each point of an axis; the nest has the buffers of the inputs.
fn run_over(
    mut nest: Nest,
    axis: Axis,
    inputs: &[(ElementType, &[u64])],
    value: Scalar,
) -> Vec<u64> {
    let (ty, count) = (value.ty(), inputs[0].1.len());
    let target = nest.buffer("y", ty, &[count], Role::Output);
    nest.stages.push(Stage {
        at: vec![Scalar::axis(axis.id)],
        domain: vec![axis],
        target,
        mode: Mode::Set,
        value,
        layers: vec![],
        group: None,
    });
    let packed: Vec<Vec<u8>> = inputs
        .iter()
        .map(|(ty, values)| pack(*ty, values))
        .collect();
    let mut y = vec![0; ty.byte_len(count).unwrap()];
    let mut buffers: Vec<BufferBytes<'_>> = packed.iter().map(|x| BufferBytes::Read(x)).collect();
    buffers.push(BufferBytes::Write(&mut y));
    interpret(&nest, &mut buffers).unwrap();
    (0..count).map(|k| get(&y, ty, k)).collect()
}

fn pack(ty: ElementType, values: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; ty.byte_len(values.len()).unwrap()];
    values
        .iter()
        .enumerate()
        .for_each(|(k, &value)| set(&mut bytes, ty, k, value));
    bytes
}

fn unpack(ty: ElementType, bytes: &[u8], count: usize) -> Vec<i64> {
    (0..count)
        .map(|k| arith::signed(ty, get(bytes, ty, k)))
        .collect()
}

/// Runs a nest of integer buffers; returns the last one and the result.
pub(crate) fn run(nest: &Nest, inputs: &[&[i64]]) -> (Vec<i64>, Result<(), InterpretError>) {
    let size = |b: &crate::Buffer| b.example().iter().product::<usize>();
    let mut memory: Vec<Vec<u8>> = nest
        .buffers
        .iter()
        .map(|b| vec![0; b.ty.byte_len(size(b)).unwrap()])
        .collect();
    for ((bytes, buffer), values) in memory.iter_mut().zip(&nest.buffers).zip(inputs) {
        *bytes = pack(
            buffer.ty,
            &values.iter().map(|&v| v as u64).collect::<Vec<_>>(),
        );
    }
    let result = interpret(
        nest,
        &mut memory
            .iter_mut()
            .map(|m| BufferBytes::Write(m))
            .collect::<Vec<_>>(),
    );
    let last = nest.buffers.last().unwrap();
    (unpack(last.ty, memory.last().unwrap(), size(last)), result)
}

#[test]
fn reductions_fold_in_order_and_may_nest() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I32, &[2, 3], Role::Input);
    let y = nest.buffer("y", I32, &[2], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let (j, k) = (nest.axis(3), nest.axis(3));
        let row =
            |axis: Axis, nest: &Nest| nest.load(x, vec![at[0].clone(), Scalar::axis(axis.id)]);
        let sum = Scalar::reduce(Binary::Add, vec![j], zero(I32), row(j, nest));
        // A reduction that does not depend on `k` inside one over `k`.
        let inner = &sum * row(k, nest);
        let nested = Scalar::reduce(Binary::Sub, vec![k], zero(I32), inner);
        nested + sum
    });
    let (got, result) = run(&nest, &[&[1, 2, 3, 4, 5, 6]]);
    assert_eq!((got, result), (vec![-36 + 6, -225 + 15], Ok(())));
}

#[test]
fn an_empty_reduction_is_its_start() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I32, &[2, 0], Role::Input);
    let y = nest.buffer("y", I32, &[2], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let j = nest.axis(0);
        Scalar::reduce(
            Binary::Add,
            vec![j],
            integer(7, I32),
            nest.load(x, vec![at[0].clone(), Scalar::axis(j.id)]),
        )
    });
    assert_eq!(run(&nest, &[&[]]).0, [7, 7]);
}

#[test]
fn the_side_not_taken_is_not_evaluated() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I32, &[2], Role::Input);
    let y = nest.buffer("y", I32, &[4], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let i = &at[0] - 1;
        select(inside(&i, 0, 2), nest.load(x, vec![i]), integer(-1, I32))
    });
    let (got, result) = run(&nest, &[&[5, 6]]);
    assert_eq!((got, result), (vec![-1, 5, 6, -1], Ok(())));
}

#[test]
fn a_stage_sees_its_own_writes() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I32, &[4], Role::Input);
    let y = nest.buffer("y", I32, &[4], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let before = nest.load(y, vec![&at[0] - 1]);
        nest.load(x, at.to_vec()) + select(at[0].gt(index(0)), before, zero(I32))
    });
    assert_eq!(run(&nest, &[&[1, 2, 3, 4]]).0, [1, 3, 6, 10]);
}

#[test]
fn combining_meets_what_is_there() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I32, &[4], Role::Input);
    let y = nest.buffer("y", I32, &[1], Role::Output);
    let axis = nest.axis(4);
    let value = nest.load(x, vec![Scalar::axis(axis.id)]);
    let mode = Mode::Combine(Binary::Sub);
    nest.stages.push(Stage {
        domain: vec![axis],
        target: y,
        at: vec![index(0)],
        mode,
        value,
        layers: vec![],
        group: None,
    });
    assert_eq!(run(&nest, &[&[1, 2, 3, 4], &[100]]).0, [90]);
}

#[test]
fn temporaries_may_be_left_to_the_interpreter() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", U4, &[3], Role::Input);
    let t = nest.buffer("t", I32, &[3], Role::Temporary);
    let y = nest.buffer("y", U4, &[3], Role::Output);
    nest.define(vec![], t, |nest, at| {
        nest.load(x, at.to_vec()).cast(I32) + 1
    });
    nest.define(vec![], y, |nest, at| nest.load(t, at.to_vec()).cast(U4));
    let mut out = [0; 2];
    let mut buffers = [
        BufferBytes::Read(&[0x21, 0x0f]),
        BufferBytes::Temporary,
        BufferBytes::Write(&mut out),
    ];
    interpret(&nest, &mut buffers).unwrap();
    assert_eq!(out, [0x32, 0x00]);
}

#[test]
fn buffers_that_do_not_fit_are_refused() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[3], Role::Input);
    let y = nest.buffer("y", F32, &[3], Role::Output);
    nest.define(vec![], y, |nest, at| nest.load(x, at.to_vec()));
    let (mut good, mut short) = ([0; 12], [0; 11]);
    let message =
        |buffers: &mut [BufferBytes<'_>]| interpret(&nest, buffers).unwrap_err().to_string();
    assert_eq!(
        message(&mut [BufferBytes::Read(&good)]),
        "the nest has 2 buffers, found 1"
    );
    assert_eq!(
        message(&mut [BufferBytes::Read(&[0; 12]), BufferBytes::Write(&mut short)]),
        "buffer `y` takes 12 bytes, found 11"
    );
    assert_eq!(
        message(&mut [BufferBytes::Temporary, BufferBytes::Write(&mut good)]),
        "buffer `x` takes 12 bytes, found 0"
    );
    assert_eq!(
        message(&mut [BufferBytes::Read(&[0; 12]), BufferBytes::Read(&[0; 12])]),
        "buffer `y` is written, found read-only bytes"
    );
}

#[test]
fn what_verify_would_refuse_is_an_error() {
    let refuse = |value: fn(&mut Nest, BufferId, &[Scalar]) -> Scalar| {
        let mut nest = Nest::new();
        let x = nest.buffer("x", I64, &[3], Role::Input);
        let y = nest.buffer("y", I64, &[3], Role::Output);
        nest.define(vec![], y, |nest, at| value(nest, x, at));
        run(&nest, &[&[0, 1, 2]]).1.unwrap_err().to_string()
    };
    assert_eq!(
        refuse(|nest, x, at| nest.load(x, vec![&at[0] + 1])),
        "unchecked index 3 of dim 0 of buffer `x` is out of its extent 3"
    );
    assert_eq!(
        refuse(|nest, x, at| nest.load(x, vec![&at[0] - 1])),
        "unchecked index -1 of dim 0 of buffer `x` is out of its extent 3"
    );
    assert_eq!(
        refuse(|_, _, _| Scalar::axis(AxisId(99))),
        "malformed nest: axis 99 is not bound"
    );
    assert_eq!(
        refuse(|_, x, _| Scalar::load(x, vec![], I64)),
        "malformed nest: a load does not fit buffer 0"
    );
    assert_eq!(
        refuse(|_, _, _| Scalar::unary(Unary::Sqrt, index(4))),
        "malformed nest: Sqrt of i64"
    );
    assert_eq!(
        refuse(|_, _, at| at[0].clone().cast(U8)),
        "malformed nest: a stage does not fit its target `y`"
    );
}

#[test]
fn long_chains_do_not_overflow_the_stack() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I64, &[1], Role::Input);
    let y = nest.buffer("y", I64, &[1], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let x = nest.load(x, at.to_vec());
        (0..10_000).fold(x.clone(), |sum, k| {
            let sum = sum + 1;
            // Half of it behind a side that is evaluated on demand.
            if k == 5_000 {
                select(
                    x.gt(index(0)),
                    sum,
                    Scalar::load(BufferId(0), vec![index(7)], I64),
                )
            } else {
                sum
            }
        })
    });
    assert_eq!(run(&nest, &[&[5]]).0, [10_005]);
}
