use super::super::quantized_products;
use super::MOST_CHANNELS;
use crate::analysis::verify;
use crate::build::select;
use crate::ir::{BufferId, Nest, Role, part_of};
use crate::{BufferBytes, build, interpret};
use vinelift_tensor::ElementType::F32;

/// How many elements a channel has.
const LONG: usize = 600;

/// `y[c, i]` is `FakeQuantize` of `x[c, i]` to 256 values in a range for each of `channels`.
fn quantized(channels: usize) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[channels, LONG], Role::Input);
    let low = nest.buffer("low", F32, &[channels, 1], Role::Input);
    let high = nest.buffer("high", F32, &[channels, 1], Role::Input);
    let y = nest.buffer("y", F32, &[channels, LONG], Role::Output);
    nest.define(vec![], y, |n, at| {
        let x = n.load(x, at.to_vec());
        let [low, high] = [low, high].map(|end| n.load(end, vec![at[0].clone(), build::index(0)]));
        let relative = (&x - low.clone()) / (high.clone() - low.clone());
        let step = (relative * build::number(255.0, F32)).round();
        let inner = part_of(&step, 255) * (high.clone() - low.clone()) + low.clone();
        let below = select(x.le(low.clone()), low, inner);
        select(x.gt(high.clone()), high, below)
    });
    nest
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// The nest after the pass, where these are the ends of the ranges.
fn rewritten(nest: &Nest, low: &[f32], high: &[f32]) -> Nest {
    let (low, high) = (bytes(low), bytes(high));
    let mut nest = nest.clone();
    quantized_products(&mut nest, &|buffer| match buffer {
        BufferId(1) => Some(low.as_slice()),
        BufferId(2) => Some(high.as_slice()),
        _ => None,
    });
    verify(&nest).unwrap();
    nest
}

fn run(nest: &Nest, inputs: [&[f32]; 3]) -> Vec<f32> {
    let inputs = inputs.map(bytes);
    let mut y = vec![0; inputs[0].len()];
    let inputs = inputs.iter().map(|bytes| BufferBytes::Read(bytes));
    let mut buffers: Vec<BufferBytes<'_>> = inputs.collect();
    buffers.push(BufferBytes::Write(&mut y));
    buffers.resize_with(nest.buffers.len(), || BufferBytes::Read(&[]));
    interpret(nest, &mut buffers).unwrap();
    let (numbers, _) = y.as_chunks::<4>();
    numbers.iter().map(|y| f32::from_le_bytes(*y)).collect()
}

#[test]
fn each_channel_has_a_zero_point_and_a_scale() {
    let plain = quantized(3);
    let (low, high) = ([-1.28, 0.0, -0.5], [1.27, 2.55, 2.05]);
    let nest = rewritten(&plain, &low, &high);
    assert_eq!(
        nest.stage_texts(),
        [
            "for i<3, j<600: y[i, j] = ((round(((((min(y.highs[i], max(y.lows[i], x[i, j])) - y.lows[i]) * y.rests[i]) \
          + term((min(y.highs[i], max(y.lows[i], x[i, j])) - y.lows[i]), y.reciprocals[i])) * 255.0)) - y.zeros[i]) \
          * y.scales[i])"
        ]
    );
    // Among them the ends, what is beyond them, and halves of steps, which are rounded as by the formula.
    let x: Vec<f32> = (0..3 * LONG)
        .map(|i| (i % LONG) as f32 * 0.005 - 1.5)
        .collect();
    let (before, after) = (
        run(&plain, [&x, &low, &high]),
        run(&nest, [&x, &low, &high]),
    );
    for ((i, before), after) in before.iter().enumerate().zip(&after) {
        let c = i / LONG;
        let (low, scale) = (f64::from(low[c]), 0.01);
        let code = ((f64::from(*before) - low) / scale).round();
        let want = (code - (-low / scale).round()) * scale;
        let error = (f64::from(*after) - want).abs();
        assert!(
            error <= want.abs() / f64::from(1 << 23),
            "{c} {}: {after} {want}",
            x[i]
        );
    }
    let nan = run(&nest, [&vec![f32::NAN; 3 * LONG], &low, &high]);
    assert!(nan.iter().all(|y| y.is_nan()));
}

#[test]
fn ranges_from_zero_need_no_zero_points() {
    let nest = rewritten(&quantized(2), &[0.0, 0.0], &[2.55, 6.0]);
    assert_eq!(
        nest.stage_texts(),
        [
            "for i<2, j<600: y[i, j] = (round((((min(y.highs[i], max(0.0, x[i, j])) * y.rests[i]) \
          + term(min(y.highs[i], max(0.0, x[i, j])), y.reciprocals[i])) * 255.0)) * y.scales[i])"
        ]
    );
}

#[test]
fn other_ranges_stay_as_they_are() {
    let plain = quantized(2);
    for (low, high) in [
        // Not an integer.
        ([-0.503, 0.0], [2.05, 2.55]),
        // The other way round, empty, or no range.
        ([1.0, 0.0], [-1.0, 2.55]),
        ([1.0, 0.0], [1.0, 2.55]),
        ([0.0, 0.0], [f32::NAN, 2.55]),
        ([-f32::MAX, 0.0], [f32::MAX, 2.55]),
        // No product is exactly the quotient by less than 2⁻⁶⁰.
        ([0.0, 0.0], [1e-30, 2.55]),
    ] {
        let nest = rewritten(&plain, &low, &high);
        assert_eq!(nest.stage_texts(), plain.stage_texts(), "{low:?} {high:?}");
    }
    let mut unknown = plain.clone();
    quantized_products(&mut unknown, &|_| None);
    assert_eq!(unknown.stage_texts(), plain.stage_texts());
}

/// Of more channels, ranges may be computed when the nest runs.
#[test]
fn many_channels_stay_as_they_are() {
    for (channels, by_tables) in [(MOST_CHANNELS, true), (MOST_CHANNELS + 1, false)] {
        let plain = quantized(channels);
        let nest = rewritten(&plain, &vec![-1.28; channels], &vec![1.27; channels]);
        assert_eq!(nest.stage_texts() != plain.stage_texts(), by_tables);
    }
}
