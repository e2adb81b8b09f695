//! Nothing is read or written after an operand: each ends where the memory ends.
//!
//! A file is mapped one page further than it is long. What touches that page ends the process.

use crate::grouped::problem::{Points, Problem, matrix, ordinary};
use crate::problems::{channels_last, convolution, matrices};
use crate::winograd::{ORDINARY, Problem as ThreeByThree};
use memmap2::{MmapMut, MmapOptions};
use vinelift_kernels::{
    Code, Contraction, Dim, Element, Form, Grouped, GroupedProduct, GroupedRows, Isa, Narrow,
    Operand, PreparedContraction, WinogradConvolution,
};
use zerocopy::IntoBytes;

/// Memory of which the last byte is the last of a page, with a page after it that is not there.
struct Guarded {
    map: MmapMut,
    start: usize,
    end: usize,
}

impl Guarded {
    fn new(bytes: usize) -> Guarded {
        // A multiple of the page size on all machines in use.
        const PAGE: usize = 1 << 16;
        let end = bytes.next_multiple_of(PAGE).max(PAGE);
        let file = tempfile::tempfile().unwrap();
        file.set_len(end as u64).unwrap();
        // SAFETY: nobody else has the file, and only what it holds is accessed: that is the test.
        let map = unsafe { MmapOptions::new().len(end + PAGE).map_mut(&file).unwrap() };
        Guarded {
            map,
            start: end - bytes,
            end,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.end]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.end]
    }
}

/// Runs a contraction whose operands, result and scratch memory each end where memory ends.
fn run(contraction: &Contraction) {
    for element in [Element::F32, Element::F64, Element::U8I8, Element::I8U8] {
        let contraction = Contraction {
            element,
            ..contraction.clone()
        };
        for isa in Isa::ALL {
            if !isa.available() {
                continue;
            }
            let kernel = PreparedContraction::with_isa(&contraction, isa).unwrap();
            let [left, right, out] = kernel.elements();
            let operand = |count: usize| Guarded::new(count * element.operand_bytes());
            let (left, right) = (operand(left), operand(right));
            let mut out = Guarded::new(out * element.bytes());
            let packed_left = kernel.pack_left(left.bytes()).unwrap();
            let packed_right = kernel.pack_right(right.bytes()).unwrap();
            for (left_form, right_form) in [
                (Form::Plain, Form::Plain),
                (Form::Packed, Form::Plain),
                (Form::Plain, Form::Packed),
            ] {
                for tasks in [1, 3] {
                    let plan = kernel.plan(left_form, right_form, tasks);
                    let left = match left_form {
                        Form::Plain => Operand::Plain(left.bytes()),
                        Form::Packed | Form::Coded => Operand::Packed(&packed_left),
                    };
                    let right = match right_form {
                        Form::Plain => Operand::Plain(right.bytes()),
                        Form::Packed | Form::Coded => Operand::Packed(&packed_right),
                    };
                    let mut scratch = Guarded::new(plan.shared_bytes() + plan.worker_bytes());
                    kernel.run(&plan, left, right, out.bytes_mut(), scratch.bytes_mut());
                }
            }
        }
    }
}

/// The same, where the right operand is stored in 16 bits, if there is a kernel.
fn run_narrow(contraction: &Contraction) {
    let isas = Isa::ALL;
    let kernels = isas.into_iter().flat_map(|isa| {
        [Narrow::F16, Narrow::BF16].map(|narrow| {
            let narrow = [None, Some(narrow)];
            PreparedContraction::with_narrow(contraction, isa, [Form::Plain; 2], narrow)
        })
    });
    for kernel in kernels.flatten() {
        let [left, right, out] = kernel.elements();
        let (left, right) = (Guarded::new(left * 4), Guarded::new(right * Narrow::BYTES));
        let mut out = Guarded::new(out * 4);
        for tasks in [1, 3] {
            let plan = kernel.plan(Form::Plain, Form::Plain, tasks);
            let mut scratch = Guarded::new(plan.shared_bytes() + plan.worker_bytes());
            let [left, right] = [left.bytes(), right.bytes()].map(Operand::Plain);
            kernel.run(&plan, left, right, out.bytes_mut(), scratch.bytes_mut());
        }
    }
}

/// Vectors of pixels that are of one line, of two or of more, and every pixel or every second.
#[test]
fn lines_of_pixels() {
    for width in [1, 2, 5, 7, 8, 11, 14, 16, 17, 28] {
        for step in 1..=2 {
            run(&convolution((2, 9), (3, width), 2, step, 1));
        }
    }
}

#[test]
fn products() {
    for (m, n, k) in [
        (1, 1, 1),
        (1, 130, 20),
        (4, 8, 8),
        (17, 33, 5),
        (5, 47, 300),
        (40, 20, 17),
        (33, 40, 76),
    ] {
        for across in 0..8 {
            let across = [across & 1 != 0, across & 2 != 0, across & 4 != 0];
            let contraction = matrices(1, m, n, k, across);
            run(&contraction);
            run_narrow(&contraction);
        }
    }
}

