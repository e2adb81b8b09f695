use super::super::quantized_products;
use crate::analysis::verify;
use crate::build::*;
use crate::ir::Role;
use crate::*;
use vinelift_tensor::ElementType::{self, F32, I8, I32, U8};

/// `y[i, j] = Σ_k (ty(x[i, k]) - ty(p[])) · (ty(w[k, j]) - ty(q[j]))`
fn product(ty: ElementType, left: ElementType, right: ElementType, k: usize) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", left, &[16, k], Role::Input);
    let p = nest.buffer("p", left, &[0usize; 0], Role::Input);
    let w = nest.buffer("w", right, &[k, 32], Role::Input);
    let q = nest.buffer("q", right, &[32], Role::Input);
    let a = nest.buffer("a", ty, &[16, k], Role::Temporary);
    let b = nest.buffer("b", ty, &[k, 32], Role::Temporary);
    let y = nest.buffer("y", ty, &[16, 32], Role::Output);
    nest.define(vec![], a, |n, at| {
        n.load(x, at.to_vec()).cast(ty) - n.load(p, vec![]).cast(ty)
    });
    nest.define(vec![], b, |n, at| {
        n.load(w, at.to_vec()).cast(ty) - n.load(q, vec![at[1].clone()]).cast(ty)
    });
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[k]);
        let k = Scalar::axis(axes[0].id);
        let left = n.load(a, vec![at[0].clone(), k.clone()]);
        let right = n.load(b, vec![k, at[1].clone()]);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(ty), term)
    });
    nest
}

/// `y[o, i, j] = Σ_c Σ_r Σ_s pad(i32(x[c, i+r-1, j+s-1]) - p[]) · w[o, c, r, s]`
fn convolution(code: ElementType, point: ElementType) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", code, &[3, 9, 9], Role::Input);
    let p = nest.buffer("p", point, &[0usize; 0], Role::Input);
    let w = nest.buffer("w", I32, &[8, 3, 3, 3], Role::Input);
    let a = nest.buffer("a", I32, &[3, 9, 9], Role::Temporary);
    let y = nest.buffer("y", I32, &[8, 9, 9], Role::Output);
    nest.define(vec![], a, |n, at| {
        n.load(x, at.to_vec()).cast(I32) - n.load(p, vec![]).cast(I32)
    });
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[3, 3, 3]);
        let [c, r, s] = [0, 1, 2].map(|k: usize| Scalar::axis(axes[k].id));
        let (row, column) = (&at[1] + &r - 1, &at[2] + &s - 1);
        let is_inside = inside(&row, 0, 9) & inside(&column, 0, 9);
        let left = select(
            is_inside,
            n.load(a, vec![c.clone(), row, column]),
            zero(I32),
        );
        let right = n.load(w, vec![at[0].clone(), c, r, s]);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(I32), term)
    });
    nest
}

fn random(seed: u32) -> impl FnMut() -> u8 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    }
}

/// The bytes of the output, which is the last of the first `known` buffers.
fn run(nest: &Nest, inputs: &[Vec<u8>], known: usize) -> Vec<u8> {
    let size = |b: &Buffer| b.ty.byte_len(b.example().iter().product()).unwrap();
    let rest = nest.buffers[inputs.len()..].iter();
    let mut memory: Vec<Vec<u8>> = rest.map(|b| vec![0; size(b)]).collect();
    let mut buffers: Vec<BufferBytes<'_>> = inputs.iter().map(|b| BufferBytes::Read(b)).collect();
    buffers.extend(memory.iter_mut().map(|m| BufferBytes::Write(m)));
    interpret(nest, &mut buffers).unwrap();
    memory.swap_remove(known - 1 - inputs.len())
}

fn of_bytes(nest: &Nest) -> bool {
    nest.stage_texts()
        .iter()
        .any(|text| text.contains("term(i32("))
}

