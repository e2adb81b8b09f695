use super::*;
use crate::analysis::verify;
use crate::ir::parse;

fn passed(text: &str) -> Vec<String> {
    let mut nest = parse(text).unwrap();
    verify(&nest).unwrap();
    gathered_channels_last(&mut nest);
    verify(&nest).unwrap();
    nest.stage_texts()
}

/// The stages for the value `value` of `y[i, j]`, for `channels` channels `i` of `extent` elements and ten points `j`.
fn of(channels: usize, extent: usize, value: &str) -> Vec<String> {
    passed(&format!(
        "input x: f32[{channels}, {extent}]\ninput z: f32[{channels}, 10]\ninput p: i64[10]\ninput q: i64[10]\n\
         output y: f32[{channels}, 10]\nfor i<{channels}, j<10: y[i, j] = {value}\n"
    ))
}

const TWO: &str = "(x[i, min(max(p[j], 0), 5)] + x[i, min(max(q[j], 0), 5)])";

#[test]
fn data_is_stored_before_and_results_after() {
    assert_eq!(
        of(8, 6, TWO),
        [
            "for i<6, j<8: x.channels_last[i, j] = x[j, i]",
            "for i<10, j<8: y.channels_last[i, j] = \
             (x.channels_last[min(max(min(max(p[i], 0), 5), 0), 5), j] + x.channels_last[min(max(min(max(q[i], 0), 5), 0), 5), j])",
            "for i<8, j<10: y[i, j] = y.channels_last[j, i]",
        ]
    );
}

#[test]
fn few_channels_stay() {
    assert_eq!(of(8, 6, TWO).len(), 3);
    assert_eq!(of(7, 6, TWO).len(), 1);
}

/// For each channel ten points read 20 elements, and ten elements of data and ten results are stored.
#[test]
fn more_data_than_is_gathered_stays() {
    assert_eq!(of(8, 10, TWO).len(), 3);
    assert_eq!(of(8, 11, TWO).len(), 1);
}

#[test]
fn guards_are_stored() {
    let place = "min(max(p[j], -9), 9)";
    let guarded = format!("select((({place} >= 0) & ({place} < 6)), x[i, {place}], 0.0)");
    let stages = of(8, 6, &format!("({guarded} + x[i, min(max(q[j], 0), 5)])"));
    let guard = "for i<10: guard[i] = ((min(max(p[i], -9), 9) >= 0) & (min(max(p[i], -9), 9) < 6))";
    assert_eq!(stages[0], guard);
    let chosen = "select(guard[i], x.channels_last[min(max(min(max(p[i], -9), 9), 0), 5), j], 0.0)";
    assert!(stages[2].contains(chosen), "{stages:#?}");
}

/// A load that is the same for all channels is carried out whether or not the guard holds, as those of the channels are.
#[test]
fn all_that_a_guard_is_for_stays_inside() {
    let place = |j: &str| format!("select((p[{j}] < 0), (p[{j}] + 6), p[{j}])");
    let at = place("j");
    let guarded = format!(
        "select((({at} >= 0) & ({at} < 6)), ((x[i, {at}] * w[{at}]) + x[i, min({at}, 3)]), 0.0)"
    );
    let stages = passed(&format!(
        "input x: f32[8, 6]\ninput w: f32[6]\ninput p: i64[10]\noutput y: f32[8, 10]\n\
         for i<8, j<10: y[i, j] = {guarded}\n"
    ));
    let at = format!("min(max({}, 0), 5)", place("i"));
    let product = format!("(x.channels_last[{at}, j] * w[{at}])");
    assert!(stages[2].contains(&product), "{stages:#?}");
}

#[test]
fn short_folds_are_unrolled() {
    let sum = |points: usize| {
        let value = format!("add[k<{points}; 0.0](x[i, min(max((p[j] + k), 0), 5)])");
        of(8, 6, &value)
    };
    assert!(
        sum(2)[1].contains("((0.0 + x.channels_last["),
        "{:#?}",
        sum(2)
    );
    assert!(sum(16)[1].contains("((0.0 + x.channels_last["));
    assert_eq!(sum(17).len(), 1);
    let nested = |points: usize| {
        let index = "min(max(((p[j] + k) + l), 0), 5)";
        let value = format!("add[k<4; 0.0](add[l<{points}; 0.0](x[i, {index}]))");
        of(8, 6, &value).len()
    };
    assert_eq!([nested(4), nested(5)], [3, 1]);
}

/// A stage stays if it loads `z` with channels that are not last, if no data chooses its places, or if its indices are checked: of
/// several faults, a run reports that of the first point.
#[test]
fn others_stay() {
    assert_eq!(of(8, 6, &format!("({TWO} + z[i, j])")).len(), 1);
    assert_eq!(of(8, 6, "(x[i, 1] + x[i, 2])").len(), 1);
    let checked = "(x[i, check(p[j], 6)] + x[i, check(q[j], 6)])";
    assert_eq!(of(8, 6, checked).len(), 1);
}

/// Data that changes between two stages is stored for each.
#[test]
fn data_that_changes_is_stored_again() {
    let text = |between: &str| {
        format!(
            "input p: i64[10]\ninput q: i64[10]\ntemporary x: f32[8, 6]\noutput y: f32[8, 10]\noutput z: f32[8, 10]\n\
             for i<8, j<6: x[i, j] = f32((i + j))\nfor i<8, j<10: y[i, j] = {TWO}\n{between}for i<8, j<10: z[i, j] = {TWO}\n"
        )
    };
    let stores = |between| {
        let stages = passed(&text(between));
        let is_store = |stage: &&String| stage.contains("] = x[j, i]");
        stages.iter().filter(is_store).count()
    };
    assert_eq!(stores(""), 1);
    assert_eq!(stores("for i<8: x[i, 0] = 2.0\n"), 2);
}

/// Between bounds some points are read, which are found in a loop.
#[test]
fn folds_between_bounds_read_channels_last() {
    let sums = |channels: usize, extent: usize| {
        of(
            channels,
            extent,
            &format!("add[k<{extent}; 0.0](select(((k >= p[j]) & (k < q[j])), x[i, k], 0.0))"),
        )
    };
    let stages = sums(8, 10);
    assert_eq!(
        stages[1],
        "for i<10, j<8: y.channels_last[i, j] = \
         add[k<10; 0.0](select(((k >= p[i]) & (k < q[i])), x.channels_last[k, j], 0.0))"
    );
    assert_eq!(stages.len(), 3);
    assert_eq!(sums(7, 10).len(), 1);
    assert_eq!(sums(8, 11).len(), 1);
}
