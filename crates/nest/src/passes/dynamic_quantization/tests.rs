use super::*;
use crate::analysis::{Contraction, verify};
use crate::build::index;
use crate::ir::rewrite_stage;
use crate::passes::coded_products::examples::{
    K, N, ROWS, bytes, check_sums, constants, decompressed, twice,
};
use crate::{Mode, contract, fuse, schedule};
use vinelift_tensor::ElementType::{self, F16, U4, U8};

fn quantized(code: ElementType, shared: usize, group: usize) -> Nest {
    let mut nest = decompressed(code, shared);
    dynamic_quantization(&mut nest, group, &constants(1..=3));
    verify(&nest).unwrap();
    nest
}

#[test]
fn groups_of_rows_are_bytes() {
    let nest = quantized(U4, 128, 32);
    let texts = nest.stage_texts();
    assert_eq!(
        texts[4..],
        [
            "for i<3, j<8: x.scale[i, j] = max((max[k<32; 0.0](select((abs(x[i, ((j * 32) + k)]) <= 340282350000000000000000000000000000000.0), \
             abs(x[i, ((j * 32) + k)]), inf)) / 127.0), 0.000000000000000000000000000000000000011754944)",
            "for i<3, j<8, k<32: x.i8[i, j, k] = i8(i32(round((x[i, ((j * 32) + k)] / x.scale[i, j]))))",
            "for i<3, j<64: y[i, j] = add[k<2, l<4; 0.0](term(x.scale[i, ((k * 4) + l)], \
             (f32(add[m<32; 0i32](term(i32(x.i8[i, ((k * 4) + l), m]), \
             (i32(codes[j, k, ((l * 32) + m)]) - i32(zeros[j, k, 0]))))) * scales[j, k, 0])))",
        ]
    );
}

/// The sums of the formula, computed without a nest.
#[test]
fn sums_are_those_of_the_formula() {
    const GROUP: usize = 64;
    const SHARED: usize = 128;
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
            for (g, group) in row.chunks(GROUP).enumerate() {
                let largest = group.iter().fold(0.0f32, |a, b| a.max(b.abs()));
                let scale = largest / 127.0;
                let of = |k: usize| n * K / SHARED + k / SHARED;
                let mut sum = 0i64;
                for (i, x) in group.iter().enumerate() {
                    let k = g * GROUP + i;
                    let code = i64::from(codes[n * K + k]) - i64::from(zeros[of(k)]);
                    sum += (x / scale).round_ties_even() as i64 * code;
                }
                let scaled = sum as f32 * scales[of(g * GROUP)];
                want[m * N + n] = scale.mul_add(scaled, want[m * N + n]);
            }
        }
    }
    let (x, scales) = (bytes(&x), bytes(&scales));
    let inputs = [&x, &codes, &zeros, &scales].map(Vec::as_slice);
    check_sums(quantized(U8, SHARED, GROUP), inputs, &want);
}

#[test]
fn a_kernel_gets_the_codes() {
    for shared in [32, 128, K] {
        let mut nest = quantized(U4, shared, 32);
        fuse(&mut nest);
        contract(&mut nest, &|b| (1..=3).contains(&b.0));
        schedule(&mut nest);
        verify(&nest).unwrap();
        let mut found = nest.stages.iter().filter_map(|s| Contraction::of(&nest, s));
        let found = found.next().unwrap();
        let types = [&found.left, &found.right].map(|f| nest.buf(f.tensor.buffer).ty);
        assert_eq!(types, [I8, U4]);
        assert!(found.groups.is_some());
        assert_eq!(found.group(found.right.coding.as_ref().unwrap()), shared);
    }
}

/// Operations on the sum become its epilogue; scales may be stored in few bits.
#[test]
fn a_kernel_gets_the_codes_of_a_part_of_a_stage() {
    let mut nest = decompressed(U4, 32);
    let scales = BufferId(3);
    nest.buffers[3].ty = F16;
    let last = nest.stages.len() - 1;
    for stage in &mut nest.stages {
        rewrite_stage(stage, &mut |x| match x.kind() {
            Kind::Load { buffer, at } if *buffer == scales => {
                Scalar::load(scales, at.clone(), F16).cast(F32)
            }
            _ => x,
        });
    }
    let sum = nest.stages[last].value.clone();
    nest.stages[last].value = (&sum * 2.0).max(zero(F32));
    dynamic_quantization(&mut nest, 32, &constants(1..=3));
    fuse(&mut nest);
    contract(&mut nest, &|b| (1..=3).contains(&b.0));
    schedule(&mut nest);
    verify(&nest).unwrap();
    let mut found = nest.stages.iter().filter_map(|s| Contraction::of(&nest, s));
    assert!(found.next().unwrap().groups.is_some());
}

