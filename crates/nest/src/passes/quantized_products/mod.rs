//! Sums of products of values on grids, as sums of products of bytes.
//!
//! > `Σ_k (a[k] - p)·s · (b[k] - q)·t = (Σ_k a[k]·b[k] - p·Σ_k b[k] - q·Σ_k a[k] + K·p·q) · s·t`
//!
//! where `a` is a `u8` and `b` an `i8` or the other way round, `p` and `q` are integer zero points and `s` and `t`
//! scales that do not depend on `k`: quantised activations ([`Grid`]) with weights of 8 bits or with each other.
//! The sums on the right are integers and exact, so the result is nearer to the sum in real numbers than a
//! sum of `f32` is, and it does not depend on any order. It is this form that defines the result, for
//! the interpreter as well. Where a value is NaN, so is every sum that it is part of.
//!
//! What is a sum of integers from the start, numbers of 8 bits less zero points, stays what it is, bit by bit
//! (`integers`).

mod grid;
mod integers;
#[cfg(test)]
mod tests;

use crate::analysis::{CodedLoad, is_sum_of_terms, sum_of_products, sums_that};
use crate::build::{integer, number, select, zero};
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Definition, Kind, Mode, Nest, Role, Scalar, Stage, free_axes,
    rewrite_stage,
};
use grid::Grid;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::ElementType::{self, F32, I8, I32, U8};
use vinelift_tensor::Extent;

/// Fewer products than this stay as they are.
const LEAST_PRODUCTS: usize = 1 << 14;

/// Fewer results than this from one element of an operand, too.
const LEAST_WIDTH: usize = 4;

/// How many definitions lie between a sum and what it takes, at most.
const MOST_DEPTH: usize = 6;

/// Puts sums of bytes in place of every sum of products that allows it. `constant` gives the bytes of a buffer
/// that is constant.
pub fn quantized_products<'a>(nest: &mut Nest, constant: &dyn Fn(BufferId) -> Option<&'a [u8]>) {
    if !nest.stages.iter().any(|stage| !products(stage).is_empty()) {
        return;
    }
    let mut pass = Pass {
        definitions: definitions(nest),
        grids: grids(nest),
        constant: &|buffer| constant(buffer),
        codes: FxHashMap::default(),
        made: Vec::new(),
    };
    for mut stage in std::mem::take(&mut nest.stages) {
        if stage.group.is_none() {
            for sum in products(&stage) {
                if let Some(new) = pass.replacement(nest, &stage, &sum) {
                    rewrite_stage(&mut stage, &mut |x| match x == sum {
                        true => new.clone(),
                        false => x,
                    });
                }
            }
        }
        nest.stages.append(&mut pass.made);
        nest.stages.push(stage);
    }
}

/// The stages whose values are on grids, by their targets.
fn grids(nest: &Nest) -> FxHashMap<BufferId, Grid> {
    let stages = nest.stages.iter();
    stages
        .filter_map(|stage| Some((stage.target, Grid::of(stage)?)))
        .collect()
}

/// The stages that are all that writes their buffers, which nothing writes again that they read.
fn definitions(nest: &Nest) -> FxHashMap<BufferId, Stage> {
    let mut writers: FxHashMap<BufferId, usize> = FxHashMap::default();
    for stage in &nest.stages {
        *writers.entry(stage.target).or_default() += 1;
    }
    let once = |b: &BufferId| match nest.buf(*b).role {
        Role::Temporary => writers.get(b) == Some(&1),
        _ => !writers.contains_key(b),
    };
    let is_definition = |stage: &&Stage| {
        stage.is_definition(nest) && once(&stage.target) && stage.loads().iter().all(once)
    };
    let stages = nest.stages.iter().filter(is_definition);
    stages.map(|stage| (stage.target, stage.clone())).collect()
}

/// The sums of products in a stage's value: those that a kernel may take, and all of `i32`.
fn products(stage: &Stage) -> Vec<Scalar> {
    sums_that(stage, |x| {
        sum_of_products(x).is_some() || (x.ty() == I32 && is_sum_of_terms(x))
    })
}

