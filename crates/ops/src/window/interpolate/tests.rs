use super::*;
use crate::testing::{error, f32s, i64s, infer, run};
use vinelift_tensor::ElementType;
use vinelift_tensor::symbols::Symbols;

fn sizes<'a>(mode: &'a str, transform: &'a str) -> [(&'a str, &'a str); 3] {
    [
        ("mode", mode),
        ("shape_calculation_mode", "sizes"),
        ("coordinate_transformation_mode", transform),
    ]
}

fn row(values: &[f32]) -> Tensor {
    f32s(&[1, 1, 1, values.len()], values)
}

fn resized(attributes: &[(&str, &str)], values: &[f32], to: i64) -> Tensor {
    let inputs = [row(values), i64s(&[1], &[to]), i64s(&[1], &[3])];
    run(&V11, attributes, &inputs)
}

fn close(found: &Tensor, want: &[f64]) {
    let found = found.to_f64_vec().unwrap();
    let near = found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(near && found.len() == want.len(), "{found:?}");
}

/// By the formulas of the specification, worked out by hand.
#[test]
fn modes_along_one_axis() {
    let of = |mode, transform, to| resized(&sizes(mode, transform), &[0.0, 4.0, 8.0, 12.0], to);
    close(&of("linear_onnx", "half_pixel", 2), &[2.0, 10.0]);
    close(&of("linear", "half_pixel", 2), &[2.0, 10.0]);
    close(&of("linear", "align_corners", 3), &[0.0, 6.0, 12.0]);
    close(&of("linear_onnx", "pytorch_half_pixel", 1), &[0.0]);
    let grown = [0.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 12.0];
    close(&of("linear_onnx", "half_pixel", 8), &grown);
    close(&of("linear", "half_pixel", 8), &grown);
    let want = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 12.0];
    close(&of("linear_onnx", "asymmetric", 8), &want);
    close(&of("nearest", "asymmetric", 2), &[0.0, 8.0]);
    close(&of("nearest", "tf_half_pixel_for_nn", 2), &[4.0, 12.0]);
}

/// By the formula of the specification: at a fraction of 0.5 the weights are -3/32, 19/32, 19/32, -3/32
/// with -0.75, and -2/32, 18/32 with -0.5.
#[test]
fn cubic() {
    let data = [32.0, 64.0, 0.0, 32.0];
    let of = |a| {
        let attributes = [&sizes("cubic", "asymmetric")[..], &[("cube_coeff", a)]].concat();
        resized(&attributes, &data, 8).to_f64_vec().unwrap()
    };
    assert_eq!(of("-0.75")[2..4], [64.0, 32.0]);
    assert_eq!(of("-0.75")[1], 19.0 + 38.0 - 3.0);
    assert_eq!(of("-0.5")[1], 18.0 + 36.0 - 2.0);
}

/// The weights of the specification are 1/8, 3/8, 3/8, 1/8, without what lies outside.
#[test]
fn antialias() {
    let attributes = [&sizes("linear", "half_pixel")[..], &[("antialias", "true")]].concat();
    let data = [0.0, 8.0, 16.0, 0.0, 0.0, 8.0];
    close(
        &resized(&attributes, &data, 3),
        &[40.0 / 7.0, 7.0, 24.0 / 7.0],
    );
}

/// By Pillow's formula: weights 1, 3, 3, 1 over 8, normalized over what lies inside.
#[test]
fn pillow() {
    let attributes = sizes("bilinear_pillow", "asymmetric");
    let out = resized(&attributes, &[0.0, 8.0, 16.0, 0.0], 2);
    close(&out, &[40.0 / 7.0, 8.0]);
    let attributes = [
        ("mode", "bicubic_pillow"),
        ("shape_calculation_mode", "sizes"),
        ("cube_coeff", "-0.5"),
    ];
    let out = resized(&attributes, &[7.0; 5], 3);
    close(&out, &[7.0; 3]);
}

/// Ties go to the even number, and cubic overshoot is cut off.
#[test]
fn integers_are_rounded() {
    let of = |mode, data: &[u8], to| {
        let data = Tensor::from_slice(&[data.len()], data).unwrap();
        let inputs = [data, i64s(&[1], &[to])];
        run(&V11, &sizes(mode, "asymmetric"), &inputs)
            .to_i64_vec()
            .unwrap()
    };
    assert_eq!(
        of("linear_onnx", &[0, 1, 2, 5], 8),
        [0, 0, 1, 2, 2, 4, 5, 5]
    );
    assert_eq!(
        of("cubic", &[0, 0, 255, 255], 8),
        [0, 0, 0, 128, 255, 255, 255, 255]
    );
}

