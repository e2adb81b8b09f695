//! Matrix products of all kinds, and attention.

use super::elementwise::function;
use super::in_place::update;
use super::quantized::few_bits;
use crate::big_graphs::grow::{Grow, Value, broadcast};
use vinelift::ElementType::{BF16, F16, F32, F64};

pub(super) fn transposed(a: bool, b: bool) -> String {
    format!("transpose_a=\"{a}\" transpose_b=\"{b}\"")
}

pub(super) fn mat_mul(grow: &mut Grow<'_>) -> Option<()> {
    let types = if grow.choices.chance(90) {
        &[F32][..]
    } else {
        &[F64, F16, BF16]
    };
    let x = grow.pick(types, 2..=4)?;
    let y = match grow.choices.below(10) {
        0..4 => by_weights(grow, &x)?,
        4..7 => weights_by(grow, &x)?,
        _ => by_value(grow, &x)?,
    };
    grow.keep(y.clone())?;
    followed(grow, &x, y)
}

/// Something that uses what a product gives, and perhaps an operand of it.
pub(super) fn followed(grow: &mut Grow<'_>, x: &Value, mut y: Value) -> Option<()> {
    if !grow.choices.chance(50) {
        return Some(());
    }
    for _ in 0..grow.choices.within(1, 2) {
        let next = match grow.choices.below(4) {
            0 => update(grow, x, &y),
            1 => {
                let bias = grow.weights(y.ty, &y.shape[y.rank() - 1..], 1);
                grow.one("Add", "opset1", "", &[&y, &bias], &y.shape)
            }
            2 => function(grow, &y),
            _ => grow.one("SoftMax", "opset8", "axis=\"-1\"", &[&y], &y.shape),
        };
        let Some(next) = next else { continue };
        y = grow.keep(next)?;
    }
    Some(())
}

/// x · W
fn by_weights(grow: &mut Grow<'_>, x: &Value) -> Option<Value> {
    let dims = [grow.dims.as_slice(), &[1, 3, 64, 256]].concat();
    let (k, n, turned) = (x.last(0), grow.choices.of(&dims), grow.choices.chance(50));
    grow.charge(2 * x.elements() * n)?;
    let batched = x.rank() > 2 && !grow.is_batched(&x.shape) && grow.choices.chance(25);
    let mut shape = if batched {
        x.shape[..x.rank() - 2].to_vec()
    } else {
        Vec::new()
    };
    shape.extend(if turned { [n, k] } else { [k, n] });
    let weights = if x.ty == F32 && grow.choices.chance(12) {
        few_bits(grow, &shape, k)?
    } else {
        grow.weights(x.ty, &shape, k)
    };
    let result = [&x.shape[..x.rank() - 1], &[n]].concat();
    let y = grow.one(
        "MatMul",
        "opset1",
        transposed(false, turned),
        &[x, &weights],
        &result,
    )?;
    Some(y.bounded(2.0 * x.bound))
}

/// W · x
fn weights_by(grow: &mut Grow<'_>, x: &Value) -> Option<Value> {
    if x.rank() == 2 && grow.is_batched(&x.shape) {
        return None;
    }
    let k = x.last(1);
    let dims = [grow.dims.as_slice(), &[1, 5, 128, k, k, k, k]].concat();
    let (m, turned) = (grow.choices.of(&dims), grow.choices.chance(40));
    grow.charge(2 * x.elements() * m)?;
    let weights = grow.weights(x.ty, &if turned { [k, m] } else { [m, k] }, k);
    let result = [&x.shape[..x.rank() - 2], &[m, x.last(0)]].concat();
    let y = grow.one(
        "MatMul",
        "opset1",
        transposed(turned, false),
        &[&weights, x],
        &result,
    )?;
    Some(y.bounded(2.0 * x.bound))
}

