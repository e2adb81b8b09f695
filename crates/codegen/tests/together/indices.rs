//! Data-dependent indices of every type, width and policy, right and wrong at every place, in all the ways
//! in which stages run: results and faults are those of the interpreter.

use crate::common::{COMPILER, bytes, random, reference, run, same, site};
use vinelift_codegen::Options;
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
    let (mut outer, mut inner) = (choices.of(&EXTENTS), choices.of(&EXTENTS));
    // More than a block that is collected at once.
    match choices.below(24) {
        0 => inner = 300,
        1 => outer = 300,
        _ => {}
    }
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
    // The other axes of the data: the row, the column, or none.
    let with_row = choices.below(2) == 0;
    let with_column = by_row || choices.below(2) == 0;
    let row_last = with_row && choices.below(3) == 0;
    let mut data_shape = Vec::new();
    if with_row && !row_last {
        data_shape.push(outer);
    }
    data_shape.extend(&dims);
    if with_column {
        data_shape.push(inner);
    }
    if row_last {
        data_shape.push(outer);
    }
    let domain = nest.axes(&[outer, inner]);
    let (i, j) = (Scalar::axis(domain[0].id), Scalar::axis(domain[1].id));
    let site = site(&mut nest);
    let mut at = Vec::new();
    if with_row && !row_last {
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
    if row_last {
        at.push(i.clone());
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
        if matches!(ty, F32 | I32 | I64 | U8 | F64) && choices.below(3) != 0 {
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
    const WAYS: [&str; 7] = [
        "collected in blocks of 16 × ",
        "collected in blocks of 8 × ",
        "collected in blocks of 70:",
        "collected in blocks of 160:",
        "unrolled ×8, indices checked",
        "indices checked by vectors, rows in registers",
        "copies of",
    ];
    let mut met = [0; WAYS.len()];
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
                let count: usize = b.example().iter().product();
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
        let headings = headings(&scheduled);
        for (met, way) in met.iter_mut().zip(WAYS) {
            *met += usize::from(headings.contains(way));
        }
        for nest in [nest, scheduled] {
            compare(seed, &nest, &inputs, &expected, &expected_result);
        }
    }
    let ways: Vec<(&str, usize)> = WAYS.into_iter().zip(met).collect();
    let least = match vector_loops() {
        [_, true] => WAYS.len(),
        // Without those of many lanes.
        [true, _] => WAYS.len() - 2,
        _ => 0,
    };
    assert!(met.iter().filter(|n| **n > 0).count() >= least, "{ways:?}");
}

/// Whether this machine has vector loops of 256 bits, and of 512.
fn vector_loops() -> [bool; 2] {
    #[cfg(target_arch = "x86_64")]
    return [
        std::arch::is_x86_feature_detected!("avx2"),
        std::arch::is_x86_feature_detected!("avx512bw"),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    return [false; 2];
}

/// How the stages of a nest run.
fn headings(nest: &Nest) -> std::string::String {
    let options = Options {
        capture_text: true,
        ..Options::default()
    };
    let code = COMPILER.compile(&[nest], &options).unwrap();
    let text = &code.text(0).unwrap().clif;
    let headings = text.lines().take_while(|line| line.starts_with(';'));
    headings.collect::<Vec<_>>().join("\n")
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

/// More rows than the cache holds, of which each point has its own: blocks of columns are done one after the
/// other, and yet the first fault is that of the first point.
#[test]
fn columns_in_blocks() {
    columns([1, 4100, 40], 1030, [F32, I32], "16 columns at a time:");
}

/// Enough columns that they are packed first: because the data are large, or most rows are led to more than once.
#[test]
fn columns_that_are_packed() {
    let large = "64 columns at a time, packed";
    columns([1, 1100, 1500], 280, [F32, I64], large);
    for (shape, outer, types) in [
        ([2, 1000, 331], 1001, [F16, I32]),
        ([1, 1000, 1031], 1000, [U8, I32]),
        ([2, 1000, 101], 1000, [I64, I64]),
    ] {
        columns(shape, outer, types, "columns at a time, packed");
    }
}

/// `out[b, i, j] = data[b, index[b, i, j], j] + data[b, i, j]`; of `f16`, which are not added, without the sum.
fn columns(shape: [usize; 3], outer: usize, [ty, index_ty]: [ElementType; 2], heading: &str) {
    let [batch, rows, columns] = shape;
    let mut nest = Nest::new();
    let data = nest.buffer("data", ty, &shape, Role::Input);
    let of_indices = [batch, outer, columns];
    let indices = nest.buffer("indices", index_ty, &of_indices, Role::Input);
    let out = nest.buffer("out", ty, &[batch, outer, columns], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], out, |nest, at| {
        let found = nest.load(indices, at.to_vec());
        let row = nest.wrap(found, rows, Policy::WRAP, site, at.to_vec());
        let far = nest.load(data, vec![at[0].clone(), row, at[2].clone()]);
        match ty {
            F16 => far,
            _ => far + nest.load(data, at.to_vec()),
        }
    });
    let found = headings(&nest);
    assert!(found.contains(heading) || !vector_loops()[0], "{found}");
    let of_data: Vec<u8> = (0..batch * rows * columns)
        .flat_map(|k| little_endian((k % 1009) as i64, ty))
        .collect();
    let good: Vec<i64> = (0..batch * outer * columns)
        .map(|k| (k * 7919 % rows) as i64)
        .collect();
    let n = rows as i64;
    for changes in [
        &[][..],
        &[(12_345, -1), (70, -n)],
        &[(900, n), (800, -n - 1), (30, -5)],
    ] {
        let mut found = good.clone();
        changes.iter().for_each(|&(at, index)| found[at] = index);
        let found = found.iter().flat_map(|k| little_endian(*k, index_ty));
        let inputs = [of_data.clone(), found.collect()];
        let (expected, result) = reference(&nest, &inputs);
        assert_eq!(result.is_err(), changes.len() == 3);
        compare(0, &nest, &inputs, &expected, &result);
    }
}

/// Lanes over rows of a few columns, which one axis goes through: indices wrong or from the end at the ends and between.
#[test]
fn rows_of_few_columns() {
    for columns in [2, 3, 4, 5, 6, 7, 12] {
        for (ty, data_ty) in [(I32, F32), (I64, I64), (I32, U8), (I64, F16)] {
            for by_row in [false, true] {
                few_columns(columns, ty, data_ty, by_row);
            }
        }
    }
}

/// `out[t] = data[index[t], t % columns]`, or `data[t / columns, index[t]]` if `by_row`.
fn few_columns(columns: usize, ty: ElementType, data_ty: ElementType, by_row: bool) {
    const ROWS: usize = 300;
    const EXTENT: usize = 300;
    let count = ROWS * columns;
    let shape = if by_row {
        [ROWS, EXTENT]
    } else {
        [EXTENT, columns]
    };
    let mut nest = Nest::new();
    let data = nest.buffer("data", data_ty, &shape, Role::Input);
    let indices = nest.buffer("indices", ty, &[count], Role::Input);
    let out = nest.buffer("out", data_ty, &[count], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], out, |nest, at| {
        let found = nest.load(indices, at.to_vec());
        let found = nest.wrap(found, EXTENT, Policy::WRAP, site, at.to_vec());
        let n = index(columns as i64);
        match by_row {
            true => nest.load(
                data,
                vec![Scalar::binary(Binary::Div, at[0].clone(), n), found],
            ),
            false => nest.load(
                data,
                vec![found, Scalar::binary(Binary::Rem, at[0].clone(), n)],
            ),
        }
    });
    let elements = shape[0] * shape[1];
    let of_data: Vec<u8> = (0..elements)
        .flat_map(|k| little_endian(k as i64, data_ty))
        .collect();
    let good: Vec<i64> = (0..count).map(|k| (k * 7919 % EXTENT) as i64).collect();
    let heading = headings(&nest);
    let on = |bits: usize| heading.contains(&format!("on {bits} bits, indices checked"));
    let is_wide = match vector_loops() {
        [_, true] => on(512),
        [is_there, _] => on(256) || !is_there,
    };
    assert!(is_wide, "{heading}");
    let far = EXTENT as i64;
    for (at, wrong) in [
        (0, far),
        (count / 2, -1),
        (count / 2 + 1, -far - 1),
        (count - 1, far),
    ] {
        let mut found = good.clone();
        found[at] = wrong;
        let found = found.iter().flat_map(|k| little_endian(*k, ty)).collect();
        let inputs = [of_data.clone(), found];
        let (expected, result) = reference(&nest, &inputs);
        assert_eq!(result.is_err(), wrong != -1);
        compare(at as u64, &nest, &inputs, &expected, &result);
    }
}

/// Indices from a table need no check if all of them are in range, and fault like others if one is not.
#[test]
fn indices_from_a_table() {
    let mut known = 0;
    for count in [3usize, 16, 61] {
        for ty in [I32, I64] {
            for wrong in [
                None,
                Some((0, 40i64)),
                Some((count - 1, 40)),
                Some((count / 2, -1)),
            ] {
                for scatters in [false, true] {
                    let mut table: Vec<i64> = (0..count).map(|k| (k * 7 % 40) as i64).collect();
                    wrong.into_iter().for_each(|(at, index)| table[at] = index);
                    let bytes: Vec<u8> = match ty {
                        I32 => table
                            .iter()
                            .flat_map(|k| (*k as i32).to_le_bytes())
                            .collect(),
                        _ => table.iter().flat_map(|k| k.to_le_bytes()).collect(),
                    };
                    let mut nest = Nest::new();
                    let (long, short) = if scatters { (count, 40) } else { (40, count) };
                    let data = nest.buffer("data", F32, &[long], Role::Input);
                    let out = nest.buffer("out", F32, &[short], Role::Output);
                    let indices = nest.table("indices", ty, count, &bytes);
                    let site = site(&mut nest);
                    let of_data: Vec<u8> =
                        (0..long).flat_map(|k| (k as f32).to_le_bytes()).collect();
                    if scatters {
                        nest.define(vec![], out, |_, _| zero(F32));
                    }
                    let axis = nest.axis(count);
                    let at = vec![Scalar::axis(axis.id)];
                    let found = nest.load(indices, at.clone()).cast(I64);
                    let row = nest.wrap(found, 40, Policy::CHECK, site, at.clone());
                    let (place, from) = if scatters {
                        (row, at[0].clone())
                    } else {
                        (at[0].clone(), row)
                    };
                    let value = nest.load(data, vec![from]);
                    nest.stages.push(Stage {
                        domain: vec![axis],
                        target: out,
                        at: vec![place],
                        mode: Mode::Set,
                        value,
                        layers: vec![],
                        group: None,
                    });
                    let inputs = [of_data];
                    let (expected, result) = reference(&nest, &inputs);
                    assert_eq!(result.is_err(), wrong.is_some());
                    compare(count as u64, &nest, &inputs, &expected, &result);
                    let is_known = headings(&nest).contains("constant indices, checked once");
                    assert!(!is_known || wrong.is_none());
                    known += usize::from(is_known);
                }
            }
        }
    }
    assert!(known > 0 || !vector_loops()[0]);
}

/// Rows that stay in registers, whole ones or not, by indices of both widths, of which one may be wrong or from the
/// end, at the ends and between.
#[test]
fn short_rows() {
    for extent in [8, 9, 13, 15, 16, 17, 23, 24, 25, 29, 31, 32] {
        for (ty, data_ty) in [
            (I32, F32),
            (I64, F32),
            (I32, F16),
            (I64, F16),
            (I32, U8),
            (I64, U8),
        ] {
            for points in [16, 21] {
                short_row(extent, points, ty, data_ty);
            }
        }
    }
}

/// `out[i, j] = data[i, index[i, j]]`
fn short_row(extent: usize, points: usize, ty: ElementType, data_ty: ElementType) {
    const ROWS: usize = 5;
    let mut nest = Nest::new();
    let data = nest.buffer("data", data_ty, &[ROWS, extent], Role::Input);
    let indices = nest.buffer("indices", ty, &[ROWS, points], Role::Input);
    let out = nest.buffer("out", data_ty, &[ROWS, points], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], out, |nest, at| {
        let found = nest.load(indices, at.to_vec());
        let found = nest.wrap(found, extent, Policy::WRAP, site, at.to_vec());
        nest.load(data, vec![at[0].clone(), found])
    });
    let heading = headings(&nest);
    let stays = heading.contains("rows in registers");
    // Wider vectors do not all permute bytes.
    assert!(
        stays || !vector_loops()[0] || vector_loops()[1],
        "{extent}: {heading}"
    );
    let of_data: Vec<u8> = (0..ROWS * extent)
        .flat_map(|k| little_endian(k as i64, data_ty))
        .collect();
    let count = ROWS * points;
    let far = extent as i64;
    let good: Vec<i64> = (0..count as i64).map(|k| k * 7 % far).collect();
    for (at, other) in [
        (0, far - 1),
        (0, far),
        (count / 2, -far),
        (count / 2 + 1, -far - 1),
        (count - 1, 1 << 31),
        (count - 1, -1),
    ] {
        let mut found = good.clone();
        found[at] = other;
        let of_indices = found.iter().flat_map(|v| little_endian(*v, ty)).collect();
        let inputs = [of_data.clone(), of_indices];
        let (expected, result) = reference(&nest, &inputs);
        compare(0, &nest, &inputs, &expected, &result);
    }
}

