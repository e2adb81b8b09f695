//! Contractions of plain elements against the loop that defines them.

use super::NEVER;
use crate::problems::lengths;
use vinelift_kernels::{
    Buffers, Contraction, Dim, Element, Form, Isa, Operand, PreparedContraction, TaskPartition,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Runs the contraction in every way and compares.
pub(super) fn check<T: Numbers>(contraction: &Contraction, seed: u64) {
    let contraction = Contraction {
        element: T::ELEMENT,
        ..contraction.clone()
    };
    let [left, right, out] = lengths(&contraction);
    let mut value = values(seed);
    let left: Vec<T::Left> = (0..left).map(|_| T::left(value())).collect();
    let right: Vec<T::Right> = (0..right).map(|_| T::right(value())).collect();
    // The bytes between the elements of `out` stay as they are.
    let before = T::sum(123.5);
    let mut expected = vec![before; out];
    naive::<T>(&contraction, &left, &right, &mut expected);
    let operands = [left.as_bytes(), right.as_bytes()];
    let isas = Isa::ALL;
    for isa in isas.into_iter().filter(|isa| isa.available()) {
        for form in [Form::Plain, Form::Packed] {
            let kernel = PreparedContraction::with_forms(&contraction, isa, [form; 2]).unwrap();
            let lengths = [left.len(), right.len(), out];
            let mut needed = kernel.elements().into_iter().zip(lengths);
            assert!(needed.all(|(needed, there)| needed <= there));
            check_kernel::<T>(&kernel, operands, before, &expected, &contraction);
        }
    }
}

/// Numbers between -1 and 1; for every fourth seed also NaNs, infinities, and the smallest and largest.
fn values(seed: u64) -> impl FnMut() -> f64 {
    let mut random = fastrand::Rng::with_seed(seed);
    move || {
        let special = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            1e-310,
            1e300,
        ];
        match random.usize(..400) {
            special_one @ 0..6 if seed.is_multiple_of(4) => special[special_one],
            _ => random.f64() * 2.0 - 1.0,
        }
    }
}

/// Runs the kernel on operands that are packed beforehand or not, in few and many tasks.
fn check_kernel<T: Numbers>(
    kernel: &PreparedContraction,
    [left, right]: [&[u8]; 2],
    before: T::Sum,
    expected: &[T::Sum],
    contraction: &Contraction,
) {
    let packed_left = kernel.pack_left(left).unwrap();
    let packed_right = kernel.pack_right(right).unwrap();
    let lefts = [
        (Form::Plain, Operand::Plain(left)),
        (Form::Packed, Operand::Packed(&packed_left)),
    ];
    let rights = [
        (Form::Plain, Operand::Plain(right)),
        (Form::Packed, Operand::Packed(&packed_right)),
    ];
    let both = rights
        .into_iter()
        .flat_map(|right| lefts.map(|left| (left, right)));
    for ((left_form, left), (right_form, right)) in both {
        for tasks in [1, 2, 5] {
            let plan = kernel.plan(left_form, right_form, tasks);
            let mut result = vec![before; expected.len()];
            // Exactly as much as is asked for, with NaNs in it.
            let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
            let bytes = result.as_mut_bytes();
            kernel.run(&plan, left, right, bytes, &mut scratch);
            let wrong = (0..result.len()).find(|&at| !T::same(result[at], expected[at]));
            assert_eq!(
                wrong.map(|at| (at, result[at], expected[at])),
                None,
                "{} in {tasks} tasks, of {contraction:?}",
                plan.name()
            );
            check_regions(kernel, &plan, left, right, size_of_val(expected));
        }
    }
}

