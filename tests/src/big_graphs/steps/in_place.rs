//! Tensors that may be changed in place when whoever else uses them is done.

use super::elementwise::function;
use super::index::{elements_updated, points_updated, slices_updated};
use super::reduction::sums;
use crate::big_graphs::grow::{Grow, Value, with};
use vinelift::ElementType::F32;

/// A value that something large uses and a scatter then changes, perhaps several times, with what that computed.
pub(super) fn in_place(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.float();
    let p = grow.pick(types, 2..=4)?;
    let mut x = function(grow, &p)?;
    for _ in 0..grow.choices.of(&[1, 1, 2]) {
        let mut t = use_of(grow, &x)?;
        if grow.choices.chance(60) {
            grow.values.push(t.clone());
            grow.shown.push(t.port);
        }
        if grow.choices.chance(20) {
            let bias = grow.weights(t.ty, &t.shape[t.rank() - 1..], 1);
            t = grow.one("Add", "opset1", "", &[&t, &bias], &t.shape)?;
        }
        if grow.choices.chance(20)
            && let Some(part) = part(grow, &t)
        {
            t = part;
        }
        x = update(grow, &x, &t)?;
        if grow.choices.chance(40) {
            grow.values.push(x.clone());
        }
        if x.bound > 1e3 {
            break;
        }
    }
    grow.keep(x).map(drop)
}

/// Something of the shape of `x` that takes a while to compute from it.
fn use_of(grow: &mut Grow<'_>, x: &Value) -> Option<Value> {
    let (rows, columns) = (x.last(1), x.last(0));
    let keep = grow.is_batched(&x.shape) && x.rank() == 2;
    match grow.choices.below(12) {
        0 | 1 | 8..11 if !keep => {
            grow.charge(2 * x.elements() * rows)?;
            let turned = grow.choices.chance(30);
            let weights = grow.weights(x.ty, &[rows, rows], rows);
            let attributes = format!("transpose_a=\"{turned}\" transpose_b=\"false\"");
            grow.one("MatMul", "opset1", attributes, &[&weights, x], &x.shape)
        }
        2 => {
            grow.charge(2 * x.elements() * columns)?;
            let turned = grow.choices.chance(30);
            let weights = grow.weights(x.ty, &[columns, columns], columns);
            let attributes = format!("transpose_a=\"false\" transpose_b=\"{turned}\"");
            grow.one("MatMul", "opset1", attributes, &[x, &weights], &x.shape)
        }
        3 => {
            grow.charge(4 * x.elements() * rows)?;
            let square = [&x.shape[..x.rank() - 1], &[rows]].concat();
            let plain = |turned: bool| format!("transpose_a=\"false\" transpose_b=\"{turned}\"");
            let products = grow.one("MatMul", "opset1", plain(true), &[x, x], &square)?;
            let scale = grow.scalar(x.ty, 1.0 / (x.bound * x.bound * columns as f64));
            let products = grow.one("Multiply", "opset1", "", &[&products, &scale], &square)?;
            Some(
                grow.one("MatMul", "opset1", plain(false), &[&products, x], &x.shape)?
                    .bounded(x.bound),
            )
        }
        4 if x.rank() == 4 && x.ty == F32 => {
            let channels = x.shape[1];
            grow.charge(18 * x.elements() * channels)?;
            let weights = grow.weights(F32, &[channels, channels, 3, 3], 9 * channels);
            let attributes = "strides=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\" dilations=\"1,1\" auto_pad=\"explicit\"";
            grow.one(
                "Convolution",
                "opset1",
                attributes,
                &[x, &weights],
                &x.shape,
            )
        }
        5 => {
            let axis = grow.axis(x);
            let sums = sums(grow, x, axis)?;
            let scale = grow.scalar(x.ty, 0.01);
            Some(
                grow.one("Multiply", "opset1", "", &[&sums, &scale], &x.shape)?
                    .bounded(x.bound),
            )
        }
        6 => {
            let axis = grow.axis(x);
            grow.one(
                "SoftMax",
                "opset8",
                format!("axis=\"{axis}\""),
                &[x],
                &x.shape,
            )
        }
        7 => {
            let axis = grow.axis(x);
            let (mut few, list) = (x.shape.clone(), grow.axes(&[axis]));
            few[axis] = 1;
            let most = grow.one(
                "ReduceMax",
                "opset1",
                "keep_dims=\"true\"",
                &[x, &list],
                &few,
            )?;
            grow.one("Subtract", "opset1", "", &[&most, x], &x.shape)
        }
        _ => {
            let y = function(grow, x)?;
            let shift = grow.list(&[1]);
            let axis = grow.axis(x);
            let axis = grow.axes(&[axis]);
            grow.one("Roll", "opset7", "", &[&y, &shift, &axis], &x.shape)
        }
    }
}

/// The first half of it along some axis.
fn part(grow: &mut Grow<'_>, t: &Value) -> Option<Value> {
    let axis = grow.axis(t);
    if axis == 0 && grow.is_batched(&t.shape) {
        return None;
    }
    let half = t.shape[axis].div_ceil(2);
    let [start, stop, step] = [0, half as i64, 1].map(|n| grow.list(&[n]));
    let axes = grow.axes(&[axis]);
    grow.one(
        "Slice",
        "opset8",
        "",
        &[t, &start, &stop, &step, &axes],
        &with(&t.shape, axis, half),
    )
}

/// `x` changed by `t`, in some way for which their shapes fit.
pub(super) fn update(grow: &mut Grow<'_>, x: &Value, t: &Value) -> Option<Value> {
    if x.ty != t.ty || x.rank() != t.rank() || x.rank() == 0 {
        return None;
    }
    // Along the last axis, tasks of a contraction and rows of an update may be the same.
    let axis = if grow.choices.chance(50) {
        x.rank() - 1
    } else {
        grow.axis(x)
    };
    let batched = grow.is_batched(&x.shape) || grow.is_batched(&t.shape);
    let covers = x.shape.iter().zip(&t.shape).all(|(a, b)| a >= b);
    let free = axis > 0 || !batched;
    let but = |axis: usize| with(&x.shape, axis, 1) == with(&t.shape, axis, 1);
    match grow.choices.below(10) {
        0..6 if covers && free => elements_updated(grow, x, t, axis),
        6 | 7 if covers && free && but(axis) => slices_updated(grow, x, t, axis),
        8 if but(0) && !batched && t.shape[0] <= 20_000 => points_updated(grow, x, t, 1),
        9 if x.shape == t.shape => {
            let operator = grow.choices.of(&["Add", "Maximum", "Subtract"]);
            let y = grow.one(operator, "opset1", "", &[x, t], &x.shape)?;
            Some(y.bounded(x.bound + t.bound))
        }
        _ if but(axis) => {
            let shape = with(&x.shape, axis, x.shape[axis] + t.shape[axis]);
            let parts = if grow.choices.chance(50) {
                [x, t]
            } else {
                [t, x]
            };
            grow.one(
                "Concat",
                "opset1",
                format!("axis=\"{axis}\""),
                &parts,
                &shape,
            )
        }
        _ => None,
    }
}
