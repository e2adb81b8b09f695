use super::*;
use crate::analysis::verify;
use crate::ir::parse;

/// After the pass over a nest of this text, in which the contents of what begins with `w` or `b` are known, for vectors of eight
/// lanes.
fn passed(text: &str) -> Vec<String> {
    passed_for(8, text)
}

fn passed_for(lanes: usize, text: &str) -> Vec<String> {
    let mut nest = parse(text).unwrap();
    verify(&nest).unwrap();
    let names: Vec<String> = nest.buffers.iter().map(|b| b.name.clone()).collect();
    let is_constant = |buffer: BufferId| {
        let name = &names[buffer.0 as usize];
        name.starts_with('w') || name.starts_with('b')
    };
    channels_last(&mut nest, &is_constant, lanes);
    verify(&nest).unwrap();
    nest.stage_texts()
}

/// `t = x + 1`, and the sums `y` over its `channels` with weights for `results`, of which `z` is the absolute value.
fn pointwise(channels: usize, results: usize) -> Vec<String> {
    passed(&format!(
        "input x: f32[{channels}, 12, 20]\ninput w: f32[{results}, {channels}]\n\
         temporary t: f32[{channels}, 12, 20]\ntemporary y: f32[{results}, 12, 20]\n\
         temporary u: f32[{results}, 12, 20]\ninput w2: f32[32, {results}]\noutput z: f32[32, 12, 20]\n\
         for i<{channels}, j<12, k<20: t[i, j, k] = (x[i, j, k] + 1.0)\n\
         for i<{results}, j<12, k<20: y[i, j, k] = add[l<{channels}; 0.0](term(t[l, j, k], w[i, l]))\n\
         for i<{results}, j<12, k<20: u[i, j, k] = (y[i, j, k] + 1.0)\n\
         for i<32, j<12, k<20: z[i, j, k] = add[l<{results}; 0.0](term(u[l, j, k], w2[i, l]))\n"
    ))
}

#[test]
fn channels_of_operands_and_results_are_last() {
    let stages = pointwise(16, 16);
    assert_eq!(
        stages[1..],
        [
            "for i<12, j<20, k<16: y[i, j, k] = add[l<16; 0.0](term(t[l, i, j], w[k, l]))",
            "for i<12, j<20, k<16: u[i, j, k] = (y[i, j, k] + 1.0)",
            // The result belongs to the caller.
            "for i<32, j<12, k<20: z[i, j, k] = add[l<16; 0.0](term(u[j, k, l], w2[i, l]))",
        ]
    );
}

#[test]
fn a_transpose_costs_more_than_a_small_contraction_gains() {
    // `t` is computed from an input in planes: 16 results do not pay for that, 2048 do.
    assert!(pointwise(16, 16)[0].starts_with("for i<16, j<12, k<20: t[i, j, k]"));
    assert!(pointwise(16, 2048)[0].starts_with("for i<12, j<20, k<16: t[i, j, k]"));
}

#[test]
fn few_results_keep_planes() {
    assert!(pointwise(16, 15)[1].starts_with("for i<15, j<12, k<20: y[i, j, k]"));
    assert!(pointwise(16, 16)[1].starts_with("for i<12, j<20, k<16: y[i, j, k]"));
}

#[test]
fn few_channels_keep_planes() {
    assert!(pointwise(7, 2048)[0].starts_with("for i<7, j<12, k<20: t[i, j, k]"));
    assert!(pointwise(8, 2048)[0].starts_with("for i<12, j<20, k<8: t[i, j, k]"));
}

/// The stage of `y`, sums over `channels` for `results` with vectors of `lanes`, of which `fold` is read afterwards.
fn read_by(fold: &str, lanes: usize, channels: usize, results: usize) -> String {
    let stages = passed_for(
        lanes,
        &format!(
            "input x: f32[{channels}, 12, 20]\ninput w: f32[{results}, {channels}]\n\
             temporary y: f32[{results}, 12, 20]\noutput z: f32[{results}]\noutput v: f32[8]\n\
             for i<{results}, j<12, k<20: y[i, j, k] = add[l<{channels}; 0.0](term(x[l, j, k], w[i, l]))\n\
             for i<{results}: z[i] = max(y[i, 0, 0], y[i, 1, 1])\n{fold}"
        ),
    );
    stages[0].clone()
}

