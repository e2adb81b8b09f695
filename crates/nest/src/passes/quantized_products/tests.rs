use super::*;
use crate::analysis::verify;
use crate::build::*;
use crate::ir::part_of;
use crate::{BufferBytes, Contraction, Unary, contract, fuse, interpret, schedule};
use vinelift_tensor::ElementType::F32;

/// `FakeQuantize` of `x` to 256 values from `low` to `high`, as its lowering writes it.
pub(super) fn quantized(x: Scalar, low: f64, high: f64) -> Scalar {
    let c = |v: f64| number(v, F32);
    let (il, ih, ol, oh, steps) = (c(low), c(high), c(low), c(high), c(255.0));
    let step = ((&x - il.clone()) / (ih.clone() - il.clone()) * steps).round();
    let inner = part_of(&step, 255) * (oh.clone() - ol.clone()) + ol.clone();
    let below = select(x.le(il.min(ih.clone())), ol, inner);
    select(x.gt(il.max(ih)), oh, below)
}

/// `y[i, j] = Σ_k q(x[i, k]) · (f32(w[k, j]) · scale[j])`
fn weighted(low: f64, high: f64) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[16, 64], Role::Input);
    let w = nest.buffer("w", I8, &[64, 32], Role::Input);
    let scale = nest.buffer("scale", F32, &[1, 32], Role::Input);
    let q = nest.buffer("q", F32, &[16, 64], Role::Temporary);
    let f = nest.buffer("f", F32, &[64, 32], Role::Temporary);
    let s = nest.buffer("s", F32, &[64, 32], Role::Temporary);
    let y = nest.buffer("y", F32, &[16, 32], Role::Output);
    nest.define(vec![], q, |n, at| {
        quantized(n.load(x, at.to_vec()), low, high)
    });
    nest.define(vec![], f, |n, at| n.load(w, at.to_vec()).cast(F32));
    nest.define(vec![], s, |n, at| {
        n.load(f, at.to_vec()) * n.load(scale, vec![index(0), at[1].clone()])
    });
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[64]);
        let k = Scalar::axis(axes[0].id);
        let left = n.load(q, vec![at[0].clone(), k.clone()]);
        let right = n.load(s, vec![k, at[1].clone()]);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(F32), term)
    });
    nest
}

#[test]
fn activations_and_weights_are_bytes() {
    let mut nest = weighted(-0.5, 2.05);
    quantized_products(&mut nest, &|_| None);
    verify(&nest).unwrap();
    assert_eq!(
        nest.stage_texts(),
        [
            "for i<16, j<64: q.u8[i, j] = select((x[i, j] > 2.05), 255u8, select((x[i, j] <= -0.5), 0u8, \
             u8(i32(round((((x[i, j] - -0.5) / (2.05 - -0.5)) * 255.0))))))",
            "for i<16, j<64: q[i, j] = ((select((x[i, j] > 2.05), 255.0, select((x[i, j] <= -0.5), 0.0, \
             round((((x[i, j] - -0.5) / (2.05 - -0.5)) * 255.0)))) - 50.0) * 0.01)",
            "for i<64, j<32: f[i, j] = f32(w[i, j])",
            "for i<64, j<32: s[i, j] = (f[i, j] * scale[0, j])",
            "for i<16: q.nan[i] = add[j<64; 0.0](select((x[i, j] != x[i, j]), nan(0x7fc00000), 0.0))",
            "for i<32: y.right.total[i] = (add[j<64; 0i32](i32(w[j, i])) * 50i32)",
            "for i<16, j<32: y[i, j] = (q.nan[i] + term(f32((add[k<64; 0i32](term(i32(q.u8[i, k]), i32(w[k, j]))) \
             - y.right.total[j])), (scale[0, j] * 0.01)))",
        ]
    );
    fuse(&mut nest);
    contract(&mut nest, &|b| b == BufferId(1));
    schedule(&mut nest);
    verify(&nest).unwrap();
    let mut found = nest.stages.iter().filter_map(|s| Contraction::of(&nest, s));
    let found = found.next().unwrap();
    assert_eq!(found.ty, I32);
    let types = [found.left, found.right].map(|f| nest.buf(f.tensor.buffer).ty);
    assert_eq!(types, [U8, I8]);
}

