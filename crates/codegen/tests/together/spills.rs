//! Stages with more values, masks and pointers at once than there are registers, on both sides of that.

use crate::common::{
    COMPILER, Compiled, bytes, pointwise, random, reference, run, same, site, vector_loops,
};
use proptest::prelude::*;
use vinelift_codegen::{Options, Vectors};
use vinelift_nest::{Binary, Nest, Policy, Role, Scalar, build::*};
use vinelift_tensor::ElementType::{self, *};

const COLUMNS: usize = 83;

/// Whether the vector loop of 256 bits that the nest's only stage becomes spills.
fn spills(nest: &Nest) -> bool {
    let options = Options {
        capture_text: true,
        vectors: Vectors::Bits256,
    };
    let code = COMPILER.compile(&[nest], &options).unwrap();
    let text = code.text(0).unwrap();
    assert!(text.clif.contains("on 256 bits"), "{}", text.clif);
    format!("{text:?}").contains("spill")
}

/// A value that needs all of `x` until the last of them is there.
fn all_at_once(x: &[Scalar]) -> Scalar {
    let sum = x.iter().cloned().reduce(|sum, x| sum + x).unwrap();
    let less = |value: Scalar, x: &Scalar| (value - x).max(x.clone());
    x.iter().rev().fold(sum, less)
}

fn small_numbers(ty: ElementType, count: usize, seed: u64) -> Vec<u8> {
    let mut next = random(seed);
    let numbers = (0..count).map(|_| (next() % 41) as i64 - 20);
    match ty {
        F64 => bytes(&numbers.map(|x| x as f64 / 4.0).collect::<Vec<_>>()),
        I32 => bytes(&numbers.map(|x| x as i32).collect::<Vec<_>>()),
        I64 => bytes(&numbers.collect::<Vec<_>>()),
        U8 => bytes(&numbers.map(|x| x as u8).collect::<Vec<_>>()),
        _ => bytes(&numbers.map(|x| x as f32 / 4.0).collect::<Vec<_>>()),
    }
}

fn data_of(nest: &Nest, seed: u64) -> Vec<Vec<u8>> {
    let inputs = nest.buffers.iter().filter(|b| b.role == Role::Input);
    let of = |(k, b): (usize, &vinelift_nest::Buffer)| {
        small_numbers(b.ty, b.example().iter().product(), seed + k as u64)
    };
    inputs.enumerate().map(of).collect()
}

fn assert_is_interpreted(nest: &Nest, seed: u64) {
    let inputs = data_of(nest, seed);
    assert_eq!(run(nest, &inputs), reference(nest, &inputs), "{nest}");
}

/// `y[i]` of `x[0, i]`, `x[1, i]`, …, of `count` rows.
fn rows(count: usize, ty: ElementType, value: fn(&[Scalar]) -> Scalar) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", ty, &[count, COLUMNS], Role::Input);
    let y = nest.buffer("y", ty, &[COLUMNS], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let load = |row| nest.load(x, vec![index(row as i64), at[0].clone()]);
        value(&(0..count).map(load).collect::<Vec<_>>())
    });
    nest
}

#[test]
fn values() {
    for ty in [F32, F64, I32, I64] {
        for (count, expected) in [(8, false), (12, false), (20, true), (40, true), (75, true)] {
            let nest = rows(count, ty, all_at_once);
            assert_is_interpreted(&nest, count as u64);
            // There is no maximum of 64-bit integers among the instructions of AVX2.
            if vector_loops()[0] && ty != I64 {
                assert_eq!(spills(&nest), expected, "{count} of {ty}");
            }
        }
    }
}

#[test]
fn masks() {
    // Each comparison is made before the first select, and used after the last value.
    let value = |x: &[Scalar]| {
        let masks: Vec<Scalar> = x.windows(2).map(|x| x[0].lt(x[1].clone())).collect();
        let any = masks.iter().cloned().reduce(|a, b| a.max(b)).unwrap();
        let first = select(any, x[0].clone(), x[1].clone());
        let masks = masks.into_iter().rev();
        masks.fold(first, |sum, mask| select(mask, &sum + 1.0, &sum * 3.0))
    };
    for count in [3, 8, 12, 30, 60] {
        assert_is_interpreted(&rows(count, F32, value), count as u64);
    }
}

#[test]
fn pointers() {
    for count in [2, 7, 10, 11, 12, 13, 30, 60] {
        for ty in [F32, U8] {
            let nest = pointwise(&vec![ty; count], ty, COLUMNS, |x| {
                x.iter().cloned().reduce(|sum, x| sum.max(x)).unwrap()
            });
            assert_is_interpreted(&nest, count as u64);
            // Pointers are read again where they are needed, and no value is spilled.
            if vector_loops()[0] && ty == F32 {
                assert!(!spills(&nest));
            }
        }
    }
}

