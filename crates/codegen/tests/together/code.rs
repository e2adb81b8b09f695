//! Ownership, text and refusals.

use crate::common::{COMPILER, bytes, output, pointwise, values, vector_loops};
use vinelift_codegen::{Code, CodegenError, Options, Pointer, Vectors};
use vinelift_nest::{Nest, Role, Scalar, Unary, build::*};
use vinelift_tensor::ElementType::*;

#[test]
fn code_may_be_shared_by_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Code>();
    shareable::<vinelift_codegen::Compiler>();
}

#[test]
fn many_kernels_in_one_code() {
    let nests: Vec<Nest> = (0..50)
        .map(|k| pointwise(&[I32], I32, 3, |x| &x[0] * k))
        .collect();
    let code = COMPILER
        .compile(&nests.iter().collect::<Vec<_>>(), &Options::default())
        .unwrap();
    assert_eq!(code.len(), 50);
    for k in 0..50 {
        let (mut x, mut y) = ([1i32, 2, 3], [0i32; 3]);
        // SAFETY: the two buffers are of three `i32` each.
        unsafe {
            code.run(
                k,
                &[x.as_mut_ptr(), y.as_mut_ptr()].map(|p| Pointer(p.cast())),
                &[],
            )
        }
        .unwrap();
        assert_eq!(y, x.map(|x| x * k as i32));
        assert!(code.code_size(k) > 0 && code.text(k).is_none());
    }
    assert!(
        COMPILER
            .compile(&[], &Options::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn text_names_stages_and_layers() {
    let mut nest = Nest::new();
    let (first, second) = (
        nest.layer("double", "Multiply, opset1"),
        nest.layer("more", "Add, opset1"),
    );
    // Too few points for vectors.
    let x = nest.buffer("x", F32, &[3], Role::Input);
    let t = nest.buffer("t", F32, &[3], Role::Temporary);
    let y = nest.buffer("y", F32, &[3], Role::Output);
    nest.define(vec![first], t, |nest, at| nest.load(x, at.to_vec()) * 2.0);
    nest.define(vec![second], y, |nest, at| nest.load(t, at.to_vec()) + 1.0);
    let code = COMPILER
        .compile(
            &[&nest],
            &Options {
                capture_text: true,
                ..Options::default()
            },
        )
        .unwrap();
    let text = code.text(0).unwrap();
    let lines = [
        "stage 0 of double, point by point: the innermost axis is short: for i<3: t[i] = (x[i] * 2.0)",
        "stage 1 of more, point by point: the innermost axis is short: for i<3: y[i] = (t[i] + 1.0)",
    ];
    for (stage, line) in lines.iter().enumerate() {
        assert!(
            text.clif
                .contains(&format!("; @{:04x} {line}\n", stage + 1)),
            "{}",
            text.clif
        );
        assert!(text.asm.contains(&format!("; {line}\n")), "{}", text.asm);
    }
    assert!(text.asm.contains("; return\n"), "{}", text.asm);
    assert!(text.clif.contains("region0 = 0 \"x\""), "{}", text.clif);
    assert!(text.vcode.contains("block0"), "{}", text.vcode);
}

#[test]
fn text_says_what_is_vectorised() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[9], Role::Input);
    let y = nest.buffer("y", F32, &[9], Role::Output);
    let layer = nest.layer("double", "Multiply, opset1");
    nest.define(vec![layer], y, |nest, at| nest.load(x, at.to_vec()) * 2.0);
    let options = Options {
        capture_text: true,
        vectors: Vectors::Bits128,
    };
    let code = COMPILER.compile(&[&nest], &options).unwrap();
    let clif = &code.text(0).unwrap().clif;
    let line = "stage 0 of double, vectorised ×8 on 128 bits: for i<9: y[i] = (x[i] * 2.0)";
    assert!(clif.contains(line) && clif.contains("fmul"), "{clif}");
}

/// The functions that networks are made of run by registers as wide as the machine has them: what the assembler
/// refuses would be as right, and several times as slow.
#[test]
fn functions_run_by_the_widest_registers() {
    let widest = match vector_loops() {
        [_, true] => "on 512 bits",
        [true, false] => "on 256 bits",
        [false, false] => {
            eprintln!("skipped: this machine has no AVX2");
            return;
        }
    };
    type Function = fn(Scalar) -> Scalar;
    let functions: [(&str, Function); 6] = [
        ("exp", |x| x.exp()),
        ("tanh", |x| Scalar::unary(Unary::Tanh, x)),
        ("erf", |x| Scalar::unary(Unary::Erf, x)),
        ("log", |x| Scalar::unary(Unary::Log, x)),
        ("sqrt", |x| Scalar::unary(Unary::Sqrt, x)),
        ("relu", |x| x.max(zero(F32))),
    ];
    for (vectors, bits) in [(Vectors::Widest, widest), (Vectors::Bits256, "on 256 bits")] {
        for (name, function) in functions {
            let mut nest = Nest::new();
            let x = nest.buffer("x", F32, &[1000], Role::Input);
            let y = nest.buffer("y", F32, &[1000], Role::Output);
            nest.define(vec![], y, |nest, at| function(nest.load(x, at.to_vec())));
            let options = Options {
                capture_text: true,
                vectors,
            };
            let code = COMPILER.compile(&[&nest], &options).unwrap();
            let clif = &code.text(0).unwrap().clif;
            assert!(clif.contains(bits), "{name}, {bits}: {clif}");
        }
    }
}

#[test]
fn what_does_not_verify_is_refused() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[2], Role::Input);
    let y = nest.buffer("y", F32, &[3], Role::Output);
    nest.define(vec![], y, |nest, at| nest.load(x, at.to_vec()));
    let error = COMPILER
        .compile(&[&nest], &Options::default())
        .err()
        .unwrap();
    assert!(matches!(error, CodegenError::NotVerified { kernel: 0, .. }));
    assert_eq!(
        error.to_string(),
        "kernel 0: the nest does not verify: stage 0: index 0 of `x`, i, is in 0..=2, not proven in 0..2"
    );
}

