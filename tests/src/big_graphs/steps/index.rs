//! Operators that read or write where other tensors say.

use crate::big_graphs::fill::Fill;
use crate::big_graphs::grow::{Grow, Value, with};
use vinelift::ElementType::{self, BF16, F16, F64, I8, I32, I64, U8};

const TYPES: &[ElementType] = &[F16, BF16, F64, I8, I32, I64, U8];

/// Indices below `extent`: an input, a constant, or computed.
pub(super) fn indices(
    grow: &mut Grow<'_>,
    shape: &[usize],
    extent: usize,
    negative: bool,
) -> Option<Value> {
    let ty = grow.choices.of(&[I32, I64]);
    let (negative, extent) = (negative && grow.choices.chance(40), extent as i64);
    let fill = Fill::Indices {
        low: if negative { -extent } else { 0 },
        high: extent - 1,
    };
    let (way, fixed) = (grow.choices.below(100), !grow.is_batched(shape));
    if grow.inside {
        return fixed.then(|| grow.constant(ty, shape, fill));
    }
    if way < 50 {
        return Some(grow.filled(ty, shape, fill));
    }
    if way < 75 && fixed {
        return Some(grow.constant(ty, shape, fill));
    }
    let found = grow.find(|v| v.ty == ty && v.shape == shape);
    let numbers = found.unwrap_or_else(|| {
        grow.filled(
            ty,
            shape,
            Fill::Integers {
                low: -300,
                high: 300,
            },
        )
    });
    let modulus = grow.scalar(ty, extent as f64);
    grow.one("FloorMod", "opset1", "", &[&numbers, &modulus], shape)
}

fn data(grow: &mut Grow<'_>) -> Option<(Value, usize)> {
    let types = grow.any_of(TYPES);
    let x = grow.pick(types, 1..=5)?;
    let axis = grow.axis(&x);
    // The extent of the first axis is not that of the second inputs.
    (axis > 0 || !grow.is_batched(&x.shape)).then_some((x, axis))
}

pub(super) fn gather(grow: &mut Grow<'_>) -> Option<()> {
    let (x, axis) = data(grow)?;
    let extent = x.shape[axis];
    let count = grow.choices.of(&[3, 17, extent, 2 * extent]);
    let batch = if axis > 0 && grow.choices.chance(40) {
        grow.choices.within(1, axis)
    } else {
        0
    };
    let pairs = batch == 0 && grow.choices.chance(40);
    let inner = if pairs {
        vec![2, count.div_ceil(2)]
    } else {
        vec![count]
    };
    let chosen = [&x.shape[..batch], inner.as_slice()].concat();
    let shape = [&x.shape[..axis], inner.as_slice(), &x.shape[axis + 1..]].concat();
    let index = indices(grow, &chosen, extent, true)?;
    let at = grow.number(axis);
    let y = grow.one(
        "Gather",
        "opset8",
        format!("batch_dims=\"{batch}\""),
        &[&x, &index, &at],
        &shape,
    )?;
    grow.keep(y.bounded(x.bound)).map(drop)
}

pub(super) fn gather_elements(grow: &mut Grow<'_>) -> Option<()> {
    let (x, axis) = data(grow)?;
    let extent = x.shape[axis];
    let count = grow
        .choices
        .of(&[1, extent, extent, extent.div_ceil(2), extent + 3]);
    let shape = with(&x.shape, axis, count);
    let index = indices(grow, &shape, extent, true)?;
    let y = grow.one(
        "GatherElements",
        "opset6",
        format!("axis=\"{axis}\""),
        &[&x, &index],
        &shape,
    )?;
    grow.keep(y.bounded(x.bound)).map(drop)
}

pub(super) fn gather_nd(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.any_of(TYPES);
    let x = grow.pick(types, 1..=5)?;
    let batched = grow.is_batched(&x.shape);
    if batched && x.rank() == 1 {
        return None;
    }
    let most = (x.rank() - 1).min(2);
    let batch = if batched || grow.choices.chance(40) {
        grow.choices.within(usize::from(batched), most)
    } else {
        0
    };
    let depth = grow.choices.within(1, x.rank() - batch);
    let outer: usize = x.shape[..batch].iter().product();
    let inner: usize = x.shape[batch + depth..].iter().product();
    let count = (x.elements() / (inner * outer)).clamp(1, 20_000);
    let extent = *x.shape[batch..batch + depth].iter().min()?;
    let index = indices(
        grow,
        &[&x.shape[..batch], &[count, depth]].concat(),
        extent,
        false,
    )?;
    let shape = [&x.shape[..batch], &[count], &x.shape[batch + depth..]].concat();
    let y = grow.one(
        "GatherND",
        "opset8",
        format!("batch_dims=\"{batch}\""),
        &[&x, &index],
        &shape,
    )?;
    grow.keep(y.bounded(x.bound)).map(drop)
}

