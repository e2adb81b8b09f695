//! `ov_model.h`: the ports of models, and their shapes.

use crate::ffi::{Array, In, Out, Required, Text};
use crate::model::Model;
use crate::node::{Owner, Port};
use crate::partial_shape::PartialShape;
use crate::port_choice::{Side, Which, find};
use crate::status::{Failure, Result, Status, guard};

/// Gives the caller a port of a model.
fn give(model: In<'_, Model>, side: Side, which: Which<'_>, out: Out<'_, *mut Port>) -> Status {
    guard(|| Owner::Model(model.required("model")?.clone()).give(side, which, out))
}

/// The input, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_model_const_input(model: In<'_, Model>, input_port: Out<'_, *mut Port>) -> Status {
    give(model, Side::Input, Which::Only, input_port)
}

/// The input of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_model_const_input_by_name(
    model: In<'_, Model>,
    tensor_name: Text<'_>,
    input_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Input, Which::Name(tensor_name), input_port)
}

/// The input at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_model_const_input_by_index(
    model: In<'_, Model>,
    index: usize,
    input_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Input, Which::Index(index), input_port)
}

/// The input, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_model_input(model: In<'_, Model>, input_port: Out<'_, *mut Port>) -> Status {
    give(model, Side::Input, Which::Only, input_port)
}

/// The input of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_model_input_by_name(
    model: In<'_, Model>,
    tensor_name: Text<'_>,
    input_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Input, Which::Name(tensor_name), input_port)
}

/// The input at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_model_input_by_index(
    model: In<'_, Model>,
    index: usize,
    input_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Input, Which::Index(index), input_port)
}

/// The output, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_model_const_output(
    model: In<'_, Model>,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Output, Which::Only, output_port)
}

/// The output at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_model_const_output_by_index(
    model: In<'_, Model>,
    index: usize,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Output, Which::Index(index), output_port)
}

/// The output of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_model_const_output_by_name(
    model: In<'_, Model>,
    tensor_name: Text<'_>,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Output, Which::Name(tensor_name), output_port)
}

/// The output, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_model_output(model: In<'_, Model>, output_port: Out<'_, *mut Port>) -> Status {
    give(model, Side::Output, Which::Only, output_port)
}

/// The output at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_model_output_by_index(
    model: In<'_, Model>,
    index: usize,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Output, Which::Index(index), output_port)
}

/// The output of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_model_output_by_name(
    model: In<'_, Model>,
    tensor_name: Text<'_>,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(model, Side::Output, Which::Name(tensor_name), output_port)
}

/// Gives the inputs of these names other shapes.
#[unsafe(no_mangle)]
extern "C" fn ov_model_reshape(
    model: In<'_, Model>,
    tensor_names: Array<'_, Text<'_>>,
    partial_shapes: Array<'_, PartialShape<'_>>,
    size: usize,
) -> Status {
    guard(|| {
        let names = tensor_names.items(size, "tensor_names")?;
        let which = names.iter().map(|name| Which::Name(*name));
        reshape(model, which, partial_shapes.items(size, "partial_shapes")?)
    })
}

/// Gives the input of this name another shape.
#[unsafe(no_mangle)]
extern "C" fn ov_model_reshape_input_by_name(
    model: In<'_, Model>,
    tensor_name: Text<'_>,
    partial_shape: PartialShape<'_>,
) -> Status {
    guard(|| reshape(model, [Which::Name(tensor_name)], &[partial_shape]))
}

/// Gives the first input another shape.
#[unsafe(no_mangle)]
extern "C" fn ov_model_reshape_single_input(
    model: In<'_, Model>,
    partial_shape: PartialShape<'_>,
) -> Status {
    guard(|| reshape(model, [Which::Index(0)], &[partial_shape]))
}

/// Gives the inputs at these positions other shapes.
#[unsafe(no_mangle)]
extern "C" fn ov_model_reshape_by_port_indexes(
    model: In<'_, Model>,
    port_indexes: Array<'_, usize>,
    partial_shape: Array<'_, PartialShape<'_>>,
    size: usize,
) -> Status {
    guard(|| {
        let indexes = port_indexes.items(size, "port_indexes")?;
        let which = indexes.iter().map(|index| Which::Index(*index));
        reshape(model, which, partial_shape.items(size, "partial_shape")?)
    })
}

/// Gives these inputs other shapes.
#[unsafe(no_mangle)]
extern "C" fn ov_model_reshape_by_ports(
    model: In<'_, Model>,
    output_ports: Array<'_, In<'_, Port>>,
    partial_shapes: Array<'_, PartialShape<'_>>,
    size: usize,
) -> Status {
    guard(|| {
        let mut which = Vec::new();
        for port in output_ports.items(size, "output_ports")? {
            let port = port.required("output_ports[…]")?;
            if port.side != Side::Input {
                let text = "a port in `output_ports` is no input of a model";
                return Err(Failure::new(Status::ParameterMismatch, text));
            }
            which.push(Which::Index(port.index));
        }
        reshape(model, which, partial_shapes.items(size, "partial_shapes")?)
    })
}

fn reshape<'a>(
    model: In<'_, Model>,
    inputs: impl IntoIterator<Item = Which<'a>>,
    shapes: &[PartialShape<'_>],
) -> Result<()> {
    let model = model.required("model")?;
    let shapes = inputs.into_iter().zip(shapes);
    let shapes = model.look(Side::Input, |ports| {
        let shapes = shapes.map(|(which, shape)| {
            let position = find(ports, Side::Input, which)?;
            Ok((position, shape.to_shape()?))
        });
        shapes.collect::<Result<Vec<_>>>()
    })?;
    if shapes.is_empty() {
        return Err(Failure::argument("`size` is 0, expected a shape at least"));
    }
    model.reshape(&shapes)
}
