use super::memory::{get, set};
use super::*;
use crate::build::*;
use crate::ir::{
    Axis, AxisId, Binary, BufferId, LayerId, Mode, Policy, Role, Scalar, Site, Stage, Unary,
};
use vinelift_tensor::ElementType::{self, *};

/// `f` of each tuple of values, which come and go as bits, one list for each input.
pub(crate) fn map<const N: usize>(
    inputs: [(ElementType, &[u64]); N],
    f: impl FnOnce([Scalar; N]) -> Scalar,
) -> Vec<u64> {
    let count = inputs[0].1.len();
    let mut nest = Nest::new();
    let ids = inputs.map(|(ty, _)| nest.buffer("x", ty, &[count], Role::Input));
    let axis = nest.axis(count);
    let at = vec![Scalar::axis(axis.id)];
    let value = f(ids.map(|x| nest.load(x, at.clone())));
    let ty = value.ty();
    let target = nest.buffer("y", ty, &[count], Role::Output);
    nest.stages.push(Stage {
        domain: vec![axis],
        target,
        at,
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
fn run(nest: &Nest, inputs: &[&[i64]]) -> (Vec<i64>, Result<(), InterpretError>) {
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

fn ints(ty: ElementType, pairs: &[(i64, i64)], op: Binary) -> Vec<i64> {
    let mask = u64::MAX >> (64 - ty.bits());
    let xs: Vec<u64> = pairs.iter().map(|p| p.0 as u64 & mask).collect();
    let ys: Vec<u64> = pairs.iter().map(|p| p.1 as u64 & mask).collect();
    let out = map([(ty, &xs), (ty, &ys)], |[x, y]| Scalar::binary(op, x, y));
    let ty = if op.is_comparison() { Boolean } else { ty };
    out.into_iter().map(|v| arith::signed(ty, v)).collect()
}

fn f32s(xs: &[f32], f: impl FnOnce(Scalar) -> Scalar) -> Vec<u64> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits().into()).collect();
    map([(F32, &bits)], |[x]| f(x))
}

fn f64s(xs: &[f64], f: impl FnOnce(Scalar) -> Scalar) -> Vec<u64> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits()).collect();
    map([(F64, &bits)], |[x]| f(x))
}

fn to_f32(bits: Vec<u64>) -> Vec<f32> {
    bits.into_iter().map(|b| f32::from_bits(b as u32)).collect()
}

#[test]
fn integers_wrap() {
    assert_eq!(ints(I8, &[(127, 1), (-128, -1)], Binary::Add), [-128, 127]);
    assert_eq!(ints(U8, &[(255, 1)], Binary::Add), [0]);
    assert_eq!(ints(I64, &[(i64::MAX, 2)], Binary::Mul), [-2]);
    assert_eq!(map([(I8, &[0x80, 5])], |[x]| -x), [0x80, 0xfb]);
    assert_eq!(map([(I8, &[0x80, 0xfb])], |[x]| x.abs()), [0x80, 5]);
    assert_eq!(map([(U16, &[1])], |[x]| -x), [0xffff]);
}

#[test]
fn integer_division_never_fails() {
    let pairs = [(7, 0), (-7, 2), (-128, -1), (7, -2)];
    assert_eq!(ints(I8, &pairs, Binary::Div), [0, -3, -128, -3]);
    assert_eq!(ints(I8, &pairs, Binary::Rem), [0, -1, 0, 1]);
    assert_eq!(ints(U8, &[(200, 3), (200, 0)], Binary::Div), [66, 0]);
    assert_eq!(ints(I64, &[(i64::MIN, -1)], Binary::Div), [i64::MIN]);
}

#[test]
fn shifts_take_any_amount() {
    let pairs = [(-3, 1), (-3, 7), (-3, 8), (-3, -1), (5, 8), (5, 1)];
    assert_eq!(ints(I8, &pairs, Binary::Shl), [-6, -128, 0, 0, 0, 10]);
    assert_eq!(ints(I8, &pairs, Binary::Shr), [-2, -1, -1, -1, 0, 2]);
    assert_eq!(
        ints(U32, &[(0xf000_0000, 31), (0xf000_0000, 32)], Binary::Shr),
        [1, 0]
    );
    assert_eq!(ints(I64, &[(-1, 64), (-1, 63)], Binary::Shr), [-1, -1]);
    assert_eq!(
        map([(U64, &[u64::MAX]), (U64, &[u64::MAX])], |[x, y]| {
            Scalar::binary(Binary::MulHigh, x, y)
        }),
        [u64::MAX - 1]
    );
}

#[test]
fn min_and_max_take_the_second_of_a_nan() {
    let (nan, one) = (u64::from(f32::NAN.to_bits()), u64::from(1f32.to_bits()));
    let zeros = [u64::from(0f32.to_bits()), u64::from((-0f32).to_bits())];
    for op in [Binary::Min, Binary::Max] {
        let got = map(
            [
                (F32, &[nan, one, zeros[0], zeros[1]]),
                (F32, &[one, nan, zeros[1], zeros[0]]),
            ],
            |[x, y]| Scalar::binary(op, x, y),
        );
        assert_eq!(got, [one, nan, zeros[1], zeros[0]], "{op:?}");
    }
}

