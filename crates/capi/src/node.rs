//! `ov_node.h`: ports, the inputs and outputs of models.

use crate::common::{ElementCode, element_code, give_text};
use crate::ffi::{In, Out, Required, free, handle};
use crate::model::Model;
use crate::partial_shape::OwnPartialShape;
use crate::port_choice::{Side, Which, find};
use crate::shape::OwnShape;
use crate::status::{Failure, Result, Status, guard};
use libc::c_char;
use vinelift::CompiledModel;

/// `ov_output_port_t` and `ov_output_const_port_t`, between which there is no difference here: an
/// input or output of a model, which it shows as the model is now.
#[derive(Clone)]
pub(crate) struct Port {
    owner: Owner,
    pub(crate) side: Side,
    pub(crate) index: usize,
}

#[derive(Clone)]
pub(crate) enum Owner {
    Model(Model),
    Compiled(CompiledModel),
}

impl Owner {
    /// Looks at the ports as they are now.
    fn look<T>(&self, side: Side, look: impl FnOnce(&[vinelift::Port]) -> Result<T>) -> Result<T> {
        match (self, side) {
            (Owner::Model(model), side) => model.look(side, look),
            (Owner::Compiled(model), Side::Input) => look(model.inputs()),
            (Owner::Compiled(model), Side::Output) => look(model.outputs()),
        }
    }

    /// Gives the caller a port.
    pub(crate) fn give(self, side: Side, which: Which<'_>, out: Out<'_, *mut Port>) -> Result<()> {
        let out = out.required("port")?;
        let index = self.look(side, |ports| find(ports, side, which))?;
        out.write(handle(Port {
            owner: self,
            side,
            index,
        }));
        Ok(())
    }
}

impl Port {
    /// The port as it is now.
    pub(crate) fn describe(&self) -> Result<vinelift::Port> {
        self.look(|port| Ok(port.clone()))
    }

    /// Looks at the port as it is now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&vinelift::Port) -> Result<T>) -> Result<T> {
        self.owner
            .look(self.side, |ports| match ports.get(self.index) {
                Some(port) => look(port),
                None => {
                    let (side, index) = (self.side.name(), self.index);
                    let text = format!("the model has no {side} {index} any more");
                    Err(Failure::new(Status::OutOfBounds, text))
                }
            })
    }
}

fn give_shape(port: In<'_, Port>, out: Out<'_, OwnShape>) -> Result<()> {
    let out = out.required("tensor_shape")?;
    let port = port.required("port")?.describe()?;
    let shape = port.shape.to_static().ok_or_else(|| {
        let text = format!("the shape {} of '{}' is dynamic", port.shape, port.name());
        Failure::new(Status::ParameterMismatch, text)
    })?;
    out.write(OwnShape::of_extents(&shape)?);
    Ok(())
}

/// The shape of a port, if it is known.
#[unsafe(no_mangle)]
extern "C" fn ov_const_port_get_shape(
    port: In<'_, Port>,
    tensor_shape: Out<'_, OwnShape>,
) -> Status {
    guard(|| give_shape(port, tensor_shape))
}

/// The shape of a port, if it is known.
#[unsafe(no_mangle)]
extern "C" fn ov_port_get_shape(port: In<'_, Port>, tensor_shape: Out<'_, OwnShape>) -> Status {
    guard(|| give_shape(port, tensor_shape))
}

/// A name of a port, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_port_get_any_name(
    port: In<'_, Port>,
    tensor_name: Out<'_, *mut c_char>,
) -> Status {
    guard(|| {
        let port = port.required("port")?.describe()?;
        give_text(tensor_name, "tensor_name", port.name())
    })
}

/// The shape of a port, as far as it is known.
#[unsafe(no_mangle)]
extern "C" fn ov_port_get_partial_shape(
    port: In<'_, Port>,
    partial_shape: Out<'_, OwnPartialShape>,
) -> Status {
    guard(|| {
        let out = partial_shape.required("partial_shape")?;
        let port = port.required("port")?.describe()?;
        out.write(OwnPartialShape::of_shape(&port.shape)?);
        Ok(())
    })
}

/// The element type of a port.
#[unsafe(no_mangle)]
extern "C" fn ov_port_get_element_type(
    port: In<'_, Port>,
    tensor_type: Out<'_, ElementCode>,
) -> Status {
    guard(|| {
        let out = tensor_type.required("tensor_type")?;
        let port = port.required("port")?.describe()?;
        out.write(element_code(port.element_type));
        Ok(())
    })
}

/// Frees a port.
#[unsafe(no_mangle)]
extern "C" fn ov_output_port_free(port: Option<Box<Port>>) {
    free(port);
}

/// Frees a port.
#[unsafe(no_mangle)]
extern "C" fn ov_output_const_port_free(port: Option<Box<Port>>) {
    free(port);
}
