use crate::analysis::verify;
use crate::build::*;
use crate::passes::quantized_products::tests::quantized;
use crate::{Binary, BufferBytes, Nest, Role, Scalar, interpret, quantized_products};
use vinelift_tensor::ElementType::{F32, I8};
use vinelift_tensor::Extent;
use vinelift_tensor::symbols::Symbols;

const CHANNELS: usize = 8;
const RESULTS: usize = 32;

/// `p[c, i] = max_k q(x[c, 2·i + k - pad])` over three pixels of `pixels`, and `y[o, i] = Σ_c f32(w[o, c])·p[c, i]`, for `i` below `windows`.
fn pooled(pixels: Extent, windows: Extent, pad: i64, [low, high]: [f64; 2]) -> Nest {
    let mut nest = Nest::new();
    let channels = Extent::from(CHANNELS);
    let x = nest.buffer("x", F32, &[channels, pixels], Role::Input);
    let w = nest.buffer("w", I8, &[RESULTS, CHANNELS], Role::Input);
    let q = nest.buffer("q", F32, &[channels, pixels], Role::Temporary);
    let p = nest.buffer("p", F32, &[channels, windows], Role::Temporary);
    let f = nest.buffer("f", F32, &[RESULTS, CHANNELS], Role::Temporary);
    let y = nest.buffer("y", F32, &[Extent::from(RESULTS), windows], Role::Output);
    nest.define(vec![], q, |n, at| {
        quantized(n.load(x, at.to_vec()), low, high)
    });
    nest.define(vec![], p, |n, at| {
        let axes = n.axes(&[3]);
        let place = &at[1] * 2 + Scalar::axis(axes[0].id) - pad;
        let inside = place.ge(index(0)) & place.lt(Scalar::extent(pixels));
        let value = n.load(q, vec![at[0].clone(), place]);
        let body = select(inside, value, lowest(F32));
        Scalar::reduce(Binary::Max, axes, lowest(F32), body)
    });
    nest.define(vec![], f, |n, at| n.load(w, at.to_vec()).cast(F32));
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[CHANNELS]);
        let c = Scalar::axis(axes[0].id);
        let left = n.load(f, vec![at[0].clone(), c.clone()]);
        let right = n.load(p, vec![c, at[1].clone()]);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(F32), term)
    });
    nest
}

fn of_numbers(pixels: usize, windows: usize, pad: i64, ends: [f64; 2]) -> Nest {
    pooled(pixels.into(), windows.into(), pad, ends)
}

fn is_of_bytes(nest: &Nest) -> bool {
    nest.stage_texts().iter().any(|text| text.contains("p.u8["))
}

#[test]
fn codes_of_the_largest_are_the_largest_codes() {
    let mut nest = of_numbers(128, 64, 1, [-0.5, 2.05]);
    quantized_products(&mut nest, &|_| None);
    verify(&nest).unwrap();
    let texts = nest.stage_texts();
    let guard = "(((((i * 2) + j) - 1) >= 0) & ((((i * 2) + j) - 1) < 128))";
    let of_codes = guard.replace("(i * 2) + j", "(j * 2) + k");
    let found = |name: &str| texts.iter().find(|text| text.contains(name)).unwrap();
    assert_eq!(
        *found(": p.u8["),
        format!(
            "for i<8, j<64: p.u8[i, j] = max[k<3; 0u8](select({of_codes}, q.u8[i, (((j * 2) + k) - 1)], 0u8))"
        )
    );
    assert_eq!(
        *found(": p.nan["),
        format!(
            "for i<64: p.nan[i] = add[j<3; 0.0](select({guard}, q.nan[(((i * 2) + j) - 1)], 0.0))"
        )
    );
    assert!(found(": y[").contains("i32(p.u8[k, j])"), "{texts:#?}");
}