/// `20 - 19 / fill + 240 / k`, with three quarters of the lanes filled, is 0 for `k = 45`.
#[test]
fn emptier_vectors_pay_for_short_sums() {
    let is_moved = |lanes, channels, results| {
        read_by("", lanes, channels, results).starts_with("for i<12, j<20")
    };
    assert!(is_moved(16, 44, 24) && !is_moved(16, 46, 24));
    assert!(is_moved(8, 46, 24));
    assert!(is_moved(16, 46, 32) && is_moved(16, 2000, 32));
    // With 15 of 16 lanes filled it is 0 for `k = 900`.
    assert!(is_moved(16, 899, 120) && !is_moved(16, 901, 120));
}

/// For `k = 50` the sums above lose 36,000 · 8 / 15 products, and each of the 480 points of a line of a padded window that keeps channels
/// apart gains 8.
#[test]
fn windows_that_keep_channels_apart_gain() {
    let is_moved = |lines: usize| {
        let stages = passed_for(
            16,
            &format!(
                "input x: f32[50, 12, 20]\ninput w: f32[24, 50]\ntemporary y: f32[24, 12, 20]\ninput wd: f32[24, 3]\n\
                 output z: f32[{lines}, 20, 24]\n\
                 for i<24, j<12, k<20: y[i, j, k] = add[l<50; 0.0](term(x[l, j, k], w[i, l]))\n\
                 for i<{lines}, j<20, k<24: \
                 z[i, j, k] = add[l<3; 0.0](term(select(((i + l) >= 1), y[k, ((i + l) - 1), j], 0.0), wd[k, l]))\n"
            ),
        );
        stages[0].starts_with("for i<12, j<20, k<24")
    };
    assert!(!is_moved(4) && is_moved(6));
}

/// A window that keeps channels apart, whose results DepthToSpace spreads: weights have their channels last, too. A picture whose
/// channels are last already may be read in any way.
#[test]
fn weights_of_blocks_of_channels_are_transposed() {
    let stages = passed(
        "input x: f32[16, 12, 20]\ninput w: f32[32, 16]\ntemporary y: f32[32, 12, 20]\ninput wd: f32[32, 3]\n\
         temporary z: f32[12, 36, 16]\noutput u: f32[6912]\n\
         for i<32, j<12, k<20: y[i, j, k] = add[l<16; 0.0](term(x[l, j, k], w[i, l]))\n\
         for i<12, j<18, k<2, l<16: z[i, ((j * 2) + k), l] = \
         add[m<3; 0.0](term(select(((j + m) >= 1), y[((k * 16) + l), i, ((j + m) - 1)], 0.0), wd[((k * 16) + l), m]))\n\
         for i<6912: u[i] = z[(i / 576), ((i / 16) % 36), (i % 16)]\n",
    );
    assert_eq!(
        stages[0],
        "for i<12, j<20, k<32: y[i, j, k] = add[l<16; 0.0](term(x[l, i, j], w[k, l]))"
    );
    assert_eq!(
        stages[1..3],
        [
            "for i<3, j<32: wd.channels_last[i, j] = wd[j, i]",
            "for i<12, j<18, k<2, l<16: z[i, ((j * 2) + k), l] = add[m<3; 0.0](term(\
             select(((j + m) >= 1), y[i, ((j + m) - 1), ((k * 16) + l)], 0.0), \
             wd.channels_last[m, ((k * 16) + l)]))",
        ]
    );
}

/// DepthToSpace reads blocks of channels, each along an axis, so its picture may have its channels last. They must be so in blocks:
/// not where channels of a block are apart.
#[test]
fn blocks_of_channels_are_read_along_them() {
    let spread = |channel: &str| {
        let stages = passed(&format!(
            "input x: f32[16, 12, 20]\ninput w: f32[32, 16]\ntemporary y: f32[32, 12, 20]\n\
             temporary z: f32[8, 24, 40]\ninput w2: f32[16, 8]\noutput u: f32[16, 24, 40]\n\
             for i<32, j<12, k<20: y[i, j, k] = add[l<16; 0.0](term(x[l, j, k], w[i, l]))\n\
             for i<8, j<24, k<40: z[i, j, k] = y[{channel}, (j / 2), (k / 2)]\n\
             for i<16, j<24, k<40: u[i, j, k] = add[l<8; 0.0](term(z[l, j, k], w2[i, l]))\n"
        ));
        stages[0].starts_with("for i<12, j<20, k<32: y[i, j, k]")
    };
    assert!(spread("((((j % 2) * 16) + ((k % 2) * 8)) + i)"));
    assert!(!spread("(((i * 4) + ((j % 2) * 2)) + (k % 2))"));
}