/// Windows overlap in sums over channels, which all that read the picture share.
#[test]
fn nan_is_summed_over_channels_before_windows() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[8, 40], Role::Input);
    let q = nest.buffer("q", F32, &[8, 40], Role::Temporary);
    nest.define(vec![], q, |n, at| {
        quantized(n.load(x, at.to_vec()), 0.0, 2.55)
    });
    for name in ["y", "z"] {
        let w = nest.buffer(&format!("w{name}"), I8, &[32, 8, 3], Role::Input);
        let f = nest.buffer(&format!("f{name}"), F32, &[32, 8, 3], Role::Temporary);
        let y = nest.buffer(name, F32, &[32, 38], Role::Output);
        nest.define(vec![], f, |n, at| n.load(w, at.to_vec()).cast(F32));
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&[8, 3]);
            let (c, k) = (Scalar::axis(axes[0].id), Scalar::axis(axes[1].id));
            let left = n.load(f, vec![at[0].clone(), c.clone(), k.clone()]);
            let right = n.load(q, vec![c, &at[1] + k]);
            let term = Scalar::binary(Binary::Term, left, right);
            Scalar::reduce(Binary::Add, axes, zero(F32), term)
        });
    }
    quantized_products(&mut nest, &|_| None);
    verify(&nest).unwrap();
    let mut texts = nest.stage_texts();
    texts.retain(|text| text.contains("nan"));
    let sum = |name: &str| format!("for i<38: {name}.right.nan[i] = add[j<3; 0.0](q.nan[(i + j)])");
    assert_eq!(
        texts[0],
        "for i<40: q.nan[i] = add[j<8; 0.0](select((x[j, i] != x[j, i]), nan(0x7fc00000), 0.0))"
    );
    assert_eq!([&texts[1], &texts[3]], [&sum("y"), &sum("z")]);
    assert_eq!(texts.len(), 5, "{texts:#?}");
}

/// `y[i, j] = Σ_k f32(w[i, k]) · c[k, j]`, where `c` is `q(a)` and `q(b)`, one below the other, with these upper ends.
fn concatenated(highs: [f64; 2]) -> Nest {
    let mut nest = Nest::new();
    let inputs = ["a", "b"].map(|name| nest.buffer(name, F32, &[20, 24], Role::Input));
    let w = nest.buffer("w", I8, &[32, 40], Role::Input);
    let f = nest.buffer("f", F32, &[32, 40], Role::Temporary);
    let c = nest.buffer("c", F32, &[40, 24], Role::Temporary);
    let y = nest.buffer("y", F32, &[32, 24], Role::Output);
    nest.define(vec![], f, |n, at| n.load(w, at.to_vec()).cast(F32));
    for (piece, (input, high)) in inputs.into_iter().zip(highs).enumerate() {
        let name = format!("q{piece}");
        let q = nest.buffer(&name, F32, &[20, 24], Role::Temporary);
        nest.define(vec![], q, |n, at| {
            quantized(n.load(input, at.to_vec()), 0.0, high)
        });
        let domain = nest.axes(&[20, 24]);
        let points: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let mut at = points.clone();
        if piece > 0 {
            at[0] = &at[0] + index(20);
        }
        let value = nest.load(q, points);
        nest.stages.push(Stage {
            domain,
            target: c,
            at,
            mode: Mode::Set,
            value,
            layers: vec![],
            group: None,
        });
    }
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[40]);
        let k = Scalar::axis(axes[0].id);
        let left = n.load(f, vec![at[0].clone(), k.clone()]);
        let right = n.load(c, vec![k, at[1].clone()]);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(F32), term)
    });
    nest
}

