//! Where few rows get their columns from: the sums are the same bits.

use vinelift_kernels::{Contraction, Dim, Element, Form, Isa, Operand, PreparedContraction};
use zerocopy::IntoBytes;

/// `batch` times `rows` by `columns`, whose `k` lie in `runs` of `length` beside each other in the right operand.
fn product(batch: usize, rows: usize, columns: usize, [runs, length]: [usize; 2]) -> Contraction {
    /// Elements between the end of a run and the next one.
    const GAP: usize = 3;
    let (k, run) = (runs * length, length + GAP);
    Contraction {
        element: Element::F32,
        batch: vec![Dim::new(
            batch,
            rows * k,
            columns * runs * run,
            rows * columns,
        )],
        m: vec![Dim::new(rows, k, 0, columns)],
        n: vec![Dim::new(columns, 0, runs * run, 1)],
        k: vec![Dim::new(runs, length, run, 0), Dim::new(length, 1, 1, 0)],
    }
}

/// The name of a run, once the sums are what they must be.
fn columns_with(isa: Isa, contraction: &Contraction, tasks: usize) -> Option<String> {
    let kernel = PreparedContraction::with_isa(contraction, isa).ok()?;
    let mut random = fastrand::Rng::with_seed(7);
    let [left, right, out] = kernel.elements();
    let mut numbers = |n: usize| (0..n).map(|_| random.f32() - 0.5).collect::<Vec<_>>();
    let (left, right) = (numbers(left), numbers(right));
    let plan = kernel.plan(Form::Plain, Form::Plain, tasks);
    let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
    let mut result = vec![f32::NAN; out];
    let operands = [left.as_bytes(), right.as_bytes()].map(Operand::Plain);
    let bytes = result.as_mut_bytes();
    kernel.run(&plan, operands[0], operands[1], bytes, &mut scratch);
    let [b, m, n] = [contraction.batch[0], contraction.m[0], contraction.n[0]];
    let [runs, of_run] = [contraction.k[0], contraction.k[1]];
    for at in 0..b.extent * m.extent * n.extent {
        let (batch, row, column) = (
            at / n.extent / m.extent,
            at / n.extent % m.extent,
            at % n.extent,
        );
        let mut expected = 0f32;
        for k in 0..runs.extent * of_run.extent {
            let [run, of] = [k / of_run.extent, k % of_run.extent];
            let left = left[batch * b.left + row * m.left + run * runs.left + of * of_run.left];
            let right =
                right[batch * b.right + column * n.right + run * runs.right + of * of_run.right];
            expected = left.mul_add(right, expected);
        }
        let found = result[batch * b.out + row * m.out + column * n.out];
        assert_eq!(
            found.to_bits(),
            expected.to_bits(),
            "{}: {contraction:?}",
            plan.name()
        );
    }
    Some(plan.name().to_owned())
}

#[test]
fn every_second_column_is_packed_for_several_rows() {
    let product = |rows, lines, pixels: usize| Contraction {
        batch: vec![],
        m: vec![Dim::new(rows, 27, 0, lines * pixels)],
        n: vec![
            Dim::new(lines, 0, 4 * pixels + 4, pixels),
            Dim::new(pixels, 0, 2, 1),
        ],
        k: vec![
            Dim::new(9, 3, lines * (4 * pixels + 4), 0),
            Dim::new(3, 1, 1, 0),
        ],
        element: Element::F32,
    };
    let source = |rows, pixels| {
        let kernel = PreparedContraction::with_isa(&product(rows, 20, pixels), Isa::Avx2).ok()?;
        Some(kernel.plan(Form::Plain, Form::Plain, 1).name().to_owned())
    };
    let is_packed = |rows, pixels| {
        source(rows, pixels).is_none_or(|name| name.contains("right packed in tasks"))
    };
    assert!(is_packed(6, 32) && is_packed(8, 32));
    if Isa::Avx2.available() {
        assert!(!is_packed(5, 32));
        // Vectors that go on in the next line.
        assert!(!is_packed(8, 28));
    }
}

