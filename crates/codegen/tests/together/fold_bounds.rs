//! Folds between bounds that are data, by scalars and with lanes along the channels.

use crate::common::{COMPILER, bytes, random, reference, run, same, vector_loops};
use vinelift_codegen::Options;
use vinelift_nest::{Nest, gathered_channels_last, parse, schedule, verify};
use vinelift_tensor::ElementType::F32;

const ROWS: usize = 6;
const COLUMNS: usize = 9;
/// So many that data is worth storing with its channels last.
const REGIONS: usize = 20;

/// The fold `op` of what lies in each region, in each channel of `x`.
fn regions(op: &str, init: &str, channels: usize) -> Nest {
    let columns = format!(
        "{op}[l<{COLUMNS}; {init}](select(((l >= e[j, 2]) & (l < e[j, 3])), x[i, k, l], {init}))"
    );
    let rows = format!(
        "{op}[k<{ROWS}; {init}](select(((k >= e[j, 0]) & (k < e[j, 1])), {columns}, {init}))"
    );
    let text = format!(
        "input x: f32[{channels}, {ROWS}, {COLUMNS}]\ninput e: i64[{REGIONS}, 4]\noutput y: f32[{channels}, {REGIONS}]\n\
         for i<{channels}, j<{REGIONS}: y[i, j] = {rows}\n"
    );
    parse(&text).unwrap()
}

/// The same values, folded over the points of the regions alone.
fn folded(
    op: impl Fn(f32, f32) -> f32,
    init: f32,
    x: &[f32],
    ends: &[[i64; 4]],
    channel: usize,
) -> Vec<f32> {
    let within = |low: i64, high: i64, extent: usize| {
        (0..extent).filter(move |k| (low..high).contains(&(*k as i64)))
    };
    let of_region = |&[top, bottom, left, right]: &[i64; 4]| {
        within(top, bottom, ROWS).fold(init, |sum, row| {
            let line = &x[(channel * ROWS + row) * COLUMNS..][..COLUMNS];
            let columns = within(left, right, COLUMNS);
            op(sum, columns.fold(init, |sum, column| op(sum, line[column])))
        })
    };
    ends.iter().map(of_region).collect()
}

/// Regions inside, over the edges, turned around and far away.
fn ends(seed: u64) -> Vec<[i64; 4]> {
    let mut next = random(seed);
    let mut end = |extent: usize| match next() % 10 {
        0 => [i64::MIN, i64::MAX, -1, extent as i64 + 1][(next() % 4) as usize],
        _ => (next() % (extent as u64 + 1)) as i64,
    };
    let mut region = || [end(ROWS), end(ROWS), end(COLUMNS), end(COLUMNS)];
    (0..REGIONS).map(|_| region()).collect()
}

#[test]
fn the_points_between_bounds_and_no_others() {
    let fold_max = |sum: f32, x: f32| if x > sum { x } else { sum };
    for (seed, channels) in [1, 7, 8, 9, 31, 32, 64, 100].into_iter().enumerate() {
        let mut next = random(seed as u64);
        let number = |n: u64| match n % 40 {
            0 => [f32::NAN, f32::INFINITY, -0.0, 3.0][(n / 40 % 4) as usize],
            _ => (n / 40 % 1000) as f32 / 7.0 - 70.0,
        };
        let x: Vec<f32> = (0..channels * ROWS * COLUMNS)
            .map(|_| number(next()))
            .collect();
        let ends = ends(seed as u64);
        let inputs = [bytes(&x), bytes(ends.as_flattened())];
        let by_channel = |f: &dyn Fn(usize) -> Vec<f32>| -> Vec<u8> {
            bytes(&(0..channels).flat_map(f).collect::<Vec<f32>>())
        };
        let sums = by_channel(&|c| folded(|a, b| a + b, 0.0, &x, &ends, c));
        let most = by_channel(&|c| folded(fold_max, f32::NEG_INFINITY, &x, &ends, c));
        for (op, init, expected) in [("add", "0.0", sums), ("max", "-inf", most)] {
            let nest = regions(op, init, channels);
            verify(&nest).unwrap();
            let mut last = nest.clone();
            gathered_channels_last(&mut last);
            assert_eq!(last.stages.len() > 1, channels >= 8, "{last}");
            schedule(&mut last);
            assert_eq!(verify(&last), Ok(()), "{last}");
            for nest in [&nest, &last] {
                assert!(
                    same(F32, &reference(nest, &inputs).0[2], &expected),
                    "{nest}"
                );
                let (found, result) = run(nest, &inputs);
                assert_eq!(result, Ok(()));
                assert!(same(F32, &found[2], &expected), "{channels} {nest}");
            }
        }
    }
}

/// The heading of the first stage of a nest of folds, which says how it runs.
fn heading(nest: &Nest, stage: usize) -> String {
    let options = Options {
        capture_text: true,
        ..Options::default()
    };
    let code = COMPILER.compile(&[nest], &options).unwrap();
    let text = &code.text(0).unwrap().clif;
    let number = format!("stage {stage} of");
    let heading = text.lines().find(|line| line.contains(&number));
    heading.unwrap_or_default().to_owned()
}

/// Lanes along the channels visit the same points; lanes along the regions would not.
#[test]
fn lanes_need_the_same_bounds() {
    if !vector_loops()[0] {
        return;
    }
    let mut nest = regions("add", "0.0", 64);
    assert!(!heading(&nest, 0).contains("vectorised"), "{nest}");
    gathered_channels_last(&mut nest);
    let stage = nest.stages.len() - 2;
    assert!(heading(&nest, stage).contains("vectorised"), "{nest}");
}