/// Numbers that `f32` does not have survive where elements are only moved.
#[test]
fn nearest_moves_bits() {
    let data = i64s(&[1, 2], &[i64::MAX, i64::MIN + 1]);
    let scales = f32s(&[2], &[2.0, 1.5]);
    let attributes = [("mode", "nearest"), ("shape_calculation_mode", "scales")];
    let out = run(&V11, &attributes, &[data, scales]);
    let row = [i64::MAX, i64::MAX, i64::MIN + 1];
    assert_eq!(out, i64s(&[2, 3], &[row, row].concat()));
}

/// By the formula of the specification, on the padded row 0, 4, 8, 0.
#[test]
fn pads_are_zeros() {
    for (mode, middle) in [("nearest", 4.0), ("linear_onnx", 6.0)] {
        let pads = [("pads_begin", "0, 0, 0, 1"), ("pads_end", "0, 0, 0, 1, 7")];
        let attributes = [&sizes(mode, "align_corners")[..], &pads].concat();
        close(&resized(&attributes, &[4.0, 8.0], 3), &[0.0, middle, 0.0]);
    }
    let attributes = [&sizes("nearest", "half_pixel")[..], &[("pads_end", "0, 2")]].concat();
    let inputs = [f32s(&[1, 1], &[3.0]), i64s(&[1], &[2]), i64s(&[1], &[0])];
    let out = run(&V11, &attributes, &inputs);
    assert_eq!(out, f32s(&[2, 3], &[3.0, 0.0, 0.0, 3.0, 0.0, 0.0]));
}

/// 1/3 of 3 is 1 although it is below in `f32`, and 0.8 of 4 is 3.
#[test]
fn version_4_by_scales() {
    let attributes = [
        ("mode", "nearest"),
        ("shape_calculation_mode", "scales"),
        ("nearest_mode", "floor"),
    ];
    let data = f32s(&[3, 4], &(0..12).map(|x| x as f32).collect::<Vec<_>>());
    let unused = i64s(&[2], &[9, 9]);
    let scales = f32s(&[2], &[0.8, 1.0 / 3.0]);
    let out = run(
        &V4,
        &attributes,
        &[data, unused, scales, i64s(&[2], &[1, 0])],
    );
    assert_eq!(out, f32s(&[1, 3], &[4.0, 5.0, 6.0]));
}

/// Results of OpenVINO 2026.4.1 on its CPU.
#[test]
fn version_1() {
    let of = |shape: &[usize], axes, align| {
        let attributes = [("mode", "linear"), ("axes", axes), ("align_corners", align)];
        let data = f32s(shape, &[0.0, 1.0, 2.0, 3.0]);
        let sizes = match axes {
            "2,3" => i64s(&[2], &[1, 8]),
            _ => i64s(&[1], &[8]),
        };
        run(&V1, &attributes, &[data, sizes])
    };
    let image = of(&[1, 1, 1, 4], "2,3", "false");
    close(&image, &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.0]);
    let line = of(&[1, 1, 4], "2", "false");
    close(&line, &[0.0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.0]);
    let corners = of(&[1, 1, 4], "2", "true").to_f64_vec().unwrap();
    assert_eq!((corners[0], corners[7]), (0.0, 3.0));
    let attributes = [
        ("mode", "nearest"),
        ("axes", "2"),
        ("align_corners", "false"),
        ("pads_end", "1"),
    ];
    let inputs = [f32s(&[1, 1, 2], &[1.0, 2.0]), i64s(&[1], &[6])];
    close(
        &run(&V1, &attributes, &inputs),
        &[1.0, 1.0, 2.0, 2.0, 0.0, 0.0],
    );
}