#[test]
fn concatenations_on_one_grid_are_bytes() {
    let mut nest = concatenated([2.55, 2.55]);
    quantized_products(&mut nest, &|_| None);
    verify(&nest).unwrap();
    let texts = nest.stage_texts();
    let has = |text: &str| texts.iter().any(|t| t.contains(text));
    assert!(
        has("for i<20, j<24: c.u8[i, j] = q0.u8[i, j]"),
        "{texts:#?}"
    );
    assert!(has("for i<20, j<24: c.u8[(i + 20), j] = q1.u8[i, j]"));
    assert!(has("term(i32(w[i, k]), i32(c.u8[k, j]))"));
    assert!(has("((q0.nan[j] + q1.nan[j]) + term("));

    let mut nest = concatenated([2.55, 5.1]);
    quantized_products(&mut nest, &|_| None);
    let texts = nest.stage_texts();
    assert!(!texts.iter().any(|text| text.contains("u8")), "{texts:#?}");
}

/// Without any product, too, and as near to the values in real numbers as `f32` allows: the zero point is exactly zero.
#[test]
fn values_on_a_grid_are_distances_from_its_zero() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[511], Role::Input);
    let q = nest.buffer("q", F32, &[511], Role::Temporary);
    let y = nest.buffer("y", F32, &[511], Role::Output);
    nest.define(vec![], q, |n, at| {
        quantized(n.load(x, at.to_vec()), -1.28, 1.27)
    });
    nest.define(vec![], y, |n, at| n.load(q, at.to_vec()));
    quantized_products(&mut nest, &|_| None);
    assert_eq!(
        nest.stage_texts()[0],
        "for i<511: q[i] = ((select((x[i] > 1.27), 255.0, select((x[i] <= -1.28), 0.0, \
         round((((x[i] - -1.28) / (1.27 - -1.28)) * 255.0)))) - 128.0) * 0.01)"
    );
    // Never in the middle between two.
    let x: Vec<f32> = (0..511).map(|i| (i - 255) as f32 * 0.01 + 0.002).collect();
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut y = vec![0; 4 * 511];
    let mut buffers = [
        BufferBytes::Read(&bytes),
        BufferBytes::Temporary,
        BufferBytes::Write(&mut y),
    ];
    interpret(&nest, &mut buffers).unwrap();
    for (i, y) in y.as_chunks::<4>().0.iter().enumerate() {
        let want = f64::from((i as i32 - 255).clamp(-128, 127)) * 0.01;
        let y = f64::from(f32::from_le_bytes(*y));
        assert!(
            (y - want).abs() <= want.abs() / f64::from(1 << 23),
            "{i}: {y} {want}"
        );
    }
}

/// A range whose zero point is no integer, or which is turned round, stays as it is.
#[test]
fn what_has_no_integer_zero_point_stays() {
    for (low, high) in [(-0.503, 2.05), (1.0, -1.0), (1.0, 1.0)] {
        let mut nest = weighted(low, high);
        quantized_products(&mut nest, &|_| None);
        assert_eq!(nest.stage_texts().len(), 4, "{low} {high}");
    }
}

