//! Graphs inside of nodes: If, TensorIterator and Loop.

use super::elementwise::function;
use super::index::{elements_updated, slices_updated};
use super::reduction::sums;
use crate::big_graphs::case::{Body, Kind, Node, Port};
use crate::big_graphs::grow::{Grow, Value, with};
use vinelift::ElementType::{Boolean, F32};

/// One graph or another, as the values say.
pub(super) fn condition(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.pick(&[F32], 2..=4)?;
    let y = grow.like(&x);
    let yes = if grow.choices.chance(50) {
        let axes: Vec<usize> = (0..x.rank()).collect();
        let axes = grow.axes(&axes);
        let mean = grow.one(
            "ReduceMean",
            "opset1",
            "keep_dims=\"false\"",
            &[&x, &axes],
            &[],
        )?;
        let limit = grow.scalar(F32, 1e-4);
        grow.several("Greater", "opset1", "", &[&mean, &limit], &[(Boolean, &[])])?
            .pop()?
    } else {
        grow.filled(
            Boolean,
            &[],
            crate::big_graphs::fill::Fill::Integers { low: 0, high: 1 },
        )
    };
    let mut bodies = Vec::new();
    for tag in ["then", "else"] {
        let (nodes, results) = inside(grow, &[&x, &y], |grow, inner| {
            Some(vec![body(grow, &inner[0], &inner[1])?])
        })?;
        let count = nodes.len();
        bodies.push(Body {
            tag: if tag == "then" {
                "then_body"
            } else {
                "else_body"
            },
            map: format!(
                "<{tag}_port_map><input external_port_id=\"1\" internal_layer_id=\"0\"/>\
                 <input external_port_id=\"2\" internal_layer_id=\"1\"/>\
                 <output external_port_id=\"3\" internal_layer_id=\"{count}\"/></{tag}_port_map>"
            ),
            nodes,
            results,
        });
    }
    let z = around(grow, "If", "opset8", bodies, &[&yes, &x, &y], &[&x.shape])?.pop()?;
    grow.keep(z.bounded(8.0 * (x.bound + y.bound))).map(drop)
}

/// Slices of a tensor one after the other, each with what the one before left.
pub(super) fn iterator(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.pick(&[F32], 2..=4)?;
    let axis = grow.axis(&x);
    let extent = x.shape[axis];
    let fits = |part: &usize| extent.is_multiple_of(*part) && extent / part <= 24;
    let part = (1..=extent).find(fits).filter(|part| *part < extent)?;
    if axis == 0 && grow.is_batched(&x.shape) {
        return None;
    }
    let slice = with(&x.shape, axis, part);
    let first = grow.up_to(&slice, F32)?;
    let times = extent / part;
    let before = grow.work();
    let (nodes, results) = inside(
        grow,
        &[
            &Value {
                shape: slice.clone(),
                ..x.clone()
            },
            &first,
        ],
        |grow, inner| {
            let y = body(grow, &inner[0], &inner[1])?;
            let next = grow.one("Tanh", "opset1", "", &[&y], &slice)?;
            Some(vec![next, y])
        },
    )?;
    grow.charge((grow.work() - before) * (times - 1))?;
    let count = nodes.len();
    let (start, end, stride) = match grow.choices.chance(30) {
        true => (-1, 0, -(part as i64)),
        false => (0, -1, part as i64),
    };
    let along = format!(
        "axis=\"{axis}\" start=\"{start}\" end=\"{end}\" stride=\"{stride}\" part_size=\"{part}\""
    );
    let map = format!(
        "<port_map><input {along} external_port_id=\"0\" internal_layer_id=\"0\"/>\
         <input external_port_id=\"1\" internal_layer_id=\"1\"/>\
         <output external_port_id=\"2\" internal_layer_id=\"{count}\"/>\
         <output {along} external_port_id=\"3\" internal_layer_id=\"{}\"/></port_map>\
         <back_edges><edge from-layer=\"{count}\" to-layer=\"1\"/></back_edges>",
        count + 1
    );
    let bodies = vec![Body {
        tag: "body",
        map,
        nodes,
        results,
    }];
    let both = around(
        grow,
        "TensorIterator",
        "opset1",
        bodies,
        &[&x, &first],
        &[&slice, &x.shape],
    )?;
    for value in both {
        grow.keep(value.bounded(8.0 * (x.bound + first.bound)))?;
    }
    Some(())
}

/// The same graph a few times on what it gave the time before.
pub(super) fn repetition(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.pick(&[F32], 2..=4)?;
    let first = grow.like(&x);
    let times = grow.choices.of(&[1, 2, 3, 5]);
    let (trips, go) = (grow.number(times), grow.scalar(Boolean, 1.0));
    let before = grow.work();
    let (nodes, results) = inside(grow, &[&x, &first], |grow, inner| {
        let y = body(grow, &inner[0], &inner[1])?;
        let next = grow.one("Tanh", "opset1", "", &[&y], &x.shape)?;
        let go = grow.scalar(Boolean, 1.0);
        Some(vec![next, go])
    })?;
    grow.charge((grow.work() - before) * (times - 1))?;
    let count = nodes.len();
    let map = format!(
        "<port_map><input external_port_id=\"2\" internal_layer_id=\"0\"/>\
         <input external_port_id=\"3\" internal_layer_id=\"1\"/>\
         <output external_port_id=\"4\" internal_layer_id=\"{count}\"/>\
         <output external_port_id=\"-1\" internal_layer_id=\"{}\" purpose=\"execution_condition\"/></port_map>\
         <back_edges><edge from-layer=\"{count}\" to-layer=\"1\"/></back_edges>",
        count + 1
    );
    let bodies = vec![Body {
        tag: "body",
        map,
        nodes,
        results,
    }];
    let y = around(
        grow,
        "Loop",
        "opset5",
        bodies,
        &[&trips, &go, &x, &first],
        &[&x.shape],
    )?
    .pop()?;
    grow.keep(y.bounded(1.0)).map(drop)
}

