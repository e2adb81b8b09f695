//! Sums of products of rows with constants of few bits, which passes divide into groups.
//!
//! > `Σ_k row[k] · (codes[k] - zero)·scale`

#[cfg(test)]
pub(super) mod examples;

use super::contract::split_sum_axes;
use super::definitions::Definitions;
use super::simplify::simplify_stage;
use crate::analysis::{CodedLoad, Numbered, is_integer_code, strided_load, sums};
use crate::build::zero;
use crate::ir::{
    Axis, Binary, BufferId, Kind, Nest, Scalar, Stage, free_axes, rewrite, substitute,
};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::F32;

/// How many definitions lie between a sum and the constant that it takes, at most.
const MOST_DEPTH: usize = 10;

/// Constants of fewer elements are not worth it. Whoever lowers a model must leave larger ones as codes, and may decode smaller
/// ones to `f32`.
pub const LEAST_CODED: usize = 1 << 14;

/// The least columns of a constant that is worth it.
const LEAST_COLUMNS: usize = 16;

/// The least elements that share a zero point and a scale: for fewer there is no kernel.
const LEAST_SHARED: usize = 16;

/// Groups are divisible by this number of elements, which a kernel takes at once.
pub(super) const STEP: usize = 8;

/// The bytes of a buffer whose contents are known before the nest runs.
pub(super) type ConstantBytes<'c, 'a> = &'c dyn Fn(BufferId) -> Option<&'a [u8]>;

/// A sum of products of a row with constants of few bits.
pub(super) struct CodedProduct<'a> {
    pub(super) stage: &'a Stage,
    /// The buffer that the row lies in, and its indices but the last, which goes from end to end.
    pub(super) from: BufferId,
    pub(super) at: &'a [Scalar],
    /// How many elements the row has.
    pub(super) elements: usize,
    pub(super) weights: Weights,
}

/// A factor of constants: `(codes - zero) · scale`.
pub(super) struct Weights {
    /// The axis of the groups that share `zero` and `scale`, if there are several, and that of the elements of one.
    groups: Option<Axis>,
    inner: Axis,
    codes: Scalar,
    pub(super) zero: Option<Scalar>,
    pub(super) scale: Option<Scalar>,
    /// How many there are.
    count: usize,
}

/// Weights in groups that divide their own.
pub(super) struct Groups {
    /// The axes of the groups, and that of the elements of one.
    pub(super) outer: Vec<Axis>,
    pub(super) inner: Axis,
    /// The number of the group.
    pub(super) group: Scalar,
    /// The codes, by these axes.
    pub(super) codes: Scalar,
}

/// The sums or scales that a pass has computed for the groups of a buffer's rows, by the buffer and the length of a group.
pub(super) type MadeOfRows<R> = FxHashMap<(BufferId, usize), R>;

/// Calls `replacement` for each sum of products of a row with constants of few bits, at least `least` of them, and puts the
/// scalar that it returns in place of the sum. What it enters in the map serves later products with the same row, until a
/// stage writes the buffer that the row lies in.
pub(super) fn replace_coded_products<'a, R>(
    nest: &mut Nest,
    least: usize,
    constant: ConstantBytes<'_, 'a>,
    mut replacement: impl FnMut(&mut Nest, &CodedProduct, &mut MadeOfRows<R>) -> Option<Scalar>,
) {
    let is_code = |buffer: u32| {
        let buffer = BufferId(buffer);
        is_integer_code(nest.buf(buffer).ty) && constant(buffer).is_some()
    };
    if !(0..nest.buffers.len() as u32).any(is_code) {
        return;
    }
    let definitions = Definitions::of(nest);
    let mut rows = FxHashMap::default();
    for mut stage in std::mem::take(&mut nest.stages) {
        if stage.group.is_none() {
            for sum in sums(&stage) {
                let next_axis = nest.next_axis;
                let product = coded_product(nest, &definitions, constant, &stage, &sum);
                let product = product.filter(|product| product.weights.count >= least);
                let new = product.and_then(|product| replacement(nest, &product, &mut rows));
                match new {
                    Some(new) => substitute(&mut stage, &sum, &new),
                    None => nest.next_axis = next_axis,
                }
            }
        }
        rows.retain(|(from, _), _| *from != stage.target);
        nest.stages.push(stage);
    }
}

/// The parts of `sum`, if it is one of products of a row with constants of few bits.
fn coded_product<'a>(
    nest: &mut Nest,
    definitions: &Definitions,
    constant: ConstantBytes<'_, '_>,
    stage: &'a Stage,
    sum: &'a Scalar,
) -> Option<CodedProduct<'a>> {
    let Kind::Reduce { axes, body, .. } = sum.kind() else {
        return None;
    };
    let (left, right) = body.as_term()?;
    let [axis] = *axes.as_slice() else {
        return None;
    };
    [(left, right), (right, left)]
        .into_iter()
        .find_map(|(row, weights)| {
            let (from, at) = row_along(nest, row, axis)?;
            if constant(from).is_some() {
                return None;
            }
            Some(CodedProduct {
                stage,
                from,
                at,
                elements: axis.extent.number()?,
                weights: weights_of(nest, definitions, constant, stage, axis, row, weights)?,
            })
        })
}