/// Pointers that move by loops around: `y[r, i] = x[0][i, r] + x[1][i, r] + …` for rows that lie apart.
#[test]
fn pointers_that_move() {
    for count in [3, 9, 11, 25] {
        let mut nest = Nest::new();
        let inputs: Vec<_> = (0..count)
            .map(|k| nest.buffer("x", F32, &[5, 3 + k % 2, COLUMNS], Role::Input))
            .collect();
        let y = nest.buffer("y", F32, &[5, 3, COLUMNS], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let loads: Vec<_> = inputs.iter().map(|x| nest.load(*x, at.to_vec())).collect();
            all_at_once(&loads)
        });
        assert_is_interpreted(&nest, count as u64);
    }
}

/// Accumulators, and values that are the same along the lanes, around a loop.
#[test]
fn folds() {
    for count in [2, 6, 9, 20] {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[40, COLUMNS + count], Role::Input);
        let w = nest.buffer("w", F32, &[40, count], Role::Input);
        let y = nest.buffer("y", F32, &[COLUMNS], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let folds: Vec<Scalar> = (0..count)
                .map(|k| {
                    let axis = nest.axis(40);
                    let point = Scalar::axis(axis.id);
                    let x = nest.load(x, vec![point.clone(), &at[0] + k as i64]);
                    let w = nest.load(w, vec![point, index(k as i64)]);
                    Scalar::reduce(Binary::Add, vec![axis], zero(F32), x * w)
                })
                .collect();
            all_at_once(&folds)
        });
        assert_is_interpreted(&nest, count as u64);
    }
}

/// Elements behind indices of which one may be out of range, counted from the end too.
#[test]
fn gathers() {
    for count in [1, 6, 40] {
        for (ty, wrong) in [
            (I32, None),
            (I64, None),
            (I32, Some(57usize)),
            (I64, Some(2)),
        ] {
            let mut nest = Nest::new();
            let tables: Vec<_> = (0..count)
                .map(|_| nest.buffer("x", F32, &[11], Role::Input))
                .collect();
            let indices = nest.buffer("indices", ty, &[COLUMNS], Role::Input);
            let y = nest.buffer("y", F32, &[COLUMNS], Role::Output);
            let site = site(&mut nest);
            nest.define(vec![], y, |nest, at| {
                let index = nest.load(indices, at.to_vec());
                let index = nest.wrap(index, 11, Policy::WRAP, site, at.to_vec());
                let loads: Vec<_> = tables
                    .iter()
                    .map(|x| nest.load(*x, vec![index.clone()]))
                    .collect();
                all_at_once(&loads)
            });
            let mut inputs = data_of(&nest, count as u64);
            let mut numbers: Vec<i64> = (0..COLUMNS as i64).map(|i| (i * 7) % 22 - 11).collect();
            if let Some(at) = wrong {
                numbers[at] = 11;
            }
            inputs[count] = match ty {
                I64 => bytes(&numbers),
                _ => bytes(&numbers.iter().map(|i| *i as i32).collect::<Vec<_>>()),
            };
            let (found, expected) = (run(&nest, &inputs), reference(&nest, &inputs));
            assert_eq!(found.1.is_err(), wrong.is_some());
            match wrong {
                Some(_) => assert_eq!(found.1.is_err(), expected.1.is_err()),
                None => assert_eq!(found, expected, "{nest}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::common::cases(300))]
    #[test]
    fn random_values(seed: u64, ty in 0..4usize, count in 1..70usize, steps in 1..150usize) {
        let ty = [F32, F64, I32, I64][ty];
        let mut next = random(seed);
        let mut below = |n: usize| (next() % n as u64) as usize;
        let mut nest = Nest::new();
        let x = nest.buffer("x", ty, &[count, COLUMNS], Role::Input);
        let y = nest.buffer("y", ty, &[COLUMNS], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let load = |row| nest.load(x, vec![index(row as i64), at[0].clone()]);
            let mut values: Vec<Scalar> = (0..count).map(load).collect();
            for _ in 0..steps {
                let mut any = || values[below(values.len())].clone();
                let (a, b, c, d) = (any(), any(), any(), any());
                let op = [Binary::Add, Binary::Sub, Binary::Min, Binary::Max][below(4)];
                values.push(match below(3) {
                    0 => select(a.lt(b), c, d),
                    _ => Scalar::binary(op, a, b),
                });
            }
            all_at_once(&values)
        });
        let inputs = data_of(&nest, seed % 1000);
        let (found, _) = Compiled::of_random(&nest, seed).run(&inputs);
        let (expected, _) = reference(&nest, &inputs);
        prop_assert!(same(ty, &found[1], &expected[1]), "{}", nest);
    }
}
