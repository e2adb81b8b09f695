//! Tests of `ExtractImagePatches`.

use super::*;
use crate::testing::{Class, error, i32s, infer, run};
use std::slice::from_ref;
use vinelift_tensor::{ElementType, Tensor};

fn counting(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    i32s(shape, &(1..=n as i32).collect::<Vec<_>>())
}

fn attributes<'a>(
    sizes: &'a str,
    strides: &'a str,
    rates: &'a str,
    auto_pad: &'a str,
) -> [(&'a str, &'a str); 4] {
    [
        ("sizes", sizes),
        ("strides", strides),
        ("rates", rates),
        ("auto_pad", auto_pad),
    ]
}

/// The examples of the specification.
#[test]
fn examples() {
    let image = counting(&[1, 1, 10, 10]);
    let out = run(
        &DEF,
        &attributes("3,3", "5,5", "1,1", "valid"),
        from_ref(&image),
    );
    #[rustfmt::skip]
    let want = [
        1, 6, 51, 56, 2, 7, 52, 57, 3, 8, 53, 58, 11, 16, 61, 66, 12, 17, 62, 67, 13, 18, 63, 68,
        21, 26, 71, 76, 22, 27, 72, 77, 23, 28, 73, 78,
    ];
    assert_eq!(out, i32s(&[1, 9, 2, 2], &want));
    let out = run(
        &DEF,
        &attributes("4,4", "9,9", "1,1", "same_upper"),
        from_ref(&image),
    );
    #[rustfmt::skip]
    let want = [
        0, 0, 0, 89, 0, 0, 81, 90, 0, 0, 82, 0, 0, 0, 83, 0, 0, 9, 0, 99, 1, 10, 91, 100, 2, 0, 92, 0,
        3, 0, 93, 0, 0, 19, 0, 0, 11, 20, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 0, 29, 0, 0, 21, 30, 0, 0,
        22, 0, 0, 0, 23, 0, 0, 0,
    ];
    assert_eq!(out, i32s(&[1, 16, 2, 2], &want));
    let out = run(
        &DEF,
        &attributes("3,3", "5,5", "2,2", "valid"),
        from_ref(&image),
    );
    #[rustfmt::skip]
    let want = [
        1, 6, 51, 56, 3, 8, 53, 58, 5, 10, 55, 60, 21, 26, 71, 76, 23, 28, 73, 78, 25, 30, 75, 80,
        41, 46, 91, 96, 43, 48, 93, 98, 45, 50, 95, 100,
    ];
    assert_eq!(out, i32s(&[1, 9, 2, 2], &want));
    let image = counting(&[1, 2, 5, 5]);
    let out = run(&DEF, &attributes("2,2", "3,3", "1,1", "valid"), &[image]);
    #[rustfmt::skip]
    let want = [
        1, 4, 16, 19, 26, 29, 41, 44, 2, 5, 17, 20, 27, 30, 42, 45,
        6, 9, 21, 24, 31, 34, 46, 49, 7, 10, 22, 25, 32, 35, 47, 50,
    ];
    assert_eq!(out, i32s(&[1, 8, 2, 2], &want));
}

/// Shapes that OpenVINO 2026.4.1 infers.
#[test]
fn patches_that_do_not_fit() {
    let of = |sizes, strides, shape: &[usize]| {
        let attributes = attributes(sizes, strides, "1,1", "valid");
        run(&DEF, &attributes, &[counting(shape)])
    };
    assert_eq!(of("3,1", "1,1", &[1, 1, 2, 1]).shape(), [1, 3, 0, 1]);
    assert_eq!(of("3,1", "3,1", &[1, 1, 2, 1]).shape(), [1, 3, 0, 1]);
    assert_eq!(of("3,1", "3,1", &[1, 1, 0, 2]).shape(), [1, 1, 0, 2]);
}

#[test]
fn shapes() {
    let of = |data| {
        let attributes = attributes("3,2", "2,1", "1,2", "valid");
        infer(&DEF, &attributes, &[(ElementType::F32, data, None)]).0
    };
    let from_one = Dim::between(1, None);
    let data = PartialShape::ranked(vec![Dim::ANY, Dim::fixed(2), from_one, Dim::fixed(9)]);
    assert_eq!(of(data), "f32[?, 12, ?, 7]");
    assert_eq!(of(PartialShape::DYNAMIC), "f32[?, ?, ?, ?]");
    let attributes = attributes("3,2", "0,1", "1,1", "valid");
    let message = "`strides` [0, 1] must be two numbers from 1 on, below 2^31";
    assert_eq!(
        error(&DEF, &attributes, &[counting(&[1, 1, 1, 1])]),
        message
    );
}

