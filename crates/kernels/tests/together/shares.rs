//! Whether tasks divide rows or columns, on both sides of each threshold: the sums are the same bits.

use crate::problems::matrices;
use vinelift_kernels::{Form, Isa, Operand, PreparedContraction};
use zerocopy::IntoBytes;

/// Whether each of some tasks has all columns for its rows, where `rows` are multiplied with packed columns 512 wide, once the
/// sums are those of one task.
fn has_all_columns(rows: usize, k: usize, tasks: usize) -> bool {
    let kernel = kernel(rows, k);
    let mut random = fastrand::Rng::with_seed(1);
    let [left, right, out] = kernel.elements();
    let mut numbers = |n: usize| (0..n).map(|_| random.f32() - 0.5).collect::<Vec<_>>();
    let (left, right) = (numbers(left), numbers(right));
    let packed = kernel.pack_right(right.as_bytes()).unwrap();
    let run = |tasks: usize| {
        let plan = kernel.plan(Form::Plain, Form::Packed, tasks);
        assert!((tasks..=tasks + 1).contains(&plan.tasks()));
        let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
        let mut result = vec![f32::NAN; out];
        let left = Operand::Plain(left.as_bytes());
        let bytes = result.as_mut_bytes();
        kernel.run(&plan, left, Operand::Packed(&packed), bytes, &mut scratch);
        let bits: Vec<u32> = result.iter().map(|x| x.to_bits()).collect();
        (
            bits,
            (0..plan.tasks()).all(|task| plan.region(task).is_some()),
        )
    };
    let (one, _) = run(1);
    let (several, has_all) = run(tasks);
    assert!(one == several, "{rows} rows, {k} k");
    has_all
}

#[test]
fn few_rows_share_columns_that_come_from_far_away() {
    // Other instruction sets have tiles of other heights.
    if !Isa::Avx2.available() {
        return;
    }
    // 256 KiB of columns, and a little more.
    for rows in [48, 191] {
        assert!(has_all_columns(rows, 128, 8), "{rows} rows");
        assert!(!has_all_columns(rows, 129, 8), "{rows} rows");
    }
    // 24 rows for each task.
    assert!(has_all_columns(192, 129, 8));
    // Fewer panels of rows than tasks.
    assert!(!has_all_columns(24, 128, 8));
    // An odd number of panels, of six rows each.
    assert!(has_all_columns(18, 128, 3));
    assert!(!has_all_columns(18, 129, 3));
    assert!(has_all_columns(72, 129, 3));
    assert!(!has_all_columns(71, 129, 3));
}

#[test]
fn tasks_of_whole_rows_have_enough_of_them() {
    if !Isa::Avx2.available() {
        return;
    }
    let most = |rows, k| kernel(rows, k).most_row_tasks();
    assert_eq!([191, 192].map(|rows| most(rows, 129)), [7, 8]);
    assert_eq!([18, 23, 48].map(|rows| most(rows, 129)), [1, 1, 2]);
    // As many as there are panels, where the columns stay in the cache.
    assert_eq!(most(18, 128), 3);
}

#[test]
fn tasks_have_more_rows_where_columns_are_read_from_where_they_lie() {
    if !Isa::Avx2.available() {
        return;
    }
    let most = |rows, k| {
        let contraction = matrices(1, rows, 512, k, [false; 3]);
        let kernel = PreparedContraction::with_isa(&contraction, Isa::Avx2).unwrap();
        kernel.most_row_tasks()
    };
    assert_eq!([95, 191, 192].map(|rows| most(rows, 129)), [1, 1, 2]);
    assert_eq!(most(18, 128), 3);
}

/// The product of `rows` with packed columns 512 wide.
fn kernel(rows: usize, k: usize) -> PreparedContraction {
    const COLUMNS: usize = 512;
    let contraction = matrices(1, rows, COLUMNS, k, [false; 3]);
    let forms = [Form::Plain, Form::Packed];
    PreparedContraction::with_forms(&contraction, Isa::Avx2, forms).unwrap()
}
