//! Tests of clamps: the form, and that no bit changes.

use super::*;
use crate::build::select;
use crate::ir::{BufferId, Nest, Role, part_of};
use crate::{BufferBytes, interpret};
use proptest::prelude::*;
use vinelift_tensor::ElementType::{self, I8, I32, U8};

/// A grid of `steps + 1` points, as `FakeQuantize` has it.
#[derive(Clone, Copy, Debug)]
struct Grid {
    low: f32,
    high: f32,
    bottom: f32,
    top: f32,
    steps: u32,
}

const GRID: Grid = Grid {
    low: -24.433_743,
    high: 24.242_853,
    bottom: -24.433_743,
    top: 24.242_853,
    steps: 255,
};

fn float(x: f32) -> Scalar {
    number(f64::from(x), F32)
}

impl Grid {
    fn step(self, x: &Scalar) -> Scalar {
        let width = float(self.high) - float(self.low);
        let relative = (x.clone() - float(self.low)) / width;
        (relative * float(self.steps as f32)).round()
    }

    /// The point that `x` is rounded to.
    fn value(self, x: &Scalar) -> Scalar {
        let range = float(self.top) - float(self.bottom);
        let inner = part_of(&self.step(x), self.steps) * range + float(self.bottom);
        let below = select(x.le(float(self.low)), float(self.bottom), inner);
        select(x.gt(float(self.high)), float(self.top), below)
    }

    /// The number of that point, less 128 if it has a sign.
    fn code(self, x: &Scalar, ty: ElementType) -> Scalar {
        let less = if ty == I8 { 128 } else { 0 };
        let step = match less {
            0 => self.step(x),
            _ => self.step(x) - float(less as f32),
        };
        let integer = |x: i64| crate::build::integer(x, ty);
        let inner = step.cast(I32).cast(ty);
        let below = select(x.le(float(self.low)), integer(-less), inner);
        select(
            x.gt(float(self.high)),
            integer(i64::from(self.steps) - less),
            below,
        )
    }
}

/// `y[i] = f(x[i])`
fn nest(count: usize, ty: ElementType, f: impl FnOnce(&Scalar) -> Scalar) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[count], Role::Input);
    let y = nest.buffer("y", ty, &[count], Role::Output);
    nest.define(vec![], y, |n, at| f(&n.load(x, vec![at[0].clone()])));
    nest
}

fn clamped_nest(nest: &Nest) -> Nest {
    let mut nest = nest.clone();
    let (buffers, stages) = (&nest.buffers, &mut nest.stages);
    stages
        .iter_mut()
        .for_each(|stage| clamp_quantized(buffers, stage));
    nest
}

/// The bytes of `y`.
fn run(nest: &Nest, x: &[f32]) -> Vec<u8> {
    let x: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut y = vec![0; nest.buf(BufferId(1)).byte_len().unwrap()];
    let mut buffers = [BufferBytes::Read(&x), BufferBytes::Write(&mut y)];
    interpret(nest, &mut buffers).unwrap();
    y
}

/// Numbers where a change would be seen: the ends, the points, what lies between them, and the neighbours of all.
fn numbers(grid: Grid) -> Vec<f32> {
    let mut all = vec![
        0.0,
        -0.0,
        1e-44,
        -1e-44,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
    ];
    all.extend([f32::INFINITY, f32::NEG_INFINITY]);
    let width = (f64::from(grid.high) - f64::from(grid.low)) / f64::from(grid.steps);
    let halves = (0..=2 * grid.steps).map(|k| f64::from(grid.low) + f64::from(k) / 2.0 * width);
    all.extend(halves.map(|x| x as f32));
    all.extend([grid.low, grid.high]);
    let near = all.clone().into_iter();
    all.extend(near.flat_map(|x| [x.next_down(), x.next_up(), x.next_up().next_up()]));
    all
}

#[track_caller]
fn check(grid: Grid, x: &[f32]) {
    check_after(Scalar::clone, grid, x);
}

/// As [`check`], of `activation(x)`.
#[track_caller]
fn check_after(activation: impl Fn(&Scalar) -> Scalar, grid: Grid, x: &[f32]) {
    let nests = [F32, U8, I8].map(|ty| {
        nest(x.len(), ty, |x| match ty {
            F32 => grid.value(&activation(x)),
            _ => grid.code(&activation(x), ty),
        })
    });
    for nest in nests {
        let clamped = clamped_nest(&nest);
        assert!(
            run(&nest, x) == run(&clamped, x),
            "{grid:?}\n{}",
            clamped.stage_texts()[0]
        );
    }
}

