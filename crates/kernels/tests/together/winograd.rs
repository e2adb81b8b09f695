//! Convolutions by minimal filtering, held against sums of products.

use crate::problems::lengths;
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use vinelift_kernels::{Contraction, Dim, Element, Isa, WinogradBuffers, WinogradConvolution};

/// A convolution of pictures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub(crate) element: Element,
    pub(crate) windows_are_right: bool,
    pub(crate) pictures: usize,
    pub(crate) channels: usize,
    pub(crate) results: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Elements between the pixels of the image, between its rows, and between the rows of `out`.
    pub(crate) gaps: [usize; 3],
    /// Whether the channels of windows lie side by side, and not their columns.
    pub(crate) channels_last: bool,
    /// Whether the pixels of a channel lie together, and not the channels of a pixel: in the image, and in `out`.
    pub(crate) planes: [bool; 2],
}

pub(crate) const ORDINARY: Problem = Problem {
    element: Element::U8I8,
    windows_are_right: true,
    pictures: 1,
    channels: 32,
    results: 24,
    rows: 6,
    columns: 5,
    gaps: [0; 3],
    channels_last: false,
    planes: [false; 2],
};

impl Problem {
    pub(crate) fn contraction(&self) -> Contraction {
        let Problem {
            channels,
            results,
            rows,
            columns,
            gaps: [of_pixels, of_rows, of_out],
            ..
        } = *self;
        let apart = if self.planes[0] { 1 } else { channels };
        let pixel = apart + of_pixels;
        let row = (columns + 2) * pixel + of_rows;
        let picture = (rows + 2) * row;
        let step = if self.planes[0] { picture } else { 1 };
        let [result, out_column, out_row] = match self.planes[1] {
            true => [rows * (columns + of_out), 1, columns + of_out],
            false => [1, results, columns * results + of_out],
        };
        let [channel, window_row, window_column] = match self.channels_last {
            true => [1, 3 * channels, channels],
            false => [9, 3, 1],
        };
        let dim = |extent, image, windows, out| match self.windows_are_right {
            true => Dim::new(extent, image, windows, out),
            false => Dim::new(extent, windows, image, out),
        };
        let pixels = vec![
            dim(
                self.pictures,
                channels * picture,
                0,
                results * rows * (columns + of_out),
            ),
            dim(rows, row, 0, out_row),
            dim(columns, pixel, 0, out_column),
        ];
        let windows = vec![dim(results, 0, 9 * channels, result)];
        let (m, n) = match self.windows_are_right {
            true => (pixels, windows),
            false => (windows, pixels),
        };
        Contraction {
            element: self.element,
            batch: vec![],
            m,
            n,
            k: vec![
                dim(channels, step, channel, 0),
                dim(3, row, window_row, 0),
                dim(3, pixel, window_column, 0),
            ],
        }
    }
}

/// All points of some dims: the offsets in the operands and in `out`.
fn offsets(dims: &[Dim]) -> Vec<[usize; 3]> {
    dims.iter().fold(vec![[0; 3]], |points, dim| {
        let along = |[left, right, out]: [usize; 3]| {
            (0..dim.extent).map(move |step| {
                [
                    left + step * dim.left,
                    right + step * dim.right,
                    out + step * dim.out,
                ]
            })
        };
        points.into_iter().flat_map(along).collect()
    })
}

/// The sums, as the definition says.
fn expected(contraction: &Contraction, [left, right]: [&[u8]; 2], out: &mut [i32]) {
    let value = |byte: u8, is_signed: bool| match is_signed {
        true => i32::from(byte.cast_signed()),
        false => i32::from(byte),
    };
    let is_left_signed = contraction.element == Element::I8U8;
    let sum = offsets(&contraction.k);
    for m in offsets(&contraction.m) {
        for n in offsets(&contraction.n) {
            let products = sum.iter().map(|k| {
                let left = left[m[0] + n[0] + k[0]];
                let right = right[m[1] + n[1] + k[1]];
                value(left, is_left_signed) * value(right, !is_left_signed)
            });
            out[m[2] + n[2]] = products.sum();
        }
    }
}

