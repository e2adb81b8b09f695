//! Products that are refused, and runs that end before they read or write beyond their operands.

use super::problem::{Points, Problem, matrix, ordinary};
use std::sync::atomic::AtomicBool;
use vinelift_kernels::{
    Code, Coding, Grouped, GroupedBuffers, GroupedProduct, GroupedRows, Isa, Refused,
};
use zerocopy::IntoBytes;

#[test]
fn what_is_no_grouped_product_is_refused() {
    let good = matrix(3, 20, 256, (32, 128), Code::U4);
    let refused = |change: fn(&mut Grouped)| {
        let mut problem = good.clone();
        change(&mut problem);
        GroupedProduct::new(&problem, Isa::Portable).unwrap_err()
    };
    let groups = |k, group, coding_group| Refused::Groups {
        k,
        group,
        coding_group,
    };
    assert_eq!(refused(|p| p.group = 4), groups(256, 4, 128));
    assert_eq!(refused(|p| p.group = 0), groups(256, 0, 128));
    assert_eq!(refused(|p| p.group = 48), groups(256, 48, 128));
    assert_eq!(refused(|p| p.coding_group = 96), groups(256, 32, 96));
    assert_eq!(refused(|p| p.coding_group = 0), groups(256, 32, 0));
    for code in [Code::F16, Code::BF16, Code::NF4, Code::F8E4M3] {
        let problem = Grouped {
            code,
            ..good.clone()
        };
        let refused = GroupedProduct::new(&problem, Isa::Portable).unwrap_err();
        assert_eq!(refused, Refused::NotInteger { code });
    }
    let long = |k| matrix(1, 1, k, (k, k), Code::I8);
    assert!(GroupedProduct::new(&long(33024), Isa::Portable).is_ok());
    let refused_long = GroupedProduct::new(&long(33032), Isa::Portable);
    assert_eq!(refused_long.unwrap_err(), Refused::TooLarge);
    assert_eq!(refused(|p| p.m[0].out = 19), Refused::Overlap);
    let wide = |p: &mut Grouped| (p.n, p.block) = (usize::MAX, usize::MAX);
    assert_eq!(refused(wide), Refused::Overlap);
    let columns = |n, block| Refused::Columns { n, block };
    assert_eq!(refused(|p| (p.n, p.block) = (48, 32)), columns(48, 32));
    assert_eq!(refused(|p| (p.n, p.block) = (48, 24)), columns(48, 24));
    assert_eq!(refused(|p| (p.n, p.block) = (48, 0)), columns(48, 0));
    let beside = |p: &mut Grouped| (p.n, p.block, p.block_out) = (48, 16, 16);
    assert_eq!(refused(beside), Refused::Overlap);
    assert_eq!(refused(|p| p.column_step = usize::MAX), Refused::TooLarge);
    assert_eq!(refused(|p| p.m[0].rows = 1 << 40), Refused::TooLarge);
    assert_eq!(refused(|p| p.m[0].extent = usize::MAX), Refused::TooLarge);
    let one_row = |p: &mut Grouped| {
        p.m.clear();
        (p.n, p.block) = (usize::MAX / 8, usize::MAX / 8);
    };
    assert_eq!(refused(one_row), Refused::TooLarge);
    let many_floats = |p: &mut Grouped| (p.rows, p.m[0].extent) = (GroupedRows::Floats, usize::MAX);
    assert_eq!(refused(many_floats), Refused::TooLarge);
    let mut of_none = Grouped {
        rows: GroupedRows::Floats,
        ..matrix(1 << 50, 0, 256, (32, 128), Code::U4)
    };
    (of_none.m[0].rows, of_none.m[0].points) = (0, 0);
    let of_none = GroupedProduct::new(&of_none, Isa::Portable).unwrap();
    assert_eq!(of_none.plan(2).tasks(), 0);
    if !Isa::Avx512.available() {
        let refused = GroupedProduct::new(&good, Isa::Avx512).unwrap_err();
        assert_eq!(refused, Refused::NoInstructions { isa: Isa::Avx512 });
    }
}