/// Windows none of whose places lies in the picture for all of them: one may lie beyond as a whole, with a largest value that is on
/// no grid.
#[test]
fn what_is_on_no_grid_stays() {
    for (pixels, windows, pad, ends, expected) in [
        (128, 64, 1, [-0.5, 2.05], true),
        (128, 65, 1, [-0.5, 2.05], false),
        (128, 64, 2, [-0.5, 2.05], true),
        (128, 64, 3, [-0.5, 2.05], false),
        (128, 64, 1, [0.0, 2.55], true),
        (128, 64, 1, [-0.503, 2.05], false),
    ] {
        let mut nest = of_numbers(pixels, windows, pad, ends);
        quantized_products(&mut nest, &|_| None);
        verify(&nest).unwrap();
        assert_eq!(is_of_bytes(&nest), expected, "{windows} {pad} {ends:?}");
    }
}

/// The sums are those of the largest of the quantised values; NaN in a window comes through.
#[test]
fn sums_of_the_largest() {
    let mut random = 1u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as u8
    };
    // None lies between two values of the grid.
    let mut x: Vec<f32> = (0..CHANNELS * 128)
        .map(|_| f32::from(next()) / 64.0 - 0.997)
        .collect();
    x[128 + 40] = f32::NAN;
    let w: Vec<i8> = (0..RESULTS * CHANNELS).map(|_| next() as i8).collect();
    let mut nest = of_numbers(128, 64, 1, [-0.5, 2.05]);
    quantized_products(&mut nest, &|_| None);
    assert!(is_of_bytes(&nest));
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let weights: Vec<u8> = w.iter().map(|w| *w as u8).collect();
    let mut y = vec![0; RESULTS * 64 * 4];
    let mut buffers = vec![BufferBytes::Read(&bytes), BufferBytes::Read(&weights)];
    buffers.resize_with(5, || BufferBytes::Temporary);
    buffers.push(BufferBytes::Write(&mut y));
    buffers.resize_with(nest.buffers.len(), || BufferBytes::Temporary);
    interpret(&nest, &mut buffers).unwrap();
    let quantised = |x: f32| {
        let x = f64::from(x).clamp(-0.5, 2.05);
        ((x + 0.5) / 2.55 * 255.0).round_ties_even() - 50.0
    };
    for (at, y) in y.as_chunks::<4>().0.iter().enumerate() {
        let (row, window, y) = (at / 64, at % 64, f32::from_le_bytes(*y));
        let pixels = (2 * window).saturating_sub(1)..(2 * window + 2).min(128);
        if pixels.contains(&40) {
            assert!(y.is_nan(), "{at}");
            continue;
        }
        let largest = |c: usize| {
            let values = pixels.clone().map(|i| quantised(x[c * 128 + i]));
            values.fold(f64::NEG_INFINITY, f64::max)
        };
        let products = (0..CHANNELS).map(|c| f64::from(w[row * CHANNELS + c]) * largest(c));
        let expected = (products.sum::<f64>() * 0.01) as f32;
        assert!(
            (y - expected).abs() <= expected.abs() * 1e-6,
            "{at}: {y} {expected}"
        );
    }
}

/// For twice as many pixels as windows, each has values, whatever the number. Where only numbers tell that, they take the place of
/// symbols.
#[test]
fn symbols_stay_where_all_windows_have_values() {
    for is_twice in [true, false] {
        let mut symbols = Symbols::default();
        let symbol = symbols.add(if is_twice { 64 } else { 128 }).unwrap();
        let is_of_bytes = symbols.record(|| {
            let (pixels, windows) = match is_twice {
                true => (symbol.product(2.into()), symbol),
                false => (symbol, symbol.difference(64.into())),
            };
            let mut nest = pooled(pixels, windows, 1, [-0.5, 2.05]);
            nest.symbols = vec![symbol.example()];
            quantized_products(&mut nest, &|_| None);
            is_of_bytes(&nest)
        });
        assert_eq!(is_of_bytes, is_twice);
        assert_eq!(symbols.bind(&[130]).is_some(), is_twice);
    }
}
