//! Random nests with symbols mean the same compiled once and interpreted at each of their numbers.

use crate::common::symbols::check;
use crate::common::{COMPILER, random, site};
use proptest::prelude::*;
use vinelift_codegen::Options;
use vinelift_nest::{Axis, Binary, BufferId, Mode, Nest, Policy, Role, Scalar, Stage, build::*};
use vinelift_tensor::ElementType::{self, Boolean, F32, F64, I32, I64, U4, U8};
use vinelift_tensor::{Extent, Formula, Symbol, element_count};

const EXAMPLE: [usize; 2] = [37, 21];

/// Turns a list of random numbers into a nest; 0 for ever when it runs out.
struct Builder<'a> {
    nest: Nest,
    numbers: std::slice::Iter<'a, u32>,
    /// The buffers that stages may load from.
    buffers: Vec<BufferId>,
}

impl Builder<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.numbers.next().map_or(0, |&x| x as usize % n)
    }

    fn extent(&mut self) -> Extent {
        let symbol = |k| Extent::new(Formula::symbol(Symbol::new(k).unwrap()), EXAMPLE[k]);
        let (s, t) = (symbol(0), symbol(1));
        let sum = |a: Extent, b: Extent| a.plus(b).unwrap();
        match self.below(12) {
            0..4 => s,
            4 | 5 => t,
            6 => sum(s, t),
            7 => sum(s, 1.into()),
            8 => s.times(4.into()).unwrap(),
            9 => 3.into(),
            10 => 24.into(),
            _ => 40.into(),
        }
    }

    fn input(&mut self, ty: ElementType, shape: &[Extent]) -> BufferId {
        let id = self.nest.buffer("x", ty, shape, Role::Input);
        self.buffers.push(id);
        id
    }

    /// A dim, and an index of it: it moves with an axis in some way, or not at all.
    fn dim(&mut self, axes: &[Axis]) -> (Extent, Scalar) {
        let own = self.extent();
        if axes.is_empty() || self.below(8) == 0 {
            return (own, index(self.below(2) as i64));
        }
        let axis = axes[self.below(axes.len())];
        let (i, n) = (Scalar::axis(axis.id), axis.extent);
        let both = n.plus(own).unwrap_or(n);
        match self.below(9) {
            0 if both != n => (both, i + Scalar::extent(own)),
            1 => (n, Scalar::extent(n) - 1 - i),
            2 => match n.times(2.into()) {
                Some(twice) => (twice, i * 2 + self.below(2) as i64),
                None => (n, i),
            },
            3 => (n.plus(2.into()).unwrap_or(n), i),
            4 => {
                let ty = if self.below(2) == 0 { I32 } else { I64 };
                let data = self.nest.buffer("ix", ty, &[n], Role::Input);
                let position = vec![i.clone()];
                let found = self.nest.load(data, position.clone());
                let policy = Policy {
                    negative: self.below(2) == 0,
                    zero: self.below(2) == 0,
                };
                let site = site(&mut self.nest);
                (own, self.nest.wrap(found, own, policy, site, position))
            }
            5 => (own, i.min(Scalar::extent(own) - 1)),
            _ => (n, i),
        }
    }

    fn load(&mut self, ty: ElementType, axes: &[Axis]) -> Scalar {
        let known = self.buffers.clone();
        for buffer in known {
            if self.below(3) > 0 {
                continue;
            }
            let b = self.nest.buf(buffer).clone();
            let axis_of = |n: &Extent| axes.iter().find(|axis| axis.extent == *n);
            let at = b.shape.iter().map(|n| Some(Scalar::axis(axis_of(n)?.id)));
            if let Some(at) = at.collect::<Option<Vec<_>>>().filter(|_| b.ty == ty) {
                return self.nest.load(buffer, at);
            }
        }
        let rank = 1 + self.below(3);
        let dims: Vec<(Extent, Scalar)> = (0..rank).map(|_| self.dim(axes)).collect();
        let (shape, at): (Vec<Extent>, Vec<Scalar>) = dims.into_iter().unzip();
        let x = self.input(ty, &shape);
        self.nest.load(x, at)
    }

    fn value(&mut self, ty: ElementType, axes: &[Axis], depth: usize) -> Scalar {
        if depth == 0 || !ty.is_arithmetic() {
            return self.load(ty, axes);
        }
        let x = self.value(ty, axes, depth - 1);
        match self.below(6) {
            0 => x + self.load(ty, axes),
            1 => x.max(self.load(ty, axes)),
            2 if ty.is_float() => x.exp() * self.load(ty, axes),
            3 | 4 => {
                let extents: Vec<Extent> = (0..1 + self.below(2)).map(|_| self.extent()).collect();
                let folded = self.nest.axes(&extents);
                let inner = [axes, &folded].concat();
                let body = self.load(ty, &inner);
                let op = [Binary::Add, Binary::Max][self.below(2)];
                Scalar::reduce(op, folded, x, body)
            }
            _ => {
                let other = self.extent();
                let Some(axis) = axes.first() else { return x };
                let guard = Scalar::axis(axis.id).lt(Scalar::extent(other));
                select(guard, x, self.load(ty, axes))
            }
        }
    }

    fn stage(&mut self) {
        let ty = [F32, F32, F32, I32, I64, F64, U8, Boolean, U4][self.below(9)];
        let extents: Vec<Extent> = (0..1 + self.below(3)).map(|_| self.extent()).collect();
        let domain = self.nest.axes(&extents);
        let depth = self.below(3);
        let value = self.value(ty, &domain, depth);
        // The target's dims in another order, and some of them longer.
        let mut order = domain.clone();
        order.rotate_left(self.below(domain.len()));
        let dims: Vec<(Extent, Scalar)> = order
            .iter()
            .map(|axis| {
                let (i, own) = (Scalar::axis(axis.id), self.extent());
                match (self.below(4), axis.extent.plus(own)) {
                    (0, Some(both)) => (both, i + Scalar::extent(own)),
                    _ => (axis.extent, i),
                }
            })
            .collect();
        let (shape, at): (Vec<Extent>, Vec<Scalar>) = dims.into_iter().unzip();
        let target = self.nest.buffer("y", ty, &shape, Role::Output);
        let combines = ty.is_arithmetic() && self.below(6) == 0;
        self.nest.stages.push(Stage {
            domain,
            target,
            at,
            mode: match combines {
                true => Mode::Combine(Binary::Add),
                false => Mode::Set,
            },
            value,
            layers: vec![],
            group: None,
        });
        self.buffers.push(target);
    }
}