/// Zero points may be floats, if all of them are integers.
#[test]
fn zero_points_that_are_floats() {
    for (value, is_quantized) in [(7.0f32, true), (-255.0, true), (7.5, false), (256.0, false)] {
        let mut nest = decompressed(U8, 128);
        let zeros = BufferId(2);
        nest.buffers[2].ty = F32;
        for stage in &mut nest.stages {
            rewrite_stage(stage, &mut |x| match x.kind() {
                Kind::Cast(load) => match load.kind() {
                    Kind::Load { buffer, at } if *buffer == zeros => {
                        Scalar::load(zeros, at.clone(), F32)
                    }
                    _ => x,
                },
                _ => x,
            });
        }
        let stages = nest.stages.len();
        let bytes = [1f32, value].map(f32::to_le_bytes).concat();
        let constant = |b: BufferId| match b {
            BufferId(2) => Some(bytes.as_slice()),
            BufferId(1 | 3) => Some(&[][..]),
            _ => None,
        };
        dynamic_quantization(&mut nest, 32, &constant);
        verify(&nest).unwrap();
        assert_eq!(nest.stages.len() > stages, is_quantized, "{value}");
        fuse(&mut nest);
        contract(&mut nest, &|b| constant(b).is_some());
        let mut found = nest.stages.iter().filter_map(|s| Contraction::of(&nest, s));
        let groups = found.next().and_then(|found| found.groups);
        assert_eq!(groups.is_some(), is_quantized, "{value}");
    }
}

/// Groups that do not divide those of the weights, or are no multiple of 8, rows of which something is constant, and
/// weights that are not.
#[test]
fn others_stay_as_they_are() {
    let stages = |code, shared, group| quantized(code, shared, group).stages.len();
    let as_it_was = decompressed(U4, 32).stages.len();
    assert_eq!(stages(U4, 32, 24), as_it_was);
    assert_eq!(stages(U4, 128, 48), as_it_was);
    assert_eq!(stages(ElementType::NF4, 128, 32), as_it_was);
    assert_eq!(stages(U4, 8, 8), as_it_was);
    assert_eq!(stages(U4, 16, 8), as_it_was + 2);
    // A group of weights is the longest; a whole row is divided in two.
    assert_eq!(stages(U4, 32, 1 << 40), as_it_was + 2);
    assert_eq!(stages(I8, K, 1 << 40), as_it_was + 2);
    for numbers in [0..=3, 2..=3] {
        let mut nest = decompressed(U4, 128);
        dynamic_quantization(&mut nest, 32, &constants(numbers));
        assert_eq!(nest.stages.len(), as_it_was);
    }
}

/// The codes of rows have a dim more than the rows.
#[test]
fn rows_of_the_highest_rank() {
    for (rank, is_quantized) in [(MAX_RANK - 1, true), (MAX_RANK, false)] {
        let mut nest = decompressed(U4, 128);
        let stages = nest.stages.len();
        let x = BufferId(0);
        let ones = vec![1; rank - 2];
        nest.buffers[0].shape = [ones, vec![ROWS, K]]
            .concat()
            .iter()
            .map(|n| (*n).into())
            .collect();
        for stage in &mut nest.stages {
            rewrite_stage(stage, &mut |y| match y.kind() {
                Kind::Load { buffer, at } if *buffer == x => {
                    Scalar::load(x, [vec![index(0); rank - 2], at.clone()].concat(), F32)
                }
                _ => y,
            });
        }
        dynamic_quantization(&mut nest, 32, &constants(1..=3));
        verify(&nest).unwrap();
        assert_eq!(nest.stages.len() > stages, is_quantized, "rank {rank}");
    }
}

/// Rows that several products take are quantised once, and anew once they were written.
#[test]
fn rows_are_quantized_once() {
    let mut nest = twice(N, U4, 128);
    dynamic_quantization(&mut nest, 32, &constants(1..=3));
    verify(&nest).unwrap();
    assert_eq!(nest.stages.len(), 4 + 2 + 2);
    let modes = nest.stages.iter().all(|stage| stage.mode == Mode::Set);
    assert!(modes);
}
