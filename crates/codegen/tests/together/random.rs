//! Random nests mean the same compiled and interpreted.

use crate::common::{Compiled, reference, same, site};
use proptest::prelude::*;
use vinelift_nest::{
    Axis, Binary, BufferId, Kind, Mode, Nest, Policy, Role, Scalar, Stage, Unary, build::*,
};
use vinelift_tensor::ElementType::{self, *};

/// Turns a list of random numbers into choices; 0 for ever when it runs out.
struct Choices<'a> {
    numbers: std::slice::Iter<'a, u32>,
}

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.numbers.next().map_or(0, |&x| x as usize % n)
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

const NUMBERS: [ElementType; 10] = [I64, F32, I32, U8, F64, U64, I8, I16, U16, U32];
const STORED: [ElementType; 16] = [
    I64, F32, I32, U8, F64, U64, I8, I16, U16, U32, Boolean, I4, U3, U1, U6, U2,
];

struct Builder<'a> {
    nest: Nest,
    choices: Choices<'a>,
    inputs: Vec<BufferId>,
    /// With an extent of at least 1.
    axes: Vec<Axis>,
    /// Earlier results, for sharing.
    known: Vec<Scalar>,
}

impl Builder<'_> {
    fn scalar(&mut self, ty: ElementType, depth: usize) -> Scalar {
        if depth == 0 || self.choices.below(8) == 0 {
            return self.leaf(ty);
        }
        let known: Vec<Scalar> = self
            .known
            .iter()
            .filter(|s| s.ty() == ty)
            .cloned()
            .collect();
        if !known.is_empty() && self.choices.below(4) == 0 {
            return known[self.choices.below(known.len())].clone();
        }
        let result = match self.choices.below(7) {
            0 => self.unary(ty, depth),
            1 => {
                let from = self.choices.of(&STORED);
                let x = self.scalar(from, depth - 1);
                x.cast(ty)
            }
            2 => {
                let c = self.scalar(Boolean, depth - 1);
                let (yes, no) = (self.scalar(ty, depth - 1), self.scalar(ty, depth - 1));
                select(c, yes, no)
            }
            3 if ty.is_arithmetic() || ty == Boolean => self.reduce(ty, depth),
            _ => self.binary(ty, depth),
        };
        // A reduction may not stand under two guards: its axes would be bound twice.
        if !has_reduction(&result) {
            self.known.push(result.clone());
        }
        result
    }

    fn unary(&mut self, ty: ElementType, depth: usize) -> Scalar {
        use Unary::*;
        let x = self.scalar(ty, depth - 1);
        let op = match ty {
            F32 | F64 => self
                .choices
                .of(&[Neg, Abs, Floor, Ceil, Trunc, Round, Sqrt]),
            Boolean => Not,
            _ if ty.is_arithmetic() => self.choices.of(&[Neg, Abs, Not]),
            _ => return x,
        };
        Scalar::unary(op, x)
    }

    fn binary(&mut self, ty: ElementType, depth: usize) -> Scalar {
        use Binary::*;
        let op = match ty {
            F32 | F64 => self.choices.of(&[Add, Sub, Mul, Div, Rem, Min, Max]),
            Boolean => {
                let op = self.choices.of(&[Eq, Ne, Lt, Le, Gt, Ge, And, Or, Xor]);
                let ty = if op.is_comparison() {
                    self.choices.of(&NUMBERS)
                } else {
                    Boolean
                };
                let (x, y) = (self.scalar(ty, depth - 1), self.scalar(ty, depth - 1));
                return Scalar::binary(op, x, y);
            }
            _ if ty.is_arithmetic() => self
                .choices
                .of(&[Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr]),
            _ => return self.leaf(ty),
        };
        let (x, y) = (self.scalar(ty, depth - 1), self.scalar(ty, depth - 1));
        Scalar::binary(op, x, y)
    }

    fn reduce(&mut self, ty: ElementType, depth: usize) -> Scalar {
        use Binary::*;
        let extents = [self.choices.below(4), 1 + self.choices.below(3)];
        let axes = self.nest.axes(&extents[..1 + self.choices.below(2)]);
        let init = self.scalar(ty, depth - 1);
        // Nothing from the body may be used outside.
        let (axes_before, known_before) = (self.axes.len(), self.known.len());
        self.axes.extend(axes.iter().filter(|a| a.extent > 0));
        let body = self.scalar(ty, depth - 1);
        self.axes.truncate(axes_before);
        self.known.truncate(known_before);
        let op = match ty {
            Boolean => self.choices.of(&[And, Or, Xor]),
            _ => self.choices.of(&[Add, Max, Min, Sub, Mul]),
        };
        Scalar::reduce(op, axes, init, body)
    }

    fn leaf(&mut self, ty: ElementType) -> Scalar {
        let inputs: Vec<BufferId> = self
            .inputs
            .iter()
            .copied()
            .filter(|&b| self.nest.buf(b).ty == ty)
            .collect();
        if inputs.is_empty() || self.choices.below(4) == 0 {
            if ty == I64 && !self.axes.is_empty() {
                let axis = self.axes[self.choices.below(self.axes.len())];
                return Scalar::axis(axis.id);
            }
            let value = self.choices.of(&[0, 1, -1, 2, 7, 100, i64::MIN, 3]);
            return if ty.is_float() {
                number(value as f64, ty)
            } else {
                integer(value, ty)
            };
        }
        let buffer = inputs[self.choices.below(inputs.len())];
        self.load(buffer)
    }

    fn load(&mut self, buffer: BufferId) -> Scalar {
        let at = self
            .nest
            .buf(buffer)
            .example()
            .into_iter()
            .map(|n| self.index(n))
            .collect();
        self.nest.load(buffer, at)
    }

    /// An index into a dim of `extent`, which is not 0.
    fn index(&mut self, extent: usize) -> Scalar {
        let n = extent as i64;
        if self.axes.is_empty() {
            return index(0);
        }
        let axis = self.axes[self.choices.below(self.axes.len())];
        let i = Scalar::axis(axis.id);
        match self.choices.below(6) {
            0 => index(n - 1),
            1 => index(n - 1) - i.min(index(n - 1)),
            2 => {
                let other = self.axes[self.choices.below(self.axes.len())];
                (i * 3 + Scalar::axis(other.id)).rem(index(n))
            }
            3 | 4 => {
                let ty = self.choices.of(&[I64, I32, U8, I8, U64]);
                let inputs: Vec<BufferId> = self
                    .inputs
                    .iter()
                    .copied()
                    .filter(|&b| self.nest.buf(b).ty == ty)
                    .collect();
                let Some(&data) = inputs.first() else {
                    return index(0);
                };
                let rank = self.nest.buf(data).shape.len();
                let value = self.nest.load(data, vec![index(0); rank]);
                let policy = Policy {
                    negative: self.choices.below(2) == 0,
                    zero: self.choices.below(3) != 0,
                };
                let site = site(&mut self.nest);
                self.nest.wrap(value, extent, policy, site, vec![i])
            }
            _ if axis.extent <= extent => i,
            _ => i / axis.extent.example().div_ceil(extent) as i64,
        }
    }

    fn stage(&mut self) {
        let ty = self.choices.of(&STORED);
        let rank = self.choices.below(4);
        let shape: Vec<usize> = (0..rank)
            .map(|_| [2, 1, 3, 9, 0, 18, 37][self.choices.below(7)])
            .collect();
        let y = self.nest.buffer("y", ty, &shape, Role::Output);
        let domain = self.nest.axes(&shape);
        self.known.clear();
        self.axes = domain.clone();
        if domain.iter().any(|a| a.extent == 0) {
            return;
        }
        let depth = 1 + self.choices.below(5);
        let value = self.scalar(ty, depth);
        let scatter = self.choices.below(3) == 0;
        let at = domain
            .iter()
            .map(|a| {
                if scatter {
                    self.index(a.extent.example())
                } else {
                    Scalar::axis(a.id)
                }
            })
            .collect();
        let mode = match ty {
            I64 | I32 | U8 | F32 if self.choices.below(3) == 0 => Mode::Combine(Binary::Add),
            _ => Mode::Set,
        };
        self.nest.stages.push(Stage {
            domain,
            target: y,
            at,
            mode,
            value,
            layers: vec![],
            group: None,
        });
        self.inputs.push(y);
    }
}