/// x · y
fn by_value(grow: &mut Grow<'_>, x: &Value) -> Option<Value> {
    let (turn_x, turn_y) = (grow.choices.chance(30), grow.choices.chance(50));
    let (k, m) = if turn_x {
        (x.last(1), x.last(0))
    } else {
        (x.last(0), x.last(1))
    };
    let fits = |y: &Value| {
        let ranks = (2..=4).contains(&y.rank()) && y.ty == x.ty;
        ranks
            && y.last(usize::from(!turn_y)) == k
            && broadcast(&y.shape[..y.rank() - 2], &x.shape[..x.rank() - 2]).is_some()
    };
    let found = grow.find(fits).filter(|_| grow.choices.chance(80));
    let y = found.unwrap_or_else(|| {
        let n = grow.choices.of(&grow.dims.clone());
        let batched = grow.choices.chance(60);
        let mut shape = if batched {
            x.shape[..x.rank() - 2].to_vec()
        } else {
            Vec::new()
        };
        shape.extend(if turn_y { [n, k] } else { [k, n] });
        grow.parameter(x.ty, &shape)
    });
    let n = y.last(usize::from(turn_y));
    let mut result = broadcast(&x.shape[..x.rank() - 2], &y.shape[..y.rank() - 2])?;
    result.extend([m, n]);
    grow.charge(2 * k * result.iter().product::<usize>())?;
    let z = grow.one(
        "MatMul",
        "opset1",
        transposed(turn_x, turn_y),
        &[x, &y],
        &result,
    )?;
    let bound = x.bound * y.bound * (k as f64).sqrt();
    Some(z.bounded(bound))
}

/// Of its single operators, or as one.
pub(super) fn attention(grow: &mut Grow<'_>) -> Option<()> {
    let fits = |v: &Value| {
        v.ty == F32
            && (3..=4).contains(&v.rank())
            && [16, 32, 64, 128].contains(&v.last(0))
            && (20..=300).contains(&v.last(1))
    };
    let found = grow.find(fits).filter(|_| grow.choices.chance(60));
    let q = found.unwrap_or_else(|| {
        let first = grow
            .batch
            .map_or(grow.choices.of(&[1, 2, 4, 8]), |batch| batch.extent);
        let shape = [
            first,
            grow.choices.of(&[32, 64, 100, 128, 197]),
            grow.choices.of(&[16, 32, 64]),
        ];
        grow.parameter(F32, &shape)
    });
    let (rows, width) = (q.last(1), q.last(0));
    grow.charge(4 * q.elements() * rows)?;
    let (k, v) = (
        if grow.choices.chance(60) {
            grow.like(&q)
        } else {
            q.clone()
        },
        grow.like(&q),
    );
    let y = if grow.choices.chance(25) {
        let causal = grow.choices.chance(50);
        let attributes = format!("causal=\"{causal}\"");
        grow.one(
            "ScaledDotProductAttention",
            "opset13",
            attributes,
            &[&q, &k, &v],
            &q.shape,
        )?
    } else {
        let shape = [&q.shape[..q.rank() - 1], &[rows]].concat();
        let scores = grow.one(
            "MatMul",
            "opset1",
            transposed(false, true),
            &[&q, &k],
            &shape,
        )?;
        let scale = grow.scalar(F32, 4.0 / (q.bound * k.bound * (width as f64).sqrt()));
        let mut scores = grow.one("Multiply", "opset1", "", &[&scores, &scale], &shape)?;
        if grow.choices.chance(40) {
            let mask = grow.weights(F32, &[rows, rows], 1);
            scores = grow.one("Add", "opset1", "", &[&scores, &mask], &shape)?;
        }
        let shares = grow.one("SoftMax", "opset8", "axis=\"-1\"", &[&scores], &shape)?;
        if grow.choices.chance(20) {
            grow.values.push(shares.clone());
        }
        grow.one(
            "MatMul",
            "opset1",
            transposed(false, false),
            &[&shares, &v],
            &q.shape,
        )?
    };
    let y = grow.keep(y.bounded(v.bound))?;
    followed(grow, &v, y)
}