/// Something of the shape of `x`, computed from both.
fn body(grow: &mut Grow<'_>, x: &Value, y: &Value) -> Option<Value> {
    let shape = x.shape.clone();
    match grow.choices.below(6) {
        0 => {
            let sum = grow.one("Add", "opset1", "", &[x, y], &shape)?;
            function(grow, &sum)
        }
        1 => {
            // One that may be updated in place once the product has been computed.
            let (rows, hidden) = (x.last(1), function(grow, x)?);
            grow.charge(2 * x.elements() * rows)?;
            let weights = grow.weights(F32, &[rows, rows], rows);
            let plain = "transpose_a=\"false\" transpose_b=\"false\"";
            let t = grow.one("MatMul", "opset1", plain, &[&weights, &hidden], &shape)?;
            let axis = x.rank() - 1;
            let t = grow.one("Add", "opset1", "", &[&t, y], &shape)?;
            scattered(grow, &hidden, &t, axis)
        }
        2 => {
            let columns = x.last(0);
            grow.charge(2 * x.elements() * columns)?;
            let weights = grow.weights(F32, &[columns, columns], columns);
            let turned = "transpose_a=\"false\" transpose_b=\"true\"";
            let t = grow.one("MatMul", "opset1", turned, &[x, &weights], &shape)?;
            grow.one("Maximum", "opset1", "", &[&t, y], &shape)
        }
        3 => {
            let t = grow.one("SoftMax", "opset8", "axis=\"-1\"", &[x], &shape)?;
            grow.one("Subtract", "opset1", "", &[&t, y], &shape)
        }
        4 => {
            let t = sums(grow, x, x.rank() - 1)?;
            let scale = grow.scalar(F32, 0.1);
            let t = grow.one("Multiply", "opset1", "", &[&t, &scale], &shape)?;
            scattered(grow, y, &t, x.rank() - 1)
        }
        _ => {
            let axis = grow.choices.within(1, x.rank() - 1);
            let both = with(&shape, axis, 2 * shape[axis]);
            let t = grow.one(
                "Concat",
                "opset1",
                format!("axis=\"{axis}\""),
                &[x, y],
                &both,
            )?;
            let [start, stop, step] =
                [shape[axis] / 2, shape[axis] / 2 + shape[axis], 1].map(|n| grow.axes(&[n]));
            let axes = grow.axes(&[axis]);
            grow.one(
                "Slice",
                "opset8",
                "",
                &[&t, &start, &stop, &step, &axes],
                &shape,
            )
        }
    }
}

/// `x` updated along an axis that is not the first.
fn scattered(grow: &mut Grow<'_>, x: &Value, t: &Value, axis: usize) -> Option<Value> {
    if grow.choices.chance(70) {
        elements_updated(grow, x, t, axis)
    } else {
        slices_updated(grow, x, t, axis)
    }
}

/// The nodes of a graph with inputs like these, and what `build` makes of them.
fn inside(
    grow: &mut Grow<'_>,
    inputs: &[&Value],
    build: impl FnOnce(&mut Grow<'_>, &[Value]) -> Option<Vec<Value>>,
) -> Option<(Vec<Node>, Vec<Port>)> {
    let outside = (
        std::mem::take(&mut grow.nodes),
        std::mem::take(&mut grow.values),
    );
    let fill = crate::big_graphs::fill::Fill::Numbers(1.0);
    let inner: Vec<Value> = inputs
        .iter()
        .map(|v| grow.filled(v.ty, &v.shape, fill.clone()).bounded(v.bound))
        .collect();
    grow.inside = true;
    let results = build(grow, &inner);
    grow.inside = false;
    let nodes = std::mem::replace(&mut grow.nodes, outside.0);
    grow.values = outside.1;
    // All inputs of a body are those of the node around it.
    let parameters = nodes
        .iter()
        .filter(|node| matches!(node.kind, Kind::Parameter(_)));
    let closed = parameters.count() == inputs.len();
    let ports = results?.iter().map(|v| v.port).collect();
    closed.then_some((nodes, ports))
}

fn around(
    grow: &mut Grow<'_>,
    ty: &'static str,
    version: &'static str,
    bodies: Vec<Body>,
    inputs: &[&Value],
    shapes: &[&[usize]],
) -> Option<Vec<Value>> {
    let kind = Kind::Operator {
        ty,
        version,
        attributes: String::new(),
        bodies,
    };
    let outputs: Vec<_> = shapes.iter().map(|shape| (F32, *shape)).collect();
    grow.node(kind, inputs, &outputs)
}
