//! Operators that give one output element from the input elements at the same place.
//!
//! Operators without attributes of their own are rows of a table: a name, the element types they take,
//! and a formula over scalars. The others are files that share `infer` and `lower`.
//!
//! Arithmetic is done in the type that [`ElementType::compute`] gives, and rounded or wrapped to the
//! element type once, at the end.

mod broadcast;
pub(crate) mod clamp;
mod class;
pub(crate) mod convert;
pub(crate) mod convert_like;
pub(crate) mod convert_promote_types;
pub(crate) mod divide;
pub(crate) mod elu;
mod formulas;
pub(crate) mod gelu;
pub(crate) mod hard_sigmoid;
pub(crate) mod identity;
pub(crate) mod is_inf;
pub(crate) mod prelu;
pub(crate) mod round;
mod rows;
pub(crate) mod select;
pub(crate) mod selu;
pub(crate) mod swish;

pub(crate) use broadcast::{Broadcast, Mode, read};
pub(crate) use class::{Class, Output};
pub(crate) use formulas::sigmoid;
pub(crate) use rows::ROWS;

use crate::attrs::Attributes;
use crate::error::ensure;
use crate::{Infer, Lower, Op, OpError, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_tensor::ElementType;

/// The columns of the table beside the name.
#[derive(Clone, Copy)]
struct Row {
    class: Class,
    result: Output,
    formula: fn(&[Scalar]) -> Scalar,
}

impl Row {
    fn instantiate(self, attributes: &Attributes<'_>) -> Result<Box<dyn Op>, OpError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            #[serde(default)]
            auto_broadcast: Mode,
            #[serde(default, alias = "auto_broadcast.auto_broadcast_axis")]
            axis: i64,
        }
        let Attrs {
            auto_broadcast,
            axis,
        } = attributes.parse()?;
        Ok(Box::new(Elementwise {
            row: self,
            broadcast: Broadcast {
                mode: auto_broadcast,
                axis,
            },
        }))
    }
}

struct Elementwise {
    row: Row,
    broadcast: Broadcast,
}

impl std::fmt::Debug for Elementwise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Elementwise({:?}, {:?})", self.row.class, self.broadcast)
    }
}

impl Op for Elementwise {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx, self.row.class, self.row.result, self.broadcast)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx, self.broadcast, self.row.formula);
    }
}

/// Inputs of one type in `class`, shapes broadcast together.
pub(crate) fn infer(
    cx: &Infer<'_>,
    class: Class,
    output: Output,
    broadcast: Broadcast,
) -> Result<Vec<TensorType>, OpError> {
    let inputs: Vec<usize> = (0..cx.input_count()).collect();
    let common = same_type(cx, class)?;
    let element = match output {
        Output::Same => common,
        Output::Boolean => ElementType::Boolean,
    };
    Ok(vec![TensorType::new(element, broadcast.join(cx, &inputs)?)])
}

/// As [`infer`], for an operator whose first input has the shape of the output and whose others hold
/// a single number each.
pub(crate) fn infer_with_numbers(cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
    let element = same_type(cx, Class::Float)?;
    for i in 1..cx.input_count() {
        let shape = &cx.inputs()[i].shape;
        let one = shape
            .dims()
            .is_none_or(|dims| dims.iter().all(|d| d.contains(1)));
        ensure!(one, "`{}` must hold one element, found {shape}", cx.name(i));
    }
    Ok(vec![TensorType::new(element, cx.inputs()[0].shape.clone())])
}

/// The element type that all inputs share, which is one of `class`.
fn same_type(cx: &Infer<'_>, class: Class) -> Result<ElementType, OpError> {
    let first = cx.expect(cx.name(0), class.describe(), |t| class.accepts(t))?;
    for i in 1..cx.input_count() {
        cx.expect_same(cx.name(0), cx.name(i))?;
    }
    Ok(first)
}

/// `out[at] = formula(inputs[at])`, computed in the type that [`ElementType::compute`] gives.
pub(crate) fn lower(
    cx: &mut Lower<'_>,
    broadcast: Broadcast,
    formula: impl FnOnce(&[Scalar]) -> Scalar,
) {
    let inputs = cx.inputs().to_vec();
    let out = cx.output(0);
    let ty = cx.type_of(out);
    cx.define(out, |cx, at| {
        let arguments = inputs.iter().enumerate();
        let arguments: Vec<Scalar> = arguments
            .map(|(i, &x)| widened(read(cx, broadcast.alignment(i == 0), x, at)))
            .collect();
        formula(&arguments).cast(ty)
    });
}

/// `out[at] = formula(x[at], numbers)`, for [`infer_with_numbers`].
pub(crate) fn lower_with_numbers(
    cx: &mut Lower<'_>,
    numbers: &[&str],
    formula: impl FnOnce(&Scalar, &[Scalar]) -> Scalar,
) {
    let (x, out) = (cx.inputs()[0], cx.output(0));
    let ty = cx.type_of(out);
    cx.define(out, |cx, at| {
        let numbers: Vec<Scalar> = numbers.iter().map(|n| widened(cx.load_only(n))).collect();
        formula(&widened(cx.load_from(x, at)), &numbers).cast(ty)
    });
}

/// `x` in the type in which arithmetic on it is done.
pub(crate) fn widened(x: Scalar) -> Scalar {
    let ty = x.ty().compute();
    x.cast(ty)
}
