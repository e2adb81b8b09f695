//! `ov_model.h`: models, their ports and their shapes.

use crate::common::give_text;
use crate::ffi::{Array, In, Out, Required, Text, free};
use crate::node::{Owner, Port, Side, Which, find};
use crate::partial_shape::PartialShape;
use crate::status::{Failure, Result, Status, guard, guard_or};
use libc::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `ov_model_t`: a model whose shapes can change. Clones are the same model.
#[derive(Clone)]
pub(crate) struct Model(Arc<Mutex<State>>);

struct State {
    model: vinelift::Model,
    /// Its inputs and outputs, once they have been asked for.
    inputs: Option<Vec<vinelift::Port>>,
    outputs: Option<Vec<vinelift::Port>>,
}

impl Model {
    pub(crate) fn new(model: vinelift::Model) -> Model {
        Model(Arc::new(Mutex::new(State {
            model,
            inputs: None,
            outputs: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model as it is now.
    pub(crate) fn current(&self) -> vinelift::Model {
        self.state().model.clone()
    }

    /// Looks at the ports as they are now.
    pub(crate) fn look<T>(
        &self,
        side: Side,
        look: impl FnOnce(&[vinelift::Port]) -> Result<T>,
    ) -> Result<T> {
        let state = &mut *self.state();
        let known = match side {
            Side::Input => &mut state.inputs,
            Side::Output => &mut state.outputs,
        };
        let ports = match (known.take(), side) {
            (Some(ports), _) => ports,
            (None, Side::Input) => state.model.inputs(),
            (None, Side::Output) => state.model.outputs()?,
        };
        look(known.insert(ports))
    }

    fn reshape(&self, shapes: &[(usize, vinelift::PartialShape)]) -> Result<()> {
        let mut state = self.state();
        state.model = state.model.reshape(shapes)?;
        (state.inputs, state.outputs) = (None, None);
        Ok(())
    }
}

/// Gives the caller a port of a model.
fn give(model: In<'_, Model>, side: Side, which: Which<'_>, out: Out<'_, *mut Port>) -> Status {
    guard(|| Owner::Model(model.required("model")?.clone()).give(side, which, out))
}

/// Frees a model.
#[unsafe(no_mangle)]
extern "C" fn ov_model_free(model: Option<Box<Model>>) {
    free(model);
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

/// The number of inputs.
#[unsafe(no_mangle)]
extern "C" fn ov_model_inputs_size(model: In<'_, Model>, input_size: Out<'_, usize>) -> Status {
    guard(|| {
        let model = model.required("model")?.current();
        let count = model.graph().parameters.len();
        input_size.required("input_size")?.write(count);
        Ok(())
    })
}

/// The number of outputs.
#[unsafe(no_mangle)]
extern "C" fn ov_model_outputs_size(model: In<'_, Model>, output_size: Out<'_, usize>) -> Status {
    guard(|| {
        let model = model.required("model")?.current();
        let count = model.graph().results.len();
        output_size.required("output_size")?.write(count);
        Ok(())
    })
}

/// Whether the shape of an input or output is not known.
#[unsafe(no_mangle)]
extern "C" fn ov_model_is_dynamic(model: In<'_, Model>) -> bool {
    guard_or(false, || {
        let model = model.required("model")?;
        let is_dynamic = |ports: &[vinelift::Port]| Ok(ports.iter().any(|p| !p.shape.is_static()));
        Ok(model.look(Side::Input, is_dynamic)? || model.look(Side::Output, is_dynamic)?)
    })
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

/// Gives the input another shape, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_model_reshape_single_input(
    model: In<'_, Model>,
    partial_shape: PartialShape<'_>,
) -> Status {
    guard(|| reshape(model, [Which::Only], &[partial_shape]))
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

/// The name of a model, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_model_get_friendly_name(
    model: In<'_, Model>,
    friendly_name: Out<'_, *mut c_char>,
) -> Status {
    guard(|| {
        let model = model.required("model")?.current();
        give_text(friendly_name, "friendly_name", model.name())
    })
}