/// The sums are those of the quantised values, nearer than `f32` arithmetic gets; NaN comes through.
#[test]
fn sums_of_bytes_are_those_of_their_values() {
    let mut random = 1u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 16
    };
    // Not near the middle between two values, where rounding decides.
    let mut near = || (next() % 320) as f32 - 80.0 + (next() % 7) as f32 / 20.0;
    let mut x: Vec<f32> = (0..16 * 64).map(|_| near() * 0.01).collect();
    (x[3], x[70], x[130]) = (f32::INFINITY, f32::NEG_INFINITY, f32::NAN);
    let w: Vec<i8> = (0..64 * 32).map(|_| next() as i8).collect();
    let scale: Vec<f32> = (0..32).map(|_| next() as f32 / 1e5 + 0.01).collect();
    let mut nest = weighted(-0.5, 2.05);
    quantized_products(&mut nest, &|_| None);
    let bytes = |x: &[f32]| -> Vec<u8> { x.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let inputs = [
        bytes(&x),
        w.iter().map(|w| *w as u8).collect(),
        bytes(&scale),
    ];
    let size = |b: &crate::Buffer| b.ty.byte_len(b.example().iter().product()).unwrap();
    let mut memory: Vec<Vec<u8>> = nest.buffers[3..].iter().map(|b| vec![0; size(b)]).collect();
    let mut buffers: Vec<BufferBytes<'_>> = inputs.iter().map(|b| BufferBytes::Read(b)).collect();
    buffers.extend(memory.iter_mut().map(|m| BufferBytes::Write(m)));
    interpret(&nest, &mut buffers).unwrap();
    let y = memory[3]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    for (at, y) in y.enumerate() {
        let (i, j) = (at / 32, at % 32);
        let value = |x: f32| {
            let x = f64::from(x).clamp(-0.5, 2.05);
            (((x + 0.5) / 2.55 * 255.0).round_ties_even() - 50.0) * 0.01
        };
        let products =
            (0..64).map(|k| value(x[i * 64 + k]) * f64::from(w[k * 32 + j]) * f64::from(scale[j]));
        let (sum, all) = products.fold((0.0, 0.0), |(sum, all), p| (sum + p, all + p.abs()));
        if i == 2 {
            assert!(y.is_nan());
        } else {
            assert!((f64::from(y) - sum).abs() <= 3e-7 * all, "{at}: {y} {sum}");
        }
    }
}

/// Makes a stage's value at an element from the buffer before.
type Step = dyn Fn(&mut Nest, BufferId, &[Scalar]) -> Scalar;

/// `y = f(Σ_k q(x[i, k]) · f32(w[k, j]) · 0.01)` and `z[i, j] = Σ_k q(y[i, k]) · f32(v[k, j])`, where `f` makes one stage after the
/// other of the load of an element.
fn chain(stages: &[&Step]) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[16, 64], Role::Input);
    let [w, v] =
        [("w", 64), ("v", 32)].map(|(name, k)| nest.buffer(name, I8, &[k, 32], Role::Input));
    let mut last = x;
    for (codes, k, name) in [(w, 64, "y"), (v, 32, "z")] {
        let role = if name == "z" {
            Role::Output
        } else {
            Role::Temporary
        };
        let q = nest.buffer(&format!("q{name}"), F32, &[16, k], Role::Temporary);
        let f = nest.buffer(&format!("f{name}"), F32, &[k, 32], Role::Temporary);
        let sum = nest.buffer(name, F32, &[16, 32], role);
        nest.define(vec![], q, |n, at| {
            quantized(n.load(last, at.to_vec()), -0.5, 2.05)
        });
        nest.define(vec![], f, |n, at| {
            n.load(codes, at.to_vec()).cast(F32) * number(0.01, F32)
        });
        nest.define(vec![], sum, |n, at| {
            let axes = n.axes(&[k]);
            let k = Scalar::axis(axes[0].id);
            let left = n.load(q, vec![at[0].clone(), k.clone()]);
            let right = n.load(f, vec![k, at[1].clone()]);
            Scalar::reduce(
                Binary::Add,
                axes,
                zero(F32),
                Scalar::binary(Binary::Term, left, right),
            )
        });
        last = sum;
        for stage in stages.iter().filter(|_| name == "y") {
            let next = nest.buffer("g", F32, &[16, 32], Role::Temporary);
            nest.define(vec![], next, |n, at| stage(n, last, at));
            last = next;
        }
    }
    nest
}

/// The scale of the weights and that of the grid are one table, if the former is constant.
#[test]
fn scales_are_multiplied_while_compiling() {
    let scale: Vec<u8> = (1..=32).flat_map(|j| (j as f32).to_le_bytes()).collect();
    let mut nest = weighted(-0.5, 2.05);
    quantized_products(&mut nest, &|b| (b == BufferId(2)).then_some(&scale[..]));
    verify(&nest).unwrap();
    let text = nest.stage_texts().pop().unwrap();
    assert!(text.contains(", y.scales[j])"), "{text}");
    let table = nest.buffers.iter().find(|b| b.name == "y.scales");
    let Role::Table(bytes) = &table.unwrap().role else {
        panic!("{nest}")
    };
    let want: Vec<u8> = (1..=32)
        .flat_map(|j| (j as f32 * 0.01).to_le_bytes())
        .collect();
    assert_eq!(**bytes, want[..]);
}

