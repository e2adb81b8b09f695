//! The table of elementwise operators without attributes of their own.
//!
//! Specifications: the files of their names under `activation`, `arithmetic`, `bitwise`,
//! `comparison` and `logical`. What they leave open:
//! * a float function of integers is computed in a float that holds them (`f64`; `f32` up to 16
//!   bits). `Sqrt` and `Tanh` round to the nearest integer, as specified; the others truncate;
//! * integers wrap; their division by zero gives 0, the remainder too;
//! * NaN stays NaN, except that `Maximum` and `Minimum` give their second input, and that it
//!   compares as unequal to everything;
//! * `HSigmoid` and `HSwish` multiply by a sixth, rounded to their type, instead of dividing by six, which takes several
//!   times as long;
//! * a shift by an amount that is negative or not below the width gives 0, or the sign.

use super::Class::*;
use super::Output::{Boolean as ToBoolean, Same};
use super::Row;
use super::formulas::{
    erf_inv, floor_mod, infinity, mish, of_float, rounded, sigmoid, sign, soft_plus, soft_sign,
    square, truncated,
};
use crate::{Build, Family, OpDef, Signature};
use vinelift_nest::Unary;
use vinelift_nest::build::{clamp, zero};

/// The factor of `HSigmoid` and `HSwish`.
const SIXTH: f64 = 1.0 / 6.0;

/// An operator whose instances compute a formula of the inputs, at each element.
macro_rules! row {
    ($inputs:expr, $name:expr, $versions:expr, $class:expr, $result:expr, $formula:expr) => {
        OpDef {
            name: $name,
            versions: $versions,
            signature: Signature::new($inputs),
            family: Family::Elementwise,
            build: Build::Op(|attributes| {
                let row = Row {
                    class: $class,
                    result: $result,
                    formula: $formula,
                };
                row.instantiate(attributes)
            }),
        }
    };
}

macro_rules! unary {
    ($($column:expr),*) => { row!(&["x"], $($column),*) };
}

macro_rules! binary {
    ($($column:expr),*) => { row!(&["a", "b"], $($column),*) };
}

