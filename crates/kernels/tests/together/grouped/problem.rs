//! Products to test with, their operands, and the formula.

use vinelift_kernels::{Code, Coding, Grouped, GroupedDim, GroupedProduct, GroupedRows, Packed};
use zerocopy::IntoBytes;

/// The codes there are kernels for.
pub(super) const CODES: [Code; 4] = [Code::I8, Code::U8, Code::I4, Code::U4];

/// The value of all elements of `out` before a run, which those that the product does not write keep.
const UNWRITTEN: f32 = 7.0;

/// Which zero points and scales there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Points {
    None,
    Scales,
    Zeros,
    /// Scales, and zero points from 0 to 255.
    All,
    /// Scales, and the same zero point everywhere.
    Same,
    /// Scales, and the largest zero points of either sign.
    Extreme,
}

impl Points {
    pub(super) const EVERY: [Points; 6] = [
        Points::None,
        Points::Scales,
        Points::Zeros,
        Points::All,
        Points::Same,
        Points::Extreme,
    ];
    pub(super) const BOTH: [Points; 5] = [
        Points::None,
        Points::Scales,
        Points::Zeros,
        Points::All,
        Points::Same,
    ];
}

/// An element of the rows, and a byte of codes.
pub(crate) type Values = fn(&mut fastrand::Rng) -> (i8, u8);

/// Any.
pub(crate) fn ordinary(random: &mut fastrand::Rng) -> (i8, u8) {
    (random.i8(-127..=127), random.u8(..))
}

/// The largest of either sign, mostly the same one.
pub(super) fn extremes(random: &mut fastrand::Rng) -> (i8, u8) {
    let element = if random.u8(..) < 16 { -127 } else { 127 };
    let code = random.choice([0xff, 0xff, 0x80, 0x88, 0x00, 0x7f, 0x77]);
    (element, code.unwrap_or(0))
}

/// `[rows, k] · [n, k]`, without gaps.
pub(crate) fn matrix(
    rows: usize,
    n: usize,
    k: usize,
    (group, coding_group): (usize, usize),
    code: Code,
) -> Grouped {
    Grouped {
        rows: GroupedRows::Bytes,
        m: vec![GroupedDim {
            extent: rows,
            rows: k,
            points: k.checked_div(group).unwrap_or(0),
            out: n,
        }],
        n,
        block: n,
        block_out: 0,
        k,
        group,
        code,
        column_step: k,
        k_step: 1,
        coding_group,
    }
}

/// A product with operands.
pub(crate) struct Problem {
    pub(crate) grouped: Grouped,
    pub(crate) coding: Coding,
    pub(crate) codes: Vec<u8>,
    pub(crate) rows: Vec<i8>,
    /// The rows of a product with rows of floats.
    pub(crate) floats: Vec<f32>,
    /// The scales or the sums of the rows' groups: any numbers will do.
    pub(crate) points: Vec<f32>,
    /// How many elements `out` has.
    pub(crate) out: usize,
}

impl Problem {
    pub(crate) fn new(grouped: &Grouped, points: Points, values: Values, seed: u64) -> Problem {
        let mut random = fastrand::Rng::with_seed(seed);
        let &Grouped { n, k, group, .. } = grouped;
        let last = |stride: fn(&GroupedDim) -> usize, length: usize| {
            let is_empty = grouped.m.iter().any(|dim| dim.extent == 0) || length == 0 || n == 0;
            let steps = grouped.m.iter().map(|dim| dim.extent.max(1) - 1);
            let all = steps
                .zip(&grouped.m)
                .map(|(steps, dim)| steps * stride(dim));
            if is_empty {
                0
            } else {
                all.sum::<usize>() + length
            }
        };
        let rows = last(|dim| dim.rows, k);
        let row_points = last(|dim| dim.points, k.checked_div(group).unwrap_or(0));
        let blocks = n.checked_div(grouped.block).unwrap_or(1);
        let columns = (blocks - 1) * grouped.block_out + grouped.block;
        let out = last(|dim| dim.out, columns);
        let codes = match n > 0 && k > 0 {
            true => (n - 1) * grouped.column_step + (k - 1) * grouped.k_step + 1,
            false => 0,
        };
        let bytes = if is_half(grouped.code) {
            codes.div_ceil(2)
        } else {
            codes
        };
        let count = n * k.checked_div(grouped.coding_group).unwrap_or(0);
        let mut list = |zero: fn(&mut fastrand::Rng) -> f32| -> Vec<f32> {
            (0..count).map(|_| zero(&mut random)).collect()
        };
        let zero = match points {
            Points::None | Points::Scales => None,
            Points::Zeros | Points::All => Some(list(|random| f32::from(random.u8(..)))),
            Points::Same => Some(list(|_| 9.0)),
            Points::Extreme => Some(list(|random| {
                random.choice([255.0, 0.0, -255.0]).unwrap_or(0.0)
            })),
        };
        let scale = match points {
            Points::None | Points::Zeros => None,
            _ => Some(list(|random| random.f32() - 0.25)),
        };
        let rows: Vec<i8> = (0..rows).map(|_| values(&mut random).0).collect();
        Problem {
            coding: Coding {
                code: grouped.code,
                group: grouped.coding_group,
                zero,
                scale,
            },
            codes: (0..bytes).map(|_| values(&mut random).1).collect(),
            floats: rows.iter().map(|x| f32::from(*x) * 0.37).collect(),
            rows,
            points: (0..row_points).map(|_| random.f32() * 3.0 - 1.0).collect(),
            out,
            grouped: grouped.clone(),
        }
    }

