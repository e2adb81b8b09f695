//! Values that are computed with the axis that runs over lanes.

use crate::common::{bytes, reference, run, text_for_256_bits, vector_loops};
use vinelift_nest::{Nest, parse, verify};

fn nest(extents: &str, loops: &str, value: &str, ty: &str) -> Nest {
    let at = match loops.contains(',') {
        true => "i, j",
        false => "i",
    };
    let text =
        format!("input p: i64[7]\noutput y: {ty}[{extents}]\nfor {loops}: y[{at}] = {value}\n");
    let nest = parse(&text).unwrap();
    verify(&nest).unwrap();
    nest
}

/// Rows shorter than a register, of whole registers, and with a rest; one loop, of which each task does a part.
#[test]
fn each_lane_is_at_its_own_point() {
    let p: Vec<i64> = vec![3, -1, 0, 12, 5, 1000, 2];
    for n in [4, 7, 8, 13, 32, 67, 300] {
        let rows =
            |value: &str, ty: &str| nest(&format!("7, {n}"), &format!("i<7, j<{n}"), value, ty);
        let line = |value: &str, ty: &str| nest(&format!("{n}"), &format!("i<{n}"), value, ty);
        for nest in [
            rows("select((p[i] == j), 1.0, 0.0)", "f32"),
            rows("select((p[i] > j), u8(1i64), u8(2i64))", "u8"),
            rows("((j * 3) + p[i])", "i64"),
            rows("(f64(j) * 0.5f64)", "f64"),
            line("f32(((i * 2) - 5))", "f32"),
            line("(i - p[0])", "i64"),
        ] {
            let inputs = [bytes(&p)];
            let (expected, _) = reference(&nest, &inputs);
            let (found, result) = run(&nest, &inputs);
            assert_eq!(result, Ok(()));
            assert_eq!(found[1], expected[1], "{nest}");
        }
    }
}

#[test]
fn one_hot_is_a_vector_loop() {
    if !vector_loops()[0] {
        return;
    }
    let nest = nest(
        "7, 300",
        "i<7, j<300",
        "select((p[i] == j), 1.0, 0.0)",
        "f32",
    );
    let text = text_for_256_bits(&nest).clif;
    assert!(text.contains("on 256 bits"), "{text}");
}