#[test]
fn partial_shapes() {
    let attributes = sizes("nearest", "half_pixel");
    let data = PartialShape::ranked(vec![Dim::ANY, Dim::fixed(3), Dim::ANY]);
    let of = |attributes: &[(&str, &str)], asked: Option<Tensor>, axes: Option<Tensor>| {
        let float = attributes.contains(&("shape_calculation_mode", "scales"));
        let ty = if float {
            ElementType::F32
        } else {
            ElementType::I64
        };
        let inputs = [
            (ElementType::U8, data.clone(), None),
            (ty, [1usize][..].into(), asked),
            (ElementType::I64, [1usize][..].into(), axes),
        ];
        infer(&V11, attributes, &inputs)
    };
    let axis = || Some(i64s(&[1], &[2]));
    let want = |text: &str, missing: &[usize]| (text.to_owned(), missing.to_vec());
    assert_eq!(
        of(&attributes, Some(i64s(&[1], &[7])), axis()),
        want("u8[?, 3, 7]", &[])
    );
    assert_eq!(of(&attributes, None, axis()), want("u8[?, 3, ?]", &[1]));
    assert_eq!(of(&attributes, None, None), want("u8[?, ?, ?]", &[1, 2]));
    let scales = [("mode", "cubic"), ("shape_calculation_mode", "scales")];
    let first = Some(i64s(&[1], &[1]));
    let two = || Some(f32s(&[1], &[2.5]));
    assert_eq!(of(&scales, two(), first), want("u8[?, 7, ?]", &[]));
    assert_eq!(of(&scales, two(), axis()), want("u8[?, 3, ?]", &[]));
}

#[test]
fn refusals() {
    let attributes = sizes("linear", "half_pixel");
    let of = |attributes: &[(&str, &str)], shape: &[usize], sizes: &[i64], axes: &[i64]| {
        let data = Tensor::zeros(ElementType::F32, shape).unwrap();
        let inputs = [data, i64s(&[sizes.len()], sizes), i64s(&[axes.len()], axes)];
        error(&V11, attributes, &inputs)
    };
    let refused =
        |shape: &[usize], sizes: &[i64], axes: &[i64]| of(&attributes, shape, sizes, axes);
    let message = "axis -1 must be at least 0 and below the rank, 2";
    assert_eq!(refused(&[2, 2], &[1], &[-1]), message);
    assert_eq!(refused(&[2, 2], &[1, 1], &[1, 1]), "axis 1 occurs twice");
    let message = "`scales_or_sizes` must hold one element for each of the axes [0], found 2";
    assert_eq!(refused(&[2], &[1, 1], &[0]), message);
    let message = "`scales_or_sizes` [-1] must be at least 0";
    assert_eq!(refused(&[2], &[-1], &[0]), message);
    let message = "axis 0 of extent 0 cannot be resized to 3";
    assert_eq!(refused(&[0], &[3], &[0]), message);
    let message = "unsupported: an axis of 1099511627776 elements that is resized, 4194304 at most";
    assert_eq!(refused(&[2], &[1 << 40], &[0]), message);
    let area = [("mode", "area"), ("axes", "0")];
    let message = "unsupported: mode `area`, which the specification does not define";
    assert_eq!(
        error(&V1, &area, &[f32s(&[1], &[0.0]), i64s(&[1], &[1])]),
        message
    );
    let scales = [("mode", "linear"), ("shape_calculation_mode", "scales")];
    let message = "`scales_or_sizes` must be a float type, found i64";
    assert_eq!(of(&scales, &[2], &[1], &[0]), message);
    let inputs = [f32s(&[1], &[0.0]), f32s(&[1], &[0.0])];
    let message = "`scales_or_sizes` [0.0] must be above 0 and finite";
    assert_eq!(error(&V11, &scales, &inputs), message);
    let pillow = sizes("bilinear_pillow", "half_pixel");
    let message =
        "`mode` must be one of nearest, linear, linear_onnx, cubic, found bilinear_pillow";
    let inputs = [f32s(&[1], &[0.0]), i64s(&[1], &[1]), f32s(&[1], &[1.0])];
    assert_eq!(error(&V4, &pillow, &inputs), message);
}

#[test]
fn nothing_to_do() {
    let attributes = sizes("cubic", "half_pixel");
    let of = |shape: &[usize], sizes: &[i64]| {
        let data = Tensor::zeros(ElementType::F32, shape).unwrap();
        run(&V11, &attributes, &[data, i64s(&[sizes.len()], sizes)])
            .shape()
            .to_vec()
    };
    assert_eq!(of(&[0, 2], &[0, 4]), [0, 4]);
    assert_eq!(of(&[2, 0], &[0, 3]), [0, 3]);
    assert_eq!(of(&[2, 3], &[2, 3]), [2, 3]);
}

/// 4 · 1.5 = 6; no number of elements is 10³⁰ times an extent.
#[test]
fn extents_with_symbols_are_scaled_by_small_fractions_alone() {
    let mut symbols = Symbols::default();
    let n = symbols.add(4).unwrap();
    let [half, all] = symbols.record(|| [1.5, 1e30].map(|scale| scaled_extent(n, scale)));
    let values = symbols.bind(&[4]).unwrap();
    assert_eq!(half.unwrap().at(&values), Some(6));
    assert_eq!(all, None);
}