#[test]
fn pictures_that_are_folded_as_a_whole_keep_planes() {
    let fold = |at: &str| format!("for i<8: v[i] = max[j<16, k<30; -inf](y[j, {at}])\n");
    let whole = fold("(((k * 8) + i) / 20), (((k * 8) + i) % 20)");
    assert!(read_by(&whole, 8, 64, 16).starts_with("for i<16, j<12, k<20"));
    // Folded for each of some pixels.
    assert!(read_by(&fold("i, 0"), 8, 64, 16).starts_with("for i<12, j<20, k<16"));
}

/// Words of bytes are packed from whatever layout: that of the result and of a large operand is another, and few results lose nothing.
#[test]
fn bytes_gain_a_sixteenth() {
    let sums = |[picture, weights, sum]: [&str; 3], zero: &str, results: usize| {
        passed(&format!(
            "input x: {picture}[16, 12, 20]\ninput w: {weights}[{results}, 16]\ntemporary t: {picture}[16, 12, 20]\n\
             temporary y: {sum}[{results}, 12, 20]\noutput z: {sum}[{results}]\n\
             for i<16, j<12, k<20: t[i, j, k] = x[i, j, k]\n\
             for i<{results}, j<12, k<20: \
             y[i, j, k] = add[l<16; {zero}](term({sum}(t[l, j, k]), {sum}(w[i, l])))\n\
             for i<{results}: z[i] = max(y[i, 0, 0], y[i, 1, 1])\n"
        ))
    };
    let (bytes, halves) = (
        (["u8", "i8", "i32"], "0i32"),
        (["f16", "f16", "f32"], "0.0"),
    );
    for ((types, zero), results, moved) in [
        (bytes, 15, [false, false]),
        (bytes, 16, [false, true]),
        (bytes, 20_480, [false, true]),
        (bytes, 20_481, [true, true]),
        (halves, 15, [false, false]),
        (halves, 32, [false, true]),
    ] {
        let stages = sums(types, zero, results);
        let is_moved = [
            stages[0].starts_with("for i<12, j<20, k<16: t["),
            stages[1].contains(": y[i, j, k]") && stages[1].starts_with("for i<12"),
        ];
        assert_eq!(is_moved, moved, "{types:?} {results}");
    }
}

/// A window over `y`, the result of a contraction, that keeps channels apart, and another contraction.
fn window(more: &str) -> Vec<String> {
    passed(&format!(
        "input x: f32[16, 12, 20]\ninput w: f32[24, 16]\ninput w1: f32[24, 3, 3]\ninput w2: f32[32, 24]\n\
         input i: i64[1]\ntemporary y: f32[24, 12, 20]\ntemporary u: f32[24, 10, 18]\noutput z: f32[32, 10, 18]\n\
         output v: f32[24, 240]\n\
         for i<24, j<12, k<20: y[i, j, k] = add[l<16; 0.0](term(x[l, j, k], w[i, l]))\n\
         for i<24, j<10, k<18: u[i, j, k] = add[l<3, m<3; 0.0](term(y[i, (j + l), (k + m)], w1[i, l, m]))\n\
         for i<32, j<10, k<18: z[i, j, k] = add[l<24; 0.0](term(u[l, j, k], w2[i, l]))\n{more}"
    ))
}

#[test]
fn weights_of_windows_are_stored_with_channels_last() {
    assert_eq!(
        window("")[1..3],
        [
            "for i<3, j<3, k<24: w1.channels_last[i, j, k] = w1[k, i, j]",
            "for i<10, j<18, k<24: u[i, j, k] = \
             add[l<3, m<3; 0.0](term(y[(i + l), (j + m), k], w1.channels_last[l, m, k]))",
        ]
    );
}

#[test]
fn weights_of_windows_over_pictures_with_channels_last_are_stored_so() {
    let stages = passed(
        "input x: f32[12, 20, 24]\ninput w: f32[24, 3, 3]\noutput y: f32[10, 18, 24]\n\
         for i<10, j<18, k<24: y[i, j, k] = add[l<3, m<3; 0.0](term(x[(i + l), (j + m), k], w[k, l, m]))\n",
    );
    assert_eq!(
        stages[0],
        "for i<3, j<3, k<24: w.channels_last[i, j, k] = w[k, i, j]"
    );
}