#[test]
fn codings_that_do_not_fit_are_not_packed() {
    let grouped = matrix(3, 20, 256, (32, 128), Code::U4);
    let product = GroupedProduct::new(&grouped, Isa::Portable).unwrap();
    let problem = Problem::new(&grouped, Points::All, ordinary, 1);
    let fits = |change: fn(&mut Coding)| {
        let mut coding = problem.coding.clone();
        change(&mut coding);
        product.pack(&problem.codes, &coding).is_some()
    };
    assert!(fits(|_| {}));
    assert!(fits(|c| c.zero = None));
    assert!(!fits(|c| c.code = Code::I4));
    assert!(!fits(|c| c.group = 64));
    assert!(!fits(|c| c.zero = Some(vec![1.0; 39])));
    assert!(!fits(|c| c.scale = Some(vec![1.0; 41])));
    for zero in [0.5, 256.0, -256.0, f32::NAN, f32::INFINITY] {
        let mut coding = problem.coding.clone();
        coding.zero.as_mut().unwrap()[7] = zero;
        assert!(product.pack(&problem.codes, &coding).is_none());
    }
}

#[test]
#[should_panic(expected = "an operand has 2559 bytes of 2560")]
fn codes_that_are_too_few_are_not_read() {
    let grouped = matrix(3, 20, 256, (32, 128), Code::I4);
    let problem = Problem::new(&grouped, Points::All, ordinary, 1);
    let product = GroupedProduct::new(&grouped, Isa::best()).unwrap();
    product.pack(&problem.codes[1..], &problem.coding);
}

/// Runs a good product but for what `change` does to its buffers.
fn run_changed(change: fn(&mut GroupedBuffers)) {
    let problem = Problem::new(
        &matrix(3, 20, 64, (32, 64), Code::U8),
        Points::All,
        ordinary,
        1,
    );
    let product = GroupedProduct::new(&problem.grouped, Isa::best()).unwrap();
    let packed = product.pack(&problem.codes, &problem.coding).unwrap();
    let plan = product.plan(1);
    let (mut out, mut worker) = (vec![0u8; 240], vec![0u8; plan.worker_bytes()]);
    let mut buffers = GroupedBuffers {
        rows: problem.rows.as_bytes(),
        points: problem.points.as_bytes(),
        packed: &packed,
        out: out.as_mut_ptr(),
        out_bytes: out.len(),
        stop: &AtomicBool::new(false),
    };
    change(&mut buffers);
    // SAFETY: `out` and `worker` are as large as is said, or larger, and nobody else has them.
    unsafe { product.run_task(&plan, 0, &buffers, worker.as_mut_ptr()) }
}

#[test]
#[should_panic(expected = "an operand has 191 bytes of 192")]
fn rows_that_are_too_few_are_not_read() {
    run_changed(|buffers| buffers.rows = &buffers.rows[..191]);
}

#[test]
#[should_panic(expected = "an operand has 20 bytes of 24")]
fn row_scales_that_are_too_few_are_not_read() {
    run_changed(|buffers| buffers.points = &buffers.points[..20]);
}

#[test]
#[should_panic(expected = "`out` has 239 bytes of 240")]
fn a_result_that_is_too_small_is_not_written() {
    run_changed(|buffers| buffers.out_bytes -= 1);
}

#[test]
#[should_panic(expected = "another kernel's")]
fn codes_packed_for_another_shape_are_not_read() {
    let other = Problem::new(
        &matrix(3, 20, 64, (32, 32), Code::U8),
        Points::All,
        ordinary,
        1,
    );
    let product = GroupedProduct::new(&other.grouped, Isa::best()).unwrap();
    let packed = product.pack(&other.codes, &other.coding).unwrap();
    let good = Problem::new(
        &matrix(3, 20, 64, (32, 64), Code::U8),
        Points::All,
        ordinary,
        1,
    );
    let product = GroupedProduct::new(&good.grouped, Isa::best()).unwrap();
    good.compare(&product, &packed, &good.expected(), 1);
}

#[test]
fn a_run_that_is_stopped_ends() {
    run_changed(|buffers| {
        static STOP: AtomicBool = AtomicBool::new(true);
        buffers.stop = &STOP;
    });
}