pub(super) fn scatter_elements(grow: &mut Grow<'_>) -> Option<()> {
    let (x, axis) = data(grow)?;
    let extent = x.shape[axis];
    let count = grow.choices.of(&[1, extent, extent, extent.div_ceil(2)]);
    let mut shape = with(&x.shape, axis, count);
    if grow.choices.chance(30) {
        let other = grow.axis(&x);
        if other > 0 || !grow.is_batched(&x.shape) {
            shape[other] = (shape[other] - 1).max(1);
        }
    }
    let updates = grow.up_to(&shape, x.ty)?;
    let y = elements_updated(grow, &x, &updates, axis)?;
    grow.keep(y).map(drop)
}

/// ScatterElementsUpdate of all `updates`.
pub(super) fn elements_updated(
    grow: &mut Grow<'_>,
    x: &Value,
    updates: &Value,
    axis: usize,
) -> Option<Value> {
    let reduction = grow
        .choices
        .of(&["none", "sum", "sum", "prod", "min", "max", "mean"]);
    let initial = grow.choices.chance(75);
    let index = indices(grow, &updates.shape, x.shape[axis], true)?;
    let at = grow.number(axis);
    let attributes = format!("reduction=\"{reduction}\" use_init_val=\"{initial}\"");
    let y = grow.one(
        "ScatterElementsUpdate",
        "opset12",
        attributes,
        &[x, &index, updates, &at],
        &x.shape,
    )?;
    Some(y.bounded(x.bound + 4.0 * updates.bound))
}

pub(super) fn scatter_update(grow: &mut Grow<'_>) -> Option<()> {
    let (x, axis) = data(grow)?;
    let extent = x.shape[axis];
    let count = if grow.choices.chance(70) {
        extent.div_ceil(2)
    } else {
        extent
    };
    let updates = grow.up_to(&with(&x.shape, axis, count), x.ty)?;
    let y = slices_updated(grow, &x, &updates, axis)?;
    grow.keep(y).map(drop)
}

/// ScatterUpdate of all `updates`.
pub(super) fn slices_updated(
    grow: &mut Grow<'_>,
    x: &Value,
    updates: &Value,
    axis: usize,
) -> Option<Value> {
    let index = indices(grow, &[updates.shape[axis]], x.shape[axis], false)?;
    let at = grow.number(axis);
    let y = grow.one(
        "ScatterUpdate",
        "opset3",
        "",
        &[x, &index, updates, &at],
        &x.shape,
    )?;
    Some(y.bounded(x.bound.max(updates.bound)))
}

pub(super) fn scatter_nd(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.any_of(TYPES);
    let x = grow.pick(types, 1..=5)?;
    if grow.is_batched(&x.shape) {
        return None;
    }
    let depth = grow.choices.within(1, x.rank());
    let rows: usize = x.shape[..depth].iter().product();
    let share = grow.choices.of(&[10, 50, 100, 150]);
    let count = (rows * share / 100).clamp(1, 20_000);
    let updates = grow.up_to(&[&[count], &x.shape[depth..]].concat(), x.ty)?;
    let y = points_updated(grow, &x, &updates, depth)?;
    grow.keep(y).map(drop)
}

/// ScatterNDUpdate of all `updates`, whose first dim counts them.
pub(super) fn points_updated(
    grow: &mut Grow<'_>,
    x: &Value,
    updates: &Value,
    depth: usize,
) -> Option<Value> {
    let reduction = grow
        .choices
        .of(&["none", "sum", "sub", "prod", "min", "max"]);
    let extent = *x.shape[..depth].iter().min()?;
    let index = indices(grow, &[updates.shape[0], depth], extent, true)?;
    let attributes = format!("reduction=\"{reduction}\"");
    let y = grow.one(
        "ScatterNDUpdate",
        "opset15",
        attributes,
        &[x, &index, updates],
        &x.shape,
    )?;
    Some(y.bounded(x.bound + 4.0 * updates.bound))
}
