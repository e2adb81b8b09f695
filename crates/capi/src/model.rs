//! `ov_model.h`: models.

use crate::common::give_text;
use crate::ffi::{In, Out, Required, free};
use crate::port_choice::Side;
use crate::status::{Result, Status, guard, guard_or};
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

    /// Gives inputs, by their positions, other shapes.
    pub(crate) fn reshape(&self, shapes: &[(usize, vinelift::PartialShape)]) -> Result<()> {
        let mut state = self.state();
        state.model = state.model.reshape(shapes)?;
        (state.inputs, state.outputs) = (None, None);
        Ok(())
    }
}

/// Frees a model.
#[unsafe(no_mangle)]
extern "C" fn ov_model_free(model: Option<Box<Model>>) {
    free(model);
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
