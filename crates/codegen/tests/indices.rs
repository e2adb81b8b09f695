//! Data-dependent indices of every type, width and policy, right and wrong at every place, in all the ways
//! in which stages run: results and faults are those of the interpreter.

mod common;

use common::{random, reference, run, same, site};
use vinelift_nest::{
    Binary, BufferId, Fault, Mode, Nest, Policy, Role, Scalar, Stage, build::*, schedule, verify,
};
use vinelift_tensor::ElementType::{self, *};

struct Choices(Box<dyn FnMut() -> u64>);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        (self.0)() as usize % n
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

const INDICES: [ElementType; 8] = [I64, I32, I64, I32, U8, I16, U64, U32];
const DATA: [ElementType; 9] = [F32, I64, U8, F16, F64, I8, I32, Boolean, U4];
const EXTENTS: [usize; 9] = [1, 2, 3, 5, 8, 16, 17, 33, 70];

/// A nest with one or two data-dependent indices, and the indices' extents.
struct Case {
    nest: Nest,
    /// Of each buffer of indices, the extents that its elements index, in turns.
    extents: Vec<(BufferId, Vec<usize>)>,
}

/// `out` over `outer`, `inner`: the indices vary with the last axis, with the one before, or with both.
fn case(choices: &mut Choices) -> Case {
    let mut nest = Nest::new();
    let (outer, inner) = (choices.of(&EXTENTS), choices.of(&EXTENTS));
    let (ty, index_ty) = (choices.of(&DATA), choices.of(&INDICES));
    let policy = Policy {
        negative: choices.below(2) == 0,
        zero: choices.below(3) == 0,
    };
    // How many dims are indexed by data, and of which extents.
    let dims: Vec<usize> = (0..1 + choices.below(2))
        .map(|_| choices.of(&EXTENTS))
        .collect();
    let by_row = choices.below(3) == 0;
    let transposed = choices.below(4) == 0;
    let per_point = if by_row {
        vec![outer]
    } else {
        vec![outer, inner]
    };
    let mut shape = match transposed {
        true => per_point.iter().rev().copied().collect(),
        false => per_point.clone(),
    };
    shape.push(dims.len());
    let indices = nest.buffer("indices", index_ty, &shape, Role::Input);
    // What the data have besides: the row, the column, or nothing.
    let with_row = choices.below(2) == 0;
    let with_column = by_row || choices.below(2) == 0;
    let mut data_shape = Vec::new();
    if with_row {
        data_shape.push(outer);
    }
    data_shape.extend(&dims);
    if with_column {
        data_shape.push(inner);
    }
    let domain = nest.axes(&[outer, inner]);
    let (i, j) = (Scalar::axis(domain[0].id), Scalar::axis(domain[1].id));
    let site = site(&mut nest);
    let mut at = Vec::new();
    if with_row {
        at.push(i.clone());
    }
    for (d, &extent) in dims.iter().enumerate() {
        let mut position = vec![i.clone()];
        if !by_row {
            position.push(j.clone());
        }
        if transposed {
            position.reverse();
        }
        position.push(index(d as i64));
        let found = nest.load(indices, position.clone());
        at.push(nest.wrap(found, extent, policy, site.clone(), position));
    }
    if with_column {
        at.push(j.clone());
    }
    let whole = vec![i, j];
    let scatter = choices.below(2) == 0;
    if scatter {
        let updates = nest.buffer("updates", ty, &[outer, inner], Role::Input);
        let out = nest.buffer("out", ty, &data_shape, Role::Output);
        let mode = match ty {
            F32 | I64 | U8 | F64 | I32 => [
                Mode::Set,
                Mode::Combine(Binary::Add),
                Mode::Combine(Binary::Max),
            ][choices.below(3)],
            _ => Mode::Set,
        };
        let value = nest.load(updates, whole);
        nest.stages.push(Stage {
            domain,
            target: out,
            at,
            mode,
            value,
            layers: vec![],
            group: None,
        });
    } else {
        let data = nest.buffer("data", ty, &data_shape, Role::Input);
        let out = nest.buffer("out", ty, &[outer, inner], Role::Output);
        let mut value = nest.load(data, at);
        if matches!(ty, F32 | I32 | I64) && choices.below(2) == 0 {
            // Something that uses it, and another gather.
            let bias = nest.buffer("bias", ty, &[inner], Role::Input);
            let bias = nest.load(bias, vec![whole[1].clone()]);
            value = &value * &value + bias;
            if choices.below(2) == 0 && !by_row {
                let other = nest.buffer("other", ty, &[7], Role::Input);
                let found = nest.load(indices, {
                    let mut position = whole.clone();
                    if transposed {
                        position.reverse();
                    }
                    position.push(index(0));
                    position
                });
                let found = nest.wrap(found, 7, Policy::WRAP, site, whole.clone());
                value = value - nest.load(other, vec![found]);
            }
        }
        nest.stages.push(Stage {
            domain,
            target: out,
            at: whole,
            mode: Mode::Set,
            value,
            layers: vec![],
            group: None,
        });
    }
    Case {
        nest,
        extents: vec![(indices, dims)],
    }
}