/// The chain whose second operand, `qz`, is read by `sum`, `qz[i, j] + y[i, j]`, too.
fn with_another_reader() -> Nest {
    let mut nest = chain(&[]);
    let find = |name: &str| nest.buffers.iter().position(|b| b.name == name).unwrap();
    let [q, y] = ["qz", "y"].map(|name| BufferId(find(name) as u32));
    let sum = nest.buffer("sum", F32, &[16, 32], Role::Output);
    nest.define(vec![], sum, |n, at| {
        n.load(q, at.to_vec()) + n.load(y, at.to_vec())
    });
    nest
}

/// Where it is known when a value is NaN, all that read it read its code; the first operand is looked at.
#[test]
fn all_readers_read_codes() {
    let mut nest = with_another_reader();
    quantized_products(&mut nest, &|_| None);
    verify(&nest).unwrap();
    let texts = nest.stage_texts();
    let place = |start: &str| texts.iter().position(|text| text.contains(start)).unwrap();
    let [codes, values] = ["j<32: qz.u8[i, j] =", "j<32: qz[i, j] ="].map(place);
    assert_eq!(codes + 1, values);
    assert_eq!(
        texts[values],
        "for i<16, j<32: qz[i, j] = (qy.nan[i] + term((f32(qz.u8[i, j]) - 50.0), 0.01))"
    );
    assert!(texts[place("j<64: qy[i, j] =")].contains("round("));
}

/// Codes give the very values, and NaN.
#[test]
fn values_from_codes_keep_their_bits() {
    let mut nest = with_another_reader();
    quantized_products(&mut nest, &|_| None);
    let (mut decoded, mut rounded) = (nest.clone(), nest);
    let find = |nest: &Nest, name: &str| nest.buffers.iter().position(|b| b.name == name).unwrap();
    for nest in [&mut decoded, &mut rounded] {
        let q = find(nest, "qz");
        nest.buffers[q].role = Role::Output;
    }
    let y = find(&rounded, "y") as u32;
    let q = find(&rounded, "qz") as u32;
    let stage = rounded.stages.iter().position(|s| s.target == BufferId(q));
    let stage = stage.unwrap();
    let at = rounded.stages[stage].at.clone();
    let x = quantized(rounded.load(BufferId(y), at), -0.5, 2.05);
    let again = Stage {
        value: x,
        ..rounded.stages[stage].clone()
    };
    rounded.stages[stage].value = Rounded::of(&again).unwrap().value();
    let mut x: Vec<f32> = (0..16 * 64)
        .map(|i| (i * 37 % 101) as f32 / 50.0 - 0.5)
        .collect();
    (x[70], x[64 * 9 + 1]) = (f32::NAN, f32::INFINITY);
    let x: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let w: Vec<u8> = (0..64 * 32).map(|i| (i * 29 % 251) as u8).collect();
    let run = |nest: &Nest| {
        let mut out = vec![0; 16 * 32 * 4];
        let (mut z, mut sum) = (out.clone(), out.clone());
        let temporary = nest.buffers.iter().map(|_| BufferBytes::Temporary);
        let mut buffers: Vec<BufferBytes<'_>> = temporary.collect();
        for (buffer, bytes) in buffers.iter_mut().zip([&x[..], &w, &w[..32 * 32]]) {
            *buffer = BufferBytes::Read(bytes);
        }
        buffers[find(nest, "qz")] = BufferBytes::Write(&mut out);
        buffers[find(nest, "z")] = BufferBytes::Write(&mut z);
        buffers[find(nest, "sum")] = BufferBytes::Write(&mut sum);
        interpret(nest, &mut buffers).unwrap();
        out
    };
    let (decoded, rounded) = (run(&decoded), run(&rounded));
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        let (numbers, _) = bytes.as_chunks::<4>();
        numbers.iter().map(|x| f32::from_le_bytes(*x)).collect()
    };
    for (decoded, rounded) in numbers(&decoded).into_iter().zip(numbers(&rounded)) {
        assert!(decoded.to_bits() == rounded.to_bits() || decoded.is_nan() && rounded.is_nan());
    }
}

