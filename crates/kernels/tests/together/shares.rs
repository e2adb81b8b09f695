//! Whether tasks divide rows or columns, on both sides of each threshold: the sums are the same bits.

use crate::problems::matrices;
use vinelift_kernels::{Form, Isa, Operand, PreparedContraction};
use zerocopy::IntoBytes;

/// Whether each of eight tasks has all columns for its rows, where `rows` are multiplied with packed columns 512 wide, once the
/// sums are those of one task.
fn has_all_columns(rows: usize, k: usize) -> bool {
    const COLUMNS: usize = 512;
    let contraction = matrices(1, rows, COLUMNS, k, [false; 3]);
    let forms = [Form::Plain, Form::Packed];
    let kernel = PreparedContraction::with_forms(&contraction, Isa::Avx2, forms).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let [left, right, out] = kernel.elements();
    let mut numbers = |n: usize| (0..n).map(|_| random.f32() - 0.5).collect::<Vec<_>>();
    let (left, right) = (numbers(left), numbers(right));
    let packed = kernel.pack_right(right.as_bytes()).unwrap();
    let run = |tasks: usize| {
        let plan = kernel.plan(Form::Plain, Form::Packed, tasks);
        assert_eq!(plan.tasks(), tasks);
        let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
        let mut result = vec![f32::NAN; out];
        let left = Operand::Plain(left.as_bytes());
        let bytes = result.as_mut_bytes();
        kernel.run(&plan, left, Operand::Packed(&packed), bytes, &mut scratch);
        let bits: Vec<u32> = result.iter().map(|x| x.to_bits()).collect();
        (bits, (0..tasks).all(|task| plan.region(task).is_some()))
    };
    let (one, _) = run(1);
    let (several, has_all) = run(8);
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
        assert!(has_all_columns(rows, 128), "{rows} rows");
        assert!(!has_all_columns(rows, 129), "{rows} rows");
    }
    // 24 rows for each task.
    assert!(has_all_columns(192, 129));
    // Fewer panels of rows than tasks.
    assert!(!has_all_columns(24, 128));
}
