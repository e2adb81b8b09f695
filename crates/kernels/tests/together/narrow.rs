//! Columns that are stored in 16 bits: the results are, bit by bit, those of the same elements as `f32`.

use crate::problems::{any_contraction, lengths, matrices, points};
use half::{bf16, f16};
use proptest::prelude::*;
use vinelift_kernels::{
    Contraction, Dim, Element, Form, Isa, Narrow, Operand, PreparedContraction, Refused,
};
use zerocopy::IntoBytes;

const BOTH: [Narrow; 2] = [Narrow::F16, Narrow::BF16];

fn element(narrow: Narrow, bits: u16) -> f32 {
    match narrow {
        Narrow::F16 => f16::from_bits(bits).to_f32(),
        Narrow::BF16 => bf16::from_bits(bits).to_f32(),
    }
}

/// The result in this many tasks, if there is a kernel.
fn run(kernel: &PreparedContraction, operands: [&[u8]; 2], out: usize, tasks: usize) -> Vec<u32> {
    let plan = kernel.plan(Form::Plain, Form::Plain, tasks);
    let mut result = vec![1.5f32; out];
    let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
    let [left, right] = operands.map(Operand::Plain);
    let bytes = result.as_mut_bytes();
    kernel.run(&plan, left, right, bytes, &mut scratch);
    // All NaNs are one.
    let bits = |x: f32| if x.is_nan() { f32::NAN } else { x }.to_bits();
    result.into_iter().map(bits).collect()
}

/// Compares either operand stored in 16 bits with both as `f32`; says how many kernels there were.
fn check(contraction: &Contraction, seed: u64) -> usize {
    let contraction = Contraction {
        element: Element::F32,
        ..contraction.clone()
    };
    let [left, right, out] = lengths(&contraction);
    let mut random = fastrand::Rng::with_seed(seed);
    let isas = Isa::ALL;
    let mut kernels = 0;
    for isa in isas.into_iter().filter(|isa| isa.available()) {
        for narrow in BOTH {
            // Any bits: numbers of all sizes, infinities, NaNs.
            let stored = |count: usize, random: &mut fastrand::Rng| -> Vec<u16> {
                (0..count).map(|_| random.u16(..)).collect()
            };
            let stored = [stored(left, &mut random), stored(right, &mut random)];
            let wide = stored
                .each_ref()
                .map(|bits| -> Vec<f32> { bits.iter().map(|b| element(narrow, *b)).collect() });
            let wide = wide.each_ref().map(|x| x.as_bytes());
            let plain = PreparedContraction::with_isa(&contraction, isa).unwrap();
            for side in 0..2 {
                let mut types = [None; 2];
                types[side] = Some(narrow);
                let forms = [Form::Plain; 2];
                let kernel = match PreparedContraction::with_narrow(&contraction, isa, forms, types)
                {
                    Ok(kernel) => kernel,
                    Err(refused) => {
                        assert_eq!(refused, Refused::Narrow);
                        continue;
                    }
                };
                kernels += 1;
                let mut operands = wide;
                operands[side] = stored[side].as_bytes();
                for tasks in [1, 3] {
                    let got = run(&kernel, operands, out, tasks);
                    let want = run(&plain, wide, out, tasks);
                    assert_eq!(got, want, "{narrow:?} {side} {isa} of {contraction:?}");
                }
            }
        }
    }
    kernels
}

#[test]
fn products_with_one_and_many_rows() {
    for (m, n, k) in [
        (1, 1, 1),
        (1, 64, 33),
        (1, 75, 64),
        (7, 40, 17),
        (20, 9, 70),
    ] {
        for across in 0..4 {
            let matrices = matrices(3, m, n, k, [false, across & 1 != 0, across & 2 != 0]);
            assert!(check(&matrices, 5) > 0);
        }
    }
}

/// Scores of queries with keys, for heads of which several share keys, and values weighted with them.
#[test]
fn attention() {
    let (heads, each, rows, keys, width) = (2, 3, 1, 45, 24);
    let scores = Contraction {
        element: Element::F32,
        batch: vec![Dim::new(heads, each * width, keys * width, each * keys)],
        m: vec![
            Dim::new(each, width, 0, keys),
            Dim::new(rows, width, 0, keys),
        ],
        n: vec![Dim::new(keys, 0, width, 1)],
        k: vec![Dim::new(width, 1, 1, 0)],
    };
    assert!(check(&scores, 1) > 0);
    let values = Contraction {
        batch: vec![Dim::new(heads, each * keys, keys * width, each * width)],
        m: vec![Dim::new(each, keys, 0, width)],
        n: vec![Dim::new(width, 0, 1, 1)],
        k: vec![Dim::new(keys, 1, width, 0)],
        ..scores
    };
    assert!(check(&values, 2) > 0);
}

#[test]
fn rows_and_other_types_are_refused() {
    let contraction = matrices(1, 3, 20, 5, [false; 3]);
    let refused = |element, narrow| {
        let contraction = Contraction {
            element,
            ..contraction.clone()
        };
        let forms = [Form::Plain; 2];
        PreparedContraction::with_narrow(&contraction, Isa::Portable, forms, narrow).err()
    };
    let narrow = Some(Narrow::F16);
    assert_eq!(refused(Element::F32, [None, narrow]), None);
    assert_eq!(refused(Element::F32, [narrow, None]), Some(Refused::Narrow));
    assert_eq!(refused(Element::F64, [None, narrow]), Some(Refused::Narrow));
}

#[test]
#[should_panic(expected = "an operand has 198 bytes of 200")]
fn an_operand_that_is_too_small_is_not_read() {
    let contraction = matrices(1, 3, 20, 5, [false; 3]);
    let (forms, narrow) = ([Form::Plain; 2], [None, Some(Narrow::BF16)]);
    let kernel = PreparedContraction::with_narrow(&contraction, Isa::best(), forms, narrow);
    run(&kernel.unwrap(), [&[0; 60], &[0; 198]], 60, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_strides(contraction in any_contraction(), seed: u64) {
        prop_assume!(points(&contraction) < 100_000);
        check(&contraction, seed);
    }
}