/// The pass derives where the operands of the second product are NaN from the first one, or looks at their values where it cannot.
#[test]
fn nan_goes_through_operations() {
    fn c(x: f64) -> Scalar {
        number(x, F32)
    }
    let relu: &Step = &|n, b, at| c(0.0).max(n.load(b, at.to_vec()) + c(0.25));
    let swish: &Step = &|n, b, at| {
        let x = n.load(b, at.to_vec());
        &x * (c(6.0).min(c(0.0).max(&x + c(3.0))) / c(6.0))
    };
    let sigmoid: &Step = &|n, b, at| {
        let x = n.load(b, at.to_vec());
        let e = Scalar::unary(Unary::Exp, Scalar::unary(Unary::Neg, x.clone()));
        &x * (c(1.0) / (e + c(1.0)))
    };
    // Zero by zero where an exponential is one.
    let less: &Step = &|n, b, at| {
        let x = n.load(b, at.to_vec());
        let e = Scalar::unary(Unary::Exp, x.clone());
        x / (e + c(-1.0))
    };
    let leaky: &Step = &|n, b, at| {
        let x = n.load(b, at.to_vec());
        select(x.lt(c(0.0)), &x * c(0.125), x.clone())
    };
    let clamp: &Step = &|n, b, at| {
        let x = n.load(b, at.to_vec());
        select(
            x.gt(c(1.5)),
            c(1.5),
            select(x.le(c(-0.25)), c(-0.25), x.clone()),
        )
    };
    // The row before and this one, with zeros before the first.
    let rows: &Step = &|n, b, at| {
        let axes = n.axes(&[2]);
        let row = &at[0] + Scalar::axis(axes[0].id) - 1;
        let element = n.load(b, vec![row.clone(), at[1].clone()]);
        let padded = select(inside(&row, 0, 16), element, zero(F32));
        let term = Scalar::binary(Binary::Term, padded, c(0.5));
        Scalar::reduce(Binary::Add, axes, zero(F32), term)
    };
    let quantize: &Step = &|n, b, at| quantized(n.load(b, at.to_vec()), -1.0, 3.0);
    // NaN becomes a number.
    let largest: &Step = &|n, b, at| n.load(b, at.to_vec()).max(c(0.0));
    // Numbers become NaN.
    let root: &Step = &|n, b, at| Scalar::unary(Unary::Sqrt, n.load(b, at.to_vec()));
    let product: &Step = &|n, b, at| {
        let x = n.load(b, at.to_vec());
        (&x * c(f32::MAX.into())) * &x
    };
    // Other columns' NaN.
    let turned: &Step = &|n, b, at| n.load(b, vec![at[0].clone(), index(31) - &at[1]]);
    let some_columns: &Step = &|n, b, at| {
        let x = n.load(b, at.to_vec());
        select(inside(&at[1], 0, 5), x, zero(F32))
    };
    let cases: [(&[&Step], bool); 16] = [
        (&[], true),
        (&[relu], true),
        (&[swish, relu], true),
        (&[sigmoid], true),
        (&[sigmoid, quantize, sigmoid, relu], true),
        (&[less], false),
        (&[leaky], true),
        (&[clamp], true),
        (&[relu, quantize, swish], true),
        (&[rows, swish], true),
        (&[quantize, rows, relu, rows], true),
        (&[largest], true),
        (&[turned], true),
        (&[some_columns], false),
        (&[root], false),
        (&[product], false),
    ];
    for (case, (stages, is_known)) in cases.into_iter().enumerate() {
        let before = chain(stages);
        let mut after = before.clone();
        quantized_products(&mut after, &|_| None);
        verify(&after).unwrap();
        let texts = after.stage_texts();
        let looks = |text: &&String| text.contains(".nan[") && text.contains("!=");
        let want = if is_known { 1 } else { 2 };
        assert_eq!(
            texts.iter().filter(looks).count(),
            want,
            "{case}: {texts:#?}"
        );
        let mut x: Vec<f32> = (0..16 * 64)
            .map(|i| (i * 37 % 101) as f32 / 50.0 - 0.5)
            .collect();
        (x[70], x[64 * 9 + 1], x[64 * 15 + 63]) = (f32::NAN, f32::INFINITY, f32::NAN);
        let w: Vec<u8> = (0..64 * 32).map(|i| (i * 29 % 251) as u8).collect();
        let v = w[..32 * 32].to_vec();
        let x: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        let run = |nest: &Nest| {
            let z = nest.buffers.iter().position(|b| b.name == "z").unwrap();
            let mut out = vec![0; 16 * 32 * 4];
            let mut buffers: Vec<BufferBytes<'_>> = nest
                .buffers
                .iter()
                .map(|_| BufferBytes::Temporary)
                .collect();
            for (buffer, bytes) in buffers.iter_mut().zip([&x, &w, &v]) {
                *buffer = BufferBytes::Read(bytes);
            }
            buffers[z] = BufferBytes::Write(&mut out);
            interpret(nest, &mut buffers).unwrap();
            let numbers = out.as_chunks::<4>().0.iter();
            numbers
                .map(|z| f32::from_le_bytes(*z).is_nan())
                .collect::<Vec<bool>>()
        };
        assert_eq!(run(&before), run(&after), "{case}");
    }
}

