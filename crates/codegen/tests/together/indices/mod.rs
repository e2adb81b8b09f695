//! Data-dependent indices of every type, width and policy, right and wrong at every place, in all the ways
//! in which stages run: results and faults are those of the interpreter.

mod any;
mod rows;

use crate::common::{COMPILER, Compiled, bytes, reference, run, same, site, vector_loops};
use vinelift_codegen::Options;
use vinelift_nest::{Fault, Mode, Nest, Policy, Role, Scalar, Stage, build::*, verify};
use vinelift_tensor::ElementType::{self, *};

/// Indices from a table need no check if all of them are in range, and fault like others if one is not.
#[test]
fn indices_from_a_table() {
    let mut known = 0;
    for count in [3usize, 16, 61] {
        for ty in [I32, I64] {
            for wrong in [
                None,
                Some((0, EXTENT as i64)),
                Some((count - 1, EXTENT as i64)),
                Some((count / 2, -1)),
            ] {
                for scatters in [false, true] {
                    let nest = from_a_table(count, ty, wrong, scatters);
                    let long = if scatters { count } else { EXTENT };
                    let of_data = (0..long).flat_map(|k| (k as f32).to_le_bytes()).collect();
                    let inputs = [of_data];
                    let (expected, result) = reference(&nest, &inputs);
                    assert_eq!(result.is_err(), wrong.is_some());
                    let compiled = Compiled::of(&nest);
                    compare(count as u64, &compiled, &inputs, &expected, &result);
                    let is_known = headings(&nest).contains("constant indices, checked once");
                    assert!(!is_known || wrong.is_none());
                    known += usize::from(is_known);
                }
            }
        }
    }
    assert!(known > 0 || !vector_loops()[0]);
}

/// How long the side is that a table of indices leads to.
const EXTENT: usize = 40;

/// `out[i] = data[table[i]]`, or `out[table[i]] = data[i]` if it scatters, where the element `wrong` of the table has this value.
fn from_a_table(
    count: usize,
    ty: ElementType,
    wrong: Option<(usize, i64)>,
    scatters: bool,
) -> Nest {
    let mut table: Vec<i64> = (0..count).map(|k| (k * 7 % EXTENT) as i64).collect();
    wrong.into_iter().for_each(|(at, index)| table[at] = index);
    let bytes: Vec<u8> = table.iter().flat_map(|k| little_endian(*k, ty)).collect();
    let mut nest = Nest::new();
    let (long, short) = if scatters {
        (count, EXTENT)
    } else {
        (EXTENT, count)
    };
    let data = nest.buffer("data", F32, &[long], Role::Input);
    let out = nest.buffer("out", F32, &[short], Role::Output);
    let indices = nest.table("indices", ty, count, &bytes);
    let site = site(&mut nest);
    if scatters {
        nest.define(vec![], out, |_, _| zero(F32));
    }
    let axis = nest.axis(count);
    let at = Scalar::axis(axis.id);
    let found = nest.load(indices, vec![at.clone()]).cast(I64);
    let row = nest.wrap(found, EXTENT, Policy::CHECK, site, vec![at.clone()]);
    let (place, from) = if scatters { (row, at) } else { (at, row) };
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
    nest
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

/// Runs the code of a nest, which must do what is expected.
fn compare(
    seed: u64,
    compiled: &Compiled<'_>,
    inputs: &[Vec<u8>],
    expected: &[Vec<u8>],
    expected_result: &Result<(), Fault>,
) {
    let nest = compiled.nest;
    let (found, result) = compiled.run(inputs);
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

fn little_endian(value: i64, ty: ElementType) -> Vec<u8> {
    value.to_le_bytes()[..ty.bits() / 8].to_vec()
}
