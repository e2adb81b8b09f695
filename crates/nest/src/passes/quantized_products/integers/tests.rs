use super::super::quantized_products;
use crate::analysis::verify;
use crate::build::*;
use crate::ir::Role;
use crate::*;
use vinelift_tensor::ElementType::{self, F32, I8, I32, I64, U8};
use vinelift_tensor::Extent;
use vinelift_tensor::symbols::Symbols;

/// [`product_of`], with zero points of the types of what they are taken from.
fn product(ty: ElementType, left: ElementType, right: ElementType, k: usize) -> Nest {
    product_of(ty, [left, left, right, right], 16.into(), k.into())
}

/// `y[i, j] = Σ_k (ty(x[i, k]) - ty(p[])) · (ty(w[k, j]) - ty(q[j]))` for `i < m`, with `x`, `p`, `w` and `q` of the given
/// types.
fn product_of(ty: ElementType, types: [ElementType; 4], m: Extent, k: Extent) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", types[0], &[m, k], Role::Input);
    let p = nest.buffer("p", types[1], &[0usize; 0], Role::Input);
    let w = nest.buffer("w", types[2], &[k, 32.into()], Role::Input);
    let q = nest.buffer("q", types[3], &[32], Role::Input);
    let a = nest.buffer("a", ty, &[m, k], Role::Temporary);
    let b = nest.buffer("b", ty, &[k, 32.into()], Role::Temporary);
    let y = nest.buffer("y", ty, &[m, 32.into()], Role::Output);
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

/// Bytes at either end of what they may be, in every mixture.
fn extremes(nest: &Nest, seed: u32) -> Vec<Vec<u8>> {
    let mut next = random(seed);
    let inputs = nest.buffers.iter().filter(|b| b.role == Role::Input);
    let mut input = |b: &Buffer| {
        let ends = match b.ty {
            U8 => [0, 255],
            _ => [128, 127],
        };
        // All alike, or half of them, or hardly any.
        let share = next() % 3;
        let mut byte = || ends[usize::from(next() % 8 < [8, 4, 1][usize::from(share)])];
        let count = b.ty.byte_len(b.example().iter().product()).unwrap();
        (0..count).map(|_| byte()).collect()
    };
    inputs.map(&mut input).collect()
}

#[test]
fn sums_of_extremes_are_exact() {
    for ty in [I32, F32] {
        for left in [U8, I8] {
            for right in [U8, I8] {
                for k in [32, 257, 258] {
                    let nest = product(ty, left, right, k);
                    for seed in 0..8 {
                        let after = rewritten(&nest, &extremes(&nest, seed), None);
                        assert!(of_bytes(&after), "{ty} {left} {right} {k}");
                    }
                }
            }
        }
    }
}

/// Less a zero point of 32 bits, differences, products and sums overflow, in either form modulo 2³².
#[test]
fn sums_that_overflow_do_so_alike() {
    for types in [[U8, I32, I8, I32], [U8, I32, U8, U8], [I8, I8, I8, I32]] {
        let nest = product_of(I32, types, 16.into(), 64.into());
        for seed in 0..8 {
            let mut inputs = inputs(&nest, seed);
            if seed < 4 {
                let far = [i32::MIN, i32::MAX, -i32::MAX, 1 << 24][seed as usize];
                for (k, input) in inputs.iter_mut().enumerate() {
                    if types[k] == I32 {
                        *input = far.to_le_bytes().repeat(input.len() / 4);
                    }
                }
            }
            assert!(of_bytes(&rewritten(&nest, &inputs, None)), "{types:?}");
        }
    }
}

/// As no `f32` difference of one is surely exact.
#[test]
fn floats_less_zero_points_of_32_bits_stay() {
    let mut nest = product_of(F32, [U8, I32, I8, I8], 16.into(), 64.into());
    let before = nest.clone();
    quantized_products(&mut nest, &|_| None);
    assert_eq!(nest, before);
}

