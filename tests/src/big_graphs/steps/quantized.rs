//! Products of numbers of few bits.

use super::contraction::{followed, transposed};
use super::elementwise::convert_to;
use crate::big_graphs::fill::Fill;
use crate::big_graphs::grow::{Grow, Value};
use vinelift::ElementType::{F32, I4, I8, U4, U8};

/// Integers → Convert → Subtract → Multiply.
pub(super) fn few_bits(grow: &mut Grow<'_>, shape: &[usize], length: usize) -> Option<Value> {
    let ty = grow.choices.of(&[I8, I8, U8, U8, I4, U4]);
    let (low, high, zero) = match ty {
        I8 => (-127, 127, 0),
        U8 => (0, 255, 128),
        I4 => (-8, 7, 0),
        _ => (0, 15, 8),
    };
    let rank = shape.len();
    let per = match grow.choices.below(4) {
        0 | 1 => vec![shape[rank - 2], 1],
        2 => vec![1, shape[rank - 1]],
        _ => Vec::new(),
    };
    let integers = grow.constant(ty, shape, Fill::Integers { low, high });
    let mut weights = convert_to(grow, &integers, F32)?;
    if zero != 0 || grow.choices.chance(50) {
        let zeros = grow.constant(
            ty,
            &per,
            Fill::Integers {
                low: zero - 2,
                high: zero + 2,
            },
        );
        let zeros = convert_to(grow, &zeros, F32)?;
        weights = grow.one("Subtract", "opset1", "", &[&weights, &zeros], shape)?;
    }
    let scale = 1.0 / ((high - zero) as f64 * (length as f64).sqrt());
    let scales = grow.constant(F32, &per, Fill::Numbers(scale));
    Some(
        grow.one("Multiply", "opset1", "", &[&weights, &scales], shape)?
            .bounded(2.0),
    )
}

/// FakeQuantize → MatMul with weights of few bits.
pub(super) fn quantized(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.pick(&[F32], 2..=4)?;
    let (k, n, turned) = (
        x.last(0),
        grow.choices.of(&grow.dims.clone()),
        grow.choices.chance(50),
    );
    grow.charge(2 * x.elements() * n)?;
    let q = if grow.choices.chance(80) {
        rounded(grow, &x)?
    } else {
        x.clone()
    };
    let shape = if turned { [n, k] } else { [k, n] };
    let weights = if grow.choices.chance(80) {
        few_bits(grow, &shape, k)?
    } else {
        let plain = grow.weights(F32, &shape, k);
        rounded(grow, &plain)?
    };
    let result = [&x.shape[..x.rank() - 1], &[n]].concat();
    let y = grow.one(
        "MatMul",
        "opset1",
        transposed(false, turned),
        &[&q, &weights],
        &result,
    )?;
    let y = grow.keep(y.bounded(2.0 * x.bound + 8.0))?;
    followed(grow, &x, y)
}

pub(super) fn fake_quantize(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.pick(&[F32], 1..=4)?;
    let y = rounded(grow, &x)?;
    grow.keep(y).map(drop)
}

fn rounded(grow: &mut Grow<'_>, x: &Value) -> Option<Value> {
    let mut per = vec![1; x.rank()];
    if x.rank() > 1 && grow.choices.chance(30) {
        per[1] = x.shape[1];
    }
    if grow.choices.chance(50) {
        per.clear();
    }
    let levels = grow.choices.of(&[256, 256, 255, 16]);
    let count = per.iter().product();
    let [low, high] = [-3.0, 3.5].map(|limit| {
        let limits = (0..count).map(|k| limit + 0.01 * (k % 50) as f64);
        grow.constant(F32, &per, Fill::Exactly(limits.collect()))
    });
    let attributes = format!("levels=\"{levels}\" auto_broadcast=\"numpy\"");
    let y = grow.one(
        "FakeQuantize",
        "opset1",
        attributes,
        &[x, &low, &high, &low, &high],
        &x.shape,
    )?;
    Some(y.bounded(4.0))
}
