//! Every way of lowering against the definition: each element adds its filter, where it falls, to the output.

use super::super::{CONVOLUTION, GROUP};
use crate::OpDef;
use crate::testing::{f32s, i32s, run};
use proptest::prelude::*;
use vinelift_tensor::Tensor;

#[derive(Clone, Copy, Debug)]
struct Dim {
    data: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pads: [usize; 2],
    longer: usize,
}

impl Dim {
    fn any() -> impl Strategy<Value = Dim> {
        // Both sides of the number of outputs from which one more does not count.
        let data = prop_oneof![1..6usize, 14..19usize];
        let pads = [0..4usize, 0..4usize];
        let all = (data, 1..6usize, 1..6usize, 1..3usize, pads, 0..3usize);
        all.prop_map(|(data, kernel, stride, dilation, pads, longer)| Dim {
            data,
            kernel,
            stride,
            dilation,
            pads,
            longer,
        })
    }

    /// The length of the output, unless nothing is left of it.
    fn out(&self) -> Option<usize> {
        let full =
            self.stride * (self.data - 1) + self.dilation * (self.kernel - 1) + 1 + self.longer;
        full.checked_sub(self.pads[0] + self.pads[1])
    }

    fn place(&self, element: usize, tap: usize) -> Option<usize> {
        let place = element * self.stride + tap * self.dilation;
        place
            .checked_sub(self.pads[0])
            .filter(|&y| Some(y) < self.out())
    }
}

/// Numbers that tell each place apart.
fn numbers(shape: &[usize], seed: i32) -> (Tensor, Vec<i32>) {
    let count: usize = shape.iter().product();
    let numbers: Vec<i32> = (0..count as i32)
        .map(|k| (k * 37 + seed) % 101 - 50)
        .collect();
    (i32s(shape, &numbers), numbers)
}

fn attributes(dims: &[Dim]) -> Vec<(&'static str, String)> {
    let list = |of: &dyn Fn(&Dim) -> usize| {
        let numbers: Vec<String> = dims.iter().map(|dim| of(dim).to_string()).collect();
        numbers.join(",")
    };
    vec![
        ("strides", list(&|dim| dim.stride)),
        ("dilations", list(&|dim| dim.dilation)),
        ("pads_begin", list(&|dim| dim.pads[0])),
        ("pads_end", list(&|dim| dim.pads[1])),
        ("output_padding", list(&|dim| dim.longer)),
    ]
}

fn ran(def: &'static OpDef, dims: &[Dim], inputs: &[Tensor]) -> Tensor {
    let attributes = attributes(dims);
    let attributes: Vec<(&str, &str)> = attributes.iter().map(|(n, v)| (*n, v.as_str())).collect();
    run(def, &attributes, inputs)
}

/// A tap that meets no element adds nothing, not even zero times infinity.
#[test]
fn infinite_elements_stay_where_their_taps_fall() {
    let dim = Dim {
        data: 2,
        kernel: 3,
        stride: 2,
        dilation: 1,
        pads: [1, 1],
        longer: 1,
    };
    let data = f32s(&[1, 1, 2], &[f32::INFINITY, 1.0]);
    let filters = f32s(&[1, 1, 3], &[1.0, 2.0, 3.0]);
    let found = ran(&CONVOLUTION, &[dim], &[data, filters]);
    let want = f32s(&[1, 1, 4], &[f32::INFINITY, f32::INFINITY, 2.0, 3.0]);
    assert_eq!(found, want);
}

proptest! {
    #[test]
    fn two_dims(y in Dim::any(), x in Dim::any()) {
        let (Some(height), Some(width)) = (y.out(), x.out()) else {
            return Ok(());
        };
        let (data, d) = numbers(&[1, 2, y.data, x.data], 5);
        let (filters, f) = numbers(&[2, 3, y.kernel, x.kernel], 11);
        let mut want = vec![0i32; 3 * height * width];
        for i in 0..2 {
            for (r, s) in (0..y.data).flat_map(|r| (0..x.data).map(move |s| (r, s))) {
                for (c, k, l) in (0..3).flat_map(|c| {
                    (0..y.kernel).flat_map(move |k| (0..x.kernel).map(move |l| (c, k, l)))
                }) {
                    if let (Some(to_y), Some(to_x)) = (y.place(r, k), x.place(s, l)) {
                        want[(c * height + to_y) * width + to_x] += d[(i * y.data + r) * x.data + s]
                            * f[((i * 3 + c) * y.kernel + k) * x.kernel + l];
                    }
                }
            }
        }
        let found = ran(&CONVOLUTION, &[y, x], &[data, filters]);
        prop_assert_eq!(found, i32s(&[1, 3, height, width], &want));
    }

    #[test]
    fn groups_along_one_dim(x in Dim::any()) {
        let Some(width) = x.out() else {
            return Ok(());
        };
        let (data, d) = numbers(&[2, 3, x.data], 7);
        let (filters, f) = numbers(&[3, 1, 2, x.kernel], 3);
        let mut want = vec![0i32; 2 * 6 * width];
        for (n, g) in (0..2).flat_map(|n| (0..3).map(move |g| (n, g))) {
            for (c, s, l) in (0..2).flat_map(|c| {
                (0..x.data).flat_map(move |s| (0..x.kernel).map(move |l| (c, s, l)))
            }) {
                if let Some(to) = x.place(s, l) {
                    want[(n * 6 + g * 2 + c) * width + to] +=
                        d[(n * 3 + g) * x.data + s] * f[(g * 2 + c) * x.kernel + l];
                }
            }
        }
        let found = ran(&GROUP, &[x], &[data, filters]);
        prop_assert_eq!(found, i32s(&[2, 6, width], &want));
    }
}