#[test]
fn a_long_chain_does_not_overflow_the_stack() {
    const LENGTH: usize = 10_000;
    let chain = |x: &Scalar| (0..LENGTH).fold(x.clone(), |sum, k| sum * 3 + (k % 7) as i64);
    // Kernels are compiled on the pool's threads, of ordinary stacks; dropping the nest, on this
    // one, is what recurses.
    let test = move || {
        let nest = pointwise(&[I32], I32, 2, |x| chain(&x[0]));
        let found = values::<i32>(&output(&nest, &[bytes(&[1i32, -5])]));
        let expected =
            |x: i32| (0..LENGTH).fold(x, |sum, k| sum.wrapping_mul(3).wrapping_add((k % 7) as i32));
        assert_eq!(found, [expected(1), expected(-5)]);
    };
    std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(test)
        .unwrap()
        .join()
        .unwrap();
}

/// More code in one go than a short reference reaches, a megabyte on some machines, with constants all along.
#[test]
fn constants_of_long_code_are_in_reach() {
    const COUNT: usize = 90_000;
    // Of 64 bits, so that no instruction holds it.
    let factor = |k: usize| 1.0 / (k as f64 + 3.0);
    let nest = pointwise(&[F64], F64, 1, |x| {
        let terms = (0..COUNT).map(|k| &x[0] * number(factor(k), F64));
        sum_of_pairs(terms.collect(), &|a, b| a + b)
    });
    let code = COMPILER.compile(&[&nest], &Options::default()).unwrap();
    let (mut x, mut y) = (0.7f64, 0.0f64);
    let pointers = [&mut x, &mut y].map(|p| Pointer((p as *mut f64).cast()));
    // SAFETY: one pointer for each buffer, to one `f64`.
    unsafe { code.run(0, &pointers, &[]) }.unwrap();
    let terms = (0..COUNT).map(|k| 0.7 * factor(k));
    assert_eq!(y, sum_of_pairs(terms.collect(), &|a, b| a + b));
}

/// `(t[0] + t[1]) + (t[2] + t[3])` and so on: a tree that is not deep.
fn sum_of_pairs<T: Clone>(mut terms: Vec<T>, add: &dyn Fn(T, T) -> T) -> T {
    while terms.len() > 1 {
        let pairs = terms.chunks(2).map(|pair| match pair {
            [a, b] => add(a.clone(), b.clone()),
            _ => pair[0].clone(),
        });
        terms = pairs.collect();
    }
    terms[0].clone()
}

/// By vectors, both sides of a select are evaluated: so neither may read what only the guard allows,
/// nor may an index come from what the stage itself writes.
#[test]
fn what_a_guard_protects_stays_scalar() {
    let clamped = |i: Scalar| i.max(index(0)).min(index(15));
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[16], Role::Input);
    let indices = nest.buffer("indices", I64, &[15], Role::Input);
    let (y, z) = (
        nest.buffer("y", F32, &[16], Role::Output),
        nest.buffer("z", I64, &[16], Role::Output),
    );
    let layer = nest.layer("l", "Op, opset1");
    nest.define(vec![layer], y, |nest, at| {
        let before = &at[0] - 1;
        let i = clamped(nest.load(indices, vec![before.clone()]));
        let moved = nest.load(x, vec![i]);
        select(inside(&before, 0, 15), moved, number(0.0, F32))
    });
    nest.define(vec![layer], z, |nest, at| {
        let own = clamped(nest.load(z, vec![clamped(&at[0] - 1)]));
        nest.load(x, vec![own]).cast(I64)
    });
    let options = Options {
        capture_text: true,
        ..Options::default()
    };
    let code = COMPILER.compile(&[&nest], &options).unwrap();
    let clif = &code.text(0).unwrap().clif;
    assert!(!clif.contains("vectorised"), "{clif}");
}
