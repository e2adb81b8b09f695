//! Dynamic quantisation: of sums of products with constants of few bits, the other factor is quantised in groups of a row.
//!
//! > `Σ_k x[k] · (w[k] - z)·t` becomes `Σ_g s[g] · (f32(Σ_i q[g, i] · (w[g·L + i] - z)) · t)`, where `k = g·L + i`,
//! > `s[g] = max(max_i |x[g·L + i]| / 127, 2⁻¹²⁶)` and `q[g, i] = round(x[g·L + i] / s[g])`
//!
//! `w` are constants of 4 or 8 bits, with integer zero points `z` and scales `t` that groups of `k` share; `L` divides these
//! groups. The inner sums are integers, and exact; the outer sum takes the groups in order by one fused multiply-add each. So
//! an `x[k]` is off by at most a 254th of the largest of its group, and nothing else is less precise than before. A
//! group with an infinite element or NaN makes sums of NaN.
//!
//! It changes results, and runs only if it is asked for. Then it is the meaning of the nest at every level. Rows are those
//! along the last dim of a tensor; values on a grid, whose products are exact, are not quantised again: `quantized_products`
//! comes first.

#[cfg(test)]
mod tests;

use crate::analysis::{CodedLoad, is_integer_code, strided_load, sums};
use crate::build::{integer, number, select, zero};
use crate::ir::{
    Axis, Binary, BufferId, Kind, LayerId, MAX_RANK, Nest, Role, Scalar, Stage, free_axes, rewrite,
    substitute,
};
use crate::passes::contract::split_sum_axes;
use crate::passes::definitions::Definitions;
use crate::passes::simplify::simplify_stage;
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::{self, BF16, F16, F32, I8, I32};
use vinelift_tensor::Extent;
use vinelift_tensor::half::{bf16, f16};

/// How many definitions lie between a sum and the constant that it takes, at most.
const MOST_DEPTH: usize = 10;

/// Constants of fewer elements than this, or fewer columns, are not worth it.
const LEAST_ELEMENTS: usize = 1 << 14;
const LEAST_COLUMNS: usize = 16;

/// Zero points and scales that fewer elements share have no kernel.
const LEAST_SHARED: usize = 16;

/// Groups are divisible by this number of elements, which a kernel takes at once.
const STEP: usize = 8;

/// Longer groups could overflow the sum of an `i32`, as far as products of -127 to 127 with differences of two bytes go.
const LONGEST: usize = (i32::MAX / (127 * 512)) as usize;

/// Quantises rows in groups of at most `group` elements wherever a sum of products takes a constant of few bits, whose own
/// groups these divide. `constant` gives the bytes of a buffer whose contents are known before the nest runs.
pub fn dynamic_quantization<'a>(
    nest: &mut Nest,
    group: usize,
    constant: &dyn Fn(BufferId) -> Option<&'a [u8]>,
) {
    let mut pass = Pass {
        group,
        definitions: Definitions::of(nest),
        constant: &|buffer| constant(buffer),
        rows: FxHashMap::default(),
    };
    for mut stage in std::mem::take(&mut nest.stages) {
        if stage.group.is_none() {
            for sum in sums(&stage) {
                if let Some(new) = pass.replacement(nest, &stage, &sum) {
                    substitute(&mut stage, &sum, &new);
                }
            }
        }
        pass.rows.retain(|(from, _), _| *from != stage.target);
        nest.stages.push(stage);
    }
}

struct Pass<'a> {
    group: usize,
    definitions: Definitions,
    /// The bytes of a buffer that is constant.
    constant: &'a dyn Fn(BufferId) -> Option<&'a [u8]>,
    /// The rows that are quantised already, by what they are of and the length of a group.
    rows: FxHashMap<(BufferId, usize), Rows>,
}

/// Rows that are quantised: `values[.., g·L + i] = codes[.., g, i] · scales[.., g]`.
#[derive(Clone, Copy)]
struct Rows {
    codes: BufferId,
    scales: BufferId,
}

/// A factor of constants: `(codes - zero) · scale`.
struct Weights {
    /// The axis of the groups that share `zero` and `scale`, if there are several, and that of the elements of one.
    groups: Option<Axis>,
    inner: Axis,
    codes: Scalar,
    /// An `i32`.
    zero: Option<Scalar>,
    scale: Option<Scalar>,
}