/// A part of the channels of a picture, such as one operand of a concatenation.
#[test]
fn weights_of_windows_that_give_some_channels_are_stored_so() {
    let stages = passed(
        "input x: f32[12, 20, 24]\ninput w: f32[24, 3, 3]\noutput y: f32[10, 18, 48]\n\
         for i<10, j<18, k<24: y[i, j, (k + 24)] = add[l<3, m<3; 0.0](term(x[(i + l), (j + m), k], w[k, l, m]))\n",
    );
    assert_eq!(
        stages[0],
        "for i<3, j<3, k<24: w.channels_last[i, j, k] = w[k, i, j]"
    );
}

/// The pass would put a stage that stores `w` with its channels last between stages that take turns.
#[test]
fn stages_that_take_turns_stay_together() {
    let text = "input x: f32[5, 4]\ninput w: f32[8, 4]\ntemporary h: f32[8]\noutput y: f32[5, 8]\n\
                turn 0 for i<5, j<8: h[j] = add[k<4; 0.0](term(x[i, k], w[j, k]))\n\
                turn 0 for i<5, j<8: y[i, j] = (h[j] + 1.0)\n\
                turn 0 for i<5, j<8: h[j] = add[k<4; 0.0](term(x[i, k], w[j, k]))\n";
    let before = parse(text).unwrap().stage_texts();
    assert_eq!(passed(text), before);
}

#[test]
fn channels_that_are_no_axis_keep_planes() {
    let planes = "for i<24, j<12, k<20: y[i, j, k]";
    // Every second channel, or channels that are found by a quotient.
    for index in ["((i * 2) % 24)", "(((i * 20) + 5) / 20)"] {
        let more = format!("for i<24, j<240: v[i, j] = y[{index}, (j / 20), (j % 20)]\n");
        assert!(window(&more)[0].starts_with(planes), "{index}");
    }
    // The same stage is no hindrance where channels are an axis, if what it moves is little.
    let more = "for i<24, j<1: v[i, j] = y[i, 3, 4]\n";
    assert!(window(more)[0].starts_with("for i<12, j<20, k<24: y[i, j, k]"));
}

#[test]
fn what_is_known_of_one_temporary_in_two_ways_keeps_planes() {
    // The rows of `y` meet its channels.
    let more = "for i<12, j<1: v[i, j] = (y[i, 0, 0] + y[0, i, 0])\n";
    let stages = window(more);
    assert!(
        stages[0].starts_with("for i<24, j<12, k<20: y[i, j, k]"),
        "{stages:#?}"
    );
}

/// The stages after those of `t`, sums for `results` of which `of_t` make `v`.
fn results(results: usize, of_t: &str) -> Vec<String> {
    let text = format!(
        "input x: f32[64, 12, 20]\ninput r: f32[{results}, 12, 20]\ninput w: f32[{results}, 64]\ninput b: f32[{results}]\n\
         input w2: f32[4096, {results}]\ntemporary t: f32[{results}, 12, 20]\noutput z: f32[4096, 12, 20]\n\
         output v: f32[{results}, 6, 10]\n\
         for i<{results}, j<12, k<20: t[i, j, k] = add[l<64; 0.0](term(x[l, j, k], w[i, l]))\n\
         for i<4096, j<12, k<20: z[i, j, k] = add[l<{results}; 0.0](term(t[l, j, k], w2[i, l]))\n\
         for i<{results}, j<6, k<10: v[i, j, k] = {of_t}\n"
    );
    passed(&text).split_off(2)
}

#[test]
fn results_elsewhere_are_stored_with_channels_last_before() {
    let stages = results(
        32,
        "max[m<2, n<2; -inf](t[i, ((j * 2) + m), ((k * 2) + n)])",
    );
    assert_eq!(
        stages,
        [
            "for i<6, j<10, k<32: v.channels_last[i, j, k] = max[l<2, m<2; -inf](t[((i * 2) + l), ((j * 2) + m), k])",
            "for i<32, j<6, k<10: v[i, j, k] = v.channels_last[j, k, i]",
        ]
    );
    let stages = results(32, "max((t[i, j, k] + t[i, (j + 1), k]), b[i])");
    assert!(
        stages[0].starts_with("for i<6, j<10, k<32: v.channels_last"),
        "{stages:?}"
    );
}

#[test]
fn results_that_need_no_vectors_of_channels_are_stored_at_once() {
    // Copies, and what reads something else plane by plane.
    let guarded = "select((j < 3), t[i, j, k], 0.0)";
    for of_t in ["t[i, j, k]", guarded, "(t[i, j, k] + r[i, j, k])"] {
        assert!(
            results(32, of_t)[0].starts_with("for i<32, j<6, k<10: v[i, j, k]"),
            "{of_t}"
        );
    }
}