fn has_reduction(x: &Scalar) -> bool {
    matches!(x.kind(), Kind::Reduce { .. }) || x.children().any(has_reduction)
}

fn nest(numbers: &[u32]) -> Nest {
    let mut builder = Builder {
        nest: Nest::new(),
        choices: Choices {
            numbers: numbers.iter(),
        },
        inputs: vec![],
        axes: vec![],
        known: vec![],
    };
    for _ in 0..2 + builder.choices.below(4) {
        let ty = builder.choices.of(&STORED);
        let shape: Vec<usize> = (0..1 + builder.choices.below(3))
            .map(|_| 1 + builder.choices.below(4))
            .collect();
        let x = builder.nest.buffer("x", ty, &shape, Role::Input);
        builder.inputs.push(x);
    }
    for _ in 0..1 + builder.choices.below(3) {
        builder.stage();
    }
    builder.nest
}

proptest! {
    #![proptest_config(crate::common::cases(600))]
    #[test]
    fn compiled_is_interpreted(numbers in prop::collection::vec(any::<u32>(), 40..400), seed in any::<u64>()) {
        let nest = nest(&numbers);
        let mut next = crate::common::random(seed);
        let inputs: Vec<Vec<u8>> = nest.buffers.iter().filter(|b| b.role == Role::Input).map(|b| {
            let count = b.example().iter().product();
            let small = next().is_multiple_of(2);
            (0..b.ty.byte_len(count).unwrap()).map(|i| {
                // Small numbers make good indices.
                match small && b.ty.bits() >= 8 && i % (b.ty.bits() / 8) != 0 {
                    true => 0,
                    false if small => (next() % 5) as u8,
                    false => next() as u8,
                }
            }).collect()
        }).collect();
        let (found, result) = Compiled::of_random(&nest, seed).run(&inputs);
        let (expected, expected_result) = reference(&nest, &inputs);
        // Of several indices that fail at one point, either may be named.
        prop_assert_eq!(result.is_err(), expected_result.is_err(), "{}", nest);
        for (b, (found, expected)) in nest.buffers.iter().zip(found.iter().zip(&expected)) {
            prop_assert!(same(b.ty, found, expected), "`{}` is {:?}, expected {:?}\n{}", b.name, found, expected, nest);
        }
    }
}
