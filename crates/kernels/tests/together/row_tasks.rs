//! Plans by rows: a task for each range of rows, which may see no more of the row side and of the result than its own.

use crate::problems::{any_contraction, depthwise, lengths, matrices};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use vinelift_kernels::{
    Buffers, Contraction, Dim, Element, Form, Isa, Operand, PreparedContraction,
};
use zerocopy::IntoBytes;

/// Runs the contraction by `ranges` of rows, and compares with a run as a whole, bit by bit.
fn check(kernel: &PreparedContraction, contraction: &Contraction, ranges: &[Range<usize>]) {
    let mut random = fastrand::Rng::with_seed(7);
    let element = contraction.element;
    let (size, out_size) = (element.operand_bytes(), element.bytes());
    let [left, right, out] = lengths(contraction);
    let mut numbers = |count: usize| -> Vec<u8> {
        if element != Element::F32 {
            return (0..count).map(|_| random.u8(..)).collect();
        }
        let numbers = (0..count).map(|_| random.f32() - 0.5);
        numbers.collect::<Vec<f32>>().as_bytes().to_vec()
    };
    let (left, right) = (numbers(left), numbers(right));
    let [plain_left, plain_right] = [&left, &right].map(|bytes| Operand::Plain(bytes));
    let whole = kernel.plan(Form::Plain, Form::Plain, 1);
    let mut expected = vec![0xAA; out * out_size];
    let mut scratch = vec![0; whole.shared_bytes() + whole.worker_bytes()];
    kernel.run(&whole, plain_left, plain_right, &mut expected, &mut scratch);

    let plan = kernel.plan_rows(Form::Plain, Form::Plain, ranges).unwrap();
    if out == 0 {
        assert_eq!(plan.tasks(), 0);
        return;
    }
    let mut shared = vec![0u8; plan.shared_bytes()];
    let mut worker = vec![0u8; plan.worker_bytes()];
    let mut found = vec![0xAA; out * out_size];
    let never = AtomicBool::new(false);
    for task in 0..plan.packing_tasks() {
        let buffers = Buffers {
            left: plain_left,
            right: plain_right,
            out: found.as_mut_ptr(),
            out_bytes: found.len(),
            out_start: 0,
            shared: shared.as_mut_ptr(),
            stop: &never,
        };
        // SAFETY: the memory is exclusively ours, and as large as the plan says.
        unsafe { kernel.run_packing_task(&plan, task, &buffers) }
    }
    for (task, rows) in ranges.iter().enumerate() {
        // Each sees its own rows alone, and writes to memory of its own.
        let (mut left, mut right) = (plain_left, plain_right);
        let own;
        if let Some(length) = kernel.dense_rows() {
            let side = match kernel.rows_are_left() {
                true => &mut left,
                false => &mut right,
            };
            let Operand::Plain(bytes) = *side else {
                unreachable!("operands are plain")
            };
            own = bytes[rows.start * length * size..rows.end * length * size].to_vec();
            *side = Operand::Window {
                bytes: &own,
                start: rows.start * length,
            };
        }
        let region = plan.region(task).unwrap_or(0..out);
        let mut results = found[region.start * out_size..region.end * out_size].to_vec();
        let buffers = Buffers {
            left,
            right,
            out: results.as_mut_ptr(),
            out_bytes: results.len(),
            out_start: region.start,
            shared: shared.as_mut_ptr(),
            stop: &never,
        };
        // SAFETY: as above.
        unsafe { kernel.run_task(&plan, task, &buffers, worker.as_mut_ptr()) }
        found[region.start * out_size..region.end * out_size].copy_from_slice(&results);
    }
    assert!(found == expected, "{contraction:?} by {ranges:?}");
}

/// These ranges, cut wherever `cuts` says as well.
fn cut(ranges: Vec<Range<usize>>, cuts: &[usize]) -> Vec<Range<usize>> {
    let rows = ranges.last().map_or(0, |range| range.end);
    let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % (rows + 1)).collect();
    bounds.extend(ranges.iter().flat_map(|range| [range.start, range.end]));
    bounds.sort_unstable();
    bounds.dedup();
    bounds.windows(2).map(|two| two[0]..two[1]).collect()
}