fn little_endian(value: i64, ty: ElementType) -> Vec<u8> {
    value.to_le_bytes()[..ty.bits() / 8].to_vec()
}

#[test]
fn every_way_gives_what_the_interpreter_gives() {
    for seed in 0..600 {
        let mut choices = Choices(Box::new(random(seed)));
        let Case { nest, extents } = case(&mut choices);
        // None, few or many from the end; none, one or several wrong.
        let (from_end, wrong) = (choices.of(&[0, 0, 2, 50]), choices.below(3));
        let inputs: Vec<Vec<u8>> = nest
            .buffers
            .iter()
            .enumerate()
            .filter(|(_, b)| b.role == Role::Input)
            .map(|(k, b)| {
                let count: usize = b.shape.iter().product();
                let Some((_, extents)) = extents.iter().find(|(id, _)| id.0 as usize == k) else {
                    let bytes = b.ty.byte_len(count).unwrap();
                    return (0..bytes).map(|_| choices.below(7) as u8).collect();
                };
                let mut values: Vec<i64> = (0..count)
                    .map(|e| {
                        let extent = extents[e % extents.len()];
                        let value = choices.below(extent) as i64;
                        match choices.below(100) < from_end && b.ty.is_signed_integer() {
                            true => value - extent as i64,
                            false => value,
                        }
                    })
                    .collect();
                for _ in 0..wrong {
                    let e = choices.below(count);
                    let extent = extents[e % extents.len()] as i64;
                    let beyond = [
                        extent,
                        -extent - 1,
                        -1,
                        i64::MAX,
                        i64::MIN,
                        1 << 31,
                        extent + 3,
                    ];
                    values[e] = choices.of(&beyond);
                }
                values
                    .iter()
                    .flat_map(|v| little_endian(*v, b.ty))
                    .collect()
            })
            .collect();
        let (expected, expected_result) = reference(&nest, &inputs);
        let mut scheduled = nest.clone();
        schedule(&mut scheduled);
        assert_eq!(verify(&scheduled), Ok(()), "seed {seed}\n{scheduled}");
        for nest in [nest, scheduled] {
            compare(seed, &nest, &inputs, &expected, &expected_result);
        }
    }
}

fn compare(
    seed: u64,
    nest: &Nest,
    inputs: &[Vec<u8>],
    expected: &[Vec<u8>],
    expected_result: &Result<(), Fault>,
) {
    let (found, result) = run(nest, inputs);
    assert_eq!(result, *expected_result, "seed {seed}\n{nest}");
    if result.is_err() {
        return;
    }
    for (b, (found, expected)) in nest.buffers.iter().zip(found.iter().zip(expected)) {
        assert!(
            same(b.ty, found, expected),
            "seed {seed}: `{}` is {found:?}, expected {expected:?}\n{nest}",
            b.name
        );
    }
}