#[test]
fn channels_that_follow_each_other() {
    for out in [false, true] {
        run(&channels_last((16, 5), (6, 7), 3, out));
        run(&channels_last((9, 17), (5, 9), 3, out));
        run(&channels_last((3, 30), (4, 11), 2, out));
    }
}

#[test]
fn convolutions() {
    for (channels, outputs, size, window, step) in [
        (3, 5, 7, 3, 1),
        (2, 20, 14, 3, 1),
        (3, 9, 6, 5, 2),
        (4, 30, 9, 1, 2),
        (1, 1, 15, 3, 2),
    ] {
        let width = (size - 1) * step + window;
        let mut contraction = Contraction {
            element: Element::F32,
            batch: vec![],
            m: vec![Dim::new(
                outputs,
                channels * window * window,
                0,
                size * size,
            )],
            n: vec![
                Dim::new(size, 0, step * width, size),
                Dim::new(size, 0, step, 1),
            ],
            k: vec![
                Dim::new(channels, window * window, width * width, 0),
                Dim::new(window, window, width, 0),
                Dim::new(window, 1, 1, 0),
            ],
        };
        run(&contraction);
        // Every channel on its own.
        contraction.m.clear();
        contraction.k.remove(0);
        contraction.batch = vec![Dim::new(
            channels,
            window * window,
            width * width,
            size * size,
        )];
        run(&contraction);
    }
}

/// Windows of 3 × 3 by minimal filtering: tiles that a picture has in part, the last channels, and the last columns.
#[test]
fn minimal_filtering() {
    for (rows, columns) in [(2, 2), (5, 4), (4, 7), (9, 9)] {
        for (channels, results) in [(16, 48), (50, 35), (32, 17)] {
            for planes in [[false, false], [true, true]] {
                let problem = ThreeByThree {
                    rows,
                    columns,
                    channels,
                    results,
                    planes,
                    ..ORDINARY
                };
                filter(&problem.contraction());
            }
        }
    }
}

fn filter(contraction: &Contraction) {
    for isa in Isa::ALL {
        let Some(kernel) = WinogradConvolution::new(contraction, isa, true) else {
            continue;
        };
        let [image, windows, out] = kernel.elements();
        let (image, windows) = (Guarded::new(image), Guarded::new(windows));
        let mut out = Guarded::new(out * size_of::<i32>());
        let packed = kernel.pack(windows.bytes()).unwrap();
        for tasks in [1, 3] {
            let plan = kernel.plan(tasks);
            let mut worker = Guarded::new(plan.worker_bytes());
            let (out, worker) = (out.bytes_mut(), worker.bytes_mut());
            kernel.run(&plan, image.bytes(), &packed, out, worker);
        }
    }
}

/// Rows that are multiplied by groups, the scales or sums of these, and codes before they are packed.
#[test]
fn grouped_products() {
    for code in [Code::I8, Code::U8, Code::I4, Code::U4] {
        for (rows, n, k, group) in [
            (1, 1, 8, 8),
            (1, 70, 64, 32),
            (2, 33, 40, 40),
            (3, 16, 72, 24),
            (9, 5, 128, 64),
        ] {
            let bytes = matrix(rows, n, k, (group, k), code);
            for row_type in [GroupedRows::Bytes, GroupedRows::Floats] {
                grouped_product(&Grouped {
                    rows: row_type,
                    ..bytes.clone()
                });
            }
        }
    }
}

fn grouped_product(grouped: &Grouped) {
    let problem = Problem::new(grouped, Points::All, ordinary, 1);
    let guarded = |bytes: &[u8]| {
        let mut guarded = Guarded::new(bytes.len());
        guarded.bytes_mut().copy_from_slice(bytes);
        guarded
    };
    let codes = guarded(&problem.codes);
    let rows = guarded(match grouped.rows {
        GroupedRows::Bytes => problem.rows.as_bytes(),
        GroupedRows::Floats => problem.floats.as_bytes(),
    });
    let points = guarded(problem.points.as_bytes());
    let mut out = Guarded::new(problem.out * 4);
    for isa in Isa::ALL {
        let Ok(product) = GroupedProduct::new(&problem.grouped, isa) else {
            continue;
        };
        let packed = product.pack(codes.bytes(), &problem.coding).unwrap();
        for tasks in [1, 3] {
            let plan = product.plan(tasks);
            let mut worker = Guarded::new(plan.worker_bytes());
            let operands = [rows.bytes(), points.bytes()];
            product.run(
                &plan,
                operands,
                &packed,
                out.bytes_mut(),
                worker.bytes_mut(),
            );
        }
    }
}
