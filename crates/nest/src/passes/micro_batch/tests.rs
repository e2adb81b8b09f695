use super::*;
use crate::analysis::verify;
use crate::ir::parse;

/// The stages for a `count`-th of the batch of a nest of this text, in which what begins with `w` holds zeros and what begins
/// with `v` bytes of which no two are equal; `None` if it is not the same for each image.
fn split(text: &str, count: usize) -> Option<Vec<String>> {
    let mut nest = parse(text).unwrap();
    verify(&nest).unwrap();
    let of = |buffer: &Buffer| -> Vec<u8> {
        let bytes = 0..buffer.byte_len().unwrap();
        match buffer.name.starts_with('v') {
            true => bytes.map(|k| k as u8).collect(),
            false => bytes.map(|_| 0).collect(),
        }
    };
    let held: Vec<Vec<u8>> = nest.buffers.iter().map(of).collect();
    let names: Vec<String> = nest.buffers.iter().map(|b| b.name.clone()).collect();
    let constant = |b: BufferId| {
        let is_constant = names[b.0 as usize].starts_with(['v', 'w']);
        is_constant.then(|| held[b.0 as usize].as_slice())
    };
    Batch::of(&nest, &constant)?.split(&mut nest, count);
    verify(&nest).unwrap();
    Some(nest.stage_texts())
}

fn is_split(text: &str) -> bool {
    split(text, 2).is_some()
}

#[test]
fn every_stage_computes_fewer_images() {
    let text = "input x: f32[4, 3, 8]\ninput w: f32[5, 3]\ntemporary a: f32[4, 5, 8]\noutput y: f32[4, 5]\n\
                for i<4, j<5, k<8: a[i, j, k] = add[l<3; 0.0](term(x[i, l, k], w[j, l]))\n\
                for i<4, j<5: y[i, j] = max[k<8; 0.0](a[i, j, k])\n";
    let stages = |images: usize| {
        vec![
            format!(
                "for i<{images}, j<5, k<8: a[i, j, k] = add[l<3; 0.0](term(x[i, l, k], w[j, l]))"
            ),
            format!("for i<{images}, j<5: y[i, j] = max[k<8; 0.0](a[i, j, k])"),
        ]
    };
    for count in [1, 2, 4] {
        assert_eq!(split(text, count), Some(stages(4 / count)));
    }
    let nest = parse(text).unwrap();
    let constant = |b: BufferId| (b.0 == 1).then_some([0u8; 60].as_slice());
    let batch = Batch::of(&nest, &constant).unwrap();
    let bytes = BatchBytes {
        widest: 5 * 8 * 4,
        all: 2 * 5 * 8 * 4,
        constants: 60,
    };
    assert_eq!((batch.images(), batch.bytes(&nest)), (4, bytes));
}

#[test]
fn images_may_be_digits_of_an_index_and_lie_along_any_dim_between() {
    let split = split(
        "input x: f32[4, 6, 10]\ntemporary rows: f32[24, 10]\ntemporary t: f32[2, 4, 3, 10]\noutput y: f32[4, 2, 3, 10]\n\
         for i<24, j<10: rows[i, j] = x[(((i * 10) + j) / 60), ((((i * 10) + j) / 10) % 6), (((i * 10) + j) % 10)]\n\
         for i<2, j<4, k<3, l<10: t[i, j, k, l] = rows[(((j * 6) + (i * 3)) + k), l]\n\
         for i<4, j<2, k<3, l<10: y[i, j, k, l] = t[j, i, k, l]\n",
        2,
    );
    assert_eq!(
        split.unwrap(),
        [
            "for i<12, j<10: rows[i, j] = x[(((i * 10) + j) / 60), ((((i * 10) + j) / 10) % 6), (((i * 10) + j) % 10)]",
            "for i<2, j<2, k<3, l<10: t[i, j, k, l] = rows[(((j * 6) + (i * 3)) + k), l]",
            "for i<2, j<2, k<3, l<10: y[i, j, k, l] = t[j, i, k, l]",
        ]
    );
}

/// Where rows come before the images, only ranges say which digits are theirs.
#[test]
fn images_may_be_digits_between_others() {
    let text = |value: &str| {
        format!(
            "input x: f32[4, 6, 10]\ntemporary t: f32[6, 4, 10]\ntemporary u: f32[6, 8, 5]\noutput y: f32[4, 6, 5]\n\
             for i<6, j<4, k<10: t[i, j, k] = x[j, i, k]\nfor i<6, j<8, k<5: u[i, j, k] = {value}\n\
             for i<4, j<6, k<5: y[i, j, k] = u[j, (i * 2), k]\n"
        )
    };
    let at = |n: usize| {
        let whole = "(((i * 40) + (j * 5)) + k)";
        format!("t[({whole} / 40), (({whole} / {n}) % 4), ({whole} % 10)]")
    };
    assert!(is_split(&text(&at(10))));
    assert!(!is_split(&text(&at(20))));
}

