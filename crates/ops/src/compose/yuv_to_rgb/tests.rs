//! Tests of the conversions from YUV.

use super::*;
use crate::testing::{error, infer, run};
use vinelift_tensor::Tensor;

fn bytes(shape: &[usize], values: &[u8]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

const LUMA: [u8; 8] = [16, 235, 100, 180, 81, 145, 41, 255];

/// By the formulas of the specification, in NumPy.
#[test]
fn planes_and_order() {
    let y = bytes(&[1, 2, 4, 1], &LUMA);
    let uv = bytes(&[1, 1, 2, 2], &[120, 126, 172, 65]);
    let (u, v) = (
        bytes(&[1, 1, 2, 1], &[120, 172]),
        bytes(&[1, 1, 2, 1], &[126, 65]),
    );
    let two = run(&NV12_TO_RGB, &[], &[y.clone(), uv]);
    let three = run(&I420_TO_RGB, &[], &[y, u, v]);
    assert_eq!(two, three);
    let nv12 = bytes(&[1, 3, 4, 1], &[&LUMA[..], &[120, 126, 172, 65]].concat());
    assert_eq!(run(&NV12_TO_RGB, &[], std::slice::from_ref(&nv12)), two);
    let i420 = bytes(&[1, 3, 4, 1], &[&LUMA[..], &[120, 172, 126, 65]].concat());
    assert_eq!(run(&I420_TO_RGB, &[], std::slice::from_ref(&i420)), two);
    let swapped: Vec<u8> = two
        .bytes()
        .chunks(3)
        .flat_map(|p| [p[2], p[1], p[0]])
        .collect();
    let swapped = bytes(&[1, 2, 4, 3], &swapped);
    assert_eq!(run(&NV12_TO_BGR, &[], &[nv12]), swapped);
    assert_eq!(run(&I420_TO_BGR, &[], &[i420]), swapped);
    #[rustfmt::skip]
    let want = [0, 5, 0, 252, 255, 239, 0, 132, 187, 90, 225, 255, 72, 80, 60, 147, 155, 134, 0, 63, 118, 178, 255, 255];
    assert_eq!(two, bytes(&[1, 2, 4, 3], &want));
}

#[test]
fn shapes() {
    let data = |dims| (ElementType::F16, PartialShape::ranked(dims), None);
    let one = Dim::fixed(1);
    let half = data(vec![Dim::fixed(2), Dim::ANY, Dim::fixed(4), Dim::fixed(2)]);
    let y = data(vec![Dim::ANY, Dim::fixed(6), Dim::ANY, one]);
    let found = infer(&NV12_TO_BGR, &[], &[y.clone(), half]);
    assert_eq!(found, ("f16[2, 6, 8, 3]".to_owned(), vec![]));
    assert_eq!(infer(&I420_TO_RGB, &[], &[y]).0, "f16[?, 4, ?, 3]");
    let zeros = |shape: &[usize]| Tensor::zeros(ElementType::U8, shape).unwrap();
    let message = "the rows of `y` [1, 4, 2, 1] must be a multiple of 3";
    assert_eq!(error(&NV12_TO_RGB, &[], &[zeros(&[1, 4, 2, 1])]), message);
    let message = "an image must have even numbers of rows and columns, found 2 by 3";
    assert_eq!(error(&NV12_TO_RGB, &[], &[zeros(&[1, 3, 3, 1])]), message);
    let planes = [zeros(&[1, 2, 2, 1]), zeros(&[1, 1, 1, 1])];
    let message = "2 inputs, expected `y` alone or all planes";
    assert_eq!(error(&I420_TO_RGB, &[], &planes), message);
    let message = "the last dim of `uv` [1, 1, 1, 1] must be 2";
    assert_eq!(error(&NV12_TO_RGB, &[], &planes), message);
    let planes = [zeros(&[1, 2, 2, 1]), zeros(&[1, 2, 1, 2])];
    let message = "`uv` [1, 2, 1, 2] must have half the rows and columns of `y` [1, 2, 2, 1]";
    assert_eq!(error(&NV12_TO_RGB, &[], &planes), message);
}

/// By the formula, pixel by pixel, for floats of all kinds in the three forms that planes come in.
#[test]
fn floats_of_every_kind() {
    let (rows, columns) = (4, 38);
    let mut state = 7u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match state >> 28 {
            0 => f32::NAN,
            1 => f32::INFINITY,
            2 => -0.0,
            3 => 1e38,
            _ => (state >> 16) as f32 / 200.0,
        }
    };
    let quarter = rows * columns / 4;
    let y: Vec<f32> = (0..4 * quarter).map(|_| number()).collect();
    let u: Vec<f32> = (0..quarter).map(|_| number()).collect();
    let v: Vec<f32> = (0..quarter).map(|_| number()).collect();
    let clamped = |x: f32| {
        if x > 0.0 {
            x.min(255.0)
        } else if x.is_nan() {
            x
        } else {
            0.0
        }
    };
    let want: Vec<[f32; 3]> = (0..4 * quarter)
        .map(|pixel| {
            let half = pixel / columns / 2 * (columns / 2) + pixel % columns / 2;
            let c = (y[pixel] - 16.0) * 1.164;
            let (u, v) = (u[half] - 128.0, v[half] - 128.0);
            [c + v * 1.596, c - u * 0.391 - v * 0.813, c + u * 2.018].map(clamped)
        })
        .collect();
    let uv: Vec<f32> = u.iter().zip(&v).flat_map(|(u, v)| [*u, *v]).collect();
    let of = |shape: [usize; 3], planes: &[&[f32]]| {
        Tensor::from_slice(&[&[1], &shape[..]].concat(), &planes.concat()).unwrap()
    };
    let whole = of([rows, columns, 1], &[&y]);
    let half = |planes: &[f32]| of([rows / 2, columns / 2, 1], &[planes]);
    let below = |planes: &[&[f32]]| of([rows / 2 * 3, columns, 1], planes);
    for (defs, inputs) in [
        ([&NV12_TO_RGB, &NV12_TO_BGR], vec![below(&[&y, &uv])]),
        (
            [&NV12_TO_RGB, &NV12_TO_BGR],
            vec![whole.clone(), of([rows / 2, columns / 2, 2], &[&uv])],
        ),
        ([&I420_TO_RGB, &I420_TO_BGR], vec![below(&[&y, &u, &v])]),
        (
            [&I420_TO_RGB, &I420_TO_BGR],
            vec![whole, half(&u), half(&v)],
        ),
    ] {
        for (def, is_reversed) in defs.into_iter().zip([false, true]) {
            let found = run(def, &[], &inputs);
            let found = found.as_slice::<f32>().unwrap();
            let want = want.iter().flat_map(|[r, g, b]| match is_reversed {
                false => [r, g, b],
                true => [b, g, r],
            });
            let is_same =
                |(found, want): (&f32, &f32)| found == want || (found.is_nan() && want.is_nan());
            assert_eq!(found.len(), 3 * y.len());
            assert!(found.iter().zip(want).all(is_same), "{}", def.name);
        }
    }
}
