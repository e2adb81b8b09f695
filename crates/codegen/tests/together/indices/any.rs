//! Random nests with one or two data-dependent indices, gathers and scatters.

use super::{compare, headings, little_endian};
use crate::common::{Compiled, random, reference, site, vector_loops};
use vinelift_nest::{
    Axis, Binary, Buffer, BufferId, Mode, Nest, Policy, Role, Scalar, Stage, build::*, schedule,
    verify,
};
use vinelift_tensor::ElementType::{self, *};

#[test]
fn every_way_gives_what_the_interpreter_gives() {
    const WAYS: [&str; 7] = [
        "collected in blocks of 16 × ",
        "collected in blocks of 8 × ",
        "collected in blocks of 70:",
        "collected in blocks of 160:",
        "unrolled ×8, indices checked",
        "indices checked by vectors, rows in registers",
        "copies of",
    ];
    let mut met = [0; WAYS.len()];
    for seed in 0..600 {
        let mut choices = Choices(Box::new(random(seed)));
        let (nest, indices, extents) = case(&mut choices);
        // None, few or many from the end; none, one or several wrong.
        let (from_end, wrong) = (choices.of(&[0, 0, 2, 50]), choices.below(3));
        let buffers = nest.buffers.iter().enumerate();
        let inputs = buffers.filter(|(_, buffer)| buffer.role == Role::Input);
        let inputs = inputs.map(|(k, buffer)| match k == indices.0 as usize {
            true => index_values(&mut choices, buffer, &extents, from_end, wrong),
            false => {
                let count = buffer.example().iter().product();
                let bytes = buffer.ty.byte_len(count).unwrap();
                (0..bytes).map(|_| choices.below(7) as u8).collect()
            }
        });
        let inputs: Vec<Vec<u8>> = inputs.collect();
        let (expected, expected_result) = reference(&nest, &inputs);
        let mut scheduled = nest.clone();
        schedule(&mut scheduled);
        assert_eq!(verify(&scheduled), Ok(()), "seed {seed}\n{scheduled}");
        let headings = headings(&scheduled);
        for (met, way) in met.iter_mut().zip(WAYS) {
            *met += usize::from(headings.contains(way));
        }
        for nest in [nest, scheduled] {
            let compiled = Compiled::of_random(&nest, seed);
            compare(seed, &compiled, &inputs, &expected, &expected_result);
        }
    }
    let ways: Vec<(&str, usize)> = WAYS.into_iter().zip(met).collect();
    let least = match vector_loops() {
        [_, true] => WAYS.len(),
        // Without those of many lanes.
        [true, _] => WAYS.len() - 2,
        _ => 0,
    };
    assert!(met.iter().filter(|n| **n > 0).count() >= least, "{ways:?}");
}

/// Indices for `extents` in turns: `from_end` percent of them count from the end, and `wrong` are out of range.
fn index_values(
    choices: &mut Choices,
    buffer: &Buffer,
    extents: &[usize],
    from_end: usize,
    wrong: usize,
) -> Vec<u8> {
    let count: usize = buffer.example().iter().product();
    let mut values: Vec<i64> = (0..count)
        .map(|e| {
            let extent = extents[e % extents.len()];
            let value = choices.below(extent) as i64;
            match choices.below(100) < from_end && buffer.ty.is_signed_integer() {
                true => value - extent as i64,
                false => value,
            }
        })
        .collect();
    for _ in 0..wrong {
        let e = choices.below(count);
        let extent = extents[e % extents.len()] as i64;
        let beyond = [
            extent,
            -extent - 1,
            -1,
            i64::MAX,
            i64::MIN,
            1 << 31,
            extent + 3,
        ];
        values[e] = choices.of(&beyond);
    }
    values
        .iter()
        .flat_map(|v| little_endian(*v, buffer.ty))
        .collect()
}

/// A nest over two axes, its buffer of indices, and the extents that the elements of this index in turns.
fn case(choices: &mut Choices) -> (Nest, BufferId, Vec<usize>) {
    let form = Form::any(choices);
    let mut nest = Nest::new();
    let indices = nest.buffer("indices", form.index_ty, &form.index_shape(), Role::Input);
    let domain = nest.axes(&[form.outer, form.inner]);
    let at = form.position(&mut nest, indices, &domain);
    let whole: Vec<Scalar> = domain.iter().map(|axis| Scalar::axis(axis.id)).collect();
    let is_scatter = choices.below(2) == 0;
    let (target, at, mode, value) = if is_scatter {
        let shape = [form.outer, form.inner];
        let updates = nest.buffer("updates", form.ty, &shape, Role::Input);
        let out = nest.buffer("out", form.ty, &form.data_shape(), Role::Output);
        let mode = match form.ty {
            F32 | I64 | U8 | F64 | I32 => [
                Mode::Set,
                Mode::Combine(Binary::Add),
                Mode::Combine(Binary::Max),
            ][choices.below(3)],
            _ => Mode::Set,
        };
        (out, at, mode, nest.load(updates, whole))
    } else {
        let data = nest.buffer("data", form.ty, &form.data_shape(), Role::Input);
        let out = nest.buffer("out", form.ty, &[form.outer, form.inner], Role::Output);
        let gathered = nest.load(data, at);
        let value = form.use_of(choices, &mut nest, indices, gathered, &whole);
        (out, whole, Mode::Set, value)
    };
    nest.stages.push(Stage {
        domain,
        target,
        at,
        mode,
        value,
        layers: vec![],
        group: None,
    });
    (nest, indices, form.dims)
}