    /// Compares all kernels with the formula, for rows of both types.
    pub(super) fn check(&mut self) {
        for rows in [GroupedRows::Bytes, GroupedRows::Floats] {
            self.grouped.rows = rows;
            self.check_rows();
        }
    }

    /// Compares all kernels with the formula.
    fn check_rows(&self) {
        let expected = self.expected();
        for isa in super::ISAS.into_iter().filter(|isa| isa.available()) {
            let product = GroupedProduct::new(&self.grouped, isa).unwrap();
            let packed = product.pack(&self.codes, &self.coding).unwrap();
            for tasks in [1, 3] {
                self.compare(&product, &packed, &expected, tasks);
            }
        }
    }

    /// Runs a product in `tasks` tasks, with bytes around the result and the scratch memory that must stay as they are.
    pub(super) fn compare(
        &self,
        product: &GroupedProduct,
        packed: &Packed,
        expected: &[f32],
        tasks: usize,
    ) {
        const AROUND: usize = 64;
        let plan = product.plan(tasks);
        assert!(plan.tasks() <= tasks);
        let mut out = vec![UNWRITTEN; AROUND + expected.len() + AROUND];
        let mut worker = vec![0xa5u8; AROUND + plan.worker_bytes() + AROUND];
        let of_out = AROUND..AROUND + expected.len();
        let of_worker = AROUND..AROUND + plan.worker_bytes();
        let points = self.points.as_bytes();
        let operands = match self.grouped.rows {
            GroupedRows::Bytes => [self.rows.as_bytes(), points],
            // The sums of rows are not looked at where there are no zero points.
            GroupedRows::Floats => [
                self.floats.as_bytes(),
                if self.coding.zero.is_some() {
                    points
                } else {
                    &[]
                },
            ],
        };
        product.run(
            &plan,
            operands,
            packed,
            out[of_out.clone()].as_mut_bytes(),
            &mut worker[of_worker.clone()],
        );
        let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        let result = &out[of_out.clone()];
        let wrong = (0..result.len()).find(|&at| !same(result[at], expected[at]));
        let Grouped { code, .. } = self.grouped;
        assert_eq!(
            wrong.map(|at| (at, result[at], expected[at])),
            None,
            "{} in {tasks} tasks, {code:?}, of {:?}",
            product.name(),
            self.grouped
        );
        let untouched = [&out[..of_out.start], &out[of_out.end..]];
        assert!(untouched.concat().iter().all(|x| *x == UNWRITTEN));
        let untouched = [&worker[..of_worker.start], &worker[of_worker.end..]];
        assert!(untouched.concat().iter().all(|x| *x == 0xa5));
    }

    /// The formula.
    pub(super) fn expected(&self) -> Vec<f32> {
        let Grouped {
            n,
            block,
            block_out,
            k,
            group,
            ..
        } = self.grouped;
        let mut out = vec![UNWRITTEN; self.out];
        let factor = |of: &Option<Vec<f32>>, n_at: usize, k: usize, without: f32| {
            let place = k / self.grouped.coding_group * n + n_at;
            of.as_ref().map_or(without, |of| of[place])
        };
        for [row, row_points, to] in self.places() {
            for n_at in 0..n {
                let mut sum = 0f32;
                for g in 0..k.checked_div(group).unwrap_or(0) {
                    let zero = factor(&self.coding.zero, n_at, g * group, 0.0);
                    let scale = factor(&self.coding.scale, n_at, g * group, 1.0);
                    let point = || self.points[row_points + g];
                    let codes = (g * group..(g + 1) * group).map(|k| (row + k, self.code(n_at, k)));
                    sum = match self.grouped.rows {
                        GroupedRows::Bytes => {
                            let terms = codes
                                .map(|(at, code)| i64::from(self.rows[at]) * (code - zero as i64));
                            let exact = i32::try_from(terms.sum::<i64>()).unwrap();
                            point().mul_add(exact as f32 * scale, sum)
                        }
                        GroupedRows::Floats => {
                            let add = |sum: f32, (at, code): (usize, i64)| {
                                self.floats[at].mul_add(code as f32, sum)
                            };
                            let of_group = codes.fold(0.0, add);
                            let value = match self.coding.zero {
                                Some(_) => of_group - zero * point(),
                                None => of_group,
                            };
                            scale.mul_add(value, sum)
                        }
                    };
                }
                let (block, column) = (n_at / block, n_at % block);
                out[to + block * block_out + column] = sum;
            }
        }
        out
    }

    /// Where each row starts, the points of its groups, and its result.
    fn places(&self) -> Vec<[usize; 3]> {
        let mut places = vec![[0; 3]];
        for dim in &self.grouped.m {
            let steps = [dim.rows, dim.points, dim.out];
            let next = |place: &[usize; 3], step: usize| {
                [0, 1, 2].map(|operand| place[operand] + step * steps[operand])
            };
            let of = |place: [usize; 3]| (0..dim.extent).map(move |step| next(&place, step));
            places = places.into_iter().flat_map(of).collect();
        }
        places
    }

    /// The number that a code stands for.
    fn code(&self, n: usize, k: usize) -> i64 {
        let at = n * self.grouped.column_step + k * self.grouped.k_step;
        let half = |at: usize| self.codes[at / 2] >> (at % 2 * 4) & 15;
        match self.grouped.code {
            Code::U4 => half(at).into(),
            Code::I4 => i64::from(half(at)) - if half(at) < 8 { 0 } else { 16 },
            Code::U8 => self.codes[at].into(),
            _ => (self.codes[at] as i8).into(),
        }
    }
}

/// Whether a byte holds two codes.
fn is_half(code: Code) -> bool {
    matches!(code, Code::I4 | Code::U4)
}
