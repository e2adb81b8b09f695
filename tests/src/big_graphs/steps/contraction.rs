//! Matrix products of all kinds, attention, weights of few bits, and recurrent layers.

use super::elementwise::{convert_to, function};
use super::in_place::update;
use crate::big_graphs::fill::Fill;
use crate::big_graphs::grow::{Grow, Value, broadcast};
use vinelift::ElementType::{BF16, F16, F32, F64, I4, I8, I32, U4, U8};

fn transposed(a: bool, b: bool) -> String {
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
fn followed(grow: &mut Grow<'_>, x: &Value, mut y: Value) -> Option<()> {
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

/// Integers → Convert → Subtract → Multiply.
fn few_bits(grow: &mut Grow<'_>, shape: &[usize], length: usize) -> Option<Value> {
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

/// A sequence of LSTM or GRU cells.
pub(super) fn recurrent(grow: &mut Grow<'_>) -> Option<()> {
    let fits = |v: &Value| {
        v.ty == F32 && v.rank() == 3 && v.shape[0] <= 8 && v.shape[1] <= 100 && v.shape[2] <= 300
    };
    let x = grow.find(fits).unwrap_or_else(|| {
        let shape = [
            grow.choices.of(&[1, 2, 4]),
            grow.choices.of(&[5, 17, 40]),
            grow.choices.of(&[32, 64, 100]),
        ];
        grow.parameter(F32, &shape)
    });
    let (batch, steps, width) = (x.shape[0], x.shape[1], x.shape[2]);
    if grow.is_batched(&x.shape) {
        return None;
    }
    let (hidden, lstm) = (grow.choices.of(&[32, 48, 96]), grow.choices.chance(50));
    let direction = grow.choices.of(&["forward", "reverse", "bidirectional"]);
    let ways = if direction == "bidirectional" { 2 } else { 1 };
    let gates = if lstm { 4 } else { 3 };
    grow.charge(2 * ways * batch * steps * gates * hidden * (width + hidden))?;
    let length = steps as i64;
    let low = if grow.choices.chance(60) { length } else { 1 };
    let lengths = grow.constant(I32, &[batch], Fill::Integers { low, high: length });
    let state = [batch, ways, hidden];
    let h = grow.parameter(F32, &state);
    let w = grow.weights(F32, &[ways, gates * hidden, width], width);
    let r = grow.weights(F32, &[ways, gates * hidden, hidden], hidden);
    let all = [batch, ways, steps, hidden];
    let attributes = format!("hidden_size=\"{hidden}\" direction=\"{direction}\"");
    let outputs = if lstm {
        let c = grow.parameter(F32, &state);
        let b = grow.weights(F32, &[ways, 4 * hidden], 4);
        let outputs = [(F32, &all[..]), (F32, &state[..]), (F32, &state[..])];
        grow.several(
            "LSTMSequence",
            "opset5",
            attributes,
            &[&x, &h, &c, &lengths, &w, &r, &b],
            &outputs,
        )?
    } else {
        let reset = grow.choices.chance(50);
        let b = grow.weights(F32, &[ways, if reset { 4 } else { 3 } * hidden], 4);
        let attributes = format!("{attributes} linear_before_reset=\"{reset}\"");
        let outputs = [(F32, &all[..]), (F32, &state[..])];
        grow.several(
            "GRUSequence",
            "opset5",
            attributes,
            &[&x, &h, &lengths, &w, &r, &b],
            &outputs,
        )?
    };
    for value in outputs {
        grow.keep(value.bounded(4.0))?;
    }
    Some(())
}