/// `y[i, j] = Σ_k q(x[i, k]) · 0.25` is a sum of `f32`, whose result is quantised and multiplied: where that is NaN is found by `x`
/// if that has half as many elements, or else by `y`.
#[test]
fn few_elements_of_an_input_are_looked_at() {
    for (columns, looks_at) in [(16, "x"), (17, "y")] {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[16, columns], Role::Input);
        let w = nest.buffer("w", I8, &[32, 32], Role::Input);
        let q = nest.buffer("q", F32, &[16, columns], Role::Temporary);
        let y = nest.buffer("y", F32, &[16, 32], Role::Temporary);
        let p = nest.buffer("p", F32, &[16, 32], Role::Temporary);
        let z = nest.buffer("z", F32, &[16, 32], Role::Output);
        nest.define(vec![], q, |n, at| {
            quantized(n.load(x, at.to_vec()), -0.5, 2.05)
        });
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&[columns]);
            let left = n.load(q, vec![at[0].clone(), Scalar::axis(axes[0].id)]);
            let term = Scalar::binary(Binary::Term, left, number(0.25, F32));
            Scalar::reduce(Binary::Add, axes, zero(F32), term)
        });
        nest.define(vec![], p, |n, at| {
            quantized(n.load(y, at.to_vec()), -0.5, 2.05)
        });
        nest.define(vec![], z, |n, at| {
            let axes = n.axes(&[32]);
            let k = Scalar::axis(axes[0].id);
            let left = n.load(p, vec![at[0].clone(), k.clone()]);
            let right = n.load(w, vec![k, at[1].clone()]).cast(F32);
            let term = Scalar::binary(Binary::Term, left, right);
            Scalar::reduce(Binary::Add, axes, zero(F32), term)
        });
        quantized_products(&mut nest, &|_| None);
        verify(&nest).unwrap();
        let texts = nest.stage_texts();
        let looks: Vec<&String> = texts.iter().filter(|text| text.contains("!=")).collect();
        assert_eq!(looks.len(), 1, "{texts:#?}");
        assert!(looks[0].contains(&format!("({looks_at}[")), "{texts:#?}");
    }
}