struct Pass<'a> {
    definitions: FxHashMap<BufferId, Stage>,
    grids: FxHashMap<BufferId, Grid>,
    /// The buffers of codes that there are already.
    codes: FxHashMap<(BufferId, ElementType), BufferId>,
    /// The stages to be put before the one that is looked at.
    made: Vec<Stage>,
    /// The bytes of a buffer that is constant.
    constant: &'a dyn Fn(BufferId) -> Option<&'a [u8]>,
}

/// A factor `(code - zero) · scale + poison`.
struct Bytes {
    /// A `u8` or an `i8`.
    code: Scalar,
    zero: i64,
    scale: Scale,
    /// 0, or NaN where the factor is; nothing if it never is.
    poison: Option<Scalar>,
}

impl Bytes {
    /// No `code - zero` is larger.
    fn largest(&self) -> i64 {
        let (low, high) = if self.code.ty() == I8 {
            (-128, 127)
        } else {
            (0, 255)
        };
        (low - self.zero).abs().max((high - self.zero).abs())
    }
}

enum Scale {
    Value(f64),
    Tensor(Scalar),
}

impl Pass<'_> {
    /// The scalar that replaces `sum`.
    fn replacement(&mut self, nest: &mut Nest, stage: &Stage, sum: &Scalar) -> Option<Scalar> {
        let of_grids = self.attempt(nest, |pass, nest| pass.of_grids(nest, stage, sum));
        of_grids.or_else(|| self.attempt(nest, |pass, nest| pass.of_integers(nest, stage, sum)))
    }

    /// What `make` gives. If that is nothing, what it has made on the way is gone.
    fn attempt(
        &mut self,
        nest: &mut Nest,
        make: impl FnOnce(&mut Self, &mut Nest) -> Option<Scalar>,
    ) -> Option<Scalar> {
        let (buffers, next_axis, stages) = (nest.buffers.len(), nest.next_axis, self.made.len());
        let codes = self.codes.clone();
        let made = make(self, nest);
        if made.is_none() {
            nest.truncate_buffers(buffers);
            nest.next_axis = next_axis;
            self.made.truncate(stages);
            self.codes = codes;
        }
        made
    }

    /// The scalar that replaces `sum`, one of values on grids.
    fn of_grids(&mut self, nest: &mut Nest, stage: &Stage, sum: &Scalar) -> Option<Scalar> {
        let Kind::Reduce { axes, body, .. } = sum.kind() else {
            return None;
        };
        let (left, right) = body.as_term()?;
        if self.grids.is_empty() || sum.ty() != F32 || !pays(stage, axes, left, right) {
            return None;
        }
        let (left_number, right_number) = (self.numbers(nest, left), self.numbers(nest, right));
        let (left, right) = match (left_number, right_number) {
            (Some(_), Some(_)) => return None,
            (Some(left), None) => {
                let ty = other_type(left.code.ty());
                (left, self.codes_of(nest, right, ty, 0)?)
            }
            (None, Some(right)) => {
                let ty = other_type(right.code.ty());
                (self.codes_of(nest, left, ty, 0)?, right)
            }
            (None, None) => (
                self.codes_of(nest, left, U8, 0)?,
                self.codes_of(nest, right, I8, 0)?,
            ),
        };
        let varies = |x: &Scalar| {
            let free = free_axes(x);
            axes.iter().any(|axis| free.contains(&axis.id))
        };
        let tensors = [&left.scale, &right.scale].into_iter();
        if tensors.filter_map(Scale::tensor).any(varies) {
            return None;
        }
        // Whether no sum overflows depends on the number.
        let count: usize = axes.iter().map(|axis| axis.extent.pin()).product();
        let largest = left.largest().saturating_mul(right.largest());
        i32::try_from(largest.saturating_mul(i64::try_from(count).ok()?)).ok()?;
        let name = nest.buf(stage.target).name.clone();
        let wide = |x: &Scalar| x.clone().cast(I32);
        let term = Scalar::binary(Binary::Term, wide(&left.code), wide(&right.code));
        let mut total = Scalar::reduce(Binary::Add, axes.clone(), zero(I32), term);
        for (factor, other, side) in [(&left, &right, "left"), (&right, &left, "right")] {
            // Of a zero point the other factor's sum is taken away.
            if other.zero != 0 {
                let name = format!("{name}.{side}.total");
                let part = self.fold(nest, stage, &name, axes, wide(&factor.code));
                total = total - part * integer(other.zero, I32);
            }
        }
        let both = left.zero * right.zero * count as i64;
        if both != 0 {
            total = total + integer(both, I32);
        }
        let mut value = left.scale.times(right.scale).scaled(total.cast(F32));
        for (factor, side) in [(left.poison, "left"), (right.poison, "right")] {
            if let Some(poison) = factor {
                let name = format!("{name}.{side}.nan");
                value = value + self.fold(nest, stage, &name, axes, poison);
            }
        }
        Some(value)
    }

    /// A factor of numbers of 8 bits, a constant zero point, and a scale.
    fn numbers(&self, nest: &mut Nest, x: &Scalar) -> Option<Bytes> {
        let x = self.expanded(nest, x, MOST_DEPTH);
        let coded = CodedLoad::of(&x)?;
        let zero = match coded.zero {
            Some(zero) => f64::from(f32::from_bits(zero.as_const()? as u32)),
            None => 0.0,
        };
        let is_zero = zero.fract() == 0.0 && zero.abs() <= 255.0;
        let is_byte = matches!(coded.numbers.ty(), U8 | I8);
        (is_zero && is_byte).then(|| Bytes {
            code: coded.numbers.clone(),
            zero: zero as i64,
            scale: match coded.scale {
                Some(scale) => Scale::Tensor(scale.clone()),
                None => Scale::Value(1.0),
            },
            poison: None,
        })
    }

    /// `x` with the values of the conversions, differences and products that it loads.
    fn expanded(&self, nest: &mut Nest, x: &Scalar, depth: usize) -> Scalar {
        match x.kind() {
            Kind::Load { buffer, at } => match self.definitions.get(buffer) {
                Some(stage) if depth > 0 && is_elementwise(&stage.value) => {
                    let value = Definition::of(stage).instantiate(nest, at);
                    self.expanded(nest, &value, depth - 1)
                }
                _ => x.clone(),
            },
            Kind::Cast(_) | Kind::Binary(Binary::Mul | Binary::Sub, ..) => {
                x.with_children(|child| self.expanded(nest, child, depth))
            }
            _ => x.clone(),
        }
    }

    /// A factor on a grid, as codes of the given type.
    fn codes_of(
        &mut self,
        nest: &mut Nest,
        x: &Scalar,
        ty: ElementType,
        depth: usize,
    ) -> Option<Bytes> {
        let less = if ty == I8 { 128 } else { 0 };
        match x.kind() {
            // Padding.
            Kind::Select(condition, inner, outside) if outside.as_const() == Some(0) => {
                let inner = self.codes_of(nest, inner, ty, depth)?;
                let codes = if ty == I8 { -128..=127 } else { 0..=255 };
                codes.contains(&inner.zero).then_some(())?;
                let zero_code = integer(inner.zero, ty);
                Some(Bytes {
                    code: select(condition.clone(), inner.code, zero_code),
                    poison: inner
                        .poison
                        .map(|poison| select(condition.clone(), poison, zero(F32))),
                    ..inner
                })
            }
            Kind::Load { buffer, at } => {
                let stage = self.definitions.get(buffer)?.clone();
                let Some(grid) = self.grids.get(buffer).cloned() else {
                    let is_move = matches!(stage.value.kind(), Kind::Load { .. });
                    if depth == MOST_DEPTH || !is_move {
                        return None;
                    }
                    let moved = Definition::of(&stage).instantiate(nest, at);
                    return self.codes_of(nest, &moved, ty, depth + 1);
                };
                let target = match self.codes.get(&(*buffer, ty)) {
                    Some(target) => *target,
                    None => {
                        let name = format!("{}.{ty}", nest.buf(*buffer).name);
                        let code = grid.code(ty, less);
                        let made = self.store(nest, &name, &stage, &stage.domain, &code);
                        self.codes.insert((*buffer, ty), made);
                        made
                    }
                };
                let x = Definition {
                    value: &grid.x,
                    ..Definition::of(&stage)
                };
                let x = x.instantiate(nest, at);
                let nan = number(f64::NAN, F32);
                Some(Bytes {
                    code: nest.load(target, at.clone()),
                    zero: grid.zero - less,
                    scale: Scale::Value(grid.scale),
                    poison: Some(select(x.ne(x.clone()), nan, zero(F32))),
                })
            }
            _ => None,
        }
    }

    /// The sum of `body` over `sum_axes`, as a load of a stage of its own over the other axes of `stage`.
    fn fold(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        name: &str,
        sum_axes: &[Axis],
        body: Scalar,
    ) -> Scalar {
        let free = free_axes(&body);
        let outer = stage.domain.iter().filter(|a| free.contains(&a.id));
        let outer: Vec<Axis> = outer.copied().collect();
        let init = zero(body.ty());
        let sum = Scalar::reduce(Binary::Add, sum_axes.to_vec(), init, body);
        let target = self.store(nest, name, stage, &outer, &sum);
        nest.load(target, outer.iter().map(|a| Scalar::axis(a.id)).collect())
    }

    /// Makes the stage that stores `value`, which is over `axes`, for the layers of `stage`.
    fn store(
        &mut self,
        nest: &mut Nest,
        name: &str,
        stage: &Stage,
        axes: &[Axis],
        value: &Scalar,
    ) -> BufferId {
        let shape: Vec<Extent> = axes.iter().map(|a| a.extent).collect();
        let target = nest.buffer(name, value.ty(), &shape, Role::Temporary);
        let domain = nest.axes(&shape);
        let at: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let definition = Definition {
            target,
            axes,
            value,
        };
        self.made.push(Stage {
            value: definition.instantiate(nest, &at),
            domain,
            target,
            at,
            mode: Mode::Set,
            layers: stage.layers.clone(),
            group: None,
        });
        target
    }
}