#[test]
fn no_points_and_more_than_can_be_counted_stay() {
    for k in [0usize, 1 << 31, 1 << 40] {
        let mut nest = product(I32, U8, I8, k);
        let before = nest.clone();
        quantized_products(&mut nest, &|_| None);
        assert_eq!(nest, before, "{k}");
    }
}

#[test]
fn padded_extremes() {
    for code in [U8, I8] {
        let nest = convolution(code, code);
        for seed in 0..8 {
            let mut inputs = extremes(&nest, seed);
            let mut next = random(seed);
            let weights = (0..8 * 27).map(|_| [-128i32, 127][usize::from(next() >> 7)]);
            inputs[2] = weights.flat_map(i32::to_le_bytes).collect();
            assert!(of_bytes(&rewritten(&nest, &inputs, Some(2))), "{code}");
        }
    }
}

/// `y[i, j] = Σ_k pad(i32(x[i-1, k]) - i32(p[i-1])) · i32(w[k, j])`: only within the padding there is a zero point.
#[test]
fn a_zero_point_that_padding_guards_stays_guarded() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", U8, &[16, 64], Role::Input);
    let p = nest.buffer("p", U8, &[16], Role::Input);
    let w = nest.buffer("w", I8, &[64, 32], Role::Input);
    let y = nest.buffer("y", I32, &[18, 32], Role::Output);
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[64]);
        let (row, k) = (&at[0] - 1, Scalar::axis(axes[0].id));
        let left = n.load(x, vec![row.clone(), k.clone()]).cast(I32)
            - n.load(p, vec![row.clone()]).cast(I32);
        let left = select(inside(&row, 0, 16), left, zero(I32));
        let right = n.load(w, vec![k, at[1].clone()]).cast(I32);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(I32), term)
    });
    rewritten(&nest, &inputs(&nest, 2), None);
}

/// The same, with the guard around the sum.
#[test]
fn a_sum_under_a_guard_stays_guarded() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", U8, &[16, 64], Role::Input);
    let w = nest.buffer("w", U8, &[64, 32], Role::Input);
    let q = nest.buffer("q", U8, &[32], Role::Input);
    let y = nest.buffer("y", I32, &[18, 32], Role::Output);
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[64]);
        let (row, k) = (&at[0] - 1, Scalar::axis(axes[0].id));
        let left = n.load(x, vec![row.clone(), k.clone()]).cast(I32);
        let right =
            n.load(w, vec![k, at[1].clone()]).cast(I32) - n.load(q, vec![at[1].clone()]).cast(I32);
        let term = Scalar::binary(Binary::Term, left, right);
        let sum = Scalar::reduce(Binary::Add, axes, zero(I32), term);
        select(inside(&row, 0, 16), sum, zero(I32))
    });
    rewritten(&nest, &inputs(&nest, 2), None);
}

/// `y[i, j] = Σ_k i32(x[i, k]) · w[rows[k], j]`, where a row that there is not is zero.
#[test]
fn a_row_out_of_range_is_zero_and_not_the_code_of_zero() {
    for (ty, low) in [(I32, 257), (I32, 0), (U8, 0), (I8, -128)] {
        let mut nest = Nest::new();
        let x = nest.buffer("x", U8, &[16, 64], Role::Input);
        let rows = nest.buffer("rows", I64, &[64], Role::Input);
        let w = nest.buffer("w", ty, &[64, 32], Role::Input);
        let y = nest.buffer("y", I32, &[16, 32], Role::Output);
        let layer = nest.layer("g", "Gather, opset8");
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&[64]);
            let k = Scalar::axis(axes[0].id);
            let left = n.load(x, vec![at[0].clone(), k.clone()]).cast(I32);
            let row = n.load(rows, vec![k.clone()]);
            let site = Site {
                layer,
                input: "rows".into(),
            };
            let row = n.wrap(row, 64, Policy::WRAP_OR_ZERO, site, vec![k]);
            let right = n.load(w, vec![row, at[1].clone()]).cast(I32);
            let term = Scalar::binary(Binary::Term, left, right);
            Scalar::reduce(Binary::Add, axes, zero(I32), term)
        });
        let mut inputs = inputs(&nest, 2);
        inputs[1] = (0..64i64)
            .flat_map(|k| (k * 3 - 80).to_le_bytes())
            .collect();
        if ty == I32 {
            let values = (0..64 * 32).map(|k| low + k % 256);
            inputs[2] = values.flat_map(i32::to_le_bytes).collect();
        }
        rewritten(&nest, &inputs, Some(2));
    }
}