fn check_all(contraction: &Contraction, count: usize, cuts: &[usize]) {
    for isa in Isa::ALL {
        if !isa.available() {
            continue;
        }
        let Ok(kernel) = PreparedContraction::with_isa(contraction, isa) else {
            continue;
        };
        let rows = kernel.rows();
        let ranges = kernel.row_ranges(count, 1, 1);
        let covered: Vec<usize> = ranges.iter().cloned().flatten().collect();
        assert_eq!(covered, (0..rows).collect::<Vec<_>>());
        check(&kernel, contraction, &ranges);
        for least in [2, 7, 30, 200] {
            let is_long = |range: &Range<usize>| range.len() >= least.min(rows);
            for unit in [1, 2, 5, 14] {
                let ranges = kernel.row_ranges(count, least, unit);
                assert!(ranges.iter().all(is_long), "{ranges:?} of at least {least}");
                let covered: Vec<usize> = ranges.iter().cloned().flatten().collect();
                assert_eq!(covered, (0..rows).collect::<Vec<_>>());
                let is_whole = |range: &Range<usize>| range.start.is_multiple_of(unit);
                // Dims of the batch that only rows have count as rows.
                let batch: usize = contraction.batch.iter().map(|dim| dim.extent).product();
                let fits = rows.is_multiple_of(batch) && (rows / batch.max(1)).is_multiple_of(unit);
                assert!(!fits || ranges.iter().all(is_whole), "{ranges:?} of {unit}");
                check(&kernel, contraction, &ranges);
            }
        }
        // As many as there are tiles, and those in parts.
        check(
            &kernel,
            contraction,
            &cut(kernel.row_ranges(rows, 1, 1), cuts),
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any(contraction in any_contraction(), count in 1..9usize, cuts in prop::collection::vec(0..500usize, 0..5)) {
        for element in [Element::F32, Element::U8I8, Element::I8U8] {
            let contraction = Contraction { element, ..contraction.clone() };
            check_all(&contraction, count, &cuts);
        }
    }
}

/// Of four batches, in two of which the right operand is the same.
#[test]
fn batches_that_share_an_operand() {
    let contraction = Contraction {
        element: Element::F32,
        batch: vec![Dim::new(4, 4, 1, 4), Dim::new(2, 2, 0, 2)],
        m: vec![Dim::new(2, 1, 0, 1)],
        n: vec![],
        k: vec![Dim::new(3, 1, 4, 0)],
    };
    for count in 1..9 {
        check_all(&contraction, count, &[]);
    }
}

/// Rows of bytes that lie beside each other are widened block by block, or read where they are.
#[test]
fn rows_of_bytes() {
    for element in [Element::U8I8, Element::I8U8] {
        for (rows, columns, k) in [(37, 50, 64), (200, 24, 1024), (5, 16, 8)] {
            let product = matrices(2, rows, columns, k, [false; 3]);
            let contraction = Contraction { element, ..product };
            for count in [1, 2, 5, 100] {
                check_all(&contraction, count, &[3, 40, 77]);
            }
        }
    }
}

/// Both products of attention, for several heads: rows are dense, and so are the results of the first.
#[test]
fn attention() {
    for (heads, queries, keys, width) in [(3, 37, 50, 16), (2, 64, 129, 32), (5, 1, 70, 8)] {
        for across in [[false, true, false], [false; 3]] {
            let scores = matrices(heads, queries, keys, width, across);
            let values = matrices(heads, queries, width, keys, [false; 3]);
            for contraction in [scores, values] {
                let kernel = PreparedContraction::new(&contraction).unwrap();
                assert!(kernel.dense_rows().is_some());
                for count in [1, 2, 5, 100] {
                    check_all(&contraction, count, &[3, 40, 77]);
                }
            }
        }
    }
}

/// The product of weights with values that the heads of a group share, written with the heads side by side.
#[test]
fn grouped_heads() {
    for (groups, heads, queries, keys, width) in
        [(2, 7, 30, 50, 16), (2, 3, 1, 129, 8), (1, 4, 9, 40, 32)]
    {
        let (row, all) = (heads * width, groups * heads * width);
        let contraction = Contraction {
            element: Element::F32,
            batch: vec![Dim::new(groups, heads * queries * keys, keys * width, row)],
            m: vec![
                Dim::new(heads, queries * keys, 0, width),
                Dim::new(queries, keys, 0, all),
            ],
            n: vec![Dim::new(width, 0, 1, 1)],
            k: vec![Dim::new(keys, 1, width, 0)],
        };
        let kernel = PreparedContraction::new(&contraction).unwrap();
        assert_eq!(kernel.dense_rows(), Some(keys));
        assert_eq!(kernel.rows(), groups * heads * queries);
        for count in [1, 2, 5, 100] {
            check_all(&contraction, count, &[3, 40, 77]);
        }
    }
}

/// Windows of each channel: rows are not dense.
#[test]
fn channels_apart() {
    check_all(&depthwise(8, (12, 12), 3, 1), 3, &[]);
}

#[test]
fn a_range_over_a_part_of_two_batches() {
    let contraction = matrices(3, 37, 50, 16, [false; 3]);
    let kernel = PreparedContraction::new(&contraction).unwrap();
    for (ranges, fits) in [
        ([0..40, 40..111], false),
        ([0..37, 37..37], false),
        ([0..37, 37..111], true),
        ([5..37, 37..80], false),
        ([5..37, 37..70], true),
    ] {
        let plan = kernel.plan_rows(Form::Plain, Form::Plain, &ranges);
        assert_eq!(plan.is_some(), fits, "{ranges:?}");
    }
}

#[test]
#[should_panic(expected = "a window of 64 elements from 0 on has not all of Some(0..80)")]
fn a_window_that_is_too_small() {
    let contraction = matrices(1, 37, 50, 16, [false; 3]);
    let kernel = PreparedContraction::new(&contraction).unwrap();
    let plan = kernel
        .plan_rows(Form::Plain, Form::Plain, &[0..5, 5..37])
        .unwrap();
    let (left, right) = (
        vec![0; 64 * size_of::<f32>()],
        vec![0; 50 * 16 * size_of::<f32>()],
    );
    let (mut shared, mut worker) = (
        vec![0u8; plan.shared_bytes()],
        vec![0u8; plan.worker_bytes()],
    );
    let mut out = vec![0; 37 * 50 * size_of::<f32>()];
    let buffers = Buffers {
        left: Operand::Window {
            bytes: &left,
            start: 0,
        },
        right: Operand::Plain(&right),
        out: out.as_mut_ptr(),
        out_bytes: out.len(),
        out_start: 0,
        shared: shared.as_mut_ptr(),
        stop: &AtomicBool::new(false),
    };
    // SAFETY: the memory is exclusively ours, and as large as the plan says.
    unsafe { kernel.run_task(&plan, 0, &buffers, worker.as_mut_ptr()) }
}
