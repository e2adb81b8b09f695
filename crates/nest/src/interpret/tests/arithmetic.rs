//! Operators and casts of every kind of type, at the edges of these.

use super::*;

fn ints(ty: ElementType, pairs: &[(i64, i64)], op: Binary) -> Vec<i64> {
    let mask = u64::MAX >> (64 - ty.bits());
    let xs: Vec<u64> = pairs.iter().map(|p| p.0 as u64 & mask).collect();
    let ys: Vec<u64> = pairs.iter().map(|p| p.1 as u64 & mask).collect();
    let out = map([(ty, &xs), (ty, &ys)], |[x, y]| Scalar::binary(op, x, y));
    let ty = if op.is_comparison() { Boolean } else { ty };
    out.into_iter().map(|v| arith::signed(ty, v)).collect()
}

fn f32s(xs: &[f32], f: impl FnOnce(Scalar) -> Scalar) -> Vec<u64> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits().into()).collect();
    map([(F32, &bits)], |[x]| f(x))
}

fn f64s(xs: &[f64], f: impl FnOnce(Scalar) -> Scalar) -> Vec<u64> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits()).collect();
    map([(F64, &bits)], |[x]| f(x))
}

fn to_f32(bits: Vec<u64>) -> Vec<f32> {
    bits.into_iter().map(|b| f32::from_bits(b as u32)).collect()
}

#[test]
fn integers_wrap() {
    assert_eq!(ints(I8, &[(127, 1), (-128, -1)], Binary::Add), [-128, 127]);
    assert_eq!(ints(U8, &[(255, 1)], Binary::Add), [0]);
    assert_eq!(ints(I64, &[(i64::MAX, 2)], Binary::Mul), [-2]);
    assert_eq!(map([(I8, &[0x80, 5])], |[x]| -x), [0x80, 0xfb]);
    assert_eq!(map([(I8, &[0x80, 0xfb])], |[x]| x.abs()), [0x80, 5]);
    assert_eq!(map([(U16, &[1])], |[x]| -x), [0xffff]);
}

#[test]
fn integer_division_never_fails() {
    let pairs = [(7, 0), (-7, 2), (-128, -1), (7, -2)];
    assert_eq!(ints(I8, &pairs, Binary::Div), [0, -3, -128, -3]);
    assert_eq!(ints(I8, &pairs, Binary::Rem), [0, -1, 0, 1]);
    assert_eq!(ints(U8, &[(200, 3), (200, 0)], Binary::Div), [66, 0]);
    assert_eq!(ints(I64, &[(i64::MIN, -1)], Binary::Div), [i64::MIN]);
}

#[test]
fn shifts_take_any_amount() {
    let pairs = [(-3, 1), (-3, 7), (-3, 8), (-3, -1), (5, 8), (5, 1)];
    assert_eq!(ints(I8, &pairs, Binary::Shl), [-6, -128, 0, 0, 0, 10]);
    assert_eq!(ints(I8, &pairs, Binary::Shr), [-2, -1, -1, -1, 0, 2]);
    assert_eq!(
        ints(U32, &[(0xf000_0000, 31), (0xf000_0000, 32)], Binary::Shr),
        [1, 0]
    );
    assert_eq!(ints(I64, &[(-1, 64), (-1, 63)], Binary::Shr), [-1, -1]);
    assert_eq!(
        map([(U64, &[u64::MAX]), (U64, &[u64::MAX])], |[x, y]| {
            Scalar::binary(Binary::MulHigh, x, y)
        }),
        [u64::MAX - 1]
    );
}

#[test]
fn what_is_rare_is_itself() {
    let found = map([(I32, &[3, 5])], |[x]| {
        let is_large = crate::build::rarely(x.gt(crate::build::integer(4, I32)));
        crate::build::select(is_large, &x * 2, x)
    });
    assert_eq!(found, [3, 10]);
}

#[test]
fn min_and_max_take_the_second_of_a_nan() {
    let (nan, one) = (u64::from(f32::NAN.to_bits()), u64::from(1f32.to_bits()));
    let zeros = [u64::from(0f32.to_bits()), u64::from((-0f32).to_bits())];
    for op in [Binary::Min, Binary::Max] {
        let got = map(
            [
                (F32, &[nan, one, zeros[0], zeros[1]]),
                (F32, &[one, nan, zeros[1], zeros[0]]),
            ],
            |[x, y]| Scalar::binary(op, x, y),
        );
        assert_eq!(got, [one, nan, zeros[1], zeros[0]], "{op:?}");
    }
}

