//! Contractions to test with, and how many elements they have.

use proptest::prelude::*;
use vinelift_kernels::{Contraction, Dim, Element};

/// How many elements the operands have.
pub(crate) fn lengths(c: &Contraction) -> [usize; 3] {
    let last = |groups: &[&Vec<Dim>], stride: fn(&Dim) -> usize| {
        let dims: Vec<&Dim> = groups.iter().flat_map(|dims| dims.iter()).collect();
        match dims.iter().any(|dim| dim.extent == 0) {
            true => 0,
            false => {
                1 + dims
                    .iter()
                    .map(|dim| (dim.extent - 1) * stride(dim))
                    .sum::<usize>()
            }
        }
    };
    let inputs = [&c.batch, &c.m, &c.n, &c.k];
    [
        last(&inputs, |d| d.left),
        last(&inputs, |d| d.right),
        last(&inputs[..3], |d| d.out),
    ]
}

/// The products of all batches, dims that are empty counted as one point.
pub(crate) fn points(c: &Contraction) -> usize {
    let dims = [&c.batch, &c.m, &c.n, &c.k].into_iter().flatten();
    dims.map(|dim| dim.extent.max(1)).product()
}

/// `[batch, m, k] · [batch, k, n]`, where `across` says which operands are stored transposed.
pub(crate) fn matrices(
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    across: [bool; 3],
) -> Contraction {
    let strides =
        |across: bool, rows: usize, columns: usize| if across { (1, rows) } else { (columns, 1) };
    let (left_m, left_k) = strides(across[0], m, k);
    let (right_k, right_n) = strides(across[1], k, n);
    let (out_m, out_n) = strides(across[2], m, n);
    Contraction {
        element: Element::F32,
        batch: vec![Dim::new(batch, m * k, k * n, m * n)],
        m: vec![Dim::new(m, left_m, 0, out_m)],
        n: vec![Dim::new(n, 0, right_n, out_n)],
        k: vec![Dim::new(k, left_k, right_k, 0)],
    }
}

/// A convolution of an input that has been padded: channels, height and width of the output, the
/// window, its step, and the step within it.
pub(crate) fn convolution(
    (inputs, outputs): (usize, usize),
    (height, width): (usize, usize),
    window: usize,
    step: usize,
    within: usize,
) -> Contraction {
    let input = |out: usize| (out - 1) * step + (window - 1) * within + 1;
    let (rows, columns) = (input(height), input(width));
    Contraction {
        element: Element::F32,
        batch: vec![Dim::new(
            2,
            0,
            inputs * rows * columns,
            outputs * height * width,
        )],
        m: vec![Dim::new(
            outputs,
            inputs * window * window,
            0,
            height * width,
        )],
        n: vec![
            Dim::new(height, 0, step * columns, width),
            Dim::new(width, 0, step, 1),
        ],
        k: vec![
            Dim::new(inputs, window * window, rows * columns, 0),
            Dim::new(window, window, within * columns, 0),
            Dim::new(window, 1, within, 0),
        ],
    }
}

/// A convolution of a picture whose channels follow each other, and so do those of the result if `out` says so; otherwise
/// these are planes.
pub(crate) fn channels_last(
    (inputs, outputs): (usize, usize),
    (height, width): (usize, usize),
    window: usize,
    out: bool,
) -> Contraction {
    let columns = width + window - 1;
    let (pixel, channel) = match out {
        true => (outputs, 1),
        false => (1, height * width),
    };
    Contraction {
        element: Element::F32,
        batch: vec![],
        m: vec![
            Dim::new(height, columns * inputs, 0, width * pixel),
            Dim::new(width, inputs, 0, pixel),
        ],
        n: vec![Dim::new(outputs, 0, inputs * window * window, channel)],
        k: vec![
            Dim::new(inputs, 1, window * window, 0),
            Dim::new(window, columns * inputs, window, 0),
            Dim::new(window, inputs, 1, 0),
        ],
    }
}

/// A [`convolution`] of every channel on its own.
pub(crate) fn depthwise(
    channels: usize,
    out: (usize, usize),
    window: usize,
    step: usize,
) -> Contraction {
    let mut contraction = convolution((1, 1), out, window, step, 1);
    let [_, right, out] = lengths(&contraction);
    let image = contraction.batch[0].right;
    assert!(right <= 2 * image);
    contraction.batch = vec![
        Dim::new(2, 0, channels * image, channels * out / 2),
        Dim::new(channels, window * window, image, out / 2),
    ];
    contraction.m.clear();
    contraction
}

/// Dims of any strides: up to two for each group, and the ones of `out` in any order.
pub(crate) fn any_contraction() -> impl Strategy<Value = Contraction> {
    let extent = || prop_oneof![1 => 0..1usize, 2 => Just(1usize), 9 => 2..6usize, 4 => 6..40usize];
    let group = move || prop::collection::vec((extent(), 0..9usize, 0..9usize), 0..3);
    (group(), group(), group(), group(), any::<u64>(), 0..4usize).prop_map(
        |(batch, m, n, k, order, gap)| {
            let mut random = fastrand::Rng::with_seed(order);
            // Strides are those of a dense operand, or any.
            let mut stride =
                |any: usize, dense: usize| if random.u8(..3) == 0 { any } else { dense };
            let mut dense = [1usize; 2];
            let mut dims = |group: &[(usize, usize, usize)], left: bool, right: bool| -> Vec<Dim> {
                let mut dims = Vec::new();
                for &(extent, any_left, any_right) in group.iter().rev() {
                    let extent = if dense[0].max(dense[1]) > 4000 {
                        extent.min(3)
                    } else {
                        extent
                    };
                    let (l, r) = (stride(any_left, dense[0]), stride(any_right, dense[1]));
                    dims.push(Dim::new(
                        extent,
                        if left { l } else { 0 },
                        if right { r } else { 0 },
                        0,
                    ));
                    for (dense, has) in dense.iter_mut().zip([left, right]) {
                        *dense *= if has { extent.max(1) } else { 1 };
                    }
                }
                dims.reverse();
                dims
            };
            let k = dims(&k, true, true);
            let n = dims(&n, false, true);
            let m = dims(&m, true, false);
            let batch = dims(&batch, true, true);
            let mut contraction = Contraction {
                element: Element::F32,
                batch,
                m,
                n,
                k,
            };
            // `out` is dense or has gaps, and its dims are in the usual order or in any.
            let Contraction { batch, m, n, .. } = &mut contraction;
            let mut outs: Vec<&mut Dim> = batch.iter_mut().chain(m).chain(n).collect();
            outs.reverse();
            if gap > 1 {
                random.shuffle(&mut outs);
            }
            let mut reach = 1;
            for dim in outs {
                dim.out = reach;
                reach *= dim.extent.max(1);
                reach += if gap == 3 { random.usize(..3) } else { 0 };
            }
            contraction
        },
    )
}
