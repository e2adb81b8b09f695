//! Random expressions of several folds along lanes mean the same compiled and interpreted.

use crate::common::{
    Compiled, bytes, output, random, reference, same, text_for_256_bits, vector_loops,
};
use proptest::prelude::*;
use vinelift_nest::{Axis, Binary, BufferId, Nest, Role, Scalar, build::*, parse};
use vinelift_tensor::ElementType::{self, *};

/// How far beyond the axes the inputs reach, so that neighbours of a point are there.
const MARGIN: usize = 3;

/// Points of folds: with a loop and without.
const FOLDED: [usize; 7] = [1, 2, 3, 16, 17, 20, 51];

struct Folds {
    nest: Nest,
    /// Random numbers, which choose.
    next: Box<dyn FnMut() -> u64>,
    ty: ElementType,
    /// `x[rows, points, lanes]`, `w[points]`, `v[lanes]`
    inputs: [BufferId; 3],
    rows: Scalar,
    lane: Scalar,
    /// Axes of the folds around.
    folds: Vec<Axis>,
}

impl Folds {
    fn below(&mut self, n: usize) -> usize {
        ((self.next)() % n as u64) as usize
    }

    fn value(&mut self, depth: usize) -> Scalar {
        match self.below(6) {
            0 | 1 if depth > 0 => {
                let op = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Max][self.below(4)];
                let (a, b) = (self.value(depth - 1), self.value(depth - 1));
                Scalar::binary(op, a, b)
            }
            2..=4 if depth > 0 && self.folds.len() < 2 => self.fold(depth),
            _ => self.load(),
        }
    }

    fn fold(&mut self, depth: usize) -> Scalar {
        let extent = FOLDED[self.below(FOLDED.len())];
        let axis = self.nest.axis(extent);
        self.folds.push(axis);
        let op = [Binary::Add, Binary::Max, Binary::Min][self.below(3)];
        let body = match op == Binary::Add && self.below(2) == 0 {
            true => {
                let (a, b) = (self.load(), self.load());
                Scalar::binary(Binary::Term, a, b)
            }
            false => self.value(depth - 1),
        };
        self.folds.pop();
        let init = match self.ty {
            I32 => integer(1, I32),
            ty => number(0.5, ty),
        };
        Scalar::reduce(op, vec![axis], init, body)
    }

    fn load(&mut self) -> Scalar {
        let shift = |of: &mut Folds, x: Scalar| x + of.below(MARGIN + 1) as i64;
        let point = match self.folds.is_empty() {
            true => index(1),
            false => {
                let which = self.below(self.folds.len());
                Scalar::axis(self.folds[which].id)
            }
        };
        let (rows, lane) = (self.rows.clone(), self.lane.clone());
        let at = match self.below(4) {
            0 => return self.load_of(1, point),
            1 => return self.load_of(2, lane),
            2 => vec![rows, shift(self, point), shift(self, lane)],
            _ => vec![shift(self, rows), point, lane],
        };
        self.nest.load(self.inputs[0], at)
    }

    fn load_of(&mut self, input: usize, at: Scalar) -> Scalar {
        let at = at + self.below(MARGIN + 1) as i64;
        self.nest.load(self.inputs[input], vec![at])
    }
}

fn nest(seed: u64, ty: ElementType, rows: usize, lanes: usize) -> Nest {
    let mut nest = Nest::new();
    let most = FOLDED[FOLDED.len() - 1] + MARGIN;
    let x = [rows + MARGIN, most, lanes + MARGIN];
    let x = nest.buffer("x", ty, &x, Role::Input);
    let w = nest.buffer("w", ty, &[most], Role::Input);
    let v = nest.buffer("v", ty, &[lanes + MARGIN], Role::Input);
    let y = nest.buffer("y", ty, &[rows, lanes], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let mut folds = Folds {
            nest: std::mem::take(nest),
            next: Box::new(random(seed)),
            ty,
            inputs: [x, w, v],
            rows: at[0].clone(),
            lane: at[1].clone(),
            folds: Vec::new(),
        };
        let value = folds.value(4);
        *nest = folds.nest;
        value
    });
    nest
}

proptest! {
    #![proptest_config(crate::common::cases(1000))]
    #[test]
    fn compiled_is_interpreted(seed: u64, ty in 0..3usize, rows in 1..10usize, lanes in 1..70usize) {
        let ty = [F32, F64, I32][ty];
        let nest = nest(seed, ty, rows, lanes);
        let mut next = random(seed);
        let mut data = |count: usize| -> Vec<u8> {
            let numbers = (0..count).map(|_| (next() % 17) as f64 / 8.0 - 1.0);
            match ty {
                F64 => bytes(&numbers.collect::<Vec<f64>>()),
                I32 => bytes(&numbers.map(|x| (x * 8.0) as i32).collect::<Vec<i32>>()),
                _ => bytes(&numbers.map(|x| x as f32).collect::<Vec<f32>>()),
            }
        };
        let inputs = nest.buffers.iter().filter(|b| b.role == Role::Input);
        let inputs: Vec<Vec<u8>> = inputs.map(|b| data(b.example().iter().product())).collect();
        let (found, _) = Compiled::of_random(&nest, seed).run(&inputs);
        let (expected, _) = reference(&nest, &inputs);
        let y = nest.buffers.len() - 1;
        prop_assert!(same(ty, &found[y], &expected[y]), "{}", nest);
    }
}

/// Sums of products of integers, with a loop and without: of 32 bits, by vectors of 256 bits where there are such.
#[test]
fn products_of_integers() {
    for ty in [I8, U8, I16, U16, I32, U32, I64, U64] {
        for points in [5, 40] {
            let text = format!(
                "input a: {ty}[6, {points}]\ninput b: {ty}[{points}, 77]\noutput y: {ty}[6, 77]\n\
                 for i<6, j<77: y[i, j] = add[k<{points}; 0{ty}](term(a[i, k], b[k, j]))\n"
            );
            let nest = parse(&text).unwrap();
            let mut next = random(3);
            let each = ty.bits() / 8;
            let inputs = [6 * points, 77 * points].map(|count| {
                let elements = (0..count).flat_map(|_| next().to_le_bytes().into_iter().take(each));
                elements.collect::<Vec<u8>>()
            });
            assert_eq!(
                output(&nest, &inputs),
                reference(&nest, &inputs).0[2],
                "{nest}"
            );
            if vector_loops()[0] && ty.bits() == 32 {
                let text = text_for_256_bits(&nest).clif;
                assert!(text.contains("on 256 bits"), "{text}");
            }
        }
    }
}