/// Classes give what each image gives alone, with pads and without.
#[test]
fn classes_of_images() {
    for auto_pad in ["valid", "same_upper", "same_lower"] {
        let attributes = attributes("3,2", "2,3", "1,2", auto_pad);
        let class = Class::new(&DEF, &attributes, &[2, 9, 10], |s| {
            vec![(ElementType::I32, vec![1.into(), s[0], s[1], s[2]], None)]
        });
        for shape in [[2, 9, 10], [5, 7, 13]] {
            let image = counting(&[&[1], &shape[..]].concat());
            let found = class.run(&shape, from_ref(&image));
            assert_eq!(found, Some(vec![run(&DEF, &attributes, &[image])]));
        }
    }
}

/// By the formula, element by element, for images on both sides of what is padded first: patches that overlap and that do
/// not, that are larger than the image, and whose elements lie further apart than it is long.
#[test]
fn as_the_formula_says() {
    let (mut padded, mut images) = (0, 0);
    for (auto_pad, sizes, strides, rates) in [
        (AutoPad::SameUpper, [3, 3], [1, 1], [1, 1]),
        (AutoPad::SameLower, [3, 2], [1, 2], [2, 1]),
        (AutoPad::SameUpper, [2, 2], [2, 2], [1, 1]),
        (AutoPad::SameLower, [4, 1], [3, 1], [1, 7]),
        (AutoPad::SameUpper, [2, 3], [1, 1], [40, 9]),
        (AutoPad::Valid, [2, 3], [1, 2], [1, 1]),
        (AutoPad::SameUpper, [1, 1], [1, 1], [1, 1]),
    ] {
        for shape in [[2, 3, 5, 7], [1, 1, 1, 9], [1, 2, 11, 12]] {
            let op = ExtractImagePatches {
                sizes: sizes.to_vec(),
                strides: strides.to_vec(),
                rates: rates.to_vec(),
                auto_pad,
            };
            let extents = shape.map(Extent::from);
            let dims = [op.along(0, extents[2]), op.along(1, extents[3])];
            padded += usize::from(op.padded_extents(&dims, &extents).is_some());
            images += 1;
            let image = counting(&shape);
            let text = |x: [usize; 2]| format!("{},{}", x[0], x[1]);
            let (sizes_text, strides_text, rates_text) = (text(sizes), text(strides), text(rates));
            let name = match auto_pad {
                AutoPad::Valid | AutoPad::Explicit => "valid",
                AutoPad::SameUpper => "same_upper",
                AutoPad::SameLower => "same_lower",
            };
            let attributes = attributes(&sizes_text, &strides_text, &rates_text, name);
            let found = run(&DEF, &attributes, &[image]);
            let want = patches(shape, sizes, strides, rates, auto_pad, found.shape());
            assert_eq!(
                found,
                i32s(found.shape(), &want),
                "{attributes:?}, {shape:?}"
            );
        }
    }
    assert!(padded > 0 && padded < images, "{padded} of {images}");
}

/// The patches of [`counting`] that an output of shape `out` holds.
fn patches(
    [_, depth, rows, columns]: [usize; 4],
    sizes: [usize; 2],
    strides: [usize; 2],
    rates: [usize; 2],
    auto_pad: AutoPad,
    out: &[usize],
) -> Vec<i32> {
    let extents = [rows, columns];
    let begin = [0, 1].map(|d| {
        let reach = (out[d + 2].max(1) - 1) * strides[d] + (sizes[d] - 1) * rates[d] + 1;
        let total = reach.saturating_sub(extents[d]);
        match auto_pad {
            AutoPad::Valid | AutoPad::Explicit => 0,
            AutoPad::SameUpper => total / 2,
            AutoPad::SameLower => total.div_ceil(2),
        }
    });
    let mut want = Vec::new();
    for (n, channel) in (0..out[0]).flat_map(|n| (0..out[1]).map(move |c| (n, c))) {
        let (place, c) = (channel / depth, channel % depth);
        let place = [place / sizes[1], place % sizes[1]];
        for (i, j) in (0..out[2]).flat_map(|i| (0..out[3]).map(move |j| (i, j))) {
            let at = |d: usize, patch: usize| {
                let at = patch * strides[d] + place[d] * rates[d];
                at.checked_sub(begin[d]).filter(|at| *at < extents[d])
            };
            want.push(match (at(0, i), at(1, j)) {
                (Some(row), Some(column)) => {
                    1 + (((n * depth + c) * rows + row) * columns + column) as i32
                }
                _ => 0,
            });
        }
    }
    want
}
