//! Elements whose neighbours lie along one axis before and along another one after they are moved.

use crate::common::{bytes, output, text_for_256_bits, values};
use vinelift_nest::{Nest, parse};
use vinelift_tensor::ElementType::{self, F32, F64, I8, I32, U16};

/// `y[i, r, l] = x[i, l, r]`, with either of the loops over `r` and `l` inside.
fn transposed(ty: ElementType, [rows, lanes]: [usize; 2], is_lane_inside: bool) -> Nest {
    let loops = match is_lane_inside {
        true => format!("r<{rows}, l<{lanes}"),
        false => format!("l<{lanes}, r<{rows}"),
    };
    let text = format!(
        "input x: {ty}[2, {lanes}, {rows}]\noutput y: {ty}[2, {rows}, {lanes}]\n\
         for i<2, {loops}: y[i, r, l] = x[i, l, r]\n"
    );
    parse(&text).unwrap()
}

#[test]
fn every_element_goes_to_its_place() {
    let extents = [3, 4, 5, 8, 9, 15, 16, 17, 37];
    let sizes = extents.map(|rows| extents.map(|lanes| [rows, lanes]));
    // Rows of the target on pages of their own.
    let far = [[15, 1024], [16, 1023], [16, 1024], [17, 2050], [37, 4099]];
    for [rows, lanes] in sizes.into_iter().flatten().chain(far) {
        for (ty, is_lane_inside) in [
            (F32, true),
            (I32, false),
            (U16, true),
            (I8, false),
            (F64, true),
        ] {
            let nest = transposed(ty, [rows, lanes], is_lane_inside);
            let width = ty.bits() / 8;
            let bytes = 0..2 * rows * lanes * width;
            let x: Vec<u8> = bytes.map(|n| (n % 251) as u8).collect();
            let found = output(&nest, std::slice::from_ref(&x));
            for (n, element) in x.chunks(width).enumerate() {
                let (i, l, r) = (n / (rows * lanes), n / rows % lanes, n % rows);
                let at = width * ((i * rows + r) * lanes + l);
                let found = &found[at..at + width];
                assert_eq!(found, element, "{rows} rows of {lanes} {ty}: {n}");
            }
        }
    }
}

/// `y[r, i, l] = x[l, i, r]`: the axes of the squares have another one between them.
#[test]
fn axes_that_are_apart() {
    for [rows, lanes] in [[4, 16], [5, 9], [40, 21]] {
        let text = format!(
            "input x: f32[{lanes}, 3, {rows}]\noutput y: f32[{rows}, 3, {lanes}]\n\
             for r<{rows}, i<3, l<{lanes}: y[r, i, l] = x[l, i, r]\n"
        );
        let nest = parse(&text).unwrap();
        assert!(
            text_for_256_bits(&nest)
                .clif
                .contains("transposed in registers")
        );
        let x: Vec<f32> = (0..rows * 3 * lanes).map(|n| n as f32).collect();
        let found = output(&nest, &[bytes(&x)]);
        let place = |n: usize| (n % lanes * 3 + n / lanes % 3) * rows + n / (3 * lanes);
        let expected: Vec<f32> = (0..x.len()).map(|n| x[place(n)]).collect();
        assert_eq!(values::<f32>(&found), expected, "{text}");
    }
}

#[test]
fn registers_hold_rows_of_squares() {
    let square = |ty, rows: usize, lanes: usize| {
        let text = text_for_256_bits(&transposed(ty, [rows, lanes], true)).clif;
        let note = |size: &[usize; 2]| {
            let [rows, lanes] = size;
            text.contains(&format!("{rows} × {lanes} transposed in registers"))
        };
        [[4, 4], [4, 8], [4, 16], [8, 8], [8, 16], [16, 16]]
            .into_iter()
            .find(note)
    };
    assert_eq!(square(F32, 20, 16), Some([4, 16]));
    assert_eq!(square(I32, 9, 15), Some([4, 8]));
    assert_eq!(square(F32, 9, 7), Some([4, 4]));
    assert_eq!(square(U16, 8, 40), Some([8, 16]));
    assert_eq!(square(U16, 9, 9), Some([8, 8]));
    assert_eq!(square(I8, 16, 40), Some([16, 16]));
    assert_eq!(square(F32, 16, 1024), Some([16, 16]));
    assert_eq!(square(U16, 16, 2048), Some([16, 16]));
    assert_eq!(square(F32, 16, 1023), Some([4, 16]));
    assert_eq!(square(F32, 15, 1024), Some([4, 16]));
    // Too few lanes or rows, and large elements.
    assert_eq!(square(F32, 9, 3), None);
    assert_eq!(square(I8, 15, 16), None);
    assert_eq!(square(F64, 20, 20), None);
}
