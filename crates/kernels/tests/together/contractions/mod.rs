//! Kernels against the plain loop that defines a contraction, bit by bit.

mod coded;
mod plain;

use crate::problems::{
    any_contraction, channels_last, convolution, depthwise, lengths, matrices, points,
};
use coded::{CODES, check_coded};
use plain::{I8U8, U8I8, check, naive};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use vinelift_kernels::{Buffers, Contraction, Form, Isa, Operand, PreparedContraction, Refused};
use zerocopy::IntoBytes;

static NEVER: AtomicBool = AtomicBool::new(false);

fn check_all(contraction: &Contraction, seed: u64) {
    check::<f32>(contraction, seed);
    check::<f64>(contraction, seed);
    check::<U8I8>(contraction, seed);
    check::<I8U8>(contraction, seed);
    for code in CODES {
        check_coded(contraction, code, seed);
    }
}
#[test]
fn products_of_matrices() {
    for (number, &(m, n, k)) in [
        (1, 1, 1),
        (4, 8, 8),
        (1, 100, 37),
        (3, 130, 5),
        (15, 33, 70),
        (29, 40, 300),
        (64, 1, 40),
        (5, 7, 0),
        (0, 7, 3),
        (70, 65, 130),
    ]
    .iter()
    .enumerate()
    {
        for across in 0..8 {
            let across = [across & 1 != 0, across & 2 != 0, across & 4 != 0];
            check_all(&matrices(2, m, n, k, across), number as u64);
        }
    }
}

#[test]
fn long_sums_go_on_from_block_to_block() {
    check_all(&matrices(1, 30, 40, 1500, [false, true, false]), 1);
    check_all(&matrices(1, 30, 40, 1500, [true, false, true]), 2);
}

#[test]
fn convolutions() {
    check_all(&convolution((3, 17), (7, 7), 3, 1, 1), 1);
    check_all(&convolution((5, 4), (9, 30), 3, 2, 1), 2);
    check_all(&convolution((2, 30), (6, 14), 5, 1, 2), 3);
    check_all(&convolution((20, 33), (5, 6), 1, 1, 1), 4);
    check_all(&convolution((4, 40), (20, 28), 3, 1, 1), 5);
}

/// Vectors of pixels end at any place of a line, are every second of it, or are of several lines.
#[test]
fn pixels_of_every_width_as_bytes() {
    for width in 1..=35 {
        for step in 1..=3 {
            let contraction = convolution((3, 7), (3, width), 3, step, 1);
            check::<U8I8>(&contraction, width as u64);
            check::<I8U8>(&contraction, width as u64);
        }
    }
}

/// Words of bytes come from one pixel, and from two where there are too few channels.
#[test]
fn channels_that_follow_each_other() {
    for out in [false, true] {
        check_all(&channels_last((16, 5), (6, 7), 3, out), 1);
        check_all(&channels_last((9, 17), (5, 9), 3, out), 2);
        check_all(&channels_last((3, 30), (4, 11), 2, out), 3);
        check_all(&channels_last((33, 8), (3, 3), 1, out), 4);
        check_all(&channels_last((1, 4), (5, 13), 3, out), 5);
    }
}

/// Sums of bytes that are too short for matrix registers and long enough, of words that lie in lines of several lengths, or in none.
#[test]
fn products_of_matrices_of_bytes() {
    let check_bytes = |contraction: &Contraction, seed: usize| {
        check::<U8I8>(contraction, seed as u64);
        check::<I8U8>(contraction, seed as u64);
    };
    for rows in 1..=70 {
        for k in [60, 63, 64, 65, 76, 88, 128] {
            let columns = [16, 33, 70][rows % 3];
            check_bytes(
                &matrices(1, rows, columns, k, [false, true, false]),
                rows + k,
            );
        }
    }
    // Sums that go on from block to block.
    for k in [1300, 2048, 2052] {
        check_bytes(&matrices(2, 50, 40, k, [false, true, false]), k);
    }
    // Lines of pixels that tiles divide, of which they take two, and that are none of that.
    for width in [7, 14, 26, 28, 31, 56] {
        for channels in [4, 8, 12, 16, 24, 32, 64] {
            check_bytes(&channels_last((channels, 18), (6, width), 3, true), width);
        }
    }
}

