//! The class of shapes for which a plan was made, as text: its symbols, and who relies on what.

use crate::class::{Affine, Alone, Class, Entry, PASSES, Pin};
use crate::plan_key::PlanKey;
use crate::unit::Unit;
use std::fmt::Write;
use vinelift_graph::{NodeIndex, TensorId};

/// A class to which shapes belong that the unit has met.
///
/// ```text
/// == class: ids[s0, s1], mask[s0, s1]
///    mask[0] is no symbol of its own: layer 'sum' (Add, opset1)
///    s1 - 3 >= 0: layer 'window' (Slice, opset8)
/// ```
pub(super) fn class_text<T>(unit: &Unit, key: &PlanKey, class: &Class<T>) -> String {
    let subjects = subjects(unit, key);
    let shown = |entry: &Entry| match entry {
        Entry::Number(number) => number.to_string(),
        Entry::Symbol(of) => affine_text(of),
    };
    let mut rest = class.pattern.as_slice();
    let shape = |(name, count): &(String, usize)| {
        let (own, others) = rest.split_at(*count);
        rest = others;
        let entries: Vec<String> = own.iter().map(shown).collect();
        format!("{name}[{}]", entries.join(", "))
    };
    let shapes: Vec<String> = subjects.iter().map(shape).collect();
    let mut text = format!("== class: {}\n", shapes.join(", "));
    add_pins(unit, &subjects, &class.pins, &mut text);
    for (condition, place) in &class.symbols.conditions {
        let _ = writeln!(text, "   {condition}: {}", who(unit, *place));
    }
    text
}

/// `s0`, `s0 + 1`, `2*s0 - 1`, `-s0`
fn affine_text(of: &Affine) -> String {
    let Affine {
        symbol,
        times,
        more,
    } = *of;
    let multiple = match times {
        1 => format!("s{symbol}"),
        -1 => format!("-s{symbol}"),
        _ => format!("{times}*s{symbol}"),
    };
    match more {
        0 => multiple,
        1.. => format!("{multiple} + {more}"),
        _ => format!("{multiple} - {}", more.unsigned_abs()),
    }
}

/// Why shapes have no class, as text: empty if none of their extents may change.
///
/// ```text
/// == no class: each shape is compiled for
///    x[2] is no symbol of its own: layer 'boxes' (PriorBox, opset8)
/// ```
pub(super) fn alone_text(unit: &Unit, key: &PlanKey, alone: &Alone) -> String {
    let mut text = "== no class: each shape is compiled for\n".to_owned();
    match alone {
        Alone::Unsuited(None) => text.clear(),
        Alone::Unsuited(Some(error)) => {
            let _ = writeln!(text, "   {error}");
        }
        Alone::Pinned(pins) => add_pins(unit, &subjects(unit, key), pins, &mut text),
    }
    text
}

/// A line for each dim that is no symbol of its own.
fn add_pins(unit: &Unit, subjects: &[(String, usize)], pins: &[Pin], text: &mut String) {
    for Pin { position, place } in pins {
        if let Some(dim) = dim(subjects, *position) {
            let who = who(unit, *place);
            let _ = writeln!(text, "   {dim} is no symbol of its own: {who}");
        }
    }
}

/// Who has asked for something at a place.
fn who(unit: &Unit, place: usize) -> String {
    match place {
        PASSES => "a pass".to_owned(),
        node => {
            let node = unit.interface.graph.node(NodeIndex::new(node));
            node.label().to_string()
        }
    }
}

/// The tensors and values that the numbers of a key belong to, in order, and how many numbers each has.
fn subjects(unit: &Unit, key: &PlanKey) -> Vec<(String, usize)> {
    let graph = &unit.interface.graph;
    let name = |tensor: TensorId| graph.tensor_name(tensor);
    let parameters = graph.parameters.iter().zip(&key.shapes);
    let inputs = parameters.map(|(&node, shape)| (name(TensorId { node, output: 0 }), shape.len()));
    let computed = key
        .computed
        .iter()
        .map(|(t, shape)| (name(*t), shape.len()));
    let values = key.values.iter();
    let values = values.map(|(t, _, value)| {
        (
            format!("the values of {} ", name(*t)),
            value.numbers().len(),
        )
    });
    let all = inputs.chain(computed).chain(values);
    all.collect()
}

/// The dim at a position among the numbers of a key.
fn dim(subjects: &[(String, usize)], mut position: usize) -> Option<String> {
    for (name, count) in subjects {
        if position < *count {
            return Some(format!("{name}[{position}]"));
        }
        position -= count;
    }
    None
}