#[test]
fn a_clamp_and_a_product() {
    let code = clamped_nest(&nest(4, U8, |x| GRID.code(x, U8)));
    assert_eq!(
        code.stage_texts(),
        [
            "for i<4: y[i] = u8(i32(round(((((min(24.242853, max(-24.433743, x[i])) - -24.433743) * \
             0.0000000008054705) + term((min(24.242853, max(-24.433743, x[i])) - -24.433743), 0.020543752)) * 255.0))))"
        ]
    );
    check(GRID, &numbers(GRID));
}

/// The value at an end of the range may be another than the last point: it stays a select, and the other end does not.
#[test]
fn ends_that_are_no_points_stay() {
    let text = |grid: Grid| {
        clamped_nest(&nest(4, F32, |x| grid.value(x)))
            .stage_texts()
            .remove(0)
    };
    // `(24.242853 - -24.433743) + -24.433743` is another number than `24.242853`.
    let of_grid = text(GRID);
    assert!(
        of_grid.starts_with("for i<4: y[i] = select((x[i] > 24.242853), 24.242853, ("),
        "{of_grid}"
    );
    let shifted = Grid {
        bottom: -25.0,
        top: 24.0,
        ..GRID
    };
    let of_shifted = text(shifted);
    let all = [
        of_grid.matches("select").count(),
        of_shifted.matches("select").count(),
    ];
    assert_eq!(all, [1, 0]);
    assert!(!of_grid.contains("/ (") && !of_shifted.contains("/ ("));
    check(shifted, &numbers(shifted));
}

/// A value that doubles, sixty times over, what is rounded, stays as it is, and is not gone through 2⁶⁰ times.
#[test]
fn shared_values_are_not_gone_through_again_and_again() {
    let doubled = nest(4, F32, |x| {
        let inner = (0..60).fold(GRID.step(x), |sum, _| &sum + &sum);
        let below = select(x.le(float(GRID.low)), float(0.0), inner);
        select(x.gt(float(GRID.high)), float(1.0), below)
    });
    assert_eq!(clamped_nest(&doubled), doubled);
}

/// NaN stays what it is.
#[test]
fn no_number_is_none() {
    let clamped = clamped_nest(&nest(1, F32, |x| GRID.value(x)));
    let bytes: [u8; 4] = run(&clamped, &[f32::NAN]).try_into().unwrap();
    assert!(f32::from_le_bytes(bytes).is_nan());
}

#[test]
fn ranges_that_begin_or_end_at_zero() {
    for (low, high) in [(0.0, 29.743_097), (-3.7, 0.0), (-0.0, 1e-3)] {
        let grid = Grid {
            low,
            high,
            bottom: low,
            top: high,
            steps: 255,
        };
        check(grid, &numbers(grid));
    }
}