impl Pass<'_> {
    /// The scalar that replaces `sum`.
    fn replacement(&mut self, nest: &mut Nest, stage: &Stage, sum: &Scalar) -> Option<Scalar> {
        let Kind::Reduce { axes, body, .. } = sum.kind() else {
            return None;
        };
        let (left, right) = body.as_term()?;
        let [axis] = axes.as_slice() else {
            return None;
        };
        let next_axis = nest.next_axis;
        let mut made = None;
        for (row, weights) in [(left, right), (right, left)] {
            made = made.or_else(|| self.of_factors(nest, stage, *axis, row, weights));
        }
        if made.is_none() {
            nest.next_axis = next_axis;
        }
        made
    }

    /// As [`Pass::replacement`], if `row` can be quantised along `axis` and `weights` are constants of few bits.
    fn of_factors(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        axis: Axis,
        row: &Scalar,
        weights: &Scalar,
    ) -> Option<Scalar> {
        let (from, at) = row_along(nest, row, axis)?;
        if (self.constant)(from).is_some() {
            return None;
        }
        let weights = self.weights(nest, stage, axis, row, weights)?;
        let elements = axis.extent.number()?;
        let length = self.length(elements, weights.inner.extent.number()?)?;
        let rows = self.quantized(nest, &stage.layers, from, length)?;

        let parts = weights.inner.extent.number()? / length;
        let (part, inner) = ((parts > 1).then(|| nest.axis(parts)), nest.axis(length));
        let outer: Vec<Axis> = weights.groups.into_iter().chain(part).collect();
        let of = |axis: Axis| Scalar::axis(axis.id);
        let group = match (weights.groups.map(of), part.map(of)) {
            (Some(groups), Some(part)) => groups * parts as i64 + part,
            (groups, part) => groups.or(part)?,
        };
        let place = match part.map(of) {
            Some(part) => part * length as i64 + of(inner),
            None => of(inner),
        };
        let codes = rewrite(&weights.codes, &mut |x| match x.is_axis(weights.inner.id) {
            true => place.clone(),
            false => x,
        });
        let difference = match weights.zero {
            Some(zero) => codes.cast(I32) - zero,
            None => codes.cast(I32),
        };
        let load = |buffer, more: &[Scalar]| nest.load(buffer, [at, more].concat());
        let element = load(rows.codes, &[group.clone(), of(inner)]);
        let product = Scalar::binary(Binary::Term, element.cast(I32), difference);
        let exact = Scalar::reduce(Binary::Add, vec![inner], zero(I32), product).cast(F32);
        let scaled = match weights.scale {
            Some(scale) => exact * scale,
            None => exact,
        };
        let term = Scalar::binary(Binary::Term, load(rows.scales, &[group]), scaled);
        Some(Scalar::reduce(Binary::Add, outer, zero(F32), term))
    }

    /// The elements of a group of a row of `elements`, where groups of weights have `weights` elements: at least two groups
    /// make a row.
    fn length(&self, elements: usize, weights: usize) -> Option<usize> {
        let most = self.group.min(weights).min(LONGEST);
        let length = match most == elements {
            true => elements / 2,
            false => most,
        };
        let fits = length.is_multiple_of(STEP) && weights.is_multiple_of(length);
        (length > 0 && fits && weights >= LEAST_SHARED).then_some(length)
    }

    /// A factor of constants in a sum over `axis`, with the axis in groups if it has such.
    fn weights(
        &self,
        nest: &mut Nest,
        stage: &Stage,
        axis: Axis,
        row: &Scalar,
        weights: &Scalar,
    ) -> Option<Weights> {
        let weights = self.definitions.expanded(nest, weights, MOST_DEPTH);
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
        let (tensor, _) = strided_load(nest, coded.numbers).filter(|_| is_code)?;
        let is_constant = |x: &Scalar| match loaded_buffer(x) {
            Some(buffer) => (self.constant)(buffer).is_some(),
            None => x.as_const().is_some(),
        };
        let (own, others) = (free_axes(coded.numbers), free_axes(row));
        let columns = stage.domain.iter().filter(|a| own.contains(&a.id));
        let [column] = columns.collect::<Vec<_>>()[..] else {
            return None;
        };
        let belongs = |id: &_| *id == column.id || groups.is_some_and(|g| g.id == *id);
        let fits = (self.constant)(tensor.buffer).is_some()
            && !others.contains(&column.id)
            && coded.points().all(is_constant)
            && coded.points().all(|x| free_axes(x).iter().all(belongs));
        let (columns, elements) = (column.extent.number()?, axis.extent.number()?);
        let pays = columns >= LEAST_COLUMNS && columns.saturating_mul(elements) >= LEAST_ELEMENTS;
        let zero = match coded.zero {
            Some(zero) => Some(self.zero_point(nest, zero)?),
            None => None,
        };
        (fits && pays).then(|| Weights {
            groups,
            inner,
            codes: coded.numbers.clone(),
            zero,
            scale: coded.scale.cloned(),
        })
    }

    /// A zero point as an `i32`, if it is surely an integer from -255 to 255. Folding may have made an `f32` of it.
    fn zero_point(&self, nest: &Nest, zero: &Scalar) -> Option<Scalar> {
        if let Some(bits) = zero.as_const() {
            let value = bits as u32;
            return are_short(&value.to_le_bytes(), F32)
                .then(|| integer(f32::from_bits(value) as i64, I32));
        }
        let buffer = loaded_buffer(zero)?;
        let stored = match zero.kind() {
            Kind::Cast(stored) if is_integer_code(stored.ty()) => stored,
            _ => zero,
        };
        let are_short = are_short((self.constant)(buffer)?, nest.buf(buffer).ty);
        are_short.then(|| stored.clone().cast(I32))
    }

    /// The rows that a buffer consists of, quantised in groups of `length`, which divides them.
    fn quantized(
        &mut self,
        nest: &mut Nest,
        layers: &[LayerId],
        from: BufferId,
        length: usize,
    ) -> Option<Rows> {
        if let Some(rows) = self.rows.get(&(from, length)) {
            return Some(*rows);
        }
        let name = nest.buf(from).name.clone();
        let mut shape: Vec<Extent> = nest.buf(from).shape.to_vec();
        let rank = shape.len();
        shape[rank - 1] = shape[rank - 1].over(length.into())?;
        let scales = nest.buffer(&format!("{name}.scale"), F32, &shape, Role::Temporary);
        shape.push(length.into());
        let codes = nest.buffer(&format!("{name}.i8"), I8, &shape, Role::Temporary);
        let element = |nest: &Nest, row: &[Scalar], group: &Scalar, i: Scalar| {
            nest.load(from, [row, &[group * length as i64 + i]].concat())
        };
        nest.define(layers.to_vec(), scales, |nest, at| {
            let axis = nest.axis(length);
            let x = element(nest, &at[..rank - 1], &at[rank - 1], Scalar::axis(axis.id)).abs();
            // NaN is not at most the largest number, either.
            let is_finite = x.le(number(f32::MAX.into(), F32));
            let size = select(is_finite, x, number(f64::INFINITY, F32));
            let largest = Scalar::reduce(Binary::Max, vec![axis], zero(F32), size);
            (largest / 127.0).max(number(f32::MIN_POSITIVE.into(), F32))
        });
        nest.define(layers.to_vec(), codes, |nest, at| {
            let scale = nest.load(scales, at[..rank].to_vec());
            let x = element(nest, &at[..rank - 1], &at[rank - 1], at[rank].clone());
            // Where the scale is infinite this is zero, or NaN, which is zero as an integer: their product is NaN.
            (x / scale).round().cast(I32).cast(I8)
        });
        let rows = Rows { codes, scales };
        self.rows.insert((from, length), rows);
        Some(rows)
    }
}