/// Rewrites the nest; the result stays what it is, bit by bit.
fn rewritten(nest: &Nest, inputs: &[Vec<u8>], constant: Option<usize>) -> Nest {
    let mut after = nest.clone();
    quantized_products(&mut after, &|b| {
        (Some(b.0 as usize) == constant).then(|| inputs[b.0 as usize].as_slice())
    });
    verify(&after).unwrap();
    let known = nest.buffers.len();
    assert_eq!(run(nest, inputs, known), run(&after, inputs, known));
    after
}

fn inputs(nest: &Nest, seed: u32) -> Vec<Vec<u8>> {
    let mut next = random(seed);
    let inputs = nest.buffers.iter().filter(|b| b.role == Role::Input);
    let bytes = inputs.map(|b| b.ty.byte_len(b.example().iter().product()).unwrap());
    bytes.map(|n| (0..n).map(|_| next()).collect()).collect()
}

#[test]
fn zero_points_known_at_run_time() {
    let mut nest = product(I32, U8, I8, 64);
    quantized_products(&mut nest, &|_| None);
    assert_eq!(
        nest.stage_texts()[2..],
        [
            "for i<16: y.left.total[i] = add[j<64; 0i32](i32(x[i, j]))",
            "for i<32: y.right.total[i] = add[j<64; 0i32](i32(w[j, i]))",
            "for i<16, j<32: y[i, j] = (((add[k<64; 0i32](term(i32(x[i, k]), i32(w[k, j]))) \
             - (y.left.total[i] * i32(q[j]))) - (y.right.total[j] * i32(p[]))) \
             + ((i32(p[]) * i32(q[j])) * 64i32))",
        ]
    );
}

#[test]
fn codes_of_every_pair_of_types() {
    for ty in [I32, F32] {
        for left in [U8, I8] {
            for right in [U8, I8] {
                let nest = product(ty, left, right, 64);
                let after = rewritten(&nest, &inputs(&nest, 7), None);
                assert!(of_bytes(&after), "{ty} {left} {right}");
            }
        }
    }
}

/// `255 · 255 · 258 ≤ 2²⁴ < 255 · 255 · 259`
#[test]
fn sums_of_floats_are_exact_or_stay() {
    for (k, is_exact) in [(258, true), (259, false)] {
        let nest = product(F32, U8, U8, k);
        let after = rewritten(&nest, &inputs(&nest, 3), None);
        assert_eq!(of_bytes(&after), is_exact, "{k}");
    }
}

/// Products that overflow an `i32` do so in either form.
#[test]
fn constants_of_few_values_are_bytes() {
    for (low, high, fits) in [
        (-128, 127, true),
        (0, 255, true),
        (-255, 0, true),
        (-255, 1, false),
        (-128, 128, false),
        (257, 512, true),
        (258, 513, false),
    ] {
        for point in [U8, I8] {
            let nest = convolution(point, point);
            let mut inputs = inputs(&nest, 5);
            let mut next = random(9);
            let mut values: Vec<i32> = (0..8 * 27)
                .map(|_| (low + i32::from(next())).min(high))
                .collect();
            (values[3], values[100]) = (low, high);
            inputs[2] = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let after = rewritten(&nest, &inputs, Some(2));
            assert_eq!(of_bytes(&after), fits, "{low} {high} {point}");
        }
    }
}

/// Padding needs a code for the zero point, which an `i32` or a number of the other sign may not have.
#[test]
fn padding_without_a_code_stays() {
    for (code, point) in [(U8, I32), (U8, I8), (I8, U8)] {
        let nest = convolution(code, point);
        let mut inputs = inputs(&nest, 11);
        inputs[2] = vec![1; 8 * 27]
            .iter()
            .flat_map(|v: &i32| v.to_le_bytes())
            .collect();
        let after = rewritten(&nest, &inputs, Some(2));
        assert!(!of_bytes(&after), "{code} {point}");
    }
}
