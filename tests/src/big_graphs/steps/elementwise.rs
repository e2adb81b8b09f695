//! Operators that work element by element.

use crate::big_graphs::grow::{Grow, Value};
use vinelift::ElementType::{self, BF16, Boolean, F16, F32, F64, I4, I8, I16, I32, I64, U4, U8};

pub(super) fn unary(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.float();
    let x = grow.pick(types, 1..=6)?;
    let y = function(grow, &x)?;
    grow.keep(y).map(drop)
}

/// Some function of `x`.
pub(super) fn function(grow: &mut Grow<'_>, x: &Value) -> Option<Value> {
    const PLAIN: [(&str, &str, &str); 22] = [
        ("ReLU", "opset1", ""),
        ("ReLU", "opset1", ""),
        ("Tanh", "opset1", ""),
        ("Sigmoid", "opset1", ""),
        ("Abs", "opset1", ""),
        ("Negative", "opset1", ""),
        ("HSwish", "opset4", ""),
        ("HSigmoid", "opset5", ""),
        ("Gelu", "opset7", "approximation_mode=\"ERF\""),
        ("Gelu", "opset7", "approximation_mode=\"TANH\""),
        ("Elu", "opset1", "alpha=\"0.7\""),
        ("Clamp", "opset1", "min=\"-1.5\" max=\"2\""),
        ("Erf", "opset1", ""),
        ("Floor", "opset1", ""),
        ("Ceiling", "opset1", ""),
        ("SoftPlus", "opset4", ""),
        ("SoftSign", "opset9", ""),
        ("Sin", "opset1", ""),
        ("Swish", "opset4", ""),
        ("Mish", "opset4", ""),
        ("Sign", "opset1", ""),
        ("Round", "opset5", "mode=\"half_to_even\""),
    ];
    let shape = x.shape.clone();
    match grow.choices.below(PLAIN.len() + 3) {
        k if k < PLAIN.len() => {
            let (ty, version, attributes) = PLAIN[k];
            grow.one(ty, version, attributes, &[x], &shape)
        }
        k if k == PLAIN.len() => {
            let most = grow.scalar(x.ty, 3.0);
            let less = grow.one("Minimum", "opset1", "", &[x, &most], &shape)?;
            Some(
                grow.one("Exp", "opset1", "", &[&less], &shape)?
                    .bounded(20.0),
            )
        }
        k if k == PLAIN.len() + 1 => {
            let positive = grow.one("Abs", "opset1", "", &[x], &shape)?;
            grow.one("Sqrt", "opset1", "", &[&positive], &shape)
        }
        _ => {
            let half = grow.scalar(x.ty, 0.5);
            let positive = grow.one("Abs", "opset1", "", &[x], &shape)?;
            let positive = grow.one("Add", "opset1", "", &[&positive, &half], &shape)?;
            Some(
                grow.one("Log", "opset1", "", &[&positive], &shape)?
                    .bounded(9.0),
            )
        }
    }
}

pub(super) fn binary(grow: &mut Grow<'_>) -> Option<()> {
    let float = grow.float();
    let types = if grow.choices.chance(15) {
        &[I8, I16, I32, I64, U8]
    } else {
        float
    };
    let x = grow.pick(types, 1..=6)?;
    let y = combination(grow, &x)?;
    grow.keep(y).map(drop)
}

/// Some function of `x` and something that broadcasts with it.
fn combination(grow: &mut Grow<'_>, x: &Value) -> Option<Value> {
    const OPERATORS: [&str; 9] = [
        "Add",
        "Add",
        "Subtract",
        "Multiply",
        "Multiply",
        "Maximum",
        "Minimum",
        "SquaredDifference",
        "Divide",
    ];
    let (mut y, shape) = grow.partner(x)?;
    let mut x = x.clone();
    if grow.choices.chance(40) {
        std::mem::swap(&mut x, &mut y);
    }
    let operator = grow.choices.of(&OPERATORS);
    let bound = match operator {
        "Multiply" => x.bound * y.bound,
        "SquaredDifference" => (x.bound + y.bound).powi(2),
        _ => x.bound + y.bound,
    };
    if operator == "Divide" {
        let one = grow.scalar(y.ty, 1.0);
        let unsigned = y.ty == U8;
        if !unsigned {
            y = grow.one("Abs", "opset1", "", &[&y], &y.shape)?;
        }
        y = grow.one("Maximum", "opset1", "", &[&y, &one], &y.shape)?;
    }
    Some(
        grow.one(operator, "opset1", "", &[&x, &y], &shape)?
            .bounded(bound),
    )
}