/// How a nest over `outer` and `inner` is indexed.
struct Form {
    outer: usize,
    inner: usize,
    ty: ElementType,
    index_ty: ElementType,
    policy: Policy,
    /// The extents of the dims of the data that are indexed.
    dims: Vec<usize>,
    /// Whether the indices vary with the outer axis alone.
    by_row: bool,
    /// Whether the dims of the indices are in the order opposite to that of the axes.
    transposed: bool,
    /// Whether the data have a dim for the outer axis, before those that are indexed or as the last one.
    row_first: bool,
    row_last: bool,
    /// Whether the data have a dim for the inner axis.
    with_column: bool,
}

impl Form {
    fn any(choices: &mut Choices) -> Form {
        let (mut outer, mut inner) = (choices.of(&EXTENTS), choices.of(&EXTENTS));
        // More than a block that is collected at once.
        match choices.below(24) {
            0 => inner = 300,
            1 => outer = 300,
            _ => {}
        }
        let (ty, index_ty) = (choices.of(&DATA), choices.of(&INDICES));
        let policy = Policy {
            negative: choices.below(2) == 0,
            zero: choices.below(3) == 0,
        };
        let dims = (0..1 + choices.below(2)).map(|_| choices.of(&EXTENTS));
        let dims = dims.collect();
        let by_row = choices.below(3) == 0;
        let transposed = choices.below(4) == 0;
        let with_row = choices.below(2) == 0;
        let with_column = by_row || choices.below(2) == 0;
        let row_last = with_row && choices.below(3) == 0;
        Form {
            outer,
            inner,
            ty,
            index_ty,
            policy,
            dims,
            by_row,
            transposed,
            row_first: with_row && !row_last,
            row_last,
            with_column,
        }
    }

    fn index_shape(&self) -> Vec<usize> {
        let mut shape = vec![self.outer];
        if !self.by_row {
            shape.push(self.inner);
        }
        if self.transposed {
            shape.reverse();
        }
        shape.push(self.dims.len());
        shape
    }

    fn data_shape(&self) -> Vec<usize> {
        let row = |is_there: bool| is_there.then_some(self.outer);
        let column = self.with_column.then_some(self.inner);
        let first = row(self.row_first).into_iter().chain(self.dims.clone());
        first.chain(column).chain(row(self.row_last)).collect()
    }

    /// Where in the data a point of the domain is.
    fn position(&self, nest: &mut Nest, indices: BufferId, domain: &[Axis]) -> Vec<Scalar> {
        let site = site(nest);
        let (i, j) = (Scalar::axis(domain[0].id), Scalar::axis(domain[1].id));
        let mut at = Vec::new();
        at.extend(self.row_first.then(|| i.clone()));
        for (d, &extent) in self.dims.iter().enumerate() {
            let position = self.index_position(&[i.clone(), j.clone()], d);
            let found = nest.load(indices, position.clone());
            at.push(nest.wrap(found, extent, self.policy, site.clone(), position));
        }
        at.extend(self.with_column.then_some(j));
        at.extend(self.row_last.then_some(i));
        at
    }

    /// Where the index of this dim is.
    fn index_position(&self, whole: &[Scalar], dim: usize) -> Vec<Scalar> {
        let axes = if self.by_row { 1 } else { 2 };
        let mut position = whole[..axes].to_vec();
        if self.transposed {
            position.reverse();
        }
        position.push(index(dim as i64));
        position
    }

    /// Something that uses what was gathered, and perhaps another gather, if there is arithmetic for the type.
    fn use_of(
        &self,
        choices: &mut Choices,
        nest: &mut Nest,
        indices: BufferId,
        gathered: Scalar,
        whole: &[Scalar],
    ) -> Scalar {
        if !matches!(self.ty, F32 | I32 | I64 | U8 | F64) || choices.below(3) == 0 {
            return gathered;
        }
        let bias = nest.buffer("bias", self.ty, &[self.inner], Role::Input);
        let bias = nest.load(bias, vec![whole[1].clone()]);
        let value = &gathered * &gathered + bias;
        if choices.below(2) != 0 || self.by_row {
            return value;
        }
        let other = nest.buffer("other", self.ty, &[7], Role::Input);
        let found = nest.load(indices, self.index_position(whole, 0));
        let site = site(nest);
        let found = nest.wrap(found, 7, Policy::WRAP, site, whole.to_vec());
        value - nest.load(other, vec![found])
    }
}

struct Choices(Box<dyn FnMut() -> u64>);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        (self.0)() as usize % n
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

const INDICES: [ElementType; 8] = [I64, I32, I64, I32, U8, I16, U64, U32];
const DATA: [ElementType; 9] = [F32, I64, U8, F16, F64, I8, I32, Boolean, U4];
const EXTENTS: [usize; 9] = [1, 2, 3, 5, 8, 16, 17, 33, 70];