/// Channels of whole pages are packed if there are several tiles of rows: here of one, two, three and four.
#[test]
fn channels_that_are_pages_apart() {
    for outputs in [6, 12, 13, 24] {
        check_all(&convolution((9, outputs), (32, 32), 1, 1, 1), 1);
        check_all(&convolution((8, outputs), (32, 48), 1, 2, 1), 2);
    }
}

/// Lanes run along the many points of the other, if it is packed, although results lie apart there.
#[test]
fn few_points_of_one_operand() {
    check_all(&convolution((24, 70), (1, 4), 3, 1, 1), 1);
    for across in 0..8 {
        let across = [across & 1 != 0, across & 2 != 0, across & 4 != 0];
        check_all(&matrices(2, 3, 100, 80, across), 2);
        check_all(&matrices(2, 100, 3, 80, across), 3);
    }
    let columns = matrices(1, 100, 3, 80, [false; 3]);
    let scattered = |[left, right]: [bool; 2]| {
        let form = |is_packed| if is_packed { Form::Packed } else { Form::Plain };
        let packed = [form(left), form(right)];
        let kernel = PreparedContraction::with_forms(&columns, Isa::best(), packed).unwrap();
        let plan = kernel.plan(Form::Packed, Form::Plain, 1);
        plan.name().contains("scattered")
    };
    assert!(scattered([true, false]) && !scattered([false, true]));
}

/// Tiles of few rows take several panels of what is packed once.
#[test]
fn few_rows_of_many_columns() {
    for rows in 1..8 {
        for columns in [64, 131, 260, 300] {
            check_all(&matrices(1, rows, columns, 46, [false, true, false]), 6);
            check_all(&matrices(1, rows, columns, 46, [false, false, false]), 7);
        }
    }
}

/// An operand that was packed for one number of rows serves contractions with others.
#[test]
fn packed_operands_do_not_depend_on_the_rows() {
    let forms = [Form::Plain, Form::Packed];
    for isa in Isa::ALL {
        if !isa.available() {
            continue;
        }
        let of = |rows| {
            let contraction = matrices(1, rows, 300, 70, [false, true, false]);
            PreparedContraction::with_forms(&contraction, isa, forms).unwrap()
        };
        let right: Vec<f32> = (0..300 * 70).map(|k| (k % 17) as f32 - 8.0).collect();
        let packed = of(1).pack_right(right.as_bytes()).unwrap();
        let results = [1, 2, 5, 9, 64].map(|rows| {
            let kernel = of(rows);
            assert_eq!(kernel.right_layout(), of(1).right_layout());
            let plan = kernel.plan(Form::Plain, Form::Packed, 1);
            let left = vec![0.5f32; rows * 70];
            let mut out = vec![0.0f32; rows * 300];
            kernel.run(
                &plan,
                Operand::Plain(left.as_bytes()),
                Operand::Packed(&packed),
                out.as_mut_bytes(),
                &mut vec![0; plan.shared_bytes() + plan.worker_bytes()],
            );
            let sums = (0..300).map(|n| right[n * 70..][..70].iter().sum::<f32>() / 2.0);
            let sums: Vec<f32> = sums.collect();
            assert!(out.chunks(300).all(|row| row == sums));
            out[..300].to_vec()
        });
        assert!(results.iter().all(|row| *row == results[0]));
    }
}

#[test]
fn depthwise_convolutions() {
    check_all(&depthwise(3, (14, 14), 3, 1), 1);
    check_all(&depthwise(5, (9, 30), 5, 2), 2);
    check_all(&depthwise(2, (3, 3), 3, 1), 3);
}