/// A factor of constants in a sum over `axis`, with the axis in groups if it has such.
fn weights_of(
    nest: &mut Nest,
    definitions: &Definitions,
    constant: ConstantBytes<'_, '_>,
    stage: &Stage,
    axis: Axis,
    row: &Scalar,
    weights: &Scalar,
) -> Option<Weights> {
    let weights = definitions.expanded(nest, weights, MOST_DEPTH);
    CodedLoad::of(&weights)?;
    let term = Scalar::binary(Binary::Term, row.clone(), weights);
    let mut alone = Stage {
        value: Scalar::reduce(Binary::Add, vec![axis], zero(F32), term),
        ..stage.clone()
    };
    simplify_stage(&mut alone);
    split_sum_axes(nest, &mut alone);
    let Kind::Reduce { axes, body, .. } = alone.value.kind() else {
        return None;
    };
    let (groups, inner) = match axes.as_slice() {
        [inner] => (None, *inner),
        [groups, inner] => (Some(*groups), *inner),
        _ => return None,
    };
    let (left, right) = body.as_term()?;
    let coded = CodedLoad::of(right).or_else(|| CodedLoad::of(left))?;
    let is_code = is_integer_code(coded.numbers.ty());
    let (tensor, _) = strided_load(Numbered::example(nest), coded.numbers).filter(|_| is_code)?;
    let is_constant = |x: &Scalar| match loaded_buffer(x) {
        Some(buffer) => constant(buffer).is_some(),
        None => x.as_const().is_some(),
    };
    let (own, others) = (free_axes(coded.numbers), free_axes(row));
    let columns = stage.domain.iter().filter(|a| own.contains(&a.id));
    let [column] = columns.collect::<Vec<_>>()[..] else {
        return None;
    };
    let belongs = |id: &_| *id == column.id || groups.is_some_and(|g| g.id == *id);
    let fits = constant(tensor.buffer).is_some()
        && !others.contains(&column.id)
        && coded.points().all(is_constant)
        && coded.points().all(|x| free_axes(x).iter().all(belongs));
    let (columns, elements) = (column.extent.number()?, axis.extent.number()?);
    let is_shared = inner.extent.number()? >= LEAST_SHARED;
    (fits && columns >= LEAST_COLUMNS && is_shared).then(|| Weights {
        groups,
        inner,
        codes: coded.numbers.clone(),
        zero: coded.zero.cloned(),
        scale: coded.scale.cloned(),
        count: columns.saturating_mul(elements),
    })
}

impl Weights {
    /// How many elements share a zero point and a scale.
    pub(super) fn shared(&self) -> Option<usize> {
        self.inner.extent.number()
    }

    /// Divides the elements that share a zero point and a scale in groups of `length`, which divides them. There must be two
    /// groups in all, or more.
    pub(super) fn divided(&self, nest: &mut Nest, length: usize) -> Option<Groups> {
        let parts = self.shared()? / length;
        let (part, inner) = ((parts > 1).then(|| nest.axis(parts)), nest.axis(length));
        let of = |axis: Axis| Scalar::axis(axis.id);
        let group = match (self.groups.map(of), part.map(of)) {
            (Some(groups), Some(part)) => groups * parts as i64 + part,
            (groups, part) => groups.or(part)?,
        };
        let place = match part.map(of) {
            Some(part) => part * length as i64 + of(inner),
            None => of(inner),
        };
        let codes = rewrite(&self.codes, &mut |x| match x.is_axis(self.inner.id) {
            true => place.clone(),
            false => x,
        });
        Some(Groups {
            outer: self.groups.into_iter().chain(part).collect(),
            inner,
            group,
            codes,
        })
    }
}

/// The buffer that `row` loads and its indices but the last, if that is `axis` and goes along the last dim from end to end.
fn row_along<'a>(nest: &Nest, row: &'a Scalar, axis: Axis) -> Option<(BufferId, &'a [Scalar])> {
    let Kind::Load { buffer, at } = row.kind() else {
        return None;
    };
    let (last, others) = at.split_last()?;
    let is_whole = nest.buf(*buffer).shape.last() == Some(&axis.extent);
    let is_plain = |index: &Scalar| !index.wraps() && !free_axes(index).contains(&axis.id);
    let fits = row.ty() == F32 && last.is_axis(axis.id) && is_whole;
    (fits && others.iter().all(is_plain)).then_some((*buffer, others))
}

/// The buffer that `x` loads from, or converts a load from.
pub(super) fn loaded_buffer(x: &Scalar) -> Option<BufferId> {
    match x.kind() {
        Kind::Load { buffer, .. } => Some(*buffer),
        Kind::Cast(x) => loaded_buffer(x),
        _ => None,
    }
}
