//! Operators that move elements.

use crate::big_graphs::grow::{Grow, Value, with};
use vinelift::ElementType::{self, BF16, Boolean, F16, F64, I8, I16, I32, I64, U8};

const TYPES: &[ElementType] = &[F16, BF16, F64, I8, I16, I32, I64, U8, Boolean];

fn any(grow: &mut Grow<'_>, least_rank: usize) -> Option<Value> {
    let types = grow.any_of(TYPES);
    grow.pick(types, least_rank..=6)
}

pub(super) fn transpose(grow: &mut Grow<'_>) -> Option<()> {
    let x = any(grow, 2)?;
    let order = if grow.batch.is_some() {
        let rest = grow.choices.permutation(x.rank() - 1);
        std::iter::once(0)
            .chain(rest.into_iter().map(|axis| axis + 1))
            .collect()
    } else {
        grow.choices.permutation(x.rank())
    };
    let shape: Vec<usize> = order.iter().map(|&axis| x.shape[axis]).collect();
    let order = grow.axes(&order);
    let y = grow.one("Transpose", "opset1", "", &[&x, &order], &shape)?;
    grow.keep(y).map(drop)
}

pub(super) fn reshape(grow: &mut Grow<'_>) -> Option<()> {
    let x = any(grow, 1)?;
    let first = usize::from(grow.is_batched(&x.shape));
    let mut shape = x.shape.clone();
    if shape.len() > first + 1 && grow.choices.chance(50) {
        let at = grow.choices.within(first, shape.len() - 2);
        shape.splice(at..at + 2, [x.shape[at] * x.shape[at + 1]]);
    } else {
        let at = grow.choices.within(first, shape.len() - 1);
        let extent = *shape.get(at)?;
        let divisors: Vec<usize> = (2..extent.min(130))
            .filter(|d| extent.is_multiple_of(*d))
            .collect();
        let divisor = *divisors.get(grow.choices.below(divisors.len()))?;
        shape.splice(at..at + 1, [divisor, extent / divisor]);
    }
    if shape.len() > 6 {
        return None;
    }
    let mut list = shape.clone();
    list[..first].fill(0);
    let list = grow.axes(&list);
    let y = grow.one(
        "Reshape",
        "opset1",
        "special_zero=\"true\"",
        &[&x, &list],
        &shape,
    )?;
    grow.keep(y).map(drop)
}

pub(super) fn slice(grow: &mut Grow<'_>) -> Option<()> {
    let x = any(grow, 1)?;
    let count = grow.choices.of(&[1, 1, 2]).min(x.rank());
    let mut axes = grow.choices.permutation(x.rank());
    axes.truncate(count);
    let mut shape = x.shape.clone();
    let mut bounds = [Vec::new(), Vec::new(), Vec::new()];
    for &axis in &axes {
        let extent = x.shape[axis];
        if axis == 0 && grow.is_batched(&x.shape) {
            return None;
        }
        let step: i64 = grow.choices.of(&[1, 1, 1, 2, -1, 3, -2]);
        let low = grow.choices.below(extent.div_ceil(3));
        let high = grow.choices.within((low + 1).max(extent * 2 / 3), extent);
        shape[axis] = (high - low).div_ceil(step.unsigned_abs() as usize);
        let (low, high) = (low as i64, high as i64);
        let before = if low > 0 {
            low - 1
        } else {
            -(extent as i64) - 1
        };
        let (start, stop) = if step > 0 {
            (low, high)
        } else {
            (high - 1, before)
        };
        for (list, number) in bounds.iter_mut().zip([start, stop, step]) {
            list.push(number);
        }
    }
    let [start, stop, step] = bounds.map(|list| grow.list(&list));
    let axes = grow.axes(&axes);
    let y = grow.one(
        "Slice",
        "opset8",
        "",
        &[&x, &start, &stop, &step, &axes],
        &shape,
    )?;
    grow.keep(y).map(drop)
}

pub(super) fn split(grow: &mut Grow<'_>) -> Option<()> {
    let x = any(grow, 1)?;
    let axis = grow.axis(&x);
    let extent = x.shape[axis];
    if axis == 0 && grow.is_batched(&x.shape) {
        return None;
    }
    let at = grow.number(axis);
    let count = grow.choices.of(&[2, 3, 4]);
    let parts = if extent.is_multiple_of(count) && grow.choices.chance(60) {
        let shape = with(&x.shape, axis, extent / count);
        let outputs = vec![(x.ty, shape.as_slice()); count];
        grow.several(
            "Split",
            "opset1",
            format!("num_splits=\"{count}\""),
            &[&x, &at],
            &outputs,
        )?
    } else if extent > 2 {
        let first = grow.choices.within(1, extent - 1);
        let lengths = grow.axes(&[first, extent - first]);
        let shapes = [first, extent - first].map(|length| with(&x.shape, axis, length));
        let outputs = [(x.ty, shapes[0].as_slice()), (x.ty, shapes[1].as_slice())];
        grow.several(
            "VariadicSplit",
            "opset1",
            "",
            &[&x, &at, &lengths],
            &outputs,
        )?
    } else {
        return None;
    };
    grow.values.extend(parts);
    Some(())
}