#[test]
fn float_primitives() {
    let xs = [-2.5, -0.5, 0.5, 1.5, 2.5, f32::INFINITY];
    let of = |op| to_f32(f32s(&xs, |x| Scalar::unary(op, x)));
    assert_eq!(of(Unary::Round), [-2.0, -0.0, 0.0, 2.0, 2.0, f32::INFINITY]);
    assert_eq!(of(Unary::Floor), [-3.0, -1.0, 0.0, 1.0, 2.0, f32::INFINITY]);
    assert_eq!(of(Unary::Ceil), [-2.0, 0.0, 1.0, 2.0, 3.0, f32::INFINITY]);
    assert_eq!(of(Unary::Trunc), [-2.0, 0.0, 0.0, 1.0, 2.0, f32::INFINITY]);
    assert_eq!(
        to_f32(f32s(&[5.5, -5.5], |x| x.rem(number(2.0, F32)))),
        [1.5, -1.5]
    );
    assert_eq!(f32s(&[f32::NAN, 1.0], |x| x.ne(x.clone())), [1, 0]);
    assert_eq!(f32s(&[f32::NAN, 1.0], |x| x.eq(x.clone())), [0, 1]);
    assert_eq!(map([(Boolean, &[0, 1])], |[x]| !x), [1, 0]);
}

/// Inside and outside of the range of each type of integers.
const FLOATS: [f64; 11] = [
    1.9,
    -1.9,
    300.0,
    -1.0,
    f64::NAN,
    1e10,
    -1e10,
    1e19,
    f64::INFINITY,
    -2147483648.9,
    2147483648.0,
];

#[test]
fn floats_become_integers_by_way_of_i64() {
    let cast = |ty| {
        f64s(&FLOATS, |x| x.cast(ty))
            .into_iter()
            .map(|v| arith::signed(ty, v))
            .collect::<Vec<_>>()
    };
    let i32_min = i64::from(i32::MIN);
    assert_eq!(cast(U8), [1, 255, 44, 255, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        cast(I32),
        [
            1, -1, 300, -1, i32_min, i32_min, i32_min, i32_min, i32_min, i32_min, i32_min
        ]
    );
    assert_eq!(
        cast(I64)[..8],
        [
            1,
            -1,
            300,
            -1,
            i64::MIN,
            10_000_000_000,
            -10_000_000_000,
            i64::MIN
        ]
    );
    let ten = 10_000_000_000u64 as u32;
    assert_eq!(
        cast(U32)[5..7],
        [i64::from(ten), i64::from(ten.wrapping_neg())]
    );
    assert_eq!(f64s(&[-1.0, 9.0], |x| x.cast(U4)), [15, 9]);
    assert_eq!(
        f32s(&[16_777_216.0, 2147483520.0, 2147483648.0], |x| x.cast(I32)),
        [1 << 24, 2147483520, 1 << 31]
    );
}

#[test]
fn floats_become_u64_and_booleans_in_ways_of_their_own() {
    let wide = f64s(&FLOATS, |x| x.cast(U64));
    let largest = 1 << 63;
    assert_eq!(
        wide[..9],
        [
            1,
            u64::MAX,
            300,
            u64::MAX,
            largest,
            10_000_000_000,
            -10_000_000_000i64 as u64,
            10_000_000_000_000_000_000,
            largest
        ]
    );
    assert_eq!(
        f64s(&[0.0, -0.0, f64::NAN, 0.1], |x| x.cast(Boolean)),
        [0, 0, 1, 1]
    );
}

#[test]
fn integers_are_cast_by_value() {
    assert_eq!(
        map([(I4, &[0x8, 0x7, 0xf])], |[x]| x.cast(I32)),
        [0xffff_fff8, 7, 0xffff_ffff]
    );
    assert_eq!(map([(U4, &[0x8, 0xf])], |[x]| x.cast(I32)), [8, 15]);
    assert_eq!(
        map([(I16, &[0xffff, 0x0180])], |[x]| x.cast(U8)),
        [0xff, 0x80]
    );
    assert_eq!(map([(I32, &[0xffff_ffff])], |[x]| x.cast(U64)), [u64::MAX]);
    assert_eq!(
        map([(U32, &[0xffff_ffff])], |[x]| x.cast(I64)),
        [0xffff_ffff]
    );
    assert_eq!(
        map([(U64, &[u64::MAX])], |[x]| x.cast(F64)),
        [18_446_744_073_709_551_616f64.to_bits()]
    );
    assert_eq!(
        map([(I64, &[u64::MAX])], |[x]| x.cast(F64)),
        [(-1f64).to_bits()]
    );
    assert_eq!(
        map([(I32, &[16_777_217])], |[x]| x.cast(F32)),
        [u64::from(16_777_216f32.to_bits())]
    );
    assert_eq!(
        map([(Boolean, &[0, 1])], |[x]| x.cast(F32)),
        [0, u64::from(1f32.to_bits())]
    );
    assert_eq!(map([(I32, &[256, 0])], |[x]| x.cast(Boolean)), [1, 0]);
}

#[test]
fn a_boolean_is_one_or_zero_whatever_its_byte() {
    assert_eq!(map([(Boolean, &[2, 0, 255])], |[x]| x), [1, 0, 1]);
    assert_eq!(
        map([(U8, &[2, 0, 255])], |[x]| x.bitcast(Boolean)),
        [1, 0, 1]
    );
}

#[test]
fn strings_move_as_handles() {
    assert_eq!(map([(String, &[u64::MAX, 7])], |[x]| x), [u64::MAX, 7]);
    assert_eq!(
        map(
            [(String, &[1 << 40, 7]), (String, &[2 << 40, 7])],
            |[x, y]| x.eq(y)
        ),
        [0, 1]
    );
}
