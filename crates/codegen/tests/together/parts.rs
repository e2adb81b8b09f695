//! Kernels that are cut into short parts: loops without a loop inside, beside loops over rows.

use crate::common::{compile, random, reference, run};
use vinelift_nest::parse;
use vinelift_tensor::ElementType::{self, F32, F64, I64, U8};

/// The bytes of a tensor of small numbers.
fn small_numbers(ty: ElementType, count: usize) -> Vec<u8> {
    let mut next = random(7);
    let numbers = (0..count).map(|_| (next() % 50) as u8);
    match ty {
        F32 => numbers
            .flat_map(|n| (f32::from(n) / 8.0).to_le_bytes())
            .collect(),
        F64 => numbers
            .flat_map(|n| (f64::from(n) / 8.0).to_le_bytes())
            .collect(),
        I64 => numbers.flat_map(|n| i64::from(n).to_le_bytes()).collect(),
        _ => numbers.collect(),
    }
}

/// Rows are reduced, what comes of it is one loop whose loads step by one or by more, and it is used in rows again.
#[test]
fn loops_beside_rows_stay_in_their_part() {
    for (ty, zero) in [(F32, "0.0"), (F64, "0.0f64"), (I64, "0"), (U8, "0u8")] {
        for rows in [64, 65, 100, 129, 400] {
            let all = rows * 4;
            for (shape, row) in [(format!("{rows}"), "i"), (format!("4, {rows}"), "a, i")] {
                // The outermost loop is as long as the rows, or four times shorter.
                let (axes, flat, count) = match row {
                    "i" => (format!("i<{rows}"), "i".to_owned(), rows),
                    _ => (format!("a<4, i<{rows}"), format!("((a * {rows}) + i)"), all),
                };
                let text = format!(
                    "input x: {ty}[{shape}, 300]\ntemporary lanes: {ty}[{}]\ntemporary largest: {ty}[{count}]\n\
                     temporary twice: {ty}[{count}]\noutput y: {ty}[{shape}, 300]\n\
                     for {axes}, k<4: lanes[(({flat} * 4) + k)] = max[l<75; {zero}](x[{row}, ((l * 4) + k)])\n\
                     for i<{count}: largest[i] = max(max(lanes[(i * 4)], lanes[((i * 4) + 2)]), \
                     max(lanes[((i * 4) + 1)], lanes[((i * 4) + 3)]))\n\
                     for i<{count}: twice[i] = (largest[i] + largest[i])\n\
                     for {axes}, k<300: y[{row}, k] = (x[{row}, k] + twice[{flat}])\n",
                    count * 4
                );
                let nest = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
                let inputs = [small_numbers(ty, count * 300)];
                assert!(run(&nest, &inputs) == reference(&nest, &inputs), "{text}");
            }
        }
    }
}

/// Rows of few columns along the lanes say nothing about where chunks of another loop may begin.
#[test]
fn columns_of_lanes_do_not_join_outer_turns() {
    let text = "input x: f32[3, 4, 100]\noutput y: f32[3, 50, 400]\n\
                for i<3, j<50, k<400: y[i, j, k] = (x[i, (k % 4), (k / 4)] + 1.0)\n";
    let nest = parse(text).unwrap();
    assert_eq!(compile(&nest).chunks(0, &[]).grain, 1, "{text}");
}
