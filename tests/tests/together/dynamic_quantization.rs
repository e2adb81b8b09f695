//! Rows that are quantised where they meet weights of few bits: the same bits in every way that a model runs, and no further
//! from the sum in real numbers than [`Config::dynamic_quantization_group_size`] says.

use super::compressed_weights::{Case, build, same_in_all_ways};
use proptest::prelude::*;
use vinelift::{Config, Core, ElementType, Level, Model, Tensor};
use vinelift_tests::{different_bits, outputs, step};

/// Values of very different size from group to group.
fn rows(case: &Case) -> Vec<f32> {
    let k = case.groups * case.length;
    let value = |i: usize| {
        let size = 2f32.powi((i / 16 % 5) as i32 * 3 - 6);
        (((i * 7919) % 2003) as f32 / 1001.5 - 1.0) * size
    };
    (0..case.rows * k).map(value).collect()
}

fn inputs(case: &Case, x: &[f32]) -> [Tensor; 2] {
    let k = case.groups * case.length;
    [
        Tensor::from_slice(&[case.rows, k], x).unwrap(),
        Tensor::from_slice(&[3], &[0i64, 1, 2]).unwrap(),
    ]
}

/// Compares all ways for groups of `group`, and returns the results.
fn run(case: &Case, core: &Core, model: &Model, group: usize, x: &[f32]) -> Tensor {
    let config = Config::new().dynamic_quantization_group_size(group);
    let found = same_in_all_ways(core, model, &config, &inputs(case, x));
    found.unwrap_or_else(|difference| panic!("{difference}, group {group}: {case:?}"))
}

/// The elements of a group of a row, if rows are quantised.
fn length(case: &Case, group: usize) -> Option<usize> {
    let k = case.groups * case.length;
    let shared = if case.groups == 1 { k } else { case.length };
    let length = match group.min(shared) {
        whole if whole == k => k / 2,
        part => part,
    };
    let is_worth = case.columns >= 16 && case.columns * k >= 1 << 14;
    let fits = length > 0 && length % 8 == 0 && shared % length == 0 && shared >= 16;
    let is_coded = matches!(
        case.code,
        ElementType::U4 | ElementType::I4 | ElementType::U8 | ElementType::I8
    );
    (is_worth && fits && is_coded).then_some(length)
}

/// Compares all ways with each other, and with the sums in `f64`.
fn check(case: &Case, group: usize) {
    let core = Core::new().unwrap();
    let (model, elements) = build(case, &core);
    let (x, k) = (rows(case), case.groups * case.length);
    let y = run(case, &core, &model, group, &x);
    let plain = outputs(&core, &model, Level::Scheduled, &inputs(case, &x)).unwrap();
    let is_plain = different_bits(&y, &plain[0]).is_none();
    let length = length(case, group);
    assert_eq!(is_plain, length.is_none(), "{case:?} in groups of {group}");
    let Some(length) = length else {
        return;
    };
    let y = y.to_f64_vec().unwrap();
    for (row, x) in x.chunks(k).enumerate() {
        for (column, w) in elements.chunks(k).enumerate() {
            let (mut sum, mut size, mut bound) = (0.0, 0.0, 0.0);
            for (x, w) in x.chunks(length).zip(w.chunks(length)) {
                let largest = x.iter().fold(0.0f32, |a, b| a.max(b.abs()));
                for (x, w) in x.iter().zip(w) {
                    let product = f64::from(*x) * f64::from(*w);
                    sum += product;
                    size += product.abs();
                    bound += f64::from(largest) / 254.0 * f64::from(w.abs());
                }
            }
            let found = y[row * case.columns + column];
            let is_near = (found - sum).abs() <= bound + size * 1e-5 + 1e-30;
            assert!(
                is_near,
                "{found} for {sum} ± {bound} at row {row}, column {column}: {case:?}"
            );
        }
    }
}

