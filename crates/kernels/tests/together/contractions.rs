//! Kernels against the plain loop that defines a contraction, bit by bit.

use crate::problems::{any_contraction, convolution, depthwise, lengths, matrices};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use vinelift_kernels::{
    Buffers, Code, Coding, Contraction, Dim, Element, Form, Isa, Operand, PreparedContraction,
    Refused, TaskPartition,
};
use vinelift_tensor::{ElementType, float8};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Element types with what the tests need.
trait Numbers {
    const ELEMENT: Element;
    type Left: bytemuck::Pod;
    type Right: bytemuck::Pod;
    type Sum: bytemuck::Pod + PartialEq + std::fmt::Debug;
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
        struct $name;

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

/// Every point of `dims` in row-major order, as offsets in left, right and out.
fn points(dims: &[Dim]) -> Vec<[usize; 3]> {
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

/// The loop of the definition.
fn naive<T: Numbers>(
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

/// Runs the contraction in every way and compares.
fn check<T: Numbers>(contraction: &Contraction, seed: u64) {
    let contraction = Contraction {
        element: T::ELEMENT,
        ..contraction.clone()
    };
    let [left, right, out] = lengths(&contraction);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut value = || {
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
    };
    let left: Vec<T::Left> = (0..left).map(|_| T::left(value())).collect();
    let right: Vec<T::Right> = (0..right).map(|_| T::right(value())).collect();
    // The bytes between the elements of `out` stay as they are.
    let before = T::sum(123.5);
    let mut expected = vec![before; out];
    naive::<T>(&contraction, &left, &right, &mut expected);
    let isas = [Isa::Portable, Isa::Avx2, Isa::Avx512];
    let isas = isas.into_iter().filter(|isa| isa.available());
    let kernels = isas.flat_map(|isa| {
        [Form::Plain, Form::Packed]
            .map(|form| PreparedContraction::with_forms(&contraction, isa, [form; 2]))
    });
    for kernel in kernels {
        let kernel = kernel.unwrap();
        assert!(
            kernel
                .elements()
                .iter()
                .zip([left.len(), right.len(), out])
                .all(|(a, b)| *a <= b)
        );
        let (left, right) = (bytemuck::cast_slice(&left), bytemuck::cast_slice(&right));
        let (packed_left, packed_right) = (
            kernel.pack_left(left).unwrap(),
            kernel.pack_right(right).unwrap(),
        );
        for (left_form, right_form) in [
            (Form::Plain, Form::Plain),
            (Form::Packed, Form::Plain),
            (Form::Plain, Form::Packed),
            (Form::Packed, Form::Packed),
        ] {
            for tasks in [1, 2, 5] {
                let plan = kernel.plan(left_form, right_form, tasks);
                let left = match left_form {
                    Form::Plain => Operand::Plain(left),
                    Form::Packed | Form::Coded => Operand::Packed(&packed_left),
                };
                let right = match right_form {
                    Form::Plain => Operand::Plain(right),
                    Form::Packed | Form::Coded => Operand::Packed(&packed_right),
                };
                let mut result = vec![before; out];
                // Exactly as much as is asked for, with NaNs in it.
                let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
                let bytes = bytemuck::cast_slice_mut(&mut result);
                kernel.run(&plan, left, right, bytes, &mut scratch);
                let wrong = (0..out).find(|&at| !T::same(result[at], expected[at]));
                assert_eq!(
                    wrong.map(|at| (at, result[at], expected[at])),
                    None,
                    "{} in {tasks} tasks, of {contraction:?}",
                    plan.name()
                );
                check_regions(&kernel, &plan, left, right, out * size_of::<T::Sum>());
            }
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

fn check_all(contraction: &Contraction, seed: u64) {
    check::<f32>(contraction, seed);
    check::<f64>(contraction, seed);
    check::<U8I8>(contraction, seed);
    check::<I8U8>(contraction, seed);
    for code in CODES {
        check_coded(contraction, code, seed);
    }
}

/// All codes, with the bits of each.
const CODES: [(Code, usize); 10] = [
    (Code::I8, 8),
    (Code::U8, 8),
    (Code::F16, 16),
    (Code::BF16, 16),
    (Code::I4, 4),
    (Code::U4, 4),
    (Code::NF4, 4),
    (Code::F4E2M1, 4),
    (Code::F8E4M3, 8),
    (Code::F8E5M2, 8),
];

/// The number that a code of this many bits stands for, by the crates for it.
fn number(code: Code, bits: u16) -> f32 {
    let byte = bits as u8;
    let decoded = |ty| float8::decode(ty, byte).unwrap();
    match code {
        Code::I8 => f32::from(byte as i8),
        Code::U8 | Code::U4 => f32::from(byte),
        Code::F16 => half::f16::from_bits(bits).to_f32(),
        Code::BF16 => half::bf16::from_bits(bits).to_f32(),
        Code::I4 => f32::from((byte << 4) as i8 >> 4),
        Code::NF4 => decoded(ElementType::NF4),
        Code::F4E2M1 => decoded(ElementType::F4E2M1),
        Code::F8E4M3 => decoded(ElementType::F8E4M3),
        Code::F8E5M2 => decoded(ElementType::F8E5M2),
    }
}

/// A number of `k` that share factors: all, or a divisor of them.
fn group(code: Code, k: usize, seed: u64) -> usize {
    let is_whole = |group: &usize| k.is_multiple_of(*group) && group.is_multiple_of(step(code));
    let divisors: Vec<usize> = (1..k).filter(is_whole).collect();
    match divisors.len() {
        0 => k,
        count if seed.is_multiple_of(2) => divisors[seed as usize / 2 % count],
        _ => k,
    }
}

/// How many `k` a byte of codes has.
fn step(code: Code) -> usize {
    match code {
        Code::I4 | Code::U4 | Code::NF4 | Code::F4E2M1 => 2,
        _ => 1,
    }
}

/// Runs the contraction with one operand in numbers that are coded, and then the other, and compares with
/// the elements that these numbers stand for.
fn check_coded(contraction: &Contraction, (code, bits): (Code, usize), seed: u64) {
    let [left, right, out] = lengths(contraction);
    let mut random = fastrand::Rng::with_seed(seed);
    let plain: Vec<f32> = (0..left.max(right)).map(|_| random.f32() - 0.5).collect();
    let coded: Vec<u8> = (0..(left.max(right) * bits).div_ceil(8))
        .map(|_| random.u8(..))
        .collect();
    let number = |at: usize| {
        let byte = |at: usize| u16::from(coded[at]);
        let bits = match bits {
            4 => byte(at / 2) >> (at % 2 * 4) & 15,
            8 => byte(at),
            _ => byte(2 * at) | byte(2 * at + 1) << 8,
        };
        number(code, bits)
    };
    let ks = points(&contraction.k);
    let group = group(code, ks.len(), seed);
    let groups = ks.len().div_ceil(group.max(1)).max(1);
    for of_left in [true, false] {
        let (own, other) = match of_left {
            true => (&contraction.m, &contraction.n),
            false => (&contraction.n, &contraction.m),
        };
        let (own, other) = (points(own), points(other));
        let count = own.len() * groups;
        // Integers as zero points, and scales of 16 bits, make elements that need no rounding.
        let mut factors = |is_exact: bool, exact: fn(f32) -> f32| -> Vec<f32> {
            let factor = |x: f32| if is_exact { exact(x) } else { x };
            (0..count).map(|_| factor(random.f32() * 3.0)).collect()
        };
        let zero =
            (!seed.is_multiple_of(3)).then(|| factors(seed & 1 == 0, |x| (x * 85.0).round()));
        let scale = (!seed.is_multiple_of(5))
            .then(|| factors(seed & 6 != 0, |x| half::f16::from_f32(x).to_f32()));
        let coding = Coding {
            code,
            group,
            zero,
            scale,
        };
        let side = usize::from(!of_left);
        let mut expected = vec![7.0f32; out];
        for b in points(&contraction.batch) {
            for (at, p) in own.iter().enumerate() {
                let factor = |of: &Option<Vec<f32>>, k: usize, without: f32| {
                    let own = |of: &Vec<f32>| of[k / group * own.len() + at];
                    of.as_ref().map_or(without, own)
                };
                for q in &other {
                    let sum = ks.iter().enumerate().fold(0.0f32, |sum, (at_k, k)| {
                        let zero = factor(&coding.zero, at_k, 0.0);
                        let scale = factor(&coding.scale, at_k, 1.0);
                        let number = number(b[side] + p[side] + k[side]);
                        let other = plain[b[1 - side] + q[1 - side] + k[1 - side]];
                        ((number - zero) * scale).mul_add(other, sum)
                    });
                    expected[b[2] + p[2] + q[2]] = sum;
                }
            }
        }
        let coded_form = match of_left {
            true => [Form::Coded, Form::Plain],
            false => [Form::Plain, Form::Coded],
        };
        let isas = [Isa::Portable, Isa::Avx2, Isa::Avx512].into_iter();
        let isas = isas.filter(|isa| isa.available());
        let kernels = isas.flat_map(|isa| {
            [coded_form, [Form::Plain; 2]]
                .map(|forms| PreparedContraction::with_forms(contraction, isa, forms).unwrap())
        });
        for kernel in kernels {
            let packed = match of_left {
                true => kernel.pack_left_coded(&coded, &coding),
                false => kernel.pack_right_coded(&coded, &coding),
            };
            // Factors are for `m` or `n` alone.
            let Some(packed) = packed else { continue };
            let plain = Operand::Plain(bytemuck::cast_slice(&plain));
            for tasks in [1, 3] {
                let (plan, left, right) = match of_left {
                    true => {
                        let plan = kernel.plan(packed.form(), Form::Plain, tasks);
                        (plan, Operand::Packed(&packed), plain)
                    }
                    false => {
                        let plan = kernel.plan(Form::Plain, packed.form(), tasks);
                        (plan, plain, Operand::Packed(&packed))
                    }
                };
                let mut result = vec![7.0f32; out];
                let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
                let bytes = bytemuck::cast_slice_mut(&mut result);
                kernel.run(&plan, left, right, bytes, &mut scratch);
                let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                let wrong = (0..out).find(|&at| !same(result[at], expected[at]));
                assert_eq!(
                    wrong.map(|at| (at, result[at], expected[at])),
                    None,
                    "{} in {tasks} tasks, {code:?}, of {contraction:?}",
                    plan.name()
                );
            }
        }
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
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        if !isa.available() {
            continue;
        }
        let of = |rows| {
            let contraction = matrices(1, rows, 300, 70, [false, true, false]);
            PreparedContraction::with_forms(&contraction, isa, forms).unwrap()
        };
        let right: Vec<f32> = (0..300 * 70).map(|k| (k % 17) as f32 - 8.0).collect();
        let packed = of(1).pack_right(bytemuck::cast_slice(&right)).unwrap();
        let results = [1, 2, 5, 9, 64].map(|rows| {
            let kernel = of(rows);
            assert_eq!(kernel.right_layout(), of(1).right_layout());
            let plan = kernel.plan(Form::Plain, Form::Packed, 1);
            let left = vec![0.5f32; rows * 70];
            let mut out = vec![0.0f32; rows * 300];
            kernel.run(
                &plan,
                Operand::Plain(bytemuck::cast_slice(&left)),
                Operand::Packed(&packed),
                bytemuck::cast_slice_mut(&mut out),
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
        left: Operand::Plain(bytemuck::cast_slice(&left)),
        right: Operand::Plain(bytemuck::cast_slice(&right)),
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
        let work: usize = [&contraction.batch, &contraction.m, &contraction.n, &contraction.k]
            .into_iter().flatten().map(|dim| dim.extent.max(1)).product();
        prop_assume!(work < 300_000);
        check_all(&contraction, seed);
    }
}
