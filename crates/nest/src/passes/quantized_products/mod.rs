//! Sums of products of values on grids, as sums of products of bytes.
//!
//! > `Σ_k (a[k] - p)·s · (b[k] - q)·t = (Σ_k a[k]·b[k] - p·Σ_k b[k] - q·Σ_k a[k] + K·p·q) · s·t`
//!
//! where `a` is a `u8` and `b` an `i8` or the other way round, `p` and `q` are integer zero points and `s` and `t`
//! scales that do not depend on `k`: quantised activations ([`OnGrid`]) with weights of 8 bits or with each other.
//! The sums on the right are integers and exact, so the result is nearer to the sum in real numbers than a
//! sum of `f32` is, and it does not depend on any order. It is this form that defines the result, for
//! the interpreter as well. Where a value is NaN, so is every sum that it is part of.
//!
//! The largest value in a window of such has the largest of their codes (`largest`); where one of them is NaN, so is every sum that
//! it is part of.
//!
//! So are values on a grid, wherever they are used: `(code - zero) · scale`, with two roundings, where the operator's formula has five,
//! and one more value at the upper end.
//!
//! Codes that are stored for a product are what all others read, too, where it is known when a value is NaN (`stored`).
//!
//! A sum of integers from the start, of numbers of 8 bits less zero points, keeps its value bit by bit
//! (`integers`).

mod channels;
mod concatenation;
mod digits;
mod factors;
mod grid;
mod integers;
mod largest;
mod nans;
mod stored;
#[cfg(test)]
mod tests;

use crate::analysis::{is_proven, is_sum_of_terms, sum_of_products, sums_that};
use crate::build::{index, zero};
use crate::ir::{
    Axis, Binary, BufferId, Definition, Kind, Mode, Nest, Role, Scalar, Stage, free_axes, rewrite,
    substitute,
};
use crate::passes::definitions::Definitions;
use channels::by_channel;
use concatenation::{Concatenation, concatenations};
use digits::{Digit, over_digits};
use grid::{Formula, OnGrid, Rounded};
use largest::Window;
use nans::Known;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::ElementType::{self, I8, I32, U8};
use vinelift_tensor::Extent;

/// The least number of products, over all results, that is worth it.
const LEAST_PRODUCTS: usize = 1 << 14;

/// The least number of results, from one element of each operand, that is worth it.
const LEAST_WIDTH: usize = 4;

/// With fewer results from one element of an operand, the least from an element of the other, and the least number of products.
const LEAST_COLUMNS: usize = 64;
const LEAST_OF_ROW: usize = 1 << 16;

/// How many definitions lie between a sum and what it takes, at most.
const MOST_DEPTH: usize = 6;

/// Puts sums of bytes in place of every sum of products that allows it. `constant` gives the bytes of a buffer
/// that is constant.
pub fn quantized_products<'a>(nest: &mut Nest, constant: &dyn Fn(BufferId) -> Option<&'a [u8]>) {
    let is_left = |stage: &Stage| Formula::of(&stage.value).is_none() && products(stage).is_empty();
    if nest.stages.iter().all(is_left) {
        return;
    }
    let grids = grids(nest);
    let mut pass = Pass {
        definitions: Definitions::of(nest),
        concatenations: concatenations(nest, &grids),
        grids,
        constant: &|buffer| constant(buffer),
        codes: FxHashMap::default(),
        nans: FxHashMap::default(),
        nan_buffers: FxHashSet::default(),
        known: FxHashMap::default(),
        made: Vec::new(),
    };
    for mut stage in std::mem::take(&mut nest.stages) {
        if stage.group.is_none() {
            for sum in products(&stage) {
                if let Some(new) = pass.replacement(nest, &stage, &sum) {
                    substitute(&mut stage, &sum, &new);
                }
            }
        }
        pass.note(nest, &stage);
        if let Some(rounded) = Rounded::of(&stage) {
            stage.value = rounded.value();
        } else if let Some(value) = by_channel(nest, &stage, constant) {
            stage.value = value;
        }
        nest.stages.append(&mut pass.made);
        nest.stages.push(stage);
    }
    pass.read_stored(nest);
}

/// The stages whose values are on grids, by their targets.
fn grids(nest: &Nest) -> FxHashMap<BufferId, OnGrid> {
    let mut grids: FxHashMap<BufferId, OnGrid> = FxHashMap::default();
    for stage in &nest.stages {
        let found = Rounded::of(stage).map(OnGrid::Rounded).or_else(|| {
            // The codes of larger values are larger.
            let is_ordered = |of| (grids.get(&of)).is_some_and(|of| of.grid().scale > 0.0);
            let window = Window::of(nest, stage, is_ordered)?;
            let grid = *grids.get(&window.buffer)?.grid();
            Some(OnGrid::Largest(grid, window))
        });
        grids.extend(found.map(|found| (stage.target, found)));
    }
    grids
}

/// The sums of products in a stage's value: those that a kernel may take, and all of `i32`.
fn products(stage: &Stage) -> Vec<Scalar> {
    sums_that(stage, |x| {
        sum_of_products(x).is_some() || (x.ty() == I32 && is_sum_of_terms(x))
    })
}

struct Pass<'a> {
    definitions: Definitions,
    grids: FxHashMap<BufferId, OnGrid>,
    concatenations: FxHashMap<BufferId, Concatenation>,
    /// The buffers of codes that there are already.
    codes: FxHashMap<(BufferId, ElementType), BufferId>,
    /// The buffers that hold NaN where an element of another is, summed over some dims, which are in order: for each buffer of values
    /// on a grid, or that are known.
    nans: FxHashMap<(BufferId, Vec<usize>), BufferId>,
    /// All buffers that hold NaN or 0.
    nan_buffers: FxHashSet<BufferId>,
    /// For the target of each stage before: the bound of its values and where they are NaN, by the axes of the stage.
    known: FxHashMap<BufferId, Known>,
    /// The stages to be put before the one that is looked at.
    made: Vec<Stage>,
    /// The bytes of a buffer that is constant.
    constant: &'a dyn Fn(BufferId) -> Option<&'a [u8]>,
}