/// The rows, by name; a line each.
#[rustfmt::skip]
pub(crate) static ROWS: &[OpDef] = &[
    unary!("Abs", &["opset1"], Numeric, Same, |x| x[0].abs()),
    unary!("Acos", &["opset1"], Numeric, Same, |x| truncated(Unary::Acos, x)),
    unary!("Acosh", &["opset4"], Numeric, Same, |x| truncated(Unary::Acosh, x)),
    binary!("Add", &["opset1"], Numeric, Same, |x| &x[0] + &x[1]),
    unary!("Asin", &["opset1"], Numeric, Same, |x| truncated(Unary::Asin, x)),
    unary!("Asinh", &["opset4"], Numeric, Same, |x| truncated(Unary::Asinh, x)),
    unary!("Atan", &["opset1"], Numeric, Same, |x| truncated(Unary::Atan, x)),
    unary!("Atanh", &["opset4"], Numeric, Same, |x| truncated(Unary::Atanh, x)),
    binary!("BitwiseAnd", &["opset13"], IntegerOrBoolean, Same, |x| &x[0] & &x[1]),
    binary!("BitwiseLeftShift", &["opset15"], Integer, Same, |x| x[0].shl(x[1].clone())),
    unary!("BitwiseNot", &["opset13"], IntegerOrBoolean, Same, |x| !x[0].clone()),
    binary!("BitwiseOr", &["opset13"], IntegerOrBoolean, Same, |x| &x[0] | &x[1]),
    binary!("BitwiseRightShift", &["opset15"], Integer, Same, |x| x[0].shr(x[1].clone())),
    binary!("BitwiseXor", &["opset13"], IntegerOrBoolean, Same, |x| &x[0] ^ &x[1]),
    unary!("Ceiling", &["opset1"], Numeric, Same, |x| of_float(x, |x| x.ceil())),
    unary!("Cos", &["opset1"], Numeric, Same, |x| truncated(Unary::Cos, x)),
    unary!("Cosh", &["opset1"], Numeric, Same, |x| truncated(Unary::Cosh, x)),
    binary!("Equal", &["opset1"], Any, ToBoolean, |x| x[0].eq(x[1].clone())),
    unary!("Erf", &["opset1"], Numeric, Same, |x| truncated(Unary::Erf, x)),
    unary!("ErfInv", &["opset17"], Float, Same, |x| erf_inv(&x[0])),
    unary!("Exp", &["opset1"], Float, Same, |x| x[0].exp()),
    unary!("Floor", &["opset1"], Numeric, Same, |x| of_float(x, |x| x.floor())),
    binary!("FloorMod", &["opset1"], Numeric, Same, |x| floor_mod(&x[0], &x[1])),
    binary!("Greater", &["opset1"], Ordered, ToBoolean, |x| x[0].gt(x[1].clone())),
    binary!("GreaterEqual", &["opset1"], Ordered, ToBoolean, |x| x[0].ge(x[1].clone())),
    unary!("HSigmoid", &["opset5"], Float, Same, |x| clamp(&x[0] + 3.0, 0.0, 6.0) * SIXTH),
    unary!("HSwish", &["opset4"], Float, Same, |x| &x[0] * (clamp(&x[0] + 3.0, 0.0, 6.0) * SIXTH)),
    unary!("IsFinite", &["opset10"], Float, ToBoolean, |x| x[0].abs().lt(infinity(&x[0]))),
    unary!("IsNaN", &["opset10"], Float, ToBoolean, |x| x[0].ne(x[0].clone())),
    binary!("Less", &["opset1"], Ordered, ToBoolean, |x| x[0].lt(x[1].clone())),
    binary!("LessEqual", &["opset1"], Ordered, ToBoolean, |x| x[0].le(x[1].clone())),
    unary!("Log", &["opset1"], Numeric, Same, |x| truncated(Unary::Log, x)),
    binary!("LogicalAnd", &["opset1"], Boolean, Same, |x| &x[0] & &x[1]),
    unary!("LogicalNot", &["opset1"], Boolean, Same, |x| !x[0].clone()),
    binary!("LogicalOr", &["opset1"], Boolean, Same, |x| &x[0] | &x[1]),
    binary!("LogicalXor", &["opset1", "opset2"], Boolean, Same, |x| &x[0] ^ &x[1]),
    binary!("Maximum", &["opset1"], Numeric, Same, |x| x[0].max(x[1].clone())),
    binary!("Minimum", &["opset1"], Numeric, Same, |x| x[0].min(x[1].clone())),
    unary!("Mish", &["opset4"], Float, Same, |x| mish(&x[0])),
    binary!("Mod", &["opset1"], Numeric, Same, |x| x[0].rem(x[1].clone())),
    binary!("Multiply", &["opset1"], Numeric, Same, |x| &x[0] * &x[1]),
    unary!("Negative", &["opset1"], Numeric, Same, |x| -x[0].clone()),
    binary!("NotEqual", &["opset1"], Any, ToBoolean, |x| x[0].ne(x[1].clone())),
    binary!("Power", &["opset1"], Numeric, Same, |x| x[0].pow(x[1].clone())),
    unary!("ReLU", &["opset1"], Numeric, Same, |x| zero(x[0].ty()).max(x[0].clone())),
    unary!("Sigmoid", &["opset1"], Float, Same, |x| sigmoid(&x[0])),
    unary!("Sign", &["opset1"], Numeric, Same, |x| sign(&x[0])),
    unary!("Sin", &["opset1"], Numeric, Same, |x| truncated(Unary::Sin, x)),
    unary!("Sinh", &["opset1"], Numeric, Same, |x| truncated(Unary::Sinh, x)),
    unary!("SoftPlus", &["opset4"], Float, Same, |x| soft_plus(&x[0])),
    unary!("SoftSign", &["opset9"], Float, Same, |x| soft_sign(&x[0])),
    unary!("Sqrt", &["opset1"], Numeric, Same, |x| rounded(Unary::Sqrt, x)),
    binary!("SquaredDifference", &["opset1"], Numeric, Same, |x| square(&x[0] - &x[1])),
    binary!("Subtract", &["opset1"], Numeric, Same, |x| &x[0] - &x[1]),
    unary!("Tan", &["opset1"], Numeric, Same, |x| truncated(Unary::Tan, x)),
    unary!("Tanh", &["opset1"], Numeric, Same, |x| rounded(Unary::Tanh, x)),
    binary!("Xor", &["opset1"], Boolean, Same, |x| &x[0] ^ &x[1]),
];

