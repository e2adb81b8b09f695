//! Products of rows that were quantised by groups against the formula that defines them, bit by bit.

pub(crate) mod problem;
mod refused;

use problem::{CODES, Points, Problem, Values, extremes, matrix, ordinary};
use proptest::prelude::*;
use vinelift_kernels::{Code, Grouped, GroupedDim, GroupedProduct, GroupedRows, Isa};

const ISAS: [Isa; 6] = Isa::ALL;

/// All that rows and columns may be left over from tiles.
#[test]
fn numbers_of_rows_and_columns() {
    for n in [1, 7, 16, 63, 64, 200] {
        for rows in 1..10 {
            for (number, code) in CODES.into_iter().enumerate() {
                let points = Points::BOTH[(n + rows + number) % Points::BOTH.len()];
                let problem = matrix(rows, n, 64, (32, 64), code);
                Problem::new(&problem, points, ordinary, rows as u64).check();
            }
        }
    }
}

#[test]
fn groups_of_rows_and_of_codes() {
    let k = 768;
    for group in [8, 32, 64, 128, k] {
        for coding_group in [group, 4 * group, k] {
            let is_whole = k % coding_group == 0;
            for code in CODES.into_iter().filter(|_| is_whole) {
                for points in Points::BOTH {
                    for rows in [1, 2, 4] {
                        let problem = matrix(rows, 40, k, (group, coding_group), code);
                        Problem::new(&problem, points, ordinary, group as u64).check();
                    }
                }
            }
        }
    }
    // Groups of whose sums a number of 16 bits holds no part, and the largest there is.
    for (group, rows) in [(264, 3), (1000, 1), (33024, 2)] {
        for code in CODES {
            let problem = matrix(rows, 17, group, (group, group), code);
            Problem::new(&problem, Points::All, extremes, 3).check();
            for sign in [1, -1] {
                let mut problem = Problem::new(&problem, Points::Extreme, extremes, 4);
                problem.rows.fill(127 * sign);
                problem.floats.fill(1e9 * f32::from(sign));
                problem.check();
            }
        }
    }
}

#[test]
fn codes_across_and_gaps() {
    for code in CODES {
        for (column_step, k_step) in [(1, 21), (75, 1), (1, 30), (3, 70), (80, 1)] {
            for points in Points::BOTH {
                let problem = Grouped {
                    m: vec![
                        GroupedDim {
                            extent: 3,
                            rows: 500,
                            points: 31,
                            out: 90,
                        },
                        GroupedDim {
                            extent: 2,
                            rows: 77,
                            points: 13,
                            out: 23,
                        },
                    ],
                    column_step,
                    k_step,
                    ..matrix(1, 21, 72, (24, 72), code)
                };
                Problem::new(&problem, points, ordinary, k_step as u64).check();
            }
        }
    }
}

/// So many and long rows that they are taken in blocks.
#[test]
fn blocks_of_rows() {
    for code in CODES {
        let problem = matrix(71, 18, 8192, (32, 128), code);
        Problem::new(&problem, Points::All, ordinary, 1).check();
    }
}

/// The largest numbers of either sign, where sums of 16 bits would be too small.
#[test]
fn extreme_rows_codes_and_zero_points() {
    for code in CODES {
        for (group, coding_group) in [(8, 8), (32, 64), (128, 128), (64, 256), (256, 256)] {
            for rows in [1, 2, 3, 5] {
                for points in [Points::Extreme, Points::All, Points::None, Points::Same] {
                    let problem = matrix(rows, 70, 256, (group, coding_group), code);
                    Problem::new(&problem, points, extremes, coding_group as u64).check();
                }
            }
        }
    }
}

#[test]
fn row_scales_and_sums_that_are_no_numbers() {
    for code in CODES {
        let problem = matrix(5, 30, 96, (8, 32), code);
        let mut problem = Problem::new(&problem, Points::All, ordinary, 1);
        for (number, scale) in problem.points.iter_mut().enumerate() {
            match number % 7 {
                1 => *scale = f32::NAN,
                3 => *scale = f32::INFINITY,
                4 => *scale = f32::NEG_INFINITY,
                6 => *scale = -0.0,
                _ => {}
            }
        }
        problem.check();
    }
}

#[test]
fn nothing_to_sum_and_nothing_to_write() {
    for code in CODES {
        for (rows, n, k) in [(3, 20, 0), (0, 20, 32), (3, 0, 32), (0, 0, 0)] {
            for group in [0, 8, 16] {
                let coding_group = if k == 0 { group } else { 32 };
                let group = if k == 0 { group } else { group.max(8) };
                let problem = matrix(rows, n, k, (group, coding_group), code);
                Problem::new(&problem, Points::None, ordinary, 1).check();
                Problem::new(&problem, Points::All, ordinary, 1).check();
            }
        }
    }
}

/// Weights packed for one number of rows, one group of `k` and one instruction set serve others.
#[test]
fn packed_codes_depend_neither_on_the_rows_nor_on_the_machine() {
    for row_type in [GroupedRows::Bytes, GroupedRows::Floats] {
        codes_are_packed_for_all(row_type);
    }
}

