use super::arithmetic::integers;
use super::*;
use crate::build::{index, number};
use crate::ir::{Binary, Unary};
use ElementType::{F32, I64};

fn between(low: i64, high: i64) -> ValueRange {
    ValueRange::Integer(Interval { low, high })
}

/// A list whose second element is at least 2, in the arithmetic of shapes.
#[test]
fn follows_what_shapes_are_computed_with() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I64, &[3], Role::Input);
    let y = nest.buffer("y", I64, &[3], Role::Output);
    let z = nest.buffer("z", I64, &[0usize; 0], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let float = nest.load(x, at.to_vec()).cast(F32) * number(1.5, F32);
        float.floor().cast(I64) - 1
    });
    nest.define(vec![], z, |nest, _| {
        let axis = nest.axis(3);
        let body = nest.load(y, vec![Scalar::axis(axis.id)]);
        Scalar::reduce(Binary::Add, vec![axis], index(0), body)
    });
    let given = vec![ValueRange::exactly(3), between(2, i64::MAX), between(0, 4)];
    let found = value_ranges(&nest, [(x, given)].into_iter().collect(), 100).unwrap();
    let want = [ValueRange::exactly(3), between(2, i64::MAX), between(-1, 5)];
    assert_eq!(found[&y], want);
    assert_eq!(found[&z], [between(4, i64::MAX)]);
}

#[test]
fn what_depends_on_data_is_unknown() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I64, &[2], Role::Input);
    let y = nest.buffer("y", I64, &[2], Role::Output);
    nest.define(vec![], y, |nest, at| nest.load(x, at.to_vec()) + 1);
    let found = value_ranges(&nest, FxHashMap::default(), 100).unwrap();
    assert_eq!(found[&y], [ValueRange::Unknown; 2]);
    assert!(value_ranges(&nest, FxHashMap::default(), 1).is_none());
    assert_eq!(
        integers(
            Binary::Add,
            Interval {
                low: 1,
                high: i64::MAX - 1
            },
            Interval { low: 2, high: 2 }
        ),
        ValueRange::Unknown
    );
}

/// Sizes that are converted to floats and back, as scales are made of them, stay symbols until a scale is asked for.
#[test]
fn sizes_go_through_floats() {
    let mut symbols = symbols::Symbols::default();
    let [from, to] = [32, 64].map(|n| *symbols.add(n).unwrap().formula());
    symbols.record(|| {
        let float = |formula| cast(ValueRange::Formula(formula), F32);
        let twice = binary(Binary::Mul, float(from), ValueRange::Float(2.0, 2.0));
        let floor = unary(Unary::Floor, twice);
        let double = from.times(&Formula::number(2)).unwrap();
        assert_eq!(cast(floor, I64), ValueRange::Formula(double));
        let scale = binary(Binary::Div, float(to), float(from));
        let third = binary(Binary::Div, float(from), ValueRange::Float(3.0, 3.0));
        assert_eq!(scale, ValueRange::Ratio(to, from, F32));
        let more = binary(Binary::Add, scale, ValueRange::Float(1e-5, 1e-5));
        assert_eq!(more, ValueRange::Computed(to, from));
        assert_eq!([scale.formula(), more.formula()], [None; 2]);
        let x = f64::from(32.0f32 / 3.0);
        assert_eq!(third.pinned(), ValueRange::Float(x, x));
    });
    assert!(symbols.bind(&[32, 100]).is_some());
    assert!(symbols.bind(&[33, 64]).is_none(), "a third was asked for");
}

/// Sizes that are scaled by numbers with a few binary digits, or divided, and rounded to integers.
#[test]
fn sizes_are_scaled_and_rounded() {
    let number = |x: f64| ValueRange::Float(x, x);
    let half = |x| binary(Binary::Mul, x, number(0.5));
    let fourth = |x| binary(Binary::Div, x, number(4.0));
    let more = |x| binary(Binary::Div, x, number(0.75));
    let less = |x| binary(Binary::Mul, x, number(-1.5));
    let to_integer = |x| cast(x, I64);
    let floor = |x| to_integer(unary(Unary::Floor, x));
    let ceil = |x| to_integer(unary(Unary::Ceil, x));
    type Scaled<'a> = (&'a dyn Fn(ValueRange) -> ValueRange, fn(f32) -> f32);
    let all: [Scaled<'_>; 7] = [
        (&|x| floor(half(x)), |x| (x * 0.5).floor()),
        (&|x| ceil(half(x)), |x| (x * 0.5).ceil()),
        (&|x| to_integer(half(x)), |x| (x * 0.5).trunc()),
        (&|x| floor(fourth(x)), |x| (x / 4.0).floor()),
        (&|x| ceil(fourth(x)), |x| (x / 4.0).ceil()),
        (&|x| ceil(more(x)), |x| (x / 0.75).ceil()),
        (&|x| floor(binary(Binary::Mul, x, number(1.5))), |x| {
            (x * 1.5).floor()
        }),
    ];
    for (scaled, want) in all {
        let mut symbols = symbols::Symbols::default();
        let size = *symbols.add(33).unwrap().formula();
        let found = symbols.record(|| scaled(cast(ValueRange::Formula(size), F32)));
        let found = found.formula().unwrap();
        assert!(found.as_number().is_none());
        for size in [2, 7, 32, 33, 34, 35, 99_999, 1 << 23] {
            // Other numbers belong to other classes, if to any.
            if let Some(values) = symbols.bind(&[size]) {
                let want = want(size as f32) as i64;
                assert_eq!(found.evaluate(&values), Some(want), "{size}");
            }
        }
        assert!(symbols.bind(&[35]).is_some() && symbols.bind(&[99_999]).is_some());
    }
    let mut symbols = symbols::Symbols::default();
    let size = *symbols.add(33).unwrap().formula();
    let size = ValueRange::Formula(size);
    // Of what is negative, and of a scale of many digits, the number is asked for only once it is needed.
    let unknown = symbols.record(|| {
        let size = cast(size, F32);
        [
            floor(less(size)),
            floor(binary(Binary::Mul, size, number(0.3))),
        ]
    });
    assert!(
        unknown
            .iter()
            .all(|x| matches!(x, ValueRange::Computed(..)))
    );
}

/// `past + x` for a position `x` that only a run gives: the number of `past` would tell nothing about it.
#[test]
fn sums_with_what_is_not_known_exactly_pin_nothing() {
    let mut symbols = symbols::Symbols::default();
    let past = *symbols.add(7).unwrap().formula();
    let past = ValueRange::Formula(past);
    symbols.record(|| {
        for x in [between(0, 1), ValueRange::Unknown] {
            assert_eq!(binary(Binary::Add, past, x), ValueRange::Unknown);
            assert_eq!(binary(Binary::Sub, x, past), ValueRange::Unknown);
        }
        let product = binary(Binary::Mul, past, ValueRange::Unknown);
        assert_eq!(product, ValueRange::Unknown);
    });
    assert!(symbols.conditions.is_empty());
    // A comparison may be decided, so it is.
    let is_more = symbols.record(|| binary(Binary::Gt, past, between(0, 1)));
    assert_eq!(is_more, ValueRange::exactly(1));
    assert!(symbols.bind(&[8]).is_none());
}
