//! Operations for which vector loops have one instruction together: a rounding and the conversion to integers, the packing of integers
//! that are stored with fewer bits, and a load with what uses it.

use crate::common::{bytes, output, pointwise, random, reference, text_for_256_bits, vector_loops};
use vinelift_nest::{Nest, build::*};
use vinelift_tensor::ElementType::{self, *};

/// Whole registers, several of them, and what is left.
const COUNTS: [usize; 14] = [1, 5, 8, 9, 16, 17, 31, 32, 33, 64, 65, 96, 130, 300];

const INTEGERS: [ElementType; 8] = [I8, U8, I16, U16, I32, U32, I64, U64];

/// The instructions of a nest for 256 bits; `None` on machines without.
fn instructions(nest: &Nest) -> Option<std::string::String> {
    vector_loops()[0].then(|| text_for_256_bits(nest).asm)
}

#[test]
fn integers_that_are_stored_with_fewer_bits() {
    let mut next = random(3);
    let mut pairs = Vec::new();
    for from in INTEGERS {
        let narrower = INTEGERS.into_iter().filter(|to| to.bits() < from.bits());
        pairs.extend(narrower.map(|to| (from, to)));
    }
    for (from, to) in pairs {
        for count in COUNTS {
            let nest = pointwise(&[from; 2], to, count, |x| (&x[0] + &x[1]).cast(to));
            let mut of_input = || {
                let all = (0..count).flat_map(|_| next().to_le_bytes()[..from.bits() / 8].to_vec());
                all.collect::<Vec<u8>>()
            };
            let inputs = [of_input(), of_input()];
            let expected = reference(&nest, &inputs).0;
            assert_eq!(output(&nest, &inputs), expected[2], "{nest}");
        }
    }
}

/// A sum and its narrow form, which are both stored.
#[test]
fn integers_that_are_stored_with_all_bits_and_with_fewer() {
    let nest = pointwise(&[I32, I32], U8, 64, |x| {
        let sum = &x[0] + &x[1];
        let low = sum.clone().cast(U8);
        select(sum.lt(number(0.0, I32)), low.clone() + 1, low)
    });
    let mut next = random(4);
    let mut of_input = || bytes(&(0..64).map(|_| next() as i32).collect::<Vec<i32>>());
    let inputs = [of_input(), of_input()];
    assert_eq!(output(&nest, &inputs), reference(&nest, &inputs).0[2]);
}

#[test]
fn floats_that_are_rounded_to_integers() {
    let halves = (-40..300).map(|k| k as f32 / 2.0);
    let near = [0.49999997, 8388607.5, 8388609.0, 2147483520.0, 2147483648.0];
    let far = [-2147483648.0, -2147483904.0, 1e20, f32::INFINITY, f32::NAN];
    let data: Vec<f32> = halves
        .chain(near)
        .chain(near.map(|x: f32| -x))
        .chain(far)
        .collect();
    for to in INTEGERS {
        let nest = pointwise(&[F32], to, data.len(), |x| x[0].clone().round().cast(to));
        let found = output(&nest, &[bytes(&data)]);
        assert_eq!(found, reference(&nest, &[bytes(&data)]).0[1], "{nest}");
        let wide = data.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let nest = pointwise(&[F64], to, data.len(), |x| x[0].clone().round().cast(to));
        let found = output(&nest, &[bytes(&wide)]);
        assert_eq!(found, reference(&nest, &[bytes(&wide)]).0[1], "{nest}");
    }
    // The rounded float is used, too.
    let nest = pointwise(&[F32], F32, data.len(), |x| {
        let rounded = x[0].clone().round();
        &rounded + &rounded.clone().cast(I32).cast(F32)
    });
    let found = output(&nest, &[bytes(&data)]);
    let sum = |x: &f32| {
        let rounded = x.round_ties_even();
        let fits = rounded > -2_147_483_904.0 && rounded < 2_147_483_648.0;
        let integer = if fits { rounded as i32 } else { i32::MIN };
        rounded + integer as f32
    };
    for (k, x) in data.iter().enumerate() {
        let found = f32::from_le_bytes(found[4 * k..][..4].try_into().unwrap());
        assert!(
            found == sum(x) || (found.is_nan() && sum(x).is_nan()),
            "{x} {found}"
        );
    }
}

/// Codes of floats take one conversion, are packed together, and what is added to them is read by the sum.
#[test]
fn codes_take_few_instructions() {
    let nest = pointwise(&[F32, F32], U8, 1024, |x| {
        (&x[0] + &x[1]).round().cast(I32).cast(U8)
    });
    let mut next = random(5);
    let mut of_input = || {
        bytes(
            &(0..1024)
                .map(|_| (next() % 4096) as f32 / 8.0)
                .collect::<Vec<f32>>(),
        )
    };
    let inputs = [of_input(), of_input()];
    assert_eq!(output(&nest, &inputs), reference(&nest, &inputs).0[2]);
    let Some(asm) = instructions(&nest) else {
        eprintln!("skipped: this machine has no AVX2");
        return;
    };
    // Constants lie behind the code.
    let lines = || asm.lines().filter(|line| !line.contains("[rel"));
    let count = |what: &str| lines().filter(|line| line.contains(what)).count();
    let registers = count("vcvtps2dq");
    assert!(registers.is_multiple_of(4) && registers > 0, "{asm}");
    assert_eq!(count("vaddps"), registers, "{asm}");
    assert_eq!(count("vmovdqu ymm"), registers, "{asm}");
    assert_eq!(count("vpackusdw"), registers / 2, "{asm}");
    assert_eq!(count("vpackuswb"), registers / 4, "{asm}");
    assert_eq!(count("vroundps") + count("vcvttps2dq"), 0, "{asm}");
}