/// `y[i, j] = y[i + 1, j] + x[wrap(indices[j])]` after `y[i, j] = i`, where a wrong index reads zero. The loop must
/// not begin again when it finds one: rows that are done already would be shifted once more.
#[test]
fn a_loop_that_reads_what_it_wrote_is_not_repeated() {
    const ROWS: usize = 9;
    const COLUMNS: usize = 200;
    for index_ty in [I32, I64] {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[7], Role::Input);
        let indices = nest.buffer("indices", index_ty, &[ROWS, COLUMNS], Role::Input);
        let y = nest.buffer("y", F32, &[ROWS + 1, COLUMNS], Role::Output);
        let site = site(&mut nest);
        nest.define(vec![], y, |_, at| at[0].clone().cast(F32));
        nest.define(vec![], y, |nest, at| {
            let position = vec![at[0].clone(), at[1].clone()];
            let found = nest.load(indices, position.clone());
            let policy = Policy::WRAP_OR_ZERO;
            let found = nest.wrap(found, 7, policy, site, position);
            let next = nest.load(y, vec![&at[0] + 1, at[1].clone()]);
            next + nest.load(x, vec![found])
        });
        nest.stages[1].domain[0].extent = ROWS.into();
        verify(&nest).unwrap();
        let numbers = (0..7)
            .flat_map(|k| (k as f32 * 0.25).to_le_bytes())
            .collect();
        let wrong = ROWS / 2 * COLUMNS + 77;
        let index = |k: usize| if k == wrong { 7 } else { (k * 5 % 7) as i64 };
        let indices = (0..ROWS * COLUMNS).flat_map(|k| little_endian(index(k), index_ty));
        let inputs = [numbers, indices.collect()];
        let (want, ended) = reference(&nest, &inputs);
        ended.unwrap();
        let (found, ended) = run(&nest, &inputs);
        ended.unwrap();
        assert!(found[2] == want[2], "{index_ty}\n{nest}");
    }
}