#[test]
fn rows_of_every_number_by_codes_of_every_type() {
    use ElementType::{F16, F32, I4, I8, NF4, U4, U8};
    let mut cases = Vec::new();
    for (code, via) in [(U4, F16), (I4, F32), (U8, F16), (I8, F32), (NF4, F16)] {
        for (groups, length) in [(1, 256), (4, 128)] {
            for rows in [1, 2, 5, 33] {
                let is_transposed = rows != 5;
                cases.push(Case {
                    code,
                    via,
                    rows,
                    columns: 96 + rows,
                    groups,
                    length,
                    has_zero: matches!(code, U4 | U8),
                    is_transposed,
                    is_shared: rows == 2,
                    seed: 3,
                });
            }
        }
    }
    for case in cases.iter().step_by(step(3)) {
        check(case, 64);
    }
}

/// The sizes on both sides of each limit: of a group of weights, of half a row, of a multiple of eight, and of elements that
/// are worth it.
#[test]
fn groups_of_every_size() {
    let case = Case {
        code: ElementType::U4,
        via: ElementType::F16,
        rows: 3,
        columns: 64,
        groups: 2,
        length: 128,
        has_zero: true,
        is_transposed: true,
        is_shared: false,
        seed: 7,
    };
    for group in [1, 8, 12, 16, 24, 32, 64, 127, 128, 129, 4096, usize::MAX] {
        check(&case, group);
    }
    for columns in [15, 16, 63, 64, 65] {
        check(
            &Case {
                columns,
                ..case.clone()
            },
            32,
        );
    }
    let whole = Case {
        groups: 1,
        length: 4096,
        columns: 16,
        ..case
    };
    for group in [1024, 2048, 4095, 4096, usize::MAX] {
        check(&whole, group);
    }
}

/// A group with an infinite element or NaN makes sums of NaN, of its row alone; zeros stay zeros.
#[test]
fn groups_that_are_not_finite() {
    let case = Case {
        code: ElementType::I8,
        via: ElementType::F32,
        rows: 5,
        columns: 64,
        groups: 1,
        length: 256,
        has_zero: false,
        is_transposed: true,
        is_shared: false,
        seed: 9,
    };
    let core = Core::new().unwrap();
    let (model, _) = build(&case, &core);
    let mut x = rows(&case);
    x[3] = f32::INFINITY;
    x[256 + 200] = f32::NAN;
    x[2 * 256] = f32::NEG_INFINITY;
    x[3 * 256..4 * 256].fill(0.0);
    let y = run(&case, &core, &model, 32, &x).to_f64_vec().unwrap();
    let rows: Vec<&[f64]> = y.chunks(64).collect();
    assert!(rows[..3].iter().all(|row| row.iter().all(|y| y.is_nan())));
    assert_eq!(rows[3], [0.0; 64]);
    assert!(rows[4].iter().all(|y| y.is_finite() && *y != 0.0));
}

fn case() -> impl Strategy<Value = (Case, usize)> {
    use ElementType::{BF16, F16, F32, I4, I8, U4, U8};
    let code = prop::sample::select(vec![U4, I4, U8, I8]);
    let group = prop::sample::select(vec![8usize, 32, 40, 64, 128, 1 << 20]);
    let length = prop_oneof![Just(32usize), Just(128), Just(40), 8..200usize];
    let via = prop::sample::select(vec![F16, F32, BF16]);
    let sizes = (1..12usize, 16..130usize, 1..9usize, length);
    (code, via, sizes, any::<[bool; 3]>(), any::<u64>(), group).prop_map(
        |(code, via, (rows, columns, groups, length), flags, seed, group)| {
            let case = Case {
                code,
                via,
                rows,
                columns,
                groups,
                length,
                has_zero: flags[0],
                is_transposed: flags[1],
                is_shared: flags[2],
                seed,
            };
            (case, group)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_weights((case, group) in case()) {
        check(&case, group);
    }
}