/// Where tasks have regions, these follow each other, reach to the end of `out`, and are what the tasks write.
fn check_regions(
    kernel: &PreparedContraction,
    plan: &TaskPartition,
    left: Operand,
    right: Operand,
    bytes: usize,
) {
    let regions: Option<Vec<_>> = (0..plan.tasks()).map(|task| plan.region(task)).collect();
    let Some(regions) = regions.filter(|regions| regions.len() > 1) else {
        return;
    };
    let [.., needed] = kernel.elements();
    let size = bytes / needed.max(1);
    let mut shared = vec![0u8; plan.shared_bytes()];
    let mut worker = vec![0u8; plan.worker_bytes()];
    let mut next = 0;
    for (task, region) in regions.into_iter().enumerate() {
        assert!(region.start >= next);
        assert!(region.end > next);
        next = region.end;
        let mut out = vec![0xa5u8; bytes];
        let buffers = Buffers {
            left,
            right,
            out: out.as_mut_ptr(),
            out_bytes: bytes,
            out_start: 0,
            shared: shared.as_mut_ptr(),
            stop: &NEVER,
        };
        for packing in 0..plan.packing_tasks() {
            // SAFETY: the memory is as large as the plan says, and only ours.
            unsafe { kernel.run_packing_task(plan, packing, &buffers) }
        }
        // SAFETY: as above.
        unsafe { kernel.run_task(plan, task, &buffers, worker.as_mut_ptr()) }
        let is_kept = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0xa5);
        assert!(
            is_kept(&out[..region.start * size]),
            "{region:?} of {}",
            plan.name()
        );
        assert!(
            is_kept(&out[region.end * size..]),
            "{region:?} of {}",
            plan.name()
        );
    }
    assert_eq!(next, needed);
}

/// The loop of the definition.
pub(super) fn naive<T: Numbers>(
    contraction: &Contraction,
    left: &[T::Left],
    right: &[T::Right],
    out: &mut [T::Sum],
) {
    let (ms, ns, ks) = (
        points(&contraction.m),
        points(&contraction.n),
        points(&contraction.k),
    );
    for b in points(&contraction.batch) {
        for m in &ms {
            for n in &ns {
                let sum = ks.iter().fold(T::sum(0.0), |sum, k| {
                    T::add(left[b[0] + m[0] + k[0]], right[b[1] + n[1] + k[1]], sum)
                });
                out[b[2] + m[2] + n[2]] = sum;
            }
        }
    }
}

/// Every point of `dims` in row-major order, as offsets in left, right and out.
pub(super) fn points(dims: &[Dim]) -> Vec<[usize; 3]> {
    dims.iter().fold(vec![[0; 3]], |points, dim| {
        let steps = |point: [usize; 3]| {
            (0..dim.extent).map(move |step| {
                [
                    point[0] + step * dim.left,
                    point[1] + step * dim.right,
                    point[2] + step * dim.out,
                ]
            })
        };
        points.into_iter().flat_map(steps).collect()
    })
}

/// Element types with what the tests need.
pub(super) trait Numbers {
    const ELEMENT: Element;
    type Left: Copy + Immutable + IntoBytes;
    type Right: Copy + Immutable + IntoBytes;
    type Sum: Copy + FromBytes + Immutable + IntoBytes + PartialEq + std::fmt::Debug;
    fn left(value: f64) -> Self::Left;
    fn right(value: f64) -> Self::Right;
    fn sum(value: f64) -> Self::Sum;
    fn add(left: Self::Left, right: Self::Right, sum: Self::Sum) -> Self::Sum;
    fn same(a: Self::Sum, b: Self::Sum) -> bool;
}

macro_rules! floats {
    ($t:ident, $element:ident) => {
        impl Numbers for $t {
            const ELEMENT: Element = Element::$element;
            type Left = $t;
            type Right = $t;
            type Sum = $t;
            fn left(value: f64) -> $t {
                value as $t
            }
            fn right(value: f64) -> $t {
                value as $t
            }
            fn sum(value: f64) -> $t {
                value as $t
            }
            fn add(left: $t, right: $t, sum: $t) -> $t {
                left.mul_add(right, sum)
            }
            fn same(a: $t, b: $t) -> bool {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
        }
    };
}

floats!(f32, F32);
floats!(f64, F64);

macro_rules! bytes {
    ($name:ident, $left:ident, $right:ident) => {
        pub(super) struct $name;

        impl Numbers for $name {
            const ELEMENT: Element = Element::$name;
            type Left = $left;
            type Right = $right;
            type Sum = i32;
            fn left(value: f64) -> $left {
                (value * 1e6) as i64 as $left
            }
            fn right(value: f64) -> $right {
                (value * 1e6) as i64 as $right
            }
            fn sum(value: f64) -> i32 {
                value as i32
            }
            fn add(left: $left, right: $right, sum: i32) -> i32 {
                sum + i32::from(left) * i32::from(right)
            }
            fn same(a: i32, b: i32) -> bool {
                a == b
            }
        }
    };
}

bytes!(U8I8, u8, i8);
bytes!(I8U8, i8, u8);