#[test]
fn float_primitives() {
    let xs = [-2.5, -0.5, 0.5, 1.5, 2.5, f32::INFINITY];
    let of = |op| to_f32(f32s(&xs, |x| Scalar::unary(op, x)));
    assert_eq!(of(Unary::Round), [-2.0, -0.0, 0.0, 2.0, 2.0, f32::INFINITY]);
    assert_eq!(of(Unary::Floor), [-3.0, -1.0, 0.0, 1.0, 2.0, f32::INFINITY]);
    assert_eq!(of(Unary::Ceil), [-2.0, 0.0, 1.0, 2.0, 3.0, f32::INFINITY]);
    assert_eq!(of(Unary::Trunc), [-2.0, 0.0, 0.0, 1.0, 2.0, f32::INFINITY]);
    assert_eq!(
        to_f32(f32s(&[5.5, -5.5], |x| x.rem(number(2.0, F32)))),
        [1.5, -1.5]
    );
    assert_eq!(f32s(&[f32::NAN, 1.0], |x| x.ne(x.clone())), [1, 0]);
    assert_eq!(f32s(&[f32::NAN, 1.0], |x| x.eq(x.clone())), [0, 1]);
    assert_eq!(map([(Boolean, &[0, 1])], |[x]| !x), [1, 0]);
}

#[test]
fn floats_become_integers_by_way_of_i64() {
    let xs = [
        1.9,
        -1.9,
        300.0,
        -1.0,
        f64::NAN,
        1e10,
        -1e10,
        1e19,
        f64::INFINITY,
        -2147483648.9,
        2147483648.0,
    ];
    let cast = |ty| {
        f64s(&xs, |x| x.cast(ty))
            .into_iter()
            .map(|v| arith::signed(ty, v))
            .collect::<Vec<_>>()
    };
    let i32_min = i64::from(i32::MIN);
    assert_eq!(cast(U8), [1, 255, 44, 255, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        cast(I32),
        [
            1, -1, 300, -1, i32_min, i32_min, i32_min, i32_min, i32_min, i32_min, i32_min
        ]
    );
    assert_eq!(
        cast(I64)[..8],
        [
            1,
            -1,
            300,
            -1,
            i64::MIN,
            10_000_000_000,
            -10_000_000_000,
            i64::MIN
        ]
    );
    let ten = 10_000_000_000u64 as u32;
    assert_eq!(
        cast(U32)[5..7],
        [i64::from(ten), i64::from(ten.wrapping_neg())]
    );
    let wide = f64s(&xs, |x| x.cast(U64));
    let largest = 1 << 63;
    assert_eq!(
        wide[..9],
        [
            1,
            u64::MAX,
            300,
            u64::MAX,
            largest,
            10_000_000_000,
            -10_000_000_000i64 as u64,
            10_000_000_000_000_000_000,
            largest
        ]
    );
    assert_eq!(
        f64s(&[0.0, -0.0, f64::NAN, 0.1], |x| x.cast(Boolean)),
        [0, 0, 1, 1]
    );
    assert_eq!(f64s(&[-1.0, 9.0], |x| x.cast(U4)), [15, 9]);
    assert_eq!(
        f32s(&[16_777_216.0, 2147483520.0, 2147483648.0], |x| x.cast(I32)),
        [1 << 24, 2147483520, 1 << 31]
    );
}

#[test]
fn integers_are_cast_by_value() {
    assert_eq!(
        map([(I4, &[0x8, 0x7, 0xf])], |[x]| x.cast(I32)),
        [0xffff_fff8, 7, 0xffff_ffff]
    );
    assert_eq!(map([(U4, &[0x8, 0xf])], |[x]| x.cast(I32)), [8, 15]);
    assert_eq!(
        map([(I16, &[0xffff, 0x0180])], |[x]| x.cast(U8)),
        [0xff, 0x80]
    );
    assert_eq!(map([(I32, &[0xffff_ffff])], |[x]| x.cast(U64)), [u64::MAX]);
    assert_eq!(
        map([(U32, &[0xffff_ffff])], |[x]| x.cast(I64)),
        [0xffff_ffff]
    );
    assert_eq!(
        map([(U64, &[u64::MAX])], |[x]| x.cast(F64)),
        [18_446_744_073_709_551_616f64.to_bits()]
    );
    assert_eq!(
        map([(I64, &[u64::MAX])], |[x]| x.cast(F64)),
        [(-1f64).to_bits()]
    );
    assert_eq!(
        map([(I32, &[16_777_217])], |[x]| x.cast(F32)),
        [u64::from(16_777_216f32.to_bits())]
    );
    assert_eq!(
        map([(Boolean, &[0, 1])], |[x]| x.cast(F32)),
        [0, u64::from(1f32.to_bits())]
    );
    assert_eq!(map([(I32, &[256, 0])], |[x]| x.cast(Boolean)), [1, 0]);
}

#[test]
fn a_boolean_is_one_or_zero_whatever_its_byte() {
    assert_eq!(map([(Boolean, &[2, 0, 255])], |[x]| x), [1, 0, 1]);
    assert_eq!(
        map([(U8, &[2, 0, 255])], |[x]| x.bitcast(Boolean)),
        [1, 0, 1]
    );
}

#[test]
fn strings_move_as_handles() {
    assert_eq!(map([(String, &[u64::MAX, 7])], |[x]| x), [u64::MAX, 7]);
    assert_eq!(
        map(
            [(String, &[1 << 40, 7]), (String, &[2 << 40, 7])],
            |[x, y]| x.eq(y)
        ),
        [0, 1]
    );
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