/// An index that a fold checks at each point, and one that all points of a block could have checked before.
#[test]
fn faults_of_folds_come_in_their_order() {
    let text = "input ix: i32[24]\ninput x: f32[2]\ninput z: f32[2]\ninput iz: i32[2]\n\
                output y: f32[24]\n\
                for i<24: y[i] = add[j<2; x[wrap(ix[i], 2)]](z[check(iz[j], 2)])\n";
    let nest = vinelift_nest::parse(text).unwrap();
    let mut ix = [0i32; 24];
    ix[15] = 2;
    let numbers = bytes(&[1f32, 2.0]);
    let inputs = [bytes(&ix), numbers.clone(), numbers, bytes(&[0i32, -2])];
    assert_eq!(run(&nest, &inputs).1, reference(&nest, &inputs).1);
}

/// An index that is the same for all points of a row, and wrong where one that is evaluated before it is wrong as well.
#[test]
fn faults_of_rows_come_in_their_order() {
    let text = "input ix: i64[40]\ninput iz: i64[8]\ninput x: u8[3, 2]\noutput y: u8[40, 10]\n\
                for i<8, j<40: y[j, (i + 2)] = x[check(ix[j], 3), check(iz[i], 2)]\n";
    let nest = vinelift_nest::parse(text).unwrap();
    for (row, point) in [(0, 0), (1, 0), (1, 30)] {
        let (mut ix, mut iz) = ([0i64; 40], [0i64; 8]);
        (ix[point], iz[row]) = (-2, 2);
        let inputs = [bytes(&ix), bytes(&iz), vec![1; 6]];
        let (_, expected) = reference(&nest, &inputs);
        assert_eq!(run(&nest, &inputs).1, expected, "row {row}, point {point}");
    }
}
