//! Nests of a product with constants of few bits.

use crate::analysis::verify;
use crate::build::{index, zero};
use crate::ir::{Axis, Binary, BufferId, Definition, Nest, Role, Scalar, Stage};
use crate::{BufferBytes, contract, fuse, interpret, schedule};
use std::ops::RangeInclusive;
use vinelift_tensor::ElementType::{self, F32};

pub(in crate::passes) const ROWS: usize = 3;
pub(in crate::passes) const K: usize = 256;
pub(in crate::passes) const N: usize = 64;

/// As [`decompressed_to`], to [`N`] columns.
pub(in crate::passes) fn decompressed(code: ElementType, shared: usize) -> Nest {
    decompressed_to(N, code, shared)
}

/// `y[m, n] = Σ_k x[m, k] · w[n, k]`, where `w` is `(f32(codes) - f32(zero)) · scale`, reshaped from groups of `shared`.
pub(in crate::passes) fn decompressed_to(columns: usize, code: ElementType, shared: usize) -> Nest {
    let mut nest = Nest::new();
    let groups = K / shared;
    let x = nest.buffer("x", F32, &[ROWS, K], Role::Input);
    let codes = nest.buffer("codes", code, &[columns, groups, shared], Role::Input);
    let zeros = nest.buffer("zeros", code, &[columns, groups, 1], Role::Input);
    let scales = nest.buffer("scales", F32, &[columns, groups, 1], Role::Input);
    let y = nest.buffer("y", F32, &[ROWS, columns], Role::Output);
    let shape = [columns, groups, shared];
    let made = ["c", "d", "p"].map(|name| nest.buffer(name, F32, &shape, Role::Temporary));
    let w = nest.buffer("w", F32, &[columns, K], Role::Temporary);
    let of_group = |at: &[Scalar]| vec![at[0].clone(), at[1].clone(), index(0)];
    nest.define(vec![], made[0], |n, at| {
        n.load(codes, at.to_vec()).cast(F32)
    });
    nest.define(vec![], made[1], |n, at| {
        n.load(made[0], at.to_vec()) - n.load(zeros, of_group(at)).cast(F32)
    });
    nest.define(vec![], made[2], |n, at| {
        n.load(made[1], at.to_vec()) * n.load(scales, of_group(at))
    });
    nest.define(vec![], w, |n, at| {
        let flat = &at[0] * K as i64 + &at[1];
        let group = &flat / shared as i64;
        let place = vec![
            &flat / K as i64,
            group.rem(index(groups as i64)),
            flat.rem(index(shared as i64)),
        ];
        n.load(made[2], place)
    });
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[K]);
        let k = Scalar::axis(axes[0].id);
        let left = n.load(x, vec![at[0].clone(), k.clone()]);
        let right = n.load(w, vec![at[1].clone(), k]);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(F32), term)
    });
    nest
}

/// The buffers of these numbers are constant.
pub(in crate::passes) fn constants(
    numbers: RangeInclusive<u32>,
) -> impl Fn(BufferId) -> Option<&'static [u8]> {
    move |b| numbers.contains(&b.0).then_some(&[][..])
}

/// The bytes of numbers.
pub(in crate::passes) fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Asserts that a nest of such a product gives `want` for these `x`, codes, zero points and scales, as it is and after it is
/// scheduled.
pub(in crate::passes) fn check_sums(plain: Nest, inputs: [&[u8]; 4], want: &[f32]) {
    let mut scheduled = plain.clone();
    fuse(&mut scheduled);
    contract(&mut scheduled, &|b| (1..=3).contains(&b.0));
    schedule(&mut scheduled);
    verify(&scheduled).unwrap();
    for nest in [plain, scheduled] {
        let mut y = vec![0; size_of_val(want)];
        let mut buffers: Vec<BufferBytes<'_>> = nest
            .buffers
            .iter()
            .map(|_| BufferBytes::Temporary)
            .collect();
        for (buffer, bytes) in buffers.iter_mut().zip(inputs) {
            *buffer = BufferBytes::Read(bytes);
        }
        buffers[4] = BufferBytes::Write(&mut y);
        interpret(&nest, &mut buffers).unwrap();
        assert_eq!(y, bytes(want));
    }
}

/// Two such products with the same row.
pub(in crate::passes) fn twice(columns: usize, code: ElementType, shared: usize) -> Nest {
    let mut nest = decompressed_to(columns, code, shared);
    let mut product = nest.stages[4].clone();
    product.target = nest.buffer("z", F32, &[ROWS, columns], Role::Output);
    rebind(&mut nest, &mut product);
    nest.stages.push(product);
    nest
}

/// Gives a copy of a stage axes of its own.
fn rebind(nest: &mut Nest, stage: &mut Stage) {
    let definition = Definition {
        target: stage.target,
        axes: &stage.domain.clone(),
        value: &stage.value.clone(),
    };
    let domain: Vec<Axis> = stage.domain.iter().map(|a| nest.axis(a.extent)).collect();
    let at: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
    stage.value = definition.instantiate(nest, &at);
    (stage.domain, stage.at) = (domain, at);
}
