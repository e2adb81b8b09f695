//! The error function in `f64`. Rational functions are the minimax ones of fdlibm.

use super::exponential::exp;
use super::words::*;
use crate::build::select;
use crate::ir::Scalar;

/// `erf(x) = 2 / sqrt(π) · ∫ e^(-t^2) dt` from 0 to `x`:
/// * `x + x P(x^2) / Q(x^2)` up to 0.84375,
/// * `erf(1) + P(x - 1) / Q(x - 1)` up to 1.25,
/// * `1 - e^(-x^2 - 0.5625 + R(1 / x^2) / S(1 / x^2)) / x` above, with other `R` and `S` from 1 / 0.35.
pub(super) fn erf(x: &Scalar) -> Scalar {
    let size = x.abs();
    let square = &size * &size;
    let small = &size + &size * (polynomial(&square, &SMALL_P) / polynomial(&square, &SMALL_Q));
    let t = &size - 1.0;
    let middle = polynomial(&t, &MIDDLE_P) / polynomial(&t, &MIDDLE_Q) + ERF_OF_1;
    let inverse = c(1.0) / &square;
    let is_large = size.lt(c(1.0 / 0.35));
    let above = select(
        is_large.clone(),
        polynomial(&inverse, &LARGE_R),
        polynomial(&inverse, &HUGE_R),
    );
    let below = select(
        is_large,
        polynomial(&inverse, &LARGE_S),
        polynomial(&inverse, &HUGE_S),
    );
    let large = c(1.0) - exp(&(above / below - square - 0.5625)) / &size;
    let value = select(
        size.lt(c(0.84375)),
        small,
        select(size.lt(c(1.25)), middle, large),
    );
    copy_sign(&value, x)
}

/// Rounded to `f32`; `MIDDLE_P` knows.
const ERF_OF_1: f64 = 8.45062911510467529297e-01;
const SMALL_P: [f64; 5] = [
    1.28379167095512558561e-01,
    -3.25042107247001499370e-01,
    -2.84817495755985104766e-02,
    -5.77027029648944159157e-03,
    -2.37630166566501626084e-05,
];
const SMALL_Q: [f64; 6] = [
    1.0,
    3.97917223959155352819e-01,
    6.50222499887672944485e-02,
    5.08130628187576562776e-03,
    1.32494738004321644526e-04,
    -3.96022827877536812320e-06,
];
const MIDDLE_P: [f64; 7] = [
    -2.36211856075265944077e-03,
    4.14856118683748331666e-01,
    -3.72207876035701323847e-01,
    3.18346619901161753674e-01,
    -1.10894694282396677476e-01,
    3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
];
const MIDDLE_Q: [f64; 7] = [
    1.0,
    1.06420880400844228286e-01,
    5.40397917702171048937e-01,
    7.18286544141962662868e-02,
    1.26171219808761642112e-01,
    1.36370839120290507362e-02,
    1.19844998467991074170e-02,
];
const LARGE_R: [f64; 8] = [
    -9.86494403484714822705e-03,
    -6.93858572707181764372e-01,
    -1.05586262253232909814e+01,
    -6.23753324503260060396e+01,
    -1.62396669462573470355e+02,
    -1.84605092906711035994e+02,
    -8.12874355063065934246e+01,
    -9.81432934416914548592e+00,
];
const LARGE_S: [f64; 9] = [
    1.0,
    1.96512716674392571292e+01,
    1.37657754143519042600e+02,
    4.34565877475229228821e+02,
    6.45387271733267880336e+02,
    4.29008140027567833386e+02,
    1.08635005541779435134e+02,
    6.57024977031928170135e+00,
    -6.04244152148580987438e-02,
];
const HUGE_R: [f64; 7] = [
    -9.86494292470009928597e-03,
    -7.99283237680523006574e-01,
    -1.77579549177547519889e+01,
    -1.60636384855821916062e+02,
    -6.37566443368389627722e+02,
    -1.02509513161107724954e+03,
    -4.83519191608651397019e+02,
];
const HUGE_S: [f64; 8] = [
    1.0,
    3.03380607434824582924e+01,
    3.25792512996573918826e+02,
    1.53672958608443695994e+03,
    3.19985821950859553908e+03,
    2.55305040643316442583e+03,
    4.74528541206955367215e+02,
    -2.24409524465858183362e+01,
];
