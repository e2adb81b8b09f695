use super::*;
use crate::analysis::{Contraction, GroupRows, verify};
use crate::ir::{Kind, rewrite_stage};
use crate::passes::coded_products::examples::{
    K, ROWS, bytes, check_sums, constants, decompressed_to, twice,
};
use crate::{contract, fuse, partial_folds, schedule};
use std::sync::atomic::AtomicBool;
use vinelift_tensor::ElementType::{self, I4, I8, NF4, U4, U8};

/// The fewest whose scales are hoisted.
const N: usize = LEAST.div_ceil(K);

fn decompressed(code: ElementType, shared: usize) -> Nest {
    decompressed_to(N, code, shared)
}

fn made(code: ElementType, shared: usize) -> Nest {
    let mut nest = decompressed(code, shared);
    hoist_scales(&mut nest, &constants(1..=3));
    verify(&nest).unwrap();
    nest
}

/// The pass hoists scales whether or not the nest returns the decompressed weights as an output.
#[test]
fn weights_that_are_results_are_hoisted_too() {
    let mut nest = decompressed(U4, 128);
    let temporary = nest
        .buffers
        .iter_mut()
        .filter(|b| b.role == Role::Temporary);
    temporary.for_each(|b| b.role = Role::Output);
    hoist_scales(&mut nest, &constants(1..=3));
    verify(&nest).unwrap();
    assert_eq!(nest.stage_texts(), made(U4, 128).stage_texts());
}

/// Leaves the differences with zero points out.
fn without_zero_points(nest: &mut Nest) {
    for stage in &mut nest.stages {
        rewrite_stage(stage, &mut |x| match x.kind() {
            Kind::Binary(Binary::Sub, a, _) if x.ty() == F32 => a.clone(),
            _ => x,
        });
    }
}

#[test]
fn sums_of_groups_are_scaled() {
    let texts = made(U4, 128).stage_texts();
    assert_eq!(
        texts[4..],
        [
            "for i<3, j<2: x.sums[i, j] = add[k<128; 0.0](x[i, ((j * 128) + k)])",
            "for i<3, j<257: y[i, j] = add[k<2; 0.0](term(scales[j, k, 0], \
             (add[l<128; 0.0](term(x[i, ((k * 128) + l)], f32(codes[j, k, l]))) - \
             (f32(zeros[j, k, 0]) * x.sums[i, k]))))",
        ]
    );
}

/// The sums of the formula, computed without a nest.
#[test]
fn sums_are_those_of_the_formula() {
    const SHARED: usize = 32;
    let of = |n: usize, k: usize| (n * K + k) / SHARED;
    let x: Vec<f32> = (0..ROWS * K)
        .map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.37)
        .collect();
    let codes: Vec<u8> = (0..N * K).map(|i| (i * 89 % 256) as u8).collect();
    let zeros: Vec<u8> = (0..N * K / SHARED).map(|i| (i * 53 % 256) as u8).collect();
    let scales: Vec<f32> = (0..N * K / SHARED)
        .map(|i| 0.01 + i as f32 * 1e-4)
        .collect();
    let mut want = vec![0.0f32; ROWS * N];
    for (m, row) in x.chunks(K).enumerate() {
        for n in 0..N {
            for (g, group) in row.chunks(SHARED).enumerate() {
                // Sums of more than 23 have 8 lanes, which are added in pairs.
                let mut lanes = [0.0f32; 8];
                for (i, x) in group.iter().enumerate() {
                    lanes[i % 8] += x;
                }
                for half in [4, 2, 1] {
                    for lane in 0..half {
                        lanes[lane] += lanes[lane + half];
                    }
                }
                let mut sum = 0.0f32;
                for (i, x) in group.iter().enumerate() {
                    sum = x.mul_add(codes[n * K + g * SHARED + i].into(), sum);
                }
                let point = of(n, g * SHARED);
                let value = sum - f32::from(zeros[point]) * lanes[0];
                want[m * N + n] = scales[point].mul_add(value, want[m * N + n]);
            }
        }
    }
    let (x, scales) = (bytes(&x), bytes(&scales));
    let inputs = [&x, &codes, &zeros, &scales].map(Vec::as_slice);
    let mut nest = made(U8, SHARED);
    partial_folds(&mut nest, &|_| false, &AtomicBool::new(false));
    check_sums(nest, inputs, &want);
}

#[test]
fn a_kernel_gets_the_codes() {
    for (code, shared, has_zeros) in [
        (U4, 32, true),
        (U8, 128, true),
        (I8, K, true),
        (I4, 64, false),
    ] {
        let mut nest = decompressed(code, shared);
        if !has_zeros {
            without_zero_points(&mut nest);
        }
        hoist_scales(&mut nest, &constants(1..=3));
        partial_folds(&mut nest, &|_| false, &AtomicBool::new(false));
        fuse(&mut nest);
        contract(&mut nest, &|b| (1..=3).contains(&b.0));
        schedule(&mut nest);
        verify(&nest).unwrap();
        let mut found = nest.stages.iter().filter_map(|s| Contraction::of(&nest, s));
        let found = found.next().unwrap();
        let types = [&found.left, &found.right].map(|f| nest.buf(f.tensor.buffer).ty);
        assert_eq!(types, [F32, code]);
        let coding = found.right.coding.as_ref().unwrap();
        assert_eq!(found.group(coding), shared);
        assert_eq!(coding.zero.is_some(), has_zeros);
        let groups = found.groups.unwrap();
        let inner = &found.axes[found.outer..][groups.axes..];
        assert_eq!(inner[0].extent, shared.min(LONGEST));
        match groups.rows {
            GroupRows::Floats { sums } => assert_eq!(sums.is_some(), has_zeros),
            GroupRows::Quantized { .. } => panic!("rows are floats"),
        }
    }
}

/// Groups are the longest that divide those of the weights, and at least two.
#[test]
fn lengths_of_groups() {
    for (elements, shared, want) in [
        (4096, 4096, Some(128)),
        (256, 128, Some(128)),
        (128, 128, Some(64)),
        (4000, 4000, Some(80)),
        (1000, 1000, Some(40)),
        (96, 24, Some(24)),
        (96, 16, Some(16)),
        (96, 8, None),
        (16, 16, None),
        (4801, 4801, None),
    ] {
        assert_eq!(length(elements, shared), want, "{elements} by {shared}");
    }
}

/// Fewer elements, groups that are too short, codes that are no integers, and what is no constant.
#[test]
fn others_stay_as_they_are() {
    let as_it_was = decompressed(U4, 32).stages.len();
    assert_eq!(made(U4, 16).stages.len(), as_it_was + 1);
    assert_eq!(made(U4, 8).stages.len(), as_it_was);
    assert_eq!(made(NF4, 128).stages.len(), as_it_was);
    let mut nest = decompressed_to(N - 1, U4, 128);
    hoist_scales(&mut nest, &constants(1..=3));
    assert_eq!(nest.stages.len(), as_it_was);
    for numbers in [0..=3, 2..=3, 1..=2] {
        let mut nest = decompressed(U4, 128);
        hoist_scales(&mut nest, &constants(numbers));
        assert_eq!(nest.stages.len(), as_it_was);
    }
}

/// The groups of rows that several products take are summed once.
#[test]
fn groups_are_summed_once() {
    let mut nest = twice(N, U4, 128);
    let stages = nest.stages.len();
    hoist_scales(&mut nest, &constants(1..=3));
    verify(&nest).unwrap();
    assert_eq!(nest.stages.len(), stages + 1);
}