/// Beside plain columns rows would be packed: of many rows, it is the columns that are.
#[test]
fn columns_are_packed_so_that_more_rows_are_not() {
    let product = |rows, columns, k| Contraction {
        element: Element::F32,
        batch: vec![Dim::new(2, rows * k, k * columns, rows * columns)],
        m: vec![Dim::new(rows, k, 0, columns)],
        n: vec![Dim::new(columns, 0, 1, 1)],
        k: vec![Dim::new(1, k, 0, 0), Dim::new(k, 1, columns, 0)],
    };
    let sources = |rows, columns, k| {
        let contraction = product(rows, columns, k);
        let names = [1, 3].map(|tasks| columns_with(Isa::Avx2, &contraction, tasks));
        names.into_iter().flatten()
    };
    for (columns, least) in [(16, 6), (32, 12), (40, 14), (64, 23)] {
        for k in [5, 33, 700] {
            for name in sources(least - 1, columns, k) {
                assert!(name.contains("right direct"), "{name}: {columns}");
            }
            for rows in [least, 50] {
                for name in sources(rows, columns, k) {
                    let are_packed = name.contains("left strided, right packed");
                    assert!(are_packed, "{name}: {columns}");
                }
            }
        }
    }
    // Rows that lie across are packed anyway, or read where they lie beside columns of either kind.
    let across = |rows, columns, k| Contraction {
        m: vec![Dim::new(rows, 1, 0, columns)],
        k: vec![Dim::new(1, 0, 0, 0), Dim::new(k, rows, columns, 0)],
        ..product(rows, columns, k)
    };
    for columns in [16, 200] {
        if let Some(name) = columns_with(Isa::Avx2, &across(50, columns, 33), 1) {
            assert!(name.contains("right direct"), "{name}: {columns}");
        }
    }
}

/// Lines of columns that crowd few sets of the first cache are packed for many rows.
#[test]
fn columns_are_packed_where_their_lines_crowd_the_cache() {
    // Rows that are direct, so that it is no matter of packing these.
    let product = |rows, k, step| Contraction {
        element: Element::F32,
        batch: vec![Dim::new(1, 0, 0, 0)],
        m: vec![Dim::new(rows, 1, 0, 16)],
        n: vec![Dim::new(16, 0, 1, 1)],
        k: vec![Dim::new(1, 0, 0, 0), Dim::new(k, rows, step, 0)],
    };
    let is_packed = |rows, k, step| {
        let name = columns_with(Isa::Avx2, &product(rows, k, step), 1)?;
        Some(name.contains("right packed in tasks"))
    };
    // 4096 bytes apart, lines are in one set; 256, in one of 16; 784, in any of 64.
    for (step, least_k, least_rows) in [(1024, 8, 13), (64, 33, 40), (196, 129, 40)] {
        if Isa::Avx2.available() {
            assert_eq!(is_packed(least_rows, least_k, step), Some(true), "{step}");
            assert_eq!(
                is_packed(least_rows, least_k - 1, step),
                Some(false),
                "{step}"
            );
            assert_eq!(
                is_packed(least_rows - 1, least_k, step),
                Some(false),
                "{step}"
            );
        }
    }
}

/// Whether tiles lay the columns across.
fn check(isa: Isa, contraction: &Contraction, expected: bool) {
    for tasks in [1, 2, 5] {
        if let Some(name) = columns_with(isa, contraction, tasks) {
            let found = name.contains("right laid across in tiles");
            assert_eq!(found, expected, "{name}: {contraction:?}");
        }
    }
}

#[test]
fn few_rows_take_columns_across() {
    for (isa, most) in [(Isa::Portable, 2), (Isa::Avx2, 4), (Isa::Avx512, 8)] {
        for rows in [1, 2, 3, most].into_iter().filter(|rows| *rows <= most) {
            for columns in [16, 17, 40, 70, 150] {
                for k in [16, 20, 47, 64] {
                    check(isa, &product(3, rows, columns, [1, k]), true);
                }
            }
        }
    }
}

#[test]
fn more_rows_have_columns_packed() {
    for rows in [13, 30] {
        for isa in [Isa::Avx2, Isa::Avx512] {
            check(isa, &product(2, rows, 40, [1, 64]), false);
        }
    }
}

#[test]
fn runs_of_whole_vectors_are_taken_across() {
    check(Isa::Avx2, &product(2, 1, 50, [3, 8]), true);
    check(Isa::Avx2, &product(2, 1, 50, [3, 12]), false);
    check(Isa::Avx512, &product(2, 1, 50, [3, 16]), true);
    check(Isa::Avx512, &product(2, 1, 50, [3, 24]), false);
    // A single run may end with fewer `k` than there are lanes.
    check(Isa::Avx2, &product(2, 1, 50, [1, 12]), true);
}

#[test]
fn columns_of_several_batches_are_packed_first() {
    let mut shared = product(6, 2, 50, [1, 64]);
    shared.batch[0].right = 0;
    // One more row is no step from the last one of a batch, so that batches are not rows.
    shared.batch[0].left += 5;
    check(Isa::Avx2, &shared, false);
}
