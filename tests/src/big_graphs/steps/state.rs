//! Variables, which keep what an inference leaves for the next.

use super::in_place::update;
use crate::big_graphs::fill::Fill;
use crate::big_graphs::grow::Grow;
use vinelift::ElementType::F32;

pub(super) fn variable(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.pick(&[F32], 1..=4)?;
    // The value of a variable keeps its shape.
    if grow.is_batched(&x.shape) || grow.sinks.len() > 2 {
        return None;
    }
    let first = if grow.choices.chance(50) {
        grow.constant(F32, &x.shape, Fill::Integers { low: 0, high: 0 })
    } else {
        grow.parameter(F32, &x.shape)
    };
    let name = format!("v{}", grow.nodes.len());
    let dims: Vec<String> = x.shape.iter().map(ToString::to_string).collect();
    let attributes = format!(
        "variable_id=\"{name}\" variable_type=\"f32\" variable_shape=\"{}\"",
        dims.join(",")
    );
    let held = grow
        .one("ReadValue", "opset6", attributes, &[&first], &x.shape)?
        .bounded(8.0);
    grow.values.push(held.clone());
    let next = match grow.choices.below(10) {
        0..3 => {
            let half = grow.scalar(F32, 0.5);
            let sum = grow.one("Add", "opset1", "", &[&held, &x], &x.shape)?;
            grow.one("Multiply", "opset1", "", &[&sum, &half], &x.shape)?
        }
        3..6 => {
            let updated = update(grow, &held, &x)?;
            grow.one("Tanh", "opset1", "", &[&updated], &updated.shape.clone())?
        }
        6..8 => update(grow, &held, &x)?,
        8 => {
            // The newest rows push out the oldest.
            let axis = grow.axis(&x);
            let shape = crate::big_graphs::grow::with(&x.shape, axis, 2 * x.shape[axis]);
            let both = grow.one(
                "Concat",
                "opset1",
                format!("axis=\"{axis}\""),
                &[&held, &x],
                &shape,
            )?;
            grow.values.push(both.clone());
            let [start, stop, step] =
                [x.shape[axis] / 2, x.shape[axis] / 2 + x.shape[axis], 1].map(|n| grow.axes(&[n]));
            let axes = grow.axes(&[axis]);
            grow.one(
                "Slice",
                "opset8",
                "",
                &[&both, &start, &stop, &step, &axes],
                &x.shape,
            )?
        }
        _ => grow.one("ReLU", "opset1", "", &[&x], &x.shape)?,
    };
    if next.shape != x.shape {
        return None;
    }
    if grow.choices.chance(60) {
        grow.values.push(next.clone().bounded(8.0));
    }
    let sink = grow.one(
        "Assign",
        "opset6",
        format!("variable_id=\"{name}\""),
        &[&next],
        &x.shape,
    )?;
    grow.sinks.push(sink.port.node);
    Some(())
}