/// Small numbers; those of indices are mostly in range.
fn inputs(nest: &Nest) -> Vec<Vec<u8>> {
    let mut next = random(nest.buffers.len() as u64);
    let buffers = nest.buffers.iter().filter(|b| b.role == Role::Input);
    let mut of = |ty: ElementType| {
        let bits = next();
        let small = bits as i64 % 3;
        match ty {
            F32 => (small as f32 / 2.0).to_le_bytes().to_vec(),
            F64 => (small as f64 / 2.0).to_le_bytes().to_vec(),
            I32 => (small as i32).to_le_bytes().to_vec(),
            I64 => small.to_le_bytes().to_vec(),
            Boolean => vec![(bits & 1) as u8],
            _ => vec![bits as u8],
        }
    };
    let bytes = buffers.map(|b| {
        let count = element_count(&b.example()).unwrap();
        let mut bytes: Vec<u8> = (0..count).flat_map(|_| of(b.ty)).collect();
        bytes.truncate(b.ty.byte_len(count).unwrap());
        bytes
    });
    bytes.collect()
}

/// Whether there is no formula for the strides of a buffer.
fn is_too_long(nest: &Nest) -> bool {
    let code = COMPILER.compile(&[nest], &Options::default());
    code.is_err_and(|e| e.to_string().ends_with("strides are too long formulas"))
}

proptest! {
    #![proptest_config(crate::common::cases(300))]

    #[test]
    fn random_nests_with_symbols(numbers in prop::collection::vec(any::<u32>(), 1..80), stages in 1usize..3) {
        let mut builder = Builder {
            nest: Nest::new(),
            numbers: numbers.iter(),
            buffers: Vec::new(),
        };
        builder.nest.symbols = EXAMPLE.to_vec();
        (0..stages).for_each(|_| builder.stage());
        let nest = builder.nest;
        if vinelift_nest::verify(&nest).is_ok() && !is_too_long(&nest) {
            let values = [[2, 2], [2, 9], [5, 3], [16, 2], [17, 8], [33, 5]];
            check(&nest, &values.map(Vec::from), inputs);
        }
    }
}