fn codes_are_packed_for_all(row_type: GroupedRows) {
    let of = |rows, group, isa| {
        let problem = Grouped {
            rows: row_type,
            ..matrix(rows, 100, 256, (group, 128), Code::U4)
        };
        let problem = Problem::new(&problem, Points::All, ordinary, 1);
        let product = GroupedProduct::new(&problem.grouped, isa).unwrap();
        (problem, product)
    };
    let (first, product) = of(1, 128, Isa::Portable);
    let packed = product.pack(&first.codes, &first.coding).unwrap();
    for isa in ISAS.into_iter().filter(|isa| isa.available()) {
        for (rows, group) in [(1, 32), (2, 64), (7, 128)] {
            let (mut problem, other) = of(rows, group, isa);
            assert_eq!(other.layout(), product.layout());
            (problem.codes, problem.coding) = (first.codes.clone(), first.coding.clone());
            problem.compare(&other, &packed, &problem.expected(), 1);
        }
    }
    let across = Grouped {
        column_step: 1,
        k_step: 100,
        ..first.grouped.clone()
    };
    let across = GroupedProduct::new(&across, Isa::Portable).unwrap();
    assert_ne!(across.layout(), product.layout());
    let others = Grouped {
        rows: match row_type {
            GroupedRows::Bytes => GroupedRows::Floats,
            GroupedRows::Floats => GroupedRows::Bytes,
        },
        ..first.grouped.clone()
    };
    let others = GroupedProduct::new(&others, Isa::Portable).unwrap();
    assert_ne!(others.layout(), product.layout());
}

/// Zero points and scales that an `f16` holds take half of the memory that others take.
#[test]
fn points_in_few_bits() {
    let problem = Grouped {
        rows: GroupedRows::Floats,
        ..matrix(2, 40, 256, (32, 128), Code::U4)
    };
    let mut problem = Problem::new(&problem, Points::All, ordinary, 1);
    let product = GroupedProduct::new(&problem.grouped, Isa::best()).unwrap();
    let bytes = |problem: &Problem| {
        let packed = product.pack(&problem.codes, &problem.coding).unwrap();
        packed.bytes()
    };
    let (wide, groups) = (bytes(&problem), 3 * 2);
    let scales = problem.coding.scale.iter_mut().flatten();
    scales
        .zip(1u8..)
        .for_each(|(scale, number)| *scale = f32::from(number) / 64.0);
    problem.check();
    assert_eq!(wide - bytes(&problem), groups * 16 * 2 * 2);
}

#[test]
fn tasks_divide_the_columns() {
    let of = |rows| GroupedProduct::new(&matrix(rows, 200, 64, (32, 64), Code::U4), Isa::best());
    let one = of(1).unwrap().plan(3);
    let regions: Vec<_> = (0..one.tasks())
        .map(|task| one.region(task).unwrap())
        .collect();
    assert!((2..4).contains(&regions.len()), "{regions:?}");
    assert_eq!(regions[0].start, 0);
    assert!(regions.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(regions.last().unwrap().end, 200);
    let two = of(2).unwrap().plan(2);
    assert_eq!((two.tasks(), two.region(0)), (2, None));
    assert!(of(5).unwrap().plan(100).tasks() <= 13);
}

fn any_dim() -> impl Strategy<Value = (usize, [usize; 3])> {
    (0usize..4, [0usize..3, 0..3, 0..3])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_product(
        dims in prop::collection::vec(any_dim(), 0..4),
        n in 0usize..100,
        eights in 0usize..6,
        groups in 1usize..4,
        codings in 0usize..4,
        code in 0usize..4,
        kind in 0usize..6,
        across: bool,
        blocks in 1usize..5,
        sixteens in 1usize..4,
        gaps in [0usize..3, 0..3, 0..3],
        seed: u64,
    ) {
        let group = 8 * eights;
        let coding_group = group * groups;
        let k = coding_group * codings;
        let (n, block) = match blocks {
            1 => (n, n),
            _ => (16 * sixteens * blocks, 16 * sixteens),
        };
        let mut grouped = Grouped {
            m: Vec::new(),
            block,
            group,
            coding_group,
            k,
            ..matrix(1, n, k, (group, coding_group), CODES[code])
        };
        // Rows of any dims lie behind each other in `out`, and anyhow elsewhere.
        let mut step = block;
        for &(extent, [rows, points, out]) in dims.iter().rev() {
            grouped.m.insert(0, GroupedDim { extent, rows: rows * (k + 3), points, out: step + out });
            step = (step + out) * extent.max(1);
        }
        grouped.block_out = step + gaps[2];
        [grouped.column_step, grouped.k_step] = match across {
            true => [1, n + gaps[0]],
            false => [k + gaps[1], 1],
        };
        let values: Values = if seed % 3 == 0 { extremes } else { ordinary };
        Problem::new(&grouped, Points::EVERY[kind], values, seed).check();
    }
}
