//! The functions that take remote contexts. They fail, as there are none.

use super::Core;
use crate::compiled_model::CompiledModel;
use crate::ffi::{Array, In, Out, Required, Text};
use crate::model::Model;
use crate::property::Property;
use crate::remote_context::{RemoteContext, no_contexts, refuse};
use crate::status::{Result, Status, guard};

fn compile_with_context(
    core: In<'_, Core>,
    model: In<'_, Model>,
    context: In<'_, RemoteContext>,
) -> Result<()> {
    core.required("core")?;
    model.required("model")?;
    context.required("context")?;
    Err(no_contexts())
}

/// Fails: the device has no contexts. It looks at no variable argument.
#[unsafe(no_mangle)]
extern "C" fn ov_core_create_context(
    core: In<'_, Core>,
    device_name: Text<'_>,
    _context_args_size: usize,
    context: Out<'_, *mut RemoteContext>,
) -> Status {
    guard(|| {
        core.required("core")?;
        refuse(device_name, context)
    })
}

/// Fails: the device has no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_core_create_context_props(
    core: In<'_, Core>,
    device_name: Text<'_>,
    _num_properties: usize,
    _properties: Array<'_, Property<'_>>,
    context: Out<'_, *mut RemoteContext>,
) -> Status {
    guard(|| {
        core.required("core")?;
        refuse(device_name, context)
    })
}

/// Fails: there are no contexts. It looks at no variable argument.
#[unsafe(no_mangle)]
extern "C" fn ov_core_compile_model_with_context(
    core: In<'_, Core>,
    model: In<'_, Model>,
    context: In<'_, RemoteContext>,
    _property_args_size: usize,
    _compiled_model: Out<'_, *mut CompiledModel>,
) -> Status {
    guard(|| compile_with_context(core, model, context))
}

/// Fails: there are no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_core_compile_model_with_context_props(
    core: In<'_, Core>,
    model: In<'_, Model>,
    context: In<'_, RemoteContext>,
    _num_properties: usize,
    _properties: Array<'_, Property<'_>>,
    _compiled_model: Out<'_, *mut CompiledModel>,
) -> Status {
    guard(|| compile_with_context(core, model, context))
}

/// Fails: the device has no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_core_get_default_context(
    core: In<'_, Core>,
    device_name: Text<'_>,
    context: Out<'_, *mut RemoteContext>,
) -> Status {
    guard(|| {
        core.required("core")?;
        refuse(device_name, context)
    })
}