/// The buffer that `row` loads and its indices but the last, if that is `axis` and goes along the last dim from end to end, and
/// if a dim more can be there.
fn row_along<'a>(nest: &Nest, row: &'a Scalar, axis: Axis) -> Option<(BufferId, &'a [Scalar])> {
    let Kind::Load { buffer, at } = row.kind() else {
        return None;
    };
    let (last, others) = at.split_last()?;
    let shape = &nest.buf(*buffer).shape;
    let is_whole = shape.last() == Some(&axis.extent) && shape.len() < MAX_RANK;
    let is_plain = |index: &Scalar| !index.wraps() && !free_axes(index).contains(&axis.id);
    let fits = row.ty() == F32 && last.is_axis(axis.id) && is_whole;
    (fits && others.iter().all(is_plain)).then_some((*buffer, others))
}

/// The buffer that `x` loads from, or converts a load from.
fn loaded_buffer(x: &Scalar) -> Option<BufferId> {
    match x.kind() {
        Kind::Load { buffer, .. } => Some(*buffer),
        Kind::Cast(x) => loaded_buffer(x),
        _ => None,
    }
}

/// Whether all numbers of a constant are integers from -255 to 255.
fn are_short(bytes: &[u8], ty: ElementType) -> bool {
    let is_short = |x: f32| x.fract() == 0.0 && x.abs() <= 255.0;
    let (halves, words) = (bytes.as_chunks().0, bytes.as_chunks().0);
    match ty {
        F16 => halves
            .iter()
            .all(|x| is_short(f16::from_le_bytes(*x).to_f32())),
        BF16 => halves
            .iter()
            .all(|x| is_short(bf16::from_le_bytes(*x).to_f32())),
        F32 => words.iter().all(|x| is_short(f32::from_le_bytes(*x))),
        ty => is_integer_code(ty),
    }
}
