//! Every primitive on every type, against the same function in Rust.

use crate::common::{Number, bytes, output, pointwise, random, reference, same, values};
use std::fmt::Debug;
use vinelift_nest::{Binary, Nest, Role, Scalar, Unary, build::*};
use vinelift_tensor::ElementType::{self, *};

/// All pairs of values.
fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values
        .iter()
        .flat_map(|&x| values.iter().map(move |&y| (x, y)))
        .unzip()
}

/// Checks `f`, which gives `U`. Functions are passed as pointers here and below: there are hundreds of pairs of a function
/// and a type, and code for each of them would take the compiler minutes.
fn check<T: Number + Debug, U: Number + Debug>(
    name: &str,
    inputs: &[&[T]],
    f: &dyn Fn(&[Scalar]) -> Scalar,
    expected: &dyn Fn(&[T]) -> U,
) {
    check_bytes(name, inputs, f, U::TY, &|x| expected(x).le(), &|bytes| {
        format!("{:?}", U::from_le(bytes))
    });
}

fn check_bytes<T: Number + Debug>(
    name: &str,
    inputs: &[&[T]],
    f: &dyn Fn(&[Scalar]) -> Scalar,
    out: ElementType,
    expected: &dyn Fn(&[T]) -> Vec<u8>,
    show: &dyn Fn(&[u8]) -> std::string::String,
) {
    let count = inputs[0].len();
    let nest = pointwise(&vec![T::TY; inputs.len()], out, count, f);
    let data: Vec<Vec<u8>> = inputs.iter().map(|x| bytes(x)).collect();
    let found = output(&nest, &data);
    for (i, found) in found.chunks(out.bits() / 8).enumerate() {
        let operands: Vec<T> = inputs.iter().map(|x| x[i]).collect();
        let expected = expected(&operands);
        assert!(
            same(out, found, &expected),
            "{name} of {operands:?} is {}, expected {}\n{nest}",
            show(found),
            show(&expected)
        );
    }
}

fn binary<T: Number + Debug>(op: Binary, data: &[T], f: &dyn Fn(T, T) -> T) {
    let (x, y) = pairs(data);
    check(
        &format!("{op:?}"),
        &[&x, &y],
        &|s| Scalar::binary(op, s[0].clone(), s[1].clone()),
        &|v| f(v[0], v[1]),
    );
    // Constant on the right: other instructions.
    for &k in data {
        let mut bits = [0; 8];
        bits[..k.le().len()].copy_from_slice(&k.le());
        let constant = Scalar::constant(u64::from_le_bytes(bits), T::TY);
        check(
            &format!("{op:?} by {k:?}"),
            &[data],
            &|s| Scalar::binary(op, s[0].clone(), constant.clone()),
            &|v| f(v[0], k),
        );
    }
}

fn comparison<T: Number + Debug>(op: Binary, data: &[T], f: &dyn Fn(T, T) -> bool) {
    let (x, y) = pairs(data);
    // A boolean is a byte.
    check(
        &format!("{op:?}"),
        &[&x, &y],
        &|s| Scalar::binary(op, s[0].clone(), s[1].clone()).cast(U8),
        &|v| u8::from(f(v[0], v[1])),
    );
}

fn comparisons<T: Number + Debug + PartialOrd>(data: &[T]) {
    comparison(Binary::Eq, data, &|x, y| x == y);
    comparison(Binary::Ne, data, &|x, y| x != y);
    comparison(Binary::Lt, data, &|x, y| x < y);
    comparison(Binary::Le, data, &|x, y| x <= y);
    comparison(Binary::Gt, data, &|x, y| x > y);
    comparison(Binary::Ge, data, &|x, y| x >= y);
    binary(Binary::Min, data, &|x, y| if x < y { x } else { y });
    binary(Binary::Max, data, &|x, y| if x > y { x } else { y });
}

