//! Hoisting: scales and zero points of constants of few bits are taken out of the sums of products with them.
//!
//! > `Σ_k x[k] · (w[k] - z)·t` becomes `Σ_g t · (Σ_i x[g·L + i]·w[g·L + i] - z·s[g])`, where `k = g·L + i` and `s[g] = Σ_i x[g·L + i]`
//!
//! `w` are constants of 4 or 8 bits, with zero points `z` and scales `t` that groups of `k` share; `L`, at most 128, divides
//! these groups. So a product takes one multiply-add and no other operation than to make a number of the code. The outer sum
//! takes the groups in order by one fused multiply-add each; the sums `s` are made once for all products with `x`.
//!
//! Sums are rounded as often as before. A sum of a group is larger than one of differences with the zero point by as much as codes
//! are larger than these, and so are its roundings; as groups are short, they do not add up. Nothing overflows where elements are
//! smaller than 2¹¹². An infinite element makes NaN where there are zero points.
//!
//! It defines how these sums are rounded, so it is the meaning of the nest at every level. Values on a grid, whose products are
//! exact, come before, and so does dynamic quantisation.

#[cfg(test)]
mod tests;

use super::coded_products::{CodedProduct, LEAST_CODED, MadeOfRows, STEP, replace_coded_products};
use crate::build::zero;
use crate::ir::{Binary, BufferId, LayerId, Nest, Role, Scalar};
use vinelift_tensor::ElementType::F32;
use vinelift_tensor::Extent;

/// The most elements of a group. In longer ones sums of products with codes of one sign lose what differences with the zero
/// point would keep.
const LONGEST: usize = 128;

/// Scales and zero points stay in sums with constants of fewer elements than this: caches hold them in any form, and the products
/// of many rows with elements that are made once take a sixth less.
const LEAST: usize = (1 << 16) + 1;

// Fewer may be folded to `f32` before or not, which must not change what is hoisted.
const _: () = assert!(LEAST_CODED <= LEAST);

/// Scales and zero points of shorter groups cost as much as they save.
const SHORTEST: usize = 16;

/// Hoists scales and zero points wherever a sum of products takes a constant of few bits. `constant` gives the bytes of a
/// buffer whose contents are known before the nest runs.
pub fn hoist_scales<'a>(nest: &mut Nest, constant: &dyn Fn(BufferId) -> Option<&'a [u8]>) {
    replace_coded_products(nest, LEAST, constant, hoisted);
}

/// The scalar that replaces `product`.
fn hoisted(
    nest: &mut Nest,
    product: &CodedProduct,
    sums: &mut MadeOfRows<BufferId>,
) -> Option<Scalar> {
    let weights = &product.weights;
    let scale = weights.scale.clone()?;
    let length = length(product.elements, weights.shared()?)?;
    let sums = match weights.zero {
        Some(_) => Some(group_sums(
            nest,
            &product.stage.layers,
            product.from,
            length,
            sums,
        )?),
        None => None,
    };
    let groups = weights.divided(nest, length)?;
    let k = &groups.group * length as i64 + Scalar::axis(groups.inner.id);
    let load = |buffer, last: Scalar| nest.load(buffer, [product.at, &[last]].concat());
    let term = Scalar::binary(
        Binary::Term,
        load(product.from, k),
        groups.codes.clone().cast(F32),
    );
    let sum = Scalar::reduce(Binary::Add, vec![groups.inner], zero(F32), term);
    let value = match (&weights.zero, sums) {
        (Some(zero), Some(sums)) => sum - zero.clone() * load(sums, groups.group.clone()),
        _ => sum,
    };
    let term = Scalar::binary(Binary::Term, scale, value);
    Some(Scalar::reduce(Binary::Add, groups.outer, zero(F32), term))
}

/// The elements of a group of a row of `elements`, where groups of weights have `shared` elements: the most that divide these.
/// At least two groups make a row.
fn length(elements: usize, shared: usize) -> Option<usize> {
    let fits = |length: &usize| shared.is_multiple_of(*length) && *length < elements;
    let lengths = (SHORTEST / STEP..=LONGEST / STEP).rev();
    lengths.map(|steps| steps * STEP).find(fits)
}

/// The sums of the groups of `length` elements of the rows that a buffer consists of.
fn group_sums(
    nest: &mut Nest,
    layers: &[LayerId],
    from: BufferId,
    length: usize,
    made: &mut MadeOfRows<BufferId>,
) -> Option<BufferId> {
    if let Some(sums) = made.get(&(from, length)) {
        return Some(*sums);
    }
    let name = format!("{}.sums", nest.buf(from).name);
    let mut shape: Vec<Extent> = nest.buf(from).shape.to_vec();
    let last = shape.last_mut()?;
    *last = last.over(length.into())?;
    let sums = nest.buffer(&name, F32, &shape, Role::Temporary);
    nest.define(layers.to_vec(), sums, |nest, at| {
        let (axis, rank) = (nest.axis(length), at.len());
        let k = &at[rank - 1] * length as i64 + Scalar::axis(axis.id);
        let element = nest.load(from, [&at[..rank - 1], &[k]].concat());
        Scalar::reduce(Binary::Add, vec![axis], zero(F32), element)
    });
    made.insert((from, length), sums);
    Some(sums)
}