pub(super) fn concat(grow: &mut Grow<'_>) -> Option<()> {
    let x = any(grow, 1)?;
    let axis = grow.axis(&x);
    let fits = |v: &Value| {
        v.ty == x.ty && v.rank() == x.rank() && with(&v.shape, axis, 1) == with(&x.shape, axis, 1)
    };
    let mut parts = vec![x.clone()];
    for _ in 0..grow.choices.of(&[1, 1, 2, 3]) {
        parts.push(grow.find(fits).unwrap_or_else(|| x.clone()));
    }
    let first = grow.choices.below(parts.len());
    parts.swap(0, first);
    let extent = parts.iter().map(|part| part.shape[axis]).sum();
    let inputs: Vec<&Value> = parts.iter().collect();
    let shape = with(&x.shape, axis, extent);
    let y = grow.one(
        "Concat",
        "opset1",
        format!("axis=\"{axis}\""),
        &inputs,
        &shape,
    )?;
    grow.keep(y).map(drop)
}

pub(super) fn pad(grow: &mut Grow<'_>) -> Option<()> {
    let x = any(grow, 1)?;
    let mode = grow
        .choices
        .of(&["constant", "edge", "reflect", "symmetric"]);
    let mut around = || -> Vec<i64> {
        let pad = |extent: &usize| match (grow.choices.below(5) as i64 - 1, mode) {
            (-1, "constant") if *extent > 4 => -1,
            (pad, _) if *extent > 4 => pad.max(0),
            _ => 0,
        };
        x.shape.iter().map(pad).collect()
    };
    let (begin, end) = (around(), around());
    let pads = begin.iter().zip(&end);
    let shape: Vec<usize> = x
        .shape
        .iter()
        .zip(pads)
        .map(|(d, (b, e))| d.saturating_add_signed((b + e) as isize))
        .collect();
    let lists = [grow.list(&begin), grow.list(&end)];
    let mut inputs = vec![&x, &lists[0], &lists[1]];
    let value = grow.scalar(x.ty, 2.0);
    if mode == "constant" {
        inputs.push(&value);
    }
    let y = grow.one(
        "Pad",
        "opset12",
        format!("pad_mode=\"{mode}\""),
        &inputs,
        &shape,
    )?;
    grow.keep(y).map(drop)
}

/// Tile and Broadcast.
pub(super) fn widen(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.find(|v| (1..6).contains(&v.rank()) && (256..1 << 20).contains(&v.bytes()))?;
    if grow.choices.chance(50) || grow.batch.is_some() {
        let axis = grow.choices.within(usize::from(x.rank() > 1), x.rank() - 1);
        let times = grow.choices.of(&[2, 3]);
        let repeats = grow.axes(&with(&vec![1; x.rank()], axis, times));
        let shape = with(&x.shape, axis, times * x.shape[axis]);
        let y = grow.one("Tile", "opset1", "", &[&x, &repeats], &shape)?;
        return grow.keep(y).map(drop);
    }
    let mut shape = vec![grow.choices.of(&[2, 3, 4])];
    for &extent in &x.shape {
        shape.push(if extent > 1 {
            extent
        } else {
            grow.choices.of(&[1, 8, 32])
        });
    }
    let to = grow.axes(&shape);
    let y = grow.one("Broadcast", "opset3", "mode=\"numpy\"", &[&x, &to], &shape)?;
    grow.keep(y).map(drop)
}

/// Roll and DepthToSpace.
pub(super) fn roll(grow: &mut Grow<'_>) -> Option<()> {
    let x = any(grow, 1)?;
    if x.rank() == 4 && x.shape[1].is_multiple_of(4) && grow.choices.chance(40) {
        let mode = grow.choices.of(&["blocks_first", "depth_first"]);
        let shape = [x.shape[0], x.shape[1] / 4, 2 * x.shape[2], 2 * x.shape[3]];
        let attributes = format!("block_size=\"2\" mode=\"{mode}\"");
        let y = grow.one("DepthToSpace", "opset1", attributes, &[&x], &shape)?;
        return grow.keep(y).map(drop);
    }
    let shift = grow.choices.below(11) as i64 - 5;
    let shift = grow.list(&[shift]);
    let axis = grow.axis(&x);
    let axis = grow.axes(&[axis]);
    let y = grow.one("Roll", "opset7", "", &[&x, &shift, &axis], &x.shape)?;
    grow.keep(y).map(drop)
}
