//! Data that is gathered channel by channel, in the order of its dims and with its channels last.

use crate::common::{COMPILER, Compiled, bytes, random, reference, same, vector_loops};
use vinelift_codegen::Options;
use vinelift_nest::{Nest, gathered_channels_last, parse, schedule, verify};
use vinelift_tensor::ElementType::F32;

/// Neighbours of points of `[channels, 5, 6]`, of which those outside count as 0, mixed, and summed over `samples` of each point.
fn sampling(channels: usize, samples: usize) -> Nest {
    let place = |buffer: &str, more: usize| {
        let from = match samples {
            0 => format!("{buffer}[j]"),
            _ => format!("({buffer}[j] + k)"),
        };
        format!("(min(max({from}, -9), 9) + {more})")
    };
    let neighbour = |down: usize, right: usize| {
        let (row, column) = (place("p", down), place("q", right));
        let inside = format!("((({row} >= 0) & ({row} < 5)) & (({column} >= 0) & ({column} < 6)))");
        format!("select({inside}, x[i, {row}, {column}], 0.0)")
    };
    let line = |down| {
        let [left, right] = [0, 1].map(|right| neighbour(down, right));
        format!("(((1.0 - f[j]) * {left}) + (f[j] * {right}))")
    };
    let mixed = format!("({} + {})", line(0), line(1));
    let value = match samples {
        0 => mixed,
        _ => format!("add[k<{samples}; 0.0]({mixed})"),
    };
    let text = format!(
        "input x: f32[{channels}, 5, 6]\ninput p: i64[20]\ninput q: i64[20]\ninput f: f32[20]\noutput y: f32[{channels}, 20]\n\
         for i<{channels}, j<20: y[i, j] = {value}\n"
    );
    parse(&text).unwrap()
}

/// Whether the stage that gathers, which is the last but one, is a vector loop.
fn is_vectorised(nest: &Nest) -> bool {
    let options = Options {
        capture_text: true,
        ..Options::default()
    };
    let code = COMPILER.compile(&[nest], &options).unwrap();
    let text = &code.text(0).unwrap().clif;
    let gathers = format!("stage {} of", nest.stages.len() - 2);
    let heading = text.lines().find(|line| line.contains(&gathers));
    heading.is_some_and(|line| line.contains("vectorised"))
}

#[test]
fn channels_give_the_same_in_any_order() {
    for (seed, channels) in [8, 9, 16, 31, 64].into_iter().enumerate() {
        for samples in [0, 2, 16, 17] {
            let nest = sampling(channels, samples);
            verify(&nest).unwrap();
            let mut last = nest.clone();
            gathered_channels_last(&mut last);
            schedule(&mut last);
            assert_eq!(verify(&last), Ok(()), "{last}");
            // A fold that is not unrolled stays as it is.
            assert_eq!(last.stages.len() > 1, samples < 17, "{last}");
            if vector_loops()[0] && samples < 17 {
                assert!(is_vectorised(&last), "{last}");
            }
            let mut next = random(seed as u64);
            let data = |n: u64| match n % 32 {
                0 => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0][(n / 32 % 4) as usize],
                _ => (n / 32 % 1000) as f32 / 7.0 - 70.0,
            };
            let data: Vec<f32> = (0..channels * 30).map(|_| data(next())).collect();
            let mut places = |extent: i64| -> Vec<i64> {
                let place = |n: u64| match n % 8 {
                    0 => [i64::MIN, i64::MAX, -1, extent][(n / 8 % 4) as usize],
                    _ => (n / 8 % (extent as u64 + 4)) as i64 - 2,
                };
                (0..20).map(|_| place(next())).collect()
            };
            let (p, q) = (places(5), places(6));
            let fractions: Vec<f32> = (0..20).map(|k| k as f32 / 19.0).collect();
            let inputs = [bytes(&data), bytes(&p), bytes(&q), bytes(&fractions)];
            let (expected, _) = reference(&nest, &inputs);
            let (found, result) = Compiled::of(&last).run(&inputs);
            assert_eq!(result, Ok(()));
            assert!(
                same(F32, &found[4], &expected[4]),
                "{channels} {samples}\n{last}"
            );
        }
    }
}