/// After an activation that clamps, such as ReLU, the pass adds no second clamp to the same end; a wider one gives way to its own.
/// It subtracts no lower end of zero.
#[test]
fn bounds_of_an_activation_are_bounds() {
    let least = |x: &Scalar| float(0.0).max(x.clone());
    let relu6 = |x: &Scalar| float(6.0).min(least(x));
    let turned = |x: &Scalar| float(0.0).max(float(6.0).min(x.clone()));
    // NaN becomes a number: such a bound is none of these.
    let last = |x: &Scalar| x.clone().max(float(0.0));
    let other = |x: &Scalar| relu6(x).max(least(&-x.clone()));
    let none = |x: &Scalar| float(f32::NAN).max(x.clone());
    let of_high = |high: f32| Grid {
        low: 0.0,
        high,
        bottom: 0.0,
        top: high,
        steps: 255,
    };
    type Activation<'a> = &'a dyn Fn(&Scalar) -> Scalar;
    let cases: [(Activation<'_>, f32, [usize; 3]); 10] = [
        (&least, 2.55, [1, 1, 0]),
        (&relu6, 6.0, [1, 1, 0]),
        (&relu6, 6.5, [1, 1, 0]),
        (&relu6, 5.9, [1, 1, 0]),
        (&turned, 6.0, [1, 1, 0]),
        (&turned, 5.9, [2, 1, 0]),
        (&last, 2.55, [1, 2, 0]),
        (&other, 6.0, [2, 4, 0]),
        (&none, 2.55, [1, 2, 0]),
        (&|x| float(-1.0).max(x.clone()), 2.55, [1, 1, 0]),
    ];
    for (activation, high, want) in cases {
        let grid = of_high(high);
        let code = |x: &Scalar| grid.code(&activation(x), U8).clone();
        let text = clamped_nest(&nest(4, U8, code)).stage_texts().remove(0);
        // The clamped number stands there twice: for the product, and for the sum.
        let (mins, maxes) = (text.matches("min(").count(), text.matches("max(").count());
        let subtractions = text.matches(" - 0.0").count();
        let twice = want.map(|count| 2 * count);
        assert_eq!([mins, maxes, subtractions], twice, "{text}");
        let mut x = numbers(grid);
        x.extend(numbers(of_high(6.0)));
        check_after(activation, grid, &x);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_bit_changes(
        low in -1e4f32..1e4,
        width in prop_oneof![1e-3f32..1e4, 1e-20f32..1e-3],
        (bottom, range) in (-10f32..10.0, -10f32..10.0),
        is_same: bool,
        steps in prop_oneof![Just(255u32), Just(15), Just(254), 1u32..70_000],
        x in prop::collection::vec(-2e4f32..2e4, 64),
    ) {
        let high = low + width;
        prop_assume!(high > low);
        let steps = if steps > 255 && is_same { steps } else { steps.min(255) };
        let (bottom, top) = if is_same { (low, high) } else { (bottom, bottom + range) };
        let grid = Grid { low, high, bottom, top, steps };
        let mut all = x;
        if steps < 300 {
            all.extend(numbers(grid));
        }
        check(grid, &all);
    }
}

/// A limit that an activation before has, or one that is wider than all elements of a table, is needless. What is left gives the same
/// bits, also of zeros and NaN.
#[test]
fn needless_limits_are_left_out() {
    type Limits = dyn Fn(&Scalar, &Scalar) -> Scalar;
    let cases: [(&Limits, &str); 6] = [
        (
            &|x, _| float(0.0).max(float(6.0).min(float(0.0).max(x.clone()))),
            "min(6.0, max(0.0, x[i]))",
        ),
        (
            &|x, highs| highs.min(float(6.0).min(float(0.0).max(x.clone()))),
            "min(highs[i], max(0.0, x[i]))",
        ),
        // Not those of which an element is beyond the limit, or which are narrower.
        (
            &|x, highs| highs.min(float(5.0).min(x.clone())),
            "min(highs[i], min(5.0, x[i]))",
        ),
        (
            &|x, _| float(0.5).max(float(6.0).min(float(0.0).max(x.clone()))),
            "max(0.5, min(6.0, max(0.0, x[i])))",
        ),
        (
            &|x, _| float(4.0).min(float(6.0).min(x.clone())),
            "min(4.0, x[i])",
        ),
        (
            &|x, _| float(-1.0).max(float(0.0).max(x.clone())),
            "max(0.0, x[i])",
        ),
    ];
    let mut x = vec![0.0, -0.0, 0.25, -3.0, 4.5, 5.5, 7.0, f32::NAN];
    x.extend([f32::INFINITY, f32::NEG_INFINITY]);
    let highs: Vec<u8> = (0..x.len())
        .flat_map(|i| (1.5 + 0.45 * i as f32).to_le_bytes())
        .collect();
    for (case, (limits, want)) in cases.into_iter().enumerate() {
        let mut plain = nest(x.len(), F32, |x| x.clone());
        let table = plain.table("highs", F32, x.len(), &highs);
        let stage = &plain.stages[0];
        let highs = plain.load(table, stage.at.clone());
        let value = limits(&stage.value, &highs).round();
        plain.stages[0].value = value;
        let fewer = clamped_nest(&plain);
        let text = fewer.stage_texts().pop().unwrap();
        assert_eq!(text, format!("for i<10: y[i] = round({want})"), "{case}");
        let bits = |nest: &Nest| {
            let input: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
            let mut y = vec![0; 4 * x.len()];
            let mut buffers = [
                BufferBytes::Read(&input),
                BufferBytes::Write(&mut y),
                BufferBytes::Read(&[]),
            ];
            interpret(nest, &mut buffers).unwrap();
            y
        };
        assert_eq!(bits(&plain), bits(&fewer), "{case}");
    }
}