/// Compares all instruction sets with the definition, in one task and in several; how many of them have such a kernel.
fn check(problem: Problem, byte: impl FnMut() -> u8) -> usize {
    let contraction = problem.contraction();
    let [left, right, count] = lengths(&contraction);
    let mut bytes = std::iter::repeat_with(byte);
    let left: Vec<u8> = bytes.by_ref().take(left).collect();
    let right: Vec<u8> = bytes.take(right).collect();
    const UNTOUCHED: i32 = 0x5555_5555;
    let mut results = vec![UNTOUCHED; count];
    expected(&contraction, [&left, &right], &mut results);
    let (image, windows) = match problem.windows_are_right {
        true => (&left, &right),
        false => (&right, &left),
    };
    let mut kernels = 0;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        let kernel = WinogradConvolution::new(&contraction, isa, problem.windows_are_right);
        let Some(kernel) = kernel else { continue };
        kernels += 1;
        assert_eq!(kernel.elements(), [image.len(), windows.len(), count]);
        let packed = kernel.pack(windows).unwrap();
        for tasks in [1, 3] {
            let plan = kernel.plan(tasks);
            let mut found = vec![UNTOUCHED; count];
            let mut worker = vec![0xAAu8; plan.worker_bytes()];
            for task in 0..plan.tasks() {
                // Where a task writes a part alone, it is given this part alone.
                let region = plan.region(task).unwrap_or(0..count);
                let buffers = WinogradBuffers {
                    image,
                    windows: &packed,
                    out: found[region.clone()].as_mut_ptr().cast(),
                    out_bytes: region.len() * size_of::<i32>(),
                    out_start: region.start,
                    stop: &AtomicBool::new(false),
                };
                // SAFETY: `found` and `worker` are ours alone, and as large as the plan says.
                unsafe { kernel.run_task(&plan, task, &buffers, worker.as_mut_ptr()) }
            }
            assert_eq!(found, results, "{isa}, {tasks} tasks");
        }
    }
    kernels
}

fn random(seed: u64) -> impl FnMut() -> u8 {
    let mut random = fastrand::Rng::with_seed(seed);
    move || random.u8(..)
}

fn problems() -> impl Strategy<Value = Problem> {
    let channels = (8..40usize).prop_map(|half| 2 * half);
    let extents = (1..3usize, channels, 8..60usize, 2..12usize, 2..12usize);
    let gaps = [0..3usize, 0..40, 0..2];
    (extents, gaps, any::<[bool; 5]>()).prop_map(
        |(extents, gaps, [signed, right, last, image, out])| {
            let (pictures, channels, results, rows, columns) = extents;
            Problem {
                element: match signed {
                    true => Element::I8U8,
                    false => Element::U8I8,
                },
                windows_are_right: right,
                pictures,
                channels,
                results,
                rows,
                columns,
                gaps,
                channels_last: last,
                planes: [image, out],
            }
        },
    )
}

proptest! {
    #[test]
    fn sums_are_exact(problem in problems(), seed: u64) {
        check(problem, random(seed));
    }
}

#[test]
fn any_extents_channels_and_results() {
    for (rows, columns) in [(2, 2), (3, 4), (8, 8), (7, 7), (13, 2), (2, 31)] {
        for (channels, results) in [(16, 64), (18, 33), (62, 16), (64, 9)] {
            for planes in [[false, false], [false, true], [true, false]] {
                let problem = Problem {
                    rows,
                    columns,
                    channels,
                    results,
                    planes,
                    ..ORDINARY
                };
                check(problem, random(1));
            }
        }
    }
}

/// More tiles than a block has.
#[test]
fn several_blocks_of_tiles() {
    let problem = Problem {
        rows: 24,
        columns: 18,
        pictures: 2,
        ..ORDINARY
    };
    assert!(check(problem, random(2)) > 0);
}

#[test]
fn sums_of_the_largest_products_fit() {
    for element in [Element::U8I8, Element::I8U8] {
        let problem = Problem {
            element,
            channels: 1826,
            results: 16,
            rows: 2,
            columns: 2,
            ..ORDINARY
        };
        for bytes in [[0xff, 0x80], [0x80, 0xff], [0x7f, 0xff], [0xff, 0x7f]] {
            let mut count = 0;
            let left = lengths(&problem.contraction())[0];
            let byte = move || {
                count += 1;
                bytes[usize::from(count > left)]
            };
            assert!(check(problem, byte) > 0);
        }
        let more = Problem {
            channels: 1828,
            ..problem
        };
        assert_eq!(check(more, random(3)), 0);
    }
}

#[test]
fn other_contractions_have_no_kernel() {
    let none = |contraction: &Contraction| {
        let all = Isa::ALL.into_iter().filter(|isa| isa.available());
        all.map(|isa| WinogradConvolution::new(contraction, isa, true))
            .all(|kernel| kernel.is_none())
    };
    let ordinary = ORDINARY.contraction();
    assert!(!none(&ordinary));
    let changed = |change: fn(&mut Contraction)| {
        let mut contraction = ORDINARY.contraction();
        change(&mut contraction);
        none(&contraction)
    };
    // Floats; a window that steps by two, or is of another extent.
    assert!(changed(|c| c.element = Element::F32));
    assert!(changed(|c| c.m[1].left *= 2));
    assert!(changed(|c| c.k[1].extent = 2));
    // The windows of several groups.
    assert!(changed(|c| c.batch.push(Dim::new(2, 9999, 9999, 9999))));
}

/// The transforms pay from some channels and results on.
#[test]
fn few_channels_or_results_have_no_kernel() {
    let kernels = |channels, results| {
        let problem = Problem {
            channels,
            results,
            rows: 8,
            columns: 8,
            ..ORDINARY
        };
        check(problem, random(4))
    };
    let all = kernels(32, 32);
    assert!(all > 0);
    assert_eq!(kernels(14, 32), 0);
    assert_eq!(kernels(16, 2), 0);
    assert_eq!(kernels(16, 32), all);
}