impl Pass<'_> {
    /// The scalar that replaces `sum`.
    fn replacement(&mut self, nest: &mut Nest, stage: &Stage, sum: &Scalar) -> Option<Scalar> {
        let of_grids = self.attempt(nest, |pass, nest| pass.of_grids(nest, stage, sum));
        of_grids.or_else(|| self.attempt(nest, |pass, nest| pass.of_integers(nest, stage, sum)))
    }

    /// The result of `make`. Undoes everything that `make` added if there is no result, or if the accesses of a stage
    /// that it added are proven only by a guard around the sum.
    fn attempt<R>(
        &mut self,
        nest: &mut Nest,
        make: impl FnOnce(&mut Self, &mut Nest) -> Option<R>,
    ) -> Option<R> {
        let (buffers, next_axis, stages) = (nest.buffers.len(), nest.next_axis, self.made.len());
        let made = make(self, nest);
        let made = made.filter(|_| self.made[stages..].iter().all(|s| is_proven(nest, s)));
        if made.is_none() {
            nest.truncate_buffers(buffers);
            nest.next_axis = next_axis;
            self.made.truncate(stages);
            let is_left = |buffer: &BufferId| (buffer.0 as usize) < buffers;
            self.codes.retain(|_, made| is_left(made));
            self.nans.retain(|_, made| is_left(made));
            self.nan_buffers.retain(is_left);
        }
        made
    }

    /// The sum of `body` over `sum_axes` times a number of its type, as a load of a stage of its own over the other axes of `stage`, or
    /// their digits.
    fn fold(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        name: &str,
        sum_axes: &[Axis],
        body: Scalar,
        times: Option<Scalar>,
    ) -> Scalar {
        let (body, outer, at) = over_digits(nest, body, &stage.domain);
        let init = zero(body.ty());
        let sum = Scalar::reduce(Binary::Add, sum_axes.to_vec(), init, body);
        let value = match times {
            Some(times) => sum * times,
            None => sum,
        };
        let target = self.store(nest, name, stage, &outer, &value);
        nest.load(target, at)
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

fn other_type(ty: ElementType) -> ElementType {
    if ty == U8 { I8 } else { U8 }
}

/// Whether `x` depends on one of the axes that are summed over.
fn varies(x: &Scalar, axes: &[Axis]) -> bool {
    let free = free_axes(x);
    axes.iter().any(|axis| free.contains(&axis.id))
}

/// Whether a load reads zero where an index is out of range. A code of zero need not stand for the value zero.
fn reads_zero(at: &[Scalar]) -> bool {
    at.iter().any(Scalar::reads_zero)
}

/// Whether there is enough to do, with results that share what they load. As this decides how sums are rounded, the
/// plan relies on it from now on.
fn pays(stage: &Stage, axes: &[Axis], left: &Scalar, right: &Scalar) -> bool {
    let terms = axes.iter().map(|a| a.extent);
    let terms = terms.fold(1.into(), Extent::product);
    let (of_left, of_right) = (free_axes(left), free_axes(right));
    let results = stage.domain.iter();
    let results = results.filter(|axis| of_left.contains(&axis.id) || of_right.contains(&axis.id));
    let results = results
        .map(|axis| axis.extent)
        .fold(1.into(), Extent::product);
    let is_least = |least: usize, extent: Extent| Extent::from(least).at_most(extent);
    let products = terms.product(results);
    if !is_least(LEAST_PRODUCTS, products) {
        return false;
    }
    let widths = [width(stage, left, right), width(stage, right, left)];
    let are_wide = widths.iter().all(|width| is_least(LEAST_WIDTH, *width));
    // An axis that both operands go along, as depthwise convolutions have one of channels, makes many products of few columns.
    let is_shared =
        |axis: &Axis| axis.extent != 1 && of_left.contains(&axis.id) && of_right.contains(&axis.id);
    let is_row = || {
        widths.iter().any(|width| is_least(LEAST_COLUMNS, *width))
            && is_least(LEAST_OF_ROW, products)
            && !stage.domain.iter().any(is_shared)
    };
    are_wide || is_row()
}

/// The number of results of `stage` that share an element of `other`: those that `own` alone leads to.
fn width(stage: &Stage, own: &Scalar, other: &Scalar) -> Extent {
    let [free, of_other] = [own, other].map(|x| free_axes(&without_remainders(x)));
    let axes = stage.domain.iter().filter(|axis| free.contains(&axis.id));
    let shared = axes.map(|axis| {
        let digits = [own, other].map(|x| Digit::of(x, axis.id));
        match digits {
            // Channels of a group.
            [None, Some(Digit::Quotient(n))] => n.into(),
            _ if of_other.contains(&axis.id) => 1.into(),
            _ => axis.extent,
        }
    });
    shared.fold(1.into(), Extent::product)
}

/// `x` with 0 in place of each index that is a remainder: those of a window that goes by strides are the same again and again, as
/// in transposed convolutions.
fn without_remainders(x: &Scalar) -> Scalar {
    rewrite(x, &mut |x| match x.kind() {
        Kind::Binary(Binary::Rem, _, by) if by.as_index().is_some() => index(0),
        _ => x,
    })
}