impl Scale {
    fn tensor(&self) -> Option<&Scalar> {
        match self {
            Scale::Value(_) => None,
            Scale::Tensor(scale) => Some(scale),
        }
    }

    fn times(self, other: Scale) -> Scale {
        match (self, other) {
            (Scale::Value(a), Scale::Value(b)) => Scale::Value(a * b),
            (Scale::Tensor(a), Scale::Tensor(b)) => Scale::Tensor(a * b),
            (Scale::Tensor(a), Scale::Value(b)) | (Scale::Value(b), Scale::Tensor(a)) => {
                Scale::Tensor(a * number(b, F32))
            }
        }
    }

    fn scaled(self, x: Scalar) -> Scalar {
        match self {
            Scale::Value(scale) => x * number(scale, F32),
            Scale::Tensor(scale) => x * scale,
        }
    }
}

fn is_elementwise(x: &Scalar) -> bool {
    matches!(
        x.kind(),
        Kind::Load { .. } | Kind::Cast(_) | Kind::Binary(Binary::Mul | Binary::Sub, ..)
    )
}

fn other_type(ty: ElementType) -> ElementType {
    if ty == U8 { I8 } else { U8 }
}

/// Whether there is enough to do, with results that share what they load. As this decides how sums are rounded, the
/// plan relies on it from now on.
fn pays(stage: &Stage, axes: &[Axis], left: &Scalar, right: &Scalar) -> bool {
    let (left, right) = (free_axes(left), free_axes(right));
    let product = |of: &dyn Fn(&&Axis) -> bool| {
        let extents = stage.domain.iter().filter(of).map(|a| a.extent);
        extents.fold(1.into(), Extent::product)
    };
    let is_least = |least: usize, extent: Extent| Extent::from(least).at_most(extent);
    let only = |own: &FxHashSet<AxisId>, other: &FxHashSet<AxisId>| {
        product(&|axis| own.contains(&axis.id) && !other.contains(&axis.id))
    };
    let terms = axes.iter().map(|a| a.extent);
    let terms = terms.fold(1.into(), Extent::product);
    let results = product(&|axis| left.contains(&axis.id) || right.contains(&axis.id));
    is_least(LEAST_PRODUCTS, terms.product(results))
        && is_least(LEAST_WIDTH, only(&left, &right))
        && is_least(LEAST_WIDTH, only(&right, &left))
}