#[test]
fn what_is_no_contraction_is_refused() {
    let good = matrices(1, 3, 4, 5, [false; 3]);
    let refused = |change: fn(&mut Contraction)| {
        let mut contraction = good.clone();
        change(&mut contraction);
        PreparedContraction::new(&contraction).unwrap_err()
    };
    assert_eq!(
        refused(|c| c.m[0].right = 1),
        Refused::WrongGroup { group: "m" }
    );
    assert_eq!(
        refused(|c| c.n[0].left = 1),
        Refused::WrongGroup { group: "n" }
    );
    assert_eq!(
        refused(|c| c.k[0].out = 1),
        Refused::WrongGroup { group: "k" }
    );
    assert_eq!(refused(|c| c.m[0].out = 3), Refused::Overlap);
    assert_eq!(refused(|c| c.m[0].out = 0), Refused::Overlap);
    assert_eq!(refused(|c| c.n[0].right = usize::MAX), Refused::TooLarge);
    assert_eq!(refused(|c| c.k[0].extent = usize::MAX), Refused::TooLarge);
    assert_eq!(
        refused(|c| c.batch[0].extent = usize::MAX),
        Refused::TooLarge
    );
    assert_eq!(refused(|c| c.m[0].left = 1 << 40), Refused::TooLarge);
}

#[test]
#[should_panic(expected = "an operand has 56 bytes of 60")]
fn an_operand_that_is_too_small_is_not_read() {
    let kernel = PreparedContraction::new(&matrices(1, 3, 4, 5, [false; 3])).unwrap();
    let plan = kernel.plan(Form::Plain, Form::Plain, 1);
    let (left, right) = (Operand::Plain(&[0; 56]), Operand::Plain(&[0; 80]));
    kernel.run(
        &plan,
        left,
        right,
        &mut [0; 48],
        &mut vec![0; plan.worker_bytes()],
    );
}

#[test]
fn tasks_run_at_the_same_time() {
    let contraction = convolution((16, 140), (5, 7), 3, 2, 1);
    let [left, right, out] = lengths(&contraction);
    let left: Vec<f32> = (0..left).map(|at| (at % 97) as f32 / 50.0 - 1.0).collect();
    let right: Vec<f32> = (0..right).map(|at| (at % 89) as f32 / 40.0 - 1.0).collect();
    let mut expected = vec![0.0; out];
    naive::<f32>(&contraction, &left, &right, &mut expected);
    let kernel = PreparedContraction::new(&contraction).unwrap();
    let plan = kernel.plan(Form::Plain, Form::Plain, 7);
    assert!(plan.tasks() >= 4 && plan.packing_tasks() > 1, "{plan:?}");
    let mut result = vec![0f32; out];
    let mut shared = vec![0u8; plan.shared_bytes()];
    /// The memory that the tasks of a run share.
    #[derive(Clone, Copy)]
    struct Shared<'a>(Buffers<'a>);
    // SAFETY: tasks write disjoint parts of the memory.
    unsafe impl Sync for Shared<'_> {}
    let buffers = Shared(Buffers {
        left: Operand::Plain(left.as_bytes()),
        right: Operand::Plain(right.as_bytes()),
        out: result.as_mut_ptr().cast(),
        out_bytes: out * 4,
        out_start: 0,
        shared: shared.as_mut_ptr(),
        stop: &NEVER,
    });
    let (kernel, plan, buffers) = (&kernel, &plan, &buffers);
    std::thread::scope(|scope| {
        for task in 0..plan.packing_tasks() {
            // SAFETY: the scratch memory is as large as asked for.
            scope.spawn(move || unsafe { kernel.run_packing_task(plan, task, &{ buffers }.0) });
        }
    });
    std::thread::scope(|scope| {
        for task in 0..plan.tasks() {
            scope.spawn(move || {
                let mut worker = vec![0u8; plan.worker_bytes()];
                // SAFETY: `out` is large enough, and the first phase is done.
                unsafe { kernel.run_task(plan, task, &{ buffers }.0, worker.as_mut_ptr()) }
            });
        }
    });
    assert_eq!(result, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_strides(contraction in any_contraction(), seed: u64) {
        prop_assume!(points(&contraction) < 300_000);
        check_all(&contraction, seed);
    }
}
