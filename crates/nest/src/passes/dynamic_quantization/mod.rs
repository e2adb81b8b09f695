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

use super::coded_products::{
    CodedProduct, ConstantBytes, LEAST_CODED, MadeOfRows, STEP, loaded_buffer,
    replace_coded_products,
};
use crate::analysis::is_integer_code;
use crate::build::{integer, number, select, zero};
use crate::ir::{Binary, BufferId, Kind, LayerId, MAX_RANK, Nest, Role, Scalar};
use vinelift_tensor::ElementType::{self, BF16, F16, F32, I8, I32};
use vinelift_tensor::Extent;
use vinelift_tensor::half::{bf16, f16};

/// Longer groups could overflow the sum of an `i32`, as far as products of -127 to 127 with differences of two bytes go.
const LONGEST: usize = (i32::MAX / (127 * 512)) as usize;

/// Quantises rows in groups of at most `group` elements wherever a sum of products takes a constant of few bits, whose own
/// groups these divide. `constant` gives the bytes of a buffer whose contents are known before the nest runs.
pub fn dynamic_quantization<'a>(
    nest: &mut Nest,
    group: usize,
    constant: &dyn Fn(BufferId) -> Option<&'a [u8]>,
) {
    replace_coded_products(nest, LEAST_CODED, constant, |nest, product, rows| {
        replacement(nest, product, group, constant, rows)
    });
}

/// Rows that are quantised: `values[.., g·L + i] = codes[.., g, i] · scales[.., g]`.
#[derive(Clone, Copy)]
struct Rows {
    codes: BufferId,
    scales: BufferId,
}

/// The scalar that replaces `product`, if its row can be quantised in groups of at most `group`.
fn replacement(
    nest: &mut Nest,
    product: &CodedProduct,
    group: usize,
    constant: ConstantBytes<'_, '_>,
    made: &mut MadeOfRows<Rows>,
) -> Option<Scalar> {
    let weights = &product.weights;
    // The codes of rows have a dim more.
    if nest.buf(product.from).shape.len() >= MAX_RANK {
        return None;
    }
    let zero_point = match &weights.zero {
        Some(zero) => Some(zero_point(nest, zero, constant)?),
        None => None,
    };
    let length = length(group, product.elements, weights.shared()?)?;
    let rows = quantized(nest, &product.stage.layers, product.from, length, made)?;
    let groups = weights.divided(nest, length)?;
    let codes = groups.codes.cast(I32);
    let difference = match zero_point {
        Some(zero) => codes - zero,
        None => codes,
    };
    let load = |buffer, more: &[Scalar]| nest.load(buffer, [product.at, more].concat());
    let element = load(
        rows.codes,
        &[groups.group.clone(), Scalar::axis(groups.inner.id)],
    );
    let term = Scalar::binary(Binary::Term, element.cast(I32), difference);
    let exact = Scalar::reduce(Binary::Add, vec![groups.inner], zero(I32), term).cast(F32);
    let scaled = match &weights.scale {
        Some(scale) => exact * scale.clone(),
        None => exact,
    };
    let term = Scalar::binary(Binary::Term, load(rows.scales, &[groups.group]), scaled);
    Some(Scalar::reduce(Binary::Add, groups.outer, zero(F32), term))
}

/// The elements of a group of a row of `elements`, where groups of weights have `shared` elements: at least two groups make
/// a row.
fn length(group: usize, elements: usize, shared: usize) -> Option<usize> {
    let most = group.min(shared).min(LONGEST);
    let length = match most == elements {
        true => elements / 2,
        false => most,
    };
    let fits = length.is_multiple_of(STEP) && shared.is_multiple_of(length);
    (length > 0 && fits).then_some(length)
}

/// A zero point as an `i32`, if it is surely an integer from -255 to 255. Folding may have made an `f32` of it.
fn zero_point(nest: &Nest, zero: &Scalar, constant: ConstantBytes<'_, '_>) -> Option<Scalar> {
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
    let are_short = are_short(constant(buffer)?, nest.buf(buffer).ty);
    are_short.then(|| stored.clone().cast(I32))
}

/// The rows that a buffer consists of, quantised in groups of `length`, which divides them.
fn quantized(
    nest: &mut Nest,
    layers: &[LayerId],
    from: BufferId,
    length: usize,
    made: &mut MadeOfRows<Rows>,
) -> Option<Rows> {
    if let Some(rows) = made.get(&(from, length)) {
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
    made.insert((from, length), rows);
    Some(rows)
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