/// `t` is computed from constants once, for all images, and what of it belongs to the first few is what belongs to all.
#[test]
fn constants_may_be_the_same_for_each_image() {
    let text = |constant: &str, y: &str| {
        format!(
            "input x: f32[4, 6]\ninput {constant}: f32[4, 6]\ntemporary t: f32[4, 6]\noutput y: f32[4, 6]\n\
             for i<4, j<6: t[i, j] = ({constant}[i, j] + 1.0)\nfor i<4, j<6: y[i, j] = {y}\n"
        )
    };
    let stages = split(&text("w", "(x[i, j] + t[i, j])"), 2).unwrap();
    assert_eq!(
        stages,
        [
            "for i<4, j<6: t[i, j] = (w[i, j] + 1.0)",
            "for i<2, j<6: y[i, j] = (x[i, j] + t[i, j])",
        ]
    );
    assert!(!is_split(&text("v", "(x[i, j] + t[i, j])")));
    assert!(is_split(&text("v", "(x[i, j] + t[2, j])")));
}

#[test]
fn what_nobody_reads_is_not_computed() {
    let stages = split(
        "input x: f32[4, 6]\ntemporary t: f32[4, 6]\ntemporary u: f32[4, 6]\noutput y: f32[4, 6]\n\
         for i<4, j<6: t[i, j] = x[(3 - i), j]\nfor i<4, j<6: u[i, j] = t[i, j]\nfor i<4, j<6: y[i, j] = x[i, j]\n",
        2,
    );
    assert_eq!(stages.unwrap(), ["for i<2, j<6: y[i, j] = x[i, j]"]);
}

#[test]
fn several_stages_may_write_the_slices_of_a_buffer() {
    let text = |first: &str, second: &str| {
        format!(
            "input x: f32[4, 6]\ntemporary t: f32[4, 8]\noutput y: f32[4, 8]\n\
             for i<4, j<8: t[i, j] = {first}\n{second}\nfor i<4, j<8: y[i, j] = t[i, j]\n"
        )
    };
    let middle = "for i<4, j<6: t[i, (j + 1)] = x[i, j]";
    assert!(is_split(&text("0.0", middle)));
    assert!(!is_split(&text("f32(i)", middle)));
    assert!(!is_split(&text(
        "0.0",
        "for i<4, j<6: t[(3 - i), (j + 1)] = x[i, j]"
    )));
    assert!(!is_split(&text(
        "0.0",
        "for i<2, j<6: t[i, (j + 1)] = x[i, j]"
    )));
    assert!(!is_split(&text(
        "0.0",
        "for i<1, j<6: t[i, (j + 1)] = x[2, j]"
    )));
}

#[test]
fn what_is_not_the_same_for_each_image_stays_together() {
    let one = |value: &str| {
        format!(
            "input x: f32[4, 6]\ninput n: i64[4]\ninput w: f32[6]\ninput v: f32[4]\noutput y: f32[4, 6]\n\
             for i<4, j<6: y[i, j] = {value}\n"
        )
    };
    for value in [
        "(x[i, j] * w[j])",
        "select((j < 3), x[i, j], x[i, (j - 3)])",
        "add[k<6; 0.0](x[i, k])",
        "x[i, (((i * 12) + j) % 6)]",
        "select((n[i] < 2), x[i, j], 0.0)",
        "f32(max(n[i], j))",
    ] {
        assert!(is_split(&one(value)), "{value}");
    }
    for value in [
        "x[(3 - i), j]",
        "x[0, j]",
        "x[max(i, 1), j]",
        "x[((i + 1) % 4), j]",
        "x[((i * 6) / 7), j]",
        "add[k<4; 0.0](x[k, j])",
        "x[select((n[i] < 2), i, 0), j]",
        "select((i < 3), x[i, j], 0.0)",
        "(x[i, j] * f32(i))",
        "(x[i, j] * v[i])",
        "x[i, (((i * 5) + j) % 6)]",
        "x[i, select((i == j), 0, j)]",
        "x[min(max(n[i], 0), 3), j]",
    ] {
        assert!(!is_split(&one(value)), "{value}");
    }
    // Of 1.5 images, of one point of each, of one input in another way, of nothing in the batch, of less than bytes.
    for text in [
        "input x: f32[4, 6]\noutput y: f32[6, 4]\n\
         for i<6, j<4: y[i, j] = x[(((i * 4) + j) / 6), (((i * 4) + j) % 6)]\n",
        "input x: f32[4, 6]\noutput y: f32[6, 4]\nfor i<6, j<4: y[i, j] = x[j, i]\n",
        "input x: f32[4, 6]\ninput z: f32[4, 6]\noutput y: f32[4, 6]\nfor i<4, j<6: y[i, j] = (x[i, j] + z[0, j])\n",
        "input x: f32[4, 6]\noutput y: f32[4, 6]\noutput z: f32[3]\n\
         for i<4, j<6: y[i, j] = x[i, j]\nfor i<3: z[i] = 1.0\n",
        "input x: u4[4, 6]\noutput y: u4[4, 6]\nfor i<4, j<6: y[i, j] = x[i, j]\n",
        "input x: f32[4, 6]\ninput w: u4[4, 6]\noutput y: f32[4, 6]\n\
         for i<4, j<6: y[i, j] = (x[i, j] * f32(w[i, j]))\n",
        "input x: f32[1, 6]\noutput y: f32[1, 6]\nfor i<1, j<6: y[i, j] = x[i, j]\n",
    ] {
        assert!(!is_split(text), "{text}");
    }
}
