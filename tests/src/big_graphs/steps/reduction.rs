//! Operators that fold, normalise, accumulate or sort along axes.

use crate::big_graphs::grow::{Grow, Value, with};
use vinelift::ElementType::{F16, F32, F64, I32, I64};

pub(super) fn reduce(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.any_of(&[F16, F64, I32, I64]);
    let x = grow.pick(types, 1..=6)?;
    let mut axes = vec![grow.axis(&x)];
    if grow.choices.chance(40) {
        axes = grow.choices.permutation(x.rank());
        axes.truncate(grow.choices.within(1, x.rank()));
        axes.sort_unstable();
    }
    let y = reduced(grow, &x, &axes)?;
    grow.keep(y).map(drop)
}

fn reduced(grow: &mut Grow<'_>, x: &Value, axes: &[usize]) -> Option<Value> {
    const OPERATORS: [(&str, &str); 7] = [
        ("ReduceSum", "opset1"),
        ("ReduceMean", "opset1"),
        ("ReduceMax", "opset1"),
        ("ReduceMin", "opset1"),
        ("ReduceL2", "opset4"),
        ("ReduceL1", "opset4"),
        ("ReduceProd", "opset1"),
    ];
    let (operator, version) = grow.choices.of(&OPERATORS);
    let count: usize = axes.iter().map(|&axis| x.shape[axis]).product();
    let mut data = x.clone();
    let bound = match operator {
        "ReduceSum" | "ReduceL1" => x.bound * count as f64,
        "ReduceL2" => x.bound * (count as f64).sqrt(),
        "ReduceProd" if x.is_float() => {
            // Factors near 1, so that the product is neither 0 nor infinite.
            let (small, one) = (grow.scalar(x.ty, 0.05), grow.scalar(x.ty, 1.0));
            data = grow.one("Tanh", "opset1", "", &[&data], &x.shape)?;
            data = grow.one("Multiply", "opset1", "", &[&data, &small], &x.shape)?;
            data = grow.one("Add", "opset1", "", &[&data, &one], &x.shape)?;
            100.0
        }
        _ => x.bound,
    };
    let keep = grow.choices.chance(60);
    let mut shape = x.shape.clone();
    for &axis in axes.iter().rev() {
        if keep {
            shape[axis] = 1;
        } else {
            shape.remove(axis);
        }
    }
    let list = grow.axes(axes);
    let attributes = format!("keep_dims=\"{keep}\"");
    Some(
        grow.one(operator, version, attributes, &[&data, &list], &shape)?
            .bounded(bound),
    )
}

pub(super) fn softmax(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.float();
    let x = grow.pick(types, 1..=6)?;
    let axis = grow.axis(&x);
    let (operator, version) = grow.choices.of(&[
        ("SoftMax", "opset8"),
        ("SoftMax", "opset8"),
        ("LogSoftmax", "opset5"),
    ]);
    let y = grow.one(
        operator,
        version,
        format!("axis=\"{axis}\""),
        &[&x],
        &x.shape,
    )?;
    let bound = 2.0 * y.bound + 12.0;
    grow.keep(y.bounded(bound)).map(drop)
}

pub(super) fn norm(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.float();
    let x = grow.pick(types, 2..=6)?;
    let mut axes = vec![x.rank() - 1];
    if grow.choices.chance(40) {
        axes = grow.choices.permutation(x.rank())[..2].to_vec();
        axes.sort_unstable();
    }
    let list = grow.axes(&axes);
    let y = match grow.choices.below(4) {
        0 | 1 => {
            let attributes = "eps=\"0.001\" normalize_variance=\"true\" eps_mode=\"INSIDE_SQRT\"";
            grow.one("MVN", "opset6", attributes, &[&x, &list], &x.shape)?
        }
        2 => grow.one(
            "NormalizeL2",
            "opset1",
            "eps=\"0.0001\" eps_mode=\"add\"",
            &[&x, &list],
            &x.shape,
        )?,
        _ => written_out(grow, &x, &axes, &list)?,
    };
    grow.keep(y.bounded(8.0)).map(drop)
}

/// A normalisation of layers as its single operators.
fn written_out(grow: &mut Grow<'_>, x: &Value, axes: &[usize], list: &Value) -> Option<Value> {
    let mut few = x.shape.clone();
    for &axis in axes {
        few[axis] = 1;
    }
    let keep = "keep_dims=\"true\"";
    let mean = grow.one("ReduceMean", "opset1", keep, &[x, list], &few)?;
    let centred = grow.one("Subtract", "opset1", "", &[x, &mean], &x.shape)?;
    let squares = grow.one("Multiply", "opset1", "", &[&centred, &centred], &x.shape)?;
    let variance = grow.one("ReduceMean", "opset1", keep, &[&squares, list], &few)?;
    let tiny = grow.scalar(x.ty, 1e-3);
    let variance = grow.one("Add", "opset1", "", &[&variance, &tiny], &few)?;
    let deviation = grow.one("Sqrt", "opset1", "", &[&variance], &few)?;
    grow.one("Divide", "opset1", "", &[&centred, &deviation], &x.shape)
}

pub(super) fn cum_sum(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.any_of(&[F16, F64, I32, I64]);
    let x = grow.pick(types, 1..=6)?;
    let axis = grow.axis(&x);
    let y = sums(grow, &x, axis)?;
    grow.keep(y).map(drop)
}

pub(super) fn sums(grow: &mut Grow<'_>, x: &Value, axis: usize) -> Option<Value> {
    let [exclusive, reverse] = [40, 40].map(|percent| grow.choices.chance(percent));
    let at = grow.number(axis);
    let attributes = format!("exclusive=\"{exclusive}\" reverse=\"{reverse}\"");
    let y = grow.one("CumSum", "opset3", attributes, &[x, &at], &x.shape)?;
    let bound = 2.0 * x.bound * (x.shape[axis] as f64).sqrt();
    Some(y.bounded(bound))
}

pub(super) fn top_k(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.any_of(&[F16, I32, I64]);
    let x = grow.pick(types, 2..=6)?;
    let axis = grow.axis(&x);
    if x.bytes() > 1 << 20 || axis == 0 && grow.is_batched(&x.shape) {
        return None;
    }
    let share = grow.choices.of(&[2, 10, 50, 100]);
    let count = (x.shape[axis] * share / 100).max(1);
    let (mode, sort) = (
        grow.choices.of(&["max", "min"]),
        grow.choices.of(&["value", "index"]),
    );
    let index = grow.choices.of(&[I32, I64]);
    let shape = with(&x.shape, axis, count);
    let count = grow.number(count);
    let attributes = format!(
        "axis=\"{axis}\" mode=\"{mode}\" sort=\"{sort}\" index_element_type=\"{index}\" stable=\"false\""
    );
    let outputs = [(x.ty, shape.as_slice()), (index, shape.as_slice())];
    let both = grow.several("TopK", "opset11", attributes, &[&x, &count], &outputs)?;
    let floats = grow.any_of(&[F32]).contains(&x.ty);
    let keep = if floats { 2 } else { 1 };
    grow.values.extend(both.into_iter().take(keep));
    Some(())
}