#[cfg(test)]
mod tests {
    use crate::find;
    use crate::testing::{error, f32s, i32s, i64s, run};
    use std::slice::from_ref;
    use vinelift_tensor::{ElementType, Tensor};

    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;

    /// Operator, inputs and output.
    type Case<'a, T, U> = (&'a str, [&'a [T]; 2], &'a [U]);

    fn apply(name: &str, inputs: &[Tensor]) -> Tensor {
        let def = crate::all().find(|d| d.name == name).unwrap();
        run(def, &[], inputs)
    }

    fn assert_close(name: &str, got: &[f64], want: &[f64], tolerance: f64) {
        let close = |a: f64, b: f64| {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1e-30)
        };
        let fits = got.len() == want.len() && got.iter().zip(want).all(|(a, b)| close(*a, *b));
        assert!(fits, "{name}: {got:?}, expected {want:?}");
    }

    /// Values of Python's `math`, and of its limits where that raises.
    #[test]
    #[allow(
        clippy::approx_constant,
        reason = "these are the numbers that Python prints"
    )]
    fn unary_of_floats() {
        #[rustfmt::skip]
        let table: &[(&str, &[f32], &[f64])] = &[
            ("Abs", &[-1.5, -0.0, NAN, -INF], &[1.5, 0.0, f64::NAN, f64::INFINITY]),
            ("Acos", &[0.5, -1.0, 2.0], &[1.0471975511965979, 3.141592653589793, f64::NAN]),
            ("Acosh", &[1.0, 3.0, 0.5], &[0.0, 1.762747174039086, f64::NAN]),
            ("Asin", &[0.5, 2.0], &[0.5235987755982989, f64::NAN]),
            ("Asinh", &[-2.0, 1e10], &[-1.4436354751788103, 23.7189981105004]),
            ("Atan", &[1.0, -INF], &[0.7853981633974483, -1.5707963267948966]),
            ("Atanh", &[0.5, 1.0, 2.0], &[0.5493061443340549, f64::INFINITY, f64::NAN]),
            ("Ceiling", &[-1.5, 1.2, -0.5], &[-1.0, 2.0, 0.0]),
            ("Cos", &[0.0, 2.0, INF], &[1.0, -0.4161468365471424, f64::NAN]),
            ("Cosh", &[2.0, -100.0], &[3.7621956910836314, f64::INFINITY]),
            ("Erf", &[0.0, 0.5, -3.0, INF], &[0.0, 0.5204998778130465, -0.9999779095030014, 1.0]),
            ("Exp", &[1.0, -INF, 100.0, NAN], &[std::f64::consts::E, 0.0, f64::INFINITY, f64::NAN]),
            ("Floor", &[-1.5, 1.8], &[-2.0, 1.0]),
            ("HSigmoid", &[-4.0, 0.0, 1.5, 5.0, NAN], &[0.0, 0.5, 0.75, 1.0, f64::NAN]),
            ("HSwish", &[-4.0, 1.5, 5.0, NAN], &[0.0, 1.125, 5.0, f64::NAN]),
            ("Log", &[0.5, 0.0, -1.0], &[-0.6931471805599453, f64::NEG_INFINITY, f64::NAN]),
            ("Mish", &[-30.0, -1.0, 0.5, 90.0, NAN],
                &[-2.807286890651921e-12, -0.30340146137410895, 0.3752452113048951, 90.0, f64::NAN]),
            ("Negative", &[1.5, -INF], &[-1.5, f64::INFINITY]),
            ("ReLU", &[-1.0, 2.0, NAN, -INF], &[0.0, 2.0, f64::NAN, 0.0]),
            ("Sigmoid", &[0.0, -2.0, 100.0, -200.0], &[0.5, 0.11920292202211755, 1.0, 0.0]),
            ("Sign", &[-3.0, 0.0, -0.0, 7.0, NAN], &[-1.0, 0.0, 0.0, 1.0, f64::NAN]),
            ("Sin", &[1.0, -2.0], &[0.8414709848078965, -0.9092974268256817]),
            ("Sinh", &[-2.0], &[-3.626860407847019]),
            ("SoftPlus", &[-50.0, 0.0, 100.0, INF, NAN],
                &[1.9287498479639178e-22, 0.6931471805599453, 100.0, f64::INFINITY, f64::NAN]),
            ("SoftSign", &[-1.0, 3.0], &[-0.5, 0.75]),
            ("Sqrt", &[4.0, 7.0, -1.0], &[2.0, 2.6457513110645907, f64::NAN]),
            ("Tan", &[1.0], &[1.5574077246549023]),
            ("Tanh", &[0.5, -20.0], &[0.46211715726000973, -1.0]),
        ];
        for (name, x, want) in table {
            let got = apply(name, &[f32s(&[x.len()], x)]).to_f64_vec().unwrap();
            assert_close(name, &got, want, 4e-6);
            let x: Vec<f64> = x.iter().map(|&x| x.into()).collect();
            let got = apply(name, &[Tensor::from_slice(&[x.len()], &x).unwrap()]);
            let got = got.to_f64_vec().unwrap();
            let finite = |v: &(f64, &f64)| v.0.is_finite() && v.1.is_finite();
            let (got, want): (Vec<_>, Vec<_>) = got.into_iter().zip(*want).filter(finite).unzip();
            assert_close(name, &got, &want, 1e-13);
        }
    }

    /// Of SciPy's `special.erfinv`.
    #[test]
    fn the_inverse_error_function() {
        let x = [0.0, 0.5, -0.9, 1e-9, 0.999999, 1.0, -1.0, 1.5];
        #[rustfmt::skip]
        let want = [0.0, 0.4769362762044699, -1.1630871536766743, 8.862269254527581e-10,
            3.4589107372754984, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let got = apply("ErfInv", &[Tensor::from_slice(&[8], &x).unwrap()]);
        assert_close("ErfInv", &got.to_f64_vec().unwrap(), &want, 1e-10);
    }

    #[test]
    fn unary_of_integers() {
        let min = i32::MIN;
        #[rustfmt::skip]
        let table: &[(&str, &[i32], &[i32])] = &[
            ("Abs", &[-3, min], &[3, min]),
            ("BitwiseNot", &[0, 5], &[-1, -6]),
            ("Ceiling", &[-3, i32::MAX], &[-3, i32::MAX]),
            ("Cos", &[0, 3], &[1, 0]),
            ("Floor", &[-3, i32::MAX], &[-3, i32::MAX]),
            ("Log", &[1, 100], &[0, 4]),
            ("Negative", &[7, min], &[-7, min]),
            ("ReLU", &[-7, 7], &[0, 7]),
            ("Sign", &[-7, 0, 7], &[-1, 0, 1]),
            // Example 2 of Sqrt-1.
            ("Sqrt", &[4, 7, 9, 10], &[2, 3, 3, 3]),
            ("Tanh", &[-9, 0, 9], &[-1, 0, 1]),
        ];
        for (name, x, want) in table {
            let n = &[x.len()];
            assert_eq!(apply(name, &[i32s(n, x)]), i32s(n, want), "{name}");
        }
        let bytes = |v: &[u8]| Tensor::from_slice(&[v.len()], v).unwrap();
        assert_eq!(apply("Sign", &[bytes(&[0, 200])]), bytes(&[0, 1]));
        assert_eq!(apply("Abs", &[bytes(&[0, 200])]), bytes(&[0, 200]));
    }

    #[test]
    fn predicates() {
        let x = f32s(&[4], &[NAN, INF, -INF, 1.0]);
        let bools = |b: &[bool]| Tensor::from_bools(&[b.len()], b).unwrap();
        assert_eq!(
            apply("IsNaN", from_ref(&x)),
            bools(&[true, false, false, false])
        );
        assert_eq!(apply("IsFinite", &[x]), bools(&[false, false, false, true]));
        assert_eq!(
            apply("LogicalNot", &[bools(&[true, false])]),
            bools(&[false, true])
        );
    }

    /// Values of Python's `math.fmod`, `%` and `**`.
    #[test]
    fn binary_of_floats() {
        #[rustfmt::skip]
        let table: &[Case<'_, f32, f64>] = &[
            ("Add", [&[1.5, INF], &[2.0, -INF]], &[3.5, f64::NAN]),
            ("FloorMod", [&[-5.5, 5.5, -6.0], &[3.0, -3.0, 3.0]], &[0.5, -0.5, 0.0]),
            ("Maximum", [&[1.0, -INF, NAN], &[2.0, 3.0, 1.0]], &[2.0, 3.0, 1.0]),
            ("Minimum", [&[1.0, 1.0], &[2.0, NAN]], &[1.0, f64::NAN]),
            ("Mod", [&[-5.5, 5.5, 1.0], &[3.0, -3.0, 0.0]], &[-2.5, 2.5, f64::NAN]),
            ("Multiply", [&[1.5, 0.0], &[-2.0, INF]], &[-3.0, f64::NAN]),
            ("Power", [&[2.0, 0.0, NAN, 4.0], &[-1.0, 0.0, 0.0, 0.5]], &[0.5, 1.0, 1.0, 2.0]),
            ("SquaredDifference", [&[1.0], &[4.0]], &[9.0]),
            ("Subtract", [&[1.5], &[2.0]], &[-0.5]),
        ];
        for (name, [a, b], want) in table {
            let got = apply(name, &[f32s(&[a.len()], a), f32s(&[b.len()], b)]);
            assert_close(name, &got.to_f64_vec().unwrap(), want, 1e-6);
        }
    }

    /// Values of Python's integers, wrapped to 32 bits.
    #[test]
    fn binary_of_integers() {
        let (min, max) = (i32::MIN, i32::MAX);
        #[rustfmt::skip]
        let table: &[Case<'_, i32, i32>] = &[
            ("Add", [&[max, 1], &[1, 2]], &[min, 3]),
            ("BitwiseAnd", [&[21, 120], &[3, 37]], &[1, 32]),
            ("BitwiseLeftShift", [&[3, -1], &[2, 4]], &[12, -16]),
            ("BitwiseOr", [&[21], &[3]], &[23]),
            ("BitwiseRightShift", [&[-16, 12], &[2, 2]], &[-4, 3]),
            ("BitwiseXor", [&[21], &[3]], &[22]),
            ("FloorMod", [&[-5, 5, 5, 6, min], &[3, -3, 0, -3, -1]], &[1, -1, 0, 0, 0]),
            ("Maximum", [&[-1], &[2]], &[2]),
            ("Minimum", [&[-1], &[2]], &[-1]),
            ("Mod", [&[-5, 5, 5, min], &[3, -3, 0, -1]], &[-2, 2, 0, 0]),
            ("Multiply", [&[1 << 16], &[1 << 16]], &[0]),
            ("Power", [&[3, 2], &[4, 0]], &[81, 1]),
            ("SquaredDifference", [&[1], &[4]], &[9]),
            ("Subtract", [&[min], &[1]], &[max]),
        ];
        for (name, [a, b], want) in table {
            let n = &[a.len()];
            assert_eq!(
                apply(name, &[i32s(n, a), i32s(n, b)]),
                i32s(n, want),
                "{name}"
            );
        }
        let big = i64s(&[1], &[(1 << 53) + 1]);
        assert_eq!(apply("Add", &[big.clone(), i64s(&[1], &[0])]), big);
    }

    #[test]
    fn comparisons() {
        let (a, b) = (f32s(&[4], &[1.0, 2.0, 3.0, NAN]), f32s(&[1], &[2.0]));
        #[rustfmt::skip]
        let table = [
            ("Equal", [false, true, false, false]),
            ("NotEqual", [true, false, true, true]),
            ("Less", [true, false, false, false]),
            ("LessEqual", [true, true, false, false]),
            ("Greater", [false, false, true, false]),
            ("GreaterEqual", [false, true, true, false]),
        ];
        for (name, want) in table {
            let got = apply(name, &[a.clone(), b.clone()]);
            assert_eq!(got, Tensor::from_bools(&[4], &want).unwrap(), "{name}");
        }
    }

    #[test]
    fn logic() {
        let all = |b: [bool; 4]| Tensor::from_bools(&[4], &b).unwrap();
        let (a, b) = (
            all([false, false, true, true]),
            all([false, true, false, true]),
        );
        #[rustfmt::skip]
        let table = [
            ("LogicalAnd", [false, false, false, true]),
            ("LogicalOr", [false, true, true, true]),
            ("LogicalXor", [false, true, true, false]),
            ("Xor", [false, true, true, false]),
            ("BitwiseXor", [false, true, true, false]),
        ];
        for (name, want) in table {
            assert_eq!(apply(name, &[a.clone(), b.clone()]), all(want), "{name}");
        }
    }

    /// 15 + 3 and 3 · 5, modulo 16; 65504 + 65504 overflows `f16`.
    #[test]
    fn storage_types_round_and_wrap_at_the_end() {
        let u4 = |bytes: &[u8]| Tensor::from_bytes(ElementType::U4, &[2], bytes).unwrap();
        assert_eq!(apply("Add", &[u4(&[0x3f]), u4(&[0x13])]), u4(&[0x42]));
        let i4 = |bytes: &[u8]| Tensor::from_bytes(ElementType::I4, &[2], bytes).unwrap();
        assert_eq!(apply("Negative", &[i4(&[0x81])]), i4(&[0x8f]));
        let f16 = |bytes: &[u8]| Tensor::from_bytes(ElementType::F16, &[1], bytes).unwrap();
        let most = f16(&[0xff, 0x7b]);
        assert_eq!(apply("Add", &[most.clone(), most]), f16(&[0x00, 0x7c]));
    }

    #[test]
    fn names_what_it_does_not_take() {
        let def = |name: &str| find(name, "opset1").unwrap();
        let x = || i32s(&[1], &[1]);
        let message = "`x` must be a float type, found i32";
        assert_eq!(error(def("Exp"), &[], &[x()]), message);
        let message = "`b` must be of the type of `a`, i32, found i64";
        assert_eq!(error(def("Add"), &[], &[x(), i64s(&[1], &[1])]), message);
        let message = "`a` must be boolean, found i32";
        assert_eq!(error(def("LogicalAnd"), &[], &[x(), x()]), message);
        assert_eq!(error(def("Add"), &[], &[x()]), "1 inputs, expected a, b");
    }
}