#[test]
fn constants_out_of_all_range_are_no_bytes() {
    let far = |ty: ElementType| match ty {
        I32 => vec![i32::MIN.to_le_bytes(), i32::MAX.to_le_bytes()],
        _ => [-1e30, 1e30, f32::NAN, f32::INFINITY, 0.5]
            .map(f32::to_le_bytes)
            .to_vec(),
    };
    for ty in [I32, F32] {
        for value in far(ty) {
            let mut bytes = vec![0; 32];
            bytes[8..12].copy_from_slice(&value);
            assert_eq!(super::codes::integers(&bytes, ty), None);
        }
    }
}

/// One nest for every number of rows from 4: the sums are over a number of points.
#[test]
fn symbols_may_be_in_the_domain() {
    for ty in [I32, F32] {
        let mut symbols = Symbols::default();
        let m = symbols.add(16).unwrap();
        let nest = symbols.record(|| {
            let mut nest = product_of(ty, [U8, U8, U8, U8], m, 258.into());
            nest.symbols = vec![16];
            quantized_products(&mut nest, &|_| None);
            nest
        });
        verify(&nest).unwrap();
        assert!(of_bytes(&nest));
        for number in [4usize, 5, 16, 33] {
            let bound = nest.bound_to(&symbols.bind(&[number]).unwrap()).unwrap();
            verify(&bound).unwrap();
            let plain = product_of(ty, [U8, U8, U8, U8], number.into(), 258.into());
            let (inputs, known) = (extremes(&plain, 3), plain.buffers.len());
            assert_eq!(run(&plain, &inputs, known), run(&bound, &inputs, known));
        }
        assert!(symbols.bind(&[3]).is_none());
    }
}

/// Nor does it take conditions on symbols to find that out.
#[test]
fn sums_over_symbols_stay() {
    let mut symbols = Symbols::default();
    let k = symbols.add(64).unwrap();
    let unchanged = symbols.record(|| {
        let mut nest = product_of(I32, [U8, U8, I8, I8], 16.into(), k);
        nest.symbols = vec![64];
        let before = nest.clone();
        quantized_products(&mut nest, &|_| None);
        nest == before
    });
    assert!(unchanged);
    assert!(symbols.bind(&[2]).is_some());
}

/// Sums of constants are tables, whatever their types and the order of their axes.
#[test]
fn sums_of_constants_are_tables() {
    for weights in [U8, I8] {
        for ty in [I32, F32] {
            let nest = product(ty, U8, weights, 64);
            let after = rewritten(&nest, &inputs(&nest, 4), Some(2));
            let tables = after
                .buffers
                .iter()
                .filter(|b| matches!(b.role, Role::Table(_)));
            assert_eq!(tables.count(), 1);
        }
    }
    let nest = convolution(U8, U8);
    let mut inputs = inputs(&nest, 4);
    inputs[2] = (0..8 * 27i32)
        .flat_map(|k| (k % 200 + 90).to_le_bytes())
        .collect();
    let after = rewritten(&nest, &inputs, Some(2));
    let table = after.buffers.iter().find_map(|b| match &b.role {
        Role::Table(bytes) => Some((b.name.clone(), bytes.len())),
        _ => None,
    });
    assert_eq!(table, Some(("y.right.total".to_owned(), 4 * 8)));
}