pub(super) fn chain(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.float();
    let mut x = grow.pick(types, 1..=6)?;
    for _ in 0..grow.choices.within(2, 5) {
        x = if grow.choices.chance(50) {
            function(grow, &x)?
        } else {
            combination(grow, &x)?
        };
        if x.bound > 1e3 {
            break;
        }
        if grow.choices.chance(10) {
            grow.values.push(x.clone());
        }
    }
    grow.keep(x).map(drop)
}

pub(super) fn select(grow: &mut Grow<'_>) -> Option<()> {
    let types = grow.any_of(&[F16, F64, I8, I32, I64, U8]);
    let x = grow.pick(types, 1..=6)?;
    let (y, shape) = grow.partner(&x)?;
    let mask = grow
        .find(|v| v.ty == Boolean && v.shape == shape)
        .filter(|_| grow.choices.chance(60));
    let mask = match mask {
        Some(mask) => mask,
        None => {
            let operator = grow.choices.of(&[
                "Greater",
                "Less",
                "GreaterEqual",
                "LessEqual",
                "Equal",
                "NotEqual",
            ]);
            let outputs = [(Boolean, shape.as_slice())];
            let mask = grow
                .several(operator, "opset1", "", &[&x, &y], &outputs)?
                .pop()?;
            grow.values.push(mask.clone());
            mask
        }
    };
    let z = grow.one("Select", "opset1", "", &[&mask, &x, &y], &shape)?;
    let z = Value { ty: x.ty, ..z };
    // `one` takes the type from the first input, which is the mask.
    grow.nodes.last_mut()?.outputs[0].0 = x.ty;
    grow.keep(z).map(drop)
}

pub(super) fn logic(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.find(|v| v.ty == Boolean)?;
    if grow.choices.chance(30) {
        let y = grow.one("LogicalNot", "opset1", "", &[&x], &x.shape)?;
        return grow.keep(y).map(drop);
    }
    let (y, shape) = grow.partner(&x)?;
    let (operator, version) = grow.choices.of(&[
        ("LogicalAnd", "opset1"),
        ("LogicalOr", "opset1"),
        ("LogicalXor", "opset2"),
    ]);
    let z = grow.one(operator, version, "", &[&x, &y], &shape)?;
    grow.keep(z).map(drop)
}

pub(super) fn convert(grow: &mut Grow<'_>) -> Option<()> {
    const TO: [ElementType; 14] = [
        F32, F32, F32, F16, BF16, F64, I8, I16, I32, I64, U8, Boolean, U4, I4,
    ];
    let types = grow.any_of(&[F16, BF16, F64, I8, I16, I32, I64, U8, Boolean, U4, I4]);
    let x = grow.pick(types, 1..=6)?;
    let to = grow.choices.of(&TO);
    let y = convert_to(grow, &x, to)?;
    let y = grow.keep(y)?;
    if to != F32 && grow.choices.chance(60) {
        let back = convert_to(grow, &y, F32)?;
        grow.keep(back)?;
    }
    Some(())
}

pub(super) fn convert_to(grow: &mut Grow<'_>, x: &Value, to: ElementType) -> Option<Value> {
    let outputs = [(to, x.shape.as_slice())];
    let attributes = format!("destination_type=\"{to}\"");
    grow.several("Convert", "opset1", attributes, &[x], &outputs)?
        .pop()
}