macro_rules! integers {
    ($($name:ident $t:ty, $signed:expr);* $(;)?) => { $(
        #[test]
        fn $name() {
            let bits = <$t>::BITS as i128;
            let data: Vec<$t> = [
                <$t>::MIN as i128, <$t>::MIN as i128 + 1, -100, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 10, 31, 100,
                bits - 1, bits, bits + 1, <$t>::MAX as i128 / 3, <$t>::MAX as i128 - 1, <$t>::MAX as i128,
            ].map(|x| x as $t).to_vec();
            let data = &data[..];
            binary(Binary::Add, data, &<$t>::wrapping_add);
            binary(Binary::Sub, data, &<$t>::wrapping_sub);
            binary(Binary::Mul, data, &<$t>::wrapping_mul);
            binary(Binary::Div, data, &|x, y| if y == 0 { 0 } else { x.wrapping_div(y) });
            binary(Binary::Rem, data, &|x, y| if y == 0 { 0 } else { x.wrapping_rem(y) });
            binary(Binary::And, data, &|x, y| x & y);
            binary(Binary::Or, data, &|x, y| x | y);
            binary(Binary::Xor, data, &|x, y| x ^ y);
            let within = |y: $t| (0..bits).contains(&(y as i128));
            binary(Binary::Shl, data, &|x, y| if within(y) { x << y } else { 0 });
            binary(Binary::Shr, data, &|x, y| if within(y) { x >> y } else if $signed { x >> (bits - 1) } else { 0 });
            comparisons(data);
            let unary = |op, f: fn($t) -> $t| {
                check(&format!("{op:?}"), &[data], &|s| Scalar::unary(op, s[0].clone()), &|v| f(v[0]));
            };
            unary(Unary::Neg, |x| (0 as $t).wrapping_sub(x));
            unary(Unary::Abs, |x| if (x as i128) < 0 { (0 as $t).wrapping_sub(x) } else { x });
            unary(Unary::Not, |x| !x);
        }
    )* };
}

integers! {
    i8_functions i8, true;
    i16_functions i16, true;
    i32_functions i32, true;
    i64_functions i64, true;
    u8_functions u8, false;
    u16_functions u16, false;
    u32_functions u32, false;
    u64_functions u64, false;
}

#[test]
fn high_half_of_a_product() {
    let data = [
        0,
        1,
        3,
        u64::MAX,
        u64::MAX / 3,
        1 << 63,
        0x1234_5678_9abc_def0,
    ];
    binary(Binary::MulHigh, &data, &|x, y| {
        ((u128::from(x) * u128::from(y)) >> 64) as u64
    });
}

macro_rules! floats {
    ($($name:ident $t:ty);* $(;)?) => { $(
        #[test]
        fn $name() {
            let data: Vec<$t> = vec![
                0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.7, -3.2, 1e10, -1e10, 8388609.0, <$t>::MAX, <$t>::MIN,
                <$t>::MIN_POSITIVE, <$t>::MIN_POSITIVE / 8.0, -<$t>::MIN_POSITIVE / 4.0, <$t>::EPSILON,
                <$t>::INFINITY, <$t>::NEG_INFINITY, <$t>::NAN, -<$t>::NAN,
            ];
            let data = &data[..];
            binary(Binary::Add, data, &|x, y| x + y);
            binary(Binary::Sub, data, &|x, y| x - y);
            binary(Binary::Mul, data, &|x, y| x * y);
            binary(Binary::Div, data, &|x, y| x / y);
            binary(Binary::Rem, data, &|x, y| x % y);
            comparisons(data);
            let unary = |op, f: fn($t) -> $t| {
                check(&format!("{op:?}"), &[data], &|s| Scalar::unary(op, s[0].clone()), &|v| f(v[0]));
            };
            unary(Unary::Neg, |x| -x);
            unary(Unary::Abs, |x| x.abs());
            unary(Unary::Sqrt, |x| x.sqrt());
            unary(Unary::Floor, |x| x.floor());
            unary(Unary::Ceil, |x| x.ceil());
            unary(Unary::Trunc, |x| x.trunc());
            unary(Unary::Round, |x| x.round_ties_even());
        }
    )* };
}

floats! {
    f32_functions f32;
    f64_functions f64;
}

#[test]
fn the_remainder_of_floats_is_exact() {
    let mut next = random(7);
    // All bit patterns: ratios up to 2^2098, subnormal numbers, infinities, NaNs.
    let (x, y): (Vec<f64>, Vec<f64>) = (0..40_000)
        .map(|_| (f64::from_bits(next()), f64::from_bits(next())))
        .unzip();
    check("Rem", &[&x, &y], &|s| s[0].rem(s[1].clone()), &|v| {
        v[0] % v[1]
    });
    let (x, y): (Vec<f32>, Vec<f32>) = (0..40_000)
        .map(|_| (f32::from_bits(next() as u32), f32::from_bits(next() as u32)))
        .unzip();
    check("Rem", &[&x, &y], &|s| s[0].rem(s[1].clone()), &|v| {
        v[0] % v[1]
    });
    // Subnormal and near operands.
    let (x, y): (Vec<f64>, Vec<f64>) = (0..10_000)
        .map(|_| {
            (
                f64::from_bits(next() >> 9),
                f64::from_bits(next() >> (10 + next() % 40)),
            )
        })
        .unzip();
    check("Rem", &[&x, &y], &|s| s[0].rem(s[1].clone()), &|v| {
        v[0] % v[1]
    });
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// The specification of a cast from a float to an integer of 64 bits.
fn to_i64(x: f64) -> i64 {
    if (-TWO_63..TWO_63).contains(&x) {
        x as i64
    } else {
        i64::MIN
    }
}

fn edges() -> Vec<f64> {
    let mut data = vec![
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1e300,
        -1e300,
        5e-324,
    ];
    for bits in [1, 4, 7, 8, 15, 16, 31, 32, 51, 52, 53, 62, 63, 64] {
        let x = 2f64.powi(bits);
        for x in [
            x,
            x - 1.0,
            x + 1.0,
            x - 0.5,
            x + 0.5,
            x * (1.0 - f64::EPSILON),
            x * (1.0 + f64::EPSILON),
        ] {
            data.extend([x, -x]);
        }
    }
    data
}

#[test]
fn casts_from_floats() {
    let wide = edges();
    let narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
    macro_rules! casts {
        ($($t:ty: $cast:expr),*) => { $(
            let cast: fn(f64) -> $t = $cast;
            check("a cast", &[&wide], &|s| s[0].clone().cast(<$t>::TY), &|v| cast(v[0]));
            check("a cast", &[&narrow], &|s| s[0].clone().cast(<$t>::TY), &|v| cast(v[0].into()));
        )* };
    }
    casts! {
        i8: |x| to_i64(x) as i8,
        i16: |x| to_i64(x) as i16,
        i32: |x| if x > -2_147_483_649.0 && x < 2_147_483_648.0 { x as i32 } else { i32::MIN },
        i64: to_i64,
        u8: |x| to_i64(x) as u8,
        u16: |x| to_i64(x) as u16,
        u32: |x| to_i64(x) as u32,
        u64: |x| if (0.0..2.0 * TWO_63).contains(&x) { x as u64 } else { to_i64(x) as u64 },
        f32: |x| x as f32,
        f64: |x| x
    }
    check(
        "a cast",
        &[&wide],
        &|s| s[0].clone().cast(Boolean).cast(U8),
        &|v| u8::from(v[0] != 0.0),
    );
    check(
        "a cast",
        &[&wide],
        &|s| s[0].clone().cast(I4).cast(I8),
        &|v| ((to_i64(v[0]) << 60) >> 60) as i8,
    );
    check(
        "a cast",
        &[&wide],
        &|s| s[0].clone().cast(U3).cast(U8),
        &|v| to_i64(v[0]) as u8 & 7,
    );
}

#[test]
fn casts_from_integers() {
    macro_rules! all {
        ($($from:ty),*) => { $(
            let data: Vec<$from> = [
                0i128, 1, 2, 3, 7, 8, 15, 16, 63, 127, 128, 200, 255, 32767, 65535, 16_777_217, 33_554_435,
                i32::MAX as i128, i32::MIN as i128, u32::MAX as i128, (1 << 53) + 1, i64::MAX as i128, i64::MIN as i128,
                u64::MAX as i128, u64::MAX as i128 - 1024, (1 << 63) + 1025, (1 << 63) + 1024, -1, -2, -128,
            ].map(|x| x as $from).to_vec();
            all!(@ $from, data, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
            check("a cast", &[&data], &|s| s[0].clone().cast(Boolean).cast(U8), &|v| u8::from(v[0] != 0));
            check("a cast", &[&data], &|s| s[0].clone().cast(U1).cast(U8), &|v| v[0] as u8 & 1);
            check("a cast", &[&data], &|s| s[0].clone().cast(U6).cast(I16), &|v| v[0] as i16 & 63);
            check("a cast", &[&data], &|s| s[0].clone().cast(I4).cast(F32), &|v| ((v[0] as i8) << 4 >> 4) as f32);
            check("a cast", &[&data], &|s| s[0].clone().cast(I4).cast(U4).cast(U64), &|v| v[0] as u64 & 15);
            check("a cast", &[&data], &|s| s[0].clone().cast(Boolean).cast(F64), &|v| f64::from(v[0] != 0));
        )* };
        (@ $from:ty, $data:ident, $($to:ty),*) => { $(
            check("a cast", &[&$data], &|s| s[0].clone().cast(<$to>::TY), &|v| v[0] as $to);
        )* };
    }
    all!(u8, u16, u32, u64, i8, i16, i32, i64);
}

#[test]
fn bits_stay_in_a_bitcast() {
    let data = [
        0.0f32,
        -0.0,
        1.0,
        f32::NAN,
        -f32::NAN,
        f32::from_bits(0x7f80_0001),
        f32::MAX,
    ];
    check("bits", &[&data], &|s| s[0].clone().bitcast(U32), &|v| {
        v[0].to_bits()
    });
    check("bits", &[&data], &|s| s[0].clone().bitcast(I32), &|v| {
        v[0].to_bits() as i32
    });
    check(
        "bits",
        &[&data.map(f32::to_bits)],
        &|s| s[0].clone().bitcast(F32).bitcast(U32),
        &|v: &[u32]| v[0],
    );
    let data = [0u64, u64::MAX, 1 << 63, 0x7ff0_0000_0000_0001];
    check(
        "bits",
        &[&data],
        &|s| s[0].clone().bitcast(F64).bitcast(I64),
        &|v| v[0] as i64,
    );
    check(
        "bits",
        &[&[0x3c00u16, 0xffff]],
        &|s| s[0].clone().bitcast(F16).bitcast(BF16).bitcast(U16),
        &|v| v[0],
    );
    check(
        "bits",
        &[&[0u8, 7, 15]],
        &|s| {
            s[0].clone()
                .cast(U4)
                .bitcast(NF4)
                .bitcast(F4E2M1)
                .bitcast(U4)
                .cast(U8)
        },
        &|v| v[0],
    );
}

/// Masks are as wide as what was compared, and what a fold begins with as a boolean.
#[test]
fn folds_of_comparisons() {
    const ROWS: usize = 7;
    for ty in [U8, I16, I32, F32, I64, F64] {
        for columns in [3, 16, 64, 70] {
            for (op, start) in [
                (Binary::Or, false),
                (Binary::And, true),
                (Binary::Xor, true),
            ] {
                let mut nest = Nest::new();
                let x = nest.buffer("x", ty, &[ROWS, columns], Role::Input);
                let y = nest.buffer("y", Boolean, &[columns], Role::Output);
                let rows = nest.axis(ROWS);
                nest.define(vec![], y, |nest, at| {
                    let at = vec![Scalar::axis(rows.id), at[0].clone()];
                    let is_five = nest.load(x, at).eq(integer(5, I64).cast(ty));
                    Scalar::reduce(op, vec![rows], boolean(start), is_five)
                });
                let element = |k: usize| k * 7919 % 11 % 6;
                let size = ty.bits() / 8;
                let data: Vec<u8> = (0..ROWS * columns)
                    .flat_map(|k| match ty {
                        F32 => (element(k) as f32).to_le_bytes().to_vec(),
                        F64 => (element(k) as f64).to_le_bytes().to_vec(),
                        _ => element(k).to_le_bytes()[..size].to_vec(),
                    })
                    .collect();
                let folded = |column: usize| {
                    let mut found = (0..ROWS).map(|row| element(row * columns + column) == 5);
                    match op {
                        Binary::Or => found.any(|x| x),
                        Binary::And => found.all(|x| x),
                        _ => found.fold(start, |a, b| a ^ b),
                    }
                };
                let expected: Vec<u8> = (0..columns).map(|j| folded(j).into()).collect();
                assert_eq!(output(&nest, &[data]), expected, "{op:?}\n{nest}");
            }
        }
    }
}

#[test]
fn booleans_are_zero_or_one() {
    // Any byte but zero is true.
    let data = [
        vec![0, 1, 2, 255, 0, 1, 2, 255],
        vec![0, 0, 0, 0, 1, 1, 4, 255],
    ];
    let expect = |f: fn(&Scalar, &Scalar) -> Scalar, expected: [u8; 8]| {
        let nest = pointwise(&[Boolean, Boolean], Boolean, 8, |s| f(&s[0], &s[1]));
        assert_eq!(output(&nest, &data), expected, "{nest}");
        assert_eq!(reference(&nest, &data).0[2], expected, "{nest}");
    };
    expect(|x, _| x.clone(), [0, 1, 1, 1, 0, 1, 1, 1]);
    expect(|x, _| !x.clone(), [1, 0, 0, 0, 1, 0, 0, 0]);
    expect(|x, y| x & y, [0, 0, 0, 0, 0, 1, 1, 1]);
    expect(|x, y| x | y, [0, 1, 1, 1, 1, 1, 1, 1]);
    expect(|x, y| x ^ y, [0, 1, 1, 1, 1, 0, 0, 0]);
    expect(|x, y| x.eq(y.clone()), [1, 0, 0, 0, 0, 1, 1, 1]);
    expect(|x, y| x.lt(y.clone()), [0, 0, 0, 0, 1, 0, 0, 0]);
    expect(|x, y| x.max(y.clone()), [0, 1, 1, 1, 1, 1, 1, 1]);
    expect(
        |x, y| select(x.clone(), y.clone(), boolean(true)),
        [1, 0, 0, 0, 1, 1, 1, 1],
    );
}

#[test]
fn unsigned_division_of_indices_is_no_different() {
    let count = 97;
    for divisor in [1, 2, 3, 7, 8, 10, 96, 1 << 40] {
        let mut nest = vinelift_nest::Nest::new();
        let y = nest.buffer("y", ElementType::I64, &[count], vinelift_nest::Role::Output);
        nest.define(vec![], y, |_, at| {
            &at[0] / divisor * 1000 + at[0].rem(index(divisor))
        });
        let expected: Vec<i64> = (0..count as i64)
            .map(|i| i / divisor * 1000 + i % divisor)
            .collect();
        assert_eq!(values::<i64>(&output(&nest, &[])), expected);
    }
}

#[test]
fn what_is_legalised_agrees_with_the_interpreter_to_the_bit() {
    use Unary::*;
    let mut next = random(11);
    let narrow: Vec<f32> = (0..400)
        .map(|k| match k % 4 {
            0 => f32::from_bits(next() as u32),
            _ => (next() as i32 as f32) / 2f32.powi(20 + k % 20),
        })
        .collect();
    let wide: Vec<f64> = narrow.iter().map(|&x| f64::from(x) * 1.000_000_1).collect();
    for (ty, data) in [(F32, bytes(&narrow)), (F64, bytes(&wide))] {
        let agree = |nest: &vinelift_nest::Nest, inputs: &[Vec<u8>]| {
            let expected = reference(nest, inputs).0.pop().unwrap();
            let out = nest.buffers.last().map_or(ty, |b| b.ty);
            assert!(same(out, &output(nest, inputs), &expected), "{nest}");
        };
        for op in [
            Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh,
            Acosh, Atanh, Erf,
        ] {
            agree(
                &pointwise(&[ty], ty, 400, |s| Scalar::unary(op, s[0].clone())),
                std::slice::from_ref(&data),
            );
        }
        let reversed: Vec<u8> = data.rchunks(ty.bits() / 8).flatten().copied().collect();
        agree(
            &pointwise(&[ty, ty], ty, 400, |s| s[0].pow(s[1].clone())),
            &[data.clone(), reversed],
        );
        for stored in [F16, BF16, F8E4M3, F8E5M2, F8E8M0, F4E2M1, NF4] {
            agree(
                &pointwise(&[ty], stored, 400, |s| s[0].clone().cast(stored)),
                std::slice::from_ref(&data),
            );
            let codes = data[..stored.byte_len(400).unwrap()].to_vec();
            agree(
                &pointwise(&[stored], ty, 400, |s| s[0].clone().cast(ty)),
                &[codes],
            );
        }
    }
    let (x, y) = pairs(&[i32::MIN, -3, -2, -1, 0, 1, 2, 3, 7, 31, 32, 33, i32::MAX]);
    let nest = pointwise(&[I32, I32], I32, x.len(), |s| s[0].pow(s[1].clone()));
    let inputs = [bytes(&x), bytes(&y)];
    assert_eq!(output(&nest, &inputs), reference(&nest, &inputs).0[2]);
}

/// `acc = fma(x, y, acc)` term by term, by scalars (one result) and by vectors (many).
#[test]
fn terms_are_added_without_rounding_the_product() {
    fn check<T: Number + Debug>(data: &[T], add_term: impl Fn(T, T, T) -> T, zero: T) {
        for columns in [1, 37] {
            let depth = data.len() / columns;
            let mut nest = Nest::new();
            let x = nest.buffer("x", T::TY, &[depth, columns], Role::Input);
            let y = nest.buffer("y", T::TY, &[columns], Role::Output);
            nest.define(vec![], y, |nest, at| {
                let k = nest.axis(depth);
                let at = vec![Scalar::axis(k.id), at[0].clone()];
                let x = nest.load(x, at);
                let term = Scalar::binary(Binary::Term, x.clone(), x);
                Scalar::reduce(
                    Binary::Add,
                    vec![k],
                    vinelift_nest::build::zero(T::TY),
                    term,
                )
            });
            let found: Vec<T> = values(&output(&nest, &[bytes(&data[..depth * columns])]));
            for (j, found) in found.iter().enumerate() {
                let column = (0..depth).map(|k| data[k * columns + j]);
                let expected = column.fold(zero, |sum, x| add_term(x, x, sum));
                assert!(
                    same(T::TY, &found.le(), &expected.le()),
                    "{found:?}, expected {expected:?}\n{nest}"
                );
            }
        }
    }
    let numbers: Vec<f64> = (0..370).map(|i| (f64::from(i) * 0.7).sin() * 3.0).collect();
    check(&numbers, f64::mul_add, 0.0);
    let halves: Vec<f32> = numbers.iter().map(|x| *x as f32).collect();
    check(&halves, f32::mul_add, 0.0);
    let integers: Vec<i32> = numbers.iter().map(|x| (x * 1e9) as i32).collect();
    check(
        &integers,
        |x, y, sum| x.wrapping_mul(y).wrapping_add(sum),
        0,
    );
}
