//! `ov_compiled_model.h`: models that can run.

use crate::common::give_text;
use crate::ffi::{Array, In, Out, Required, Text, free, handle};
use crate::model::Model;
use crate::node::{Owner, Port};
use crate::port_choice::{Side, Which};
use crate::property::{Property, listed};
use crate::remote_context::{RemoteContext, no_contexts};
use crate::settings::Settings;
use crate::status::{Failure, Result, Status, guard};
use crate::variadic::variadic;
use libc::c_char;
use std::collections::HashMap;
use std::sync::Arc;
use vinelift::Core;
use vinelift::depth::Depth;
use vinelift::stack::with_large_stack;

/// `ov_compiled_model_t`.
#[derive(Clone)]
pub(crate) struct CompiledModel {
    pub(crate) model: vinelift::CompiledModel,
    /// The properties that it was compiled with.
    pub(crate) settings: Settings,
    /// How deep its runs may go.
    pub(crate) depth: Depth,
    /// The positions of the inputs and of the outputs, by name.
    pub(crate) names: Arc<[HashMap<String, usize>; 2]>,
}

/// The first bytes of an exported model; the last of them is the version of the format.
const MAGIC: &[u8; 16] = b"vinelift model\0\x01";

impl CompiledModel {
    pub(crate) fn new(
        core: &Core,
        model: &vinelift::Model,
        settings: Settings,
    ) -> Result<CompiledModel> {
        let config = settings.config();
        let compiled = with_large_stack(|| core.compile_model_with(model, config))?;
        let names = [compiled.inputs(), compiled.outputs()].map(positions);
        Ok(CompiledModel {
            settings,
            depth: compiled.depth(),
            model: compiled,
            names: Arc::new(names),
        })
    }

    /// The model as bytes, from which [`import`] makes it again.
    fn export(&self) -> Result<Vec<u8>> {
        let (text, weights) = self.model.model().to_ir()?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(weights);
        Ok(bytes)
    }
}

/// The model in bytes that [`CompiledModel::export`] made. It is compiled anew: code is made for the
/// machine that it runs on.
pub(crate) fn import(core: &Core, bytes: &[u8], settings: Settings) -> Result<CompiledModel> {
    let fail = |why: &str| Failure::new(Status::GeneralError, format!("exported model: {why}"));
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| fail("it does not start as one that Vinelift exported"))?;
    let (len, rest) = rest
        .split_first_chunk::<8>()
        .ok_or_else(|| fail("it ends early"))?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok();
    let parts = len.and_then(|len| rest.split_at_checked(len));
    let (text, weights) = parts.ok_or_else(|| fail("it ends early"))?;
    let read = || core.read_model_from_memory(text, weights.to_vec());
    let model = with_large_stack(read)?;
    CompiledModel::new(core, &model, settings)
}

/// The positions of ports by their names, of which the first that has it is meant.
fn positions(ports: &[vinelift::Port]) -> HashMap<String, usize> {
    let all = ports.iter().enumerate().rev();
    all.flat_map(|(k, port)| port.names.iter().map(move |name| (name.clone(), k)))
        .collect()
}

/// Gives the caller a port of a compiled model.
fn give(
    model: In<'_, CompiledModel>,
    side: Side,
    which: Which<'_>,
    out: Out<'_, *mut Port>,
) -> Status {
    guard(|| {
        let model = model.required("compiled_model")?;
        Owner::Compiled(model.model.clone()).give(side, which, out)
    })
}

/// The number of inputs.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_inputs_size(
    compiled_model: In<'_, CompiledModel>,
    size: Out<'_, usize>,
) -> Status {
    guard(|| {
        let count = compiled_model
            .required("compiled_model")?
            .model
            .inputs()
            .len();
        size.required("size")?.write(count);
        Ok(())
    })
}

/// The input, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_input(
    compiled_model: In<'_, CompiledModel>,
    input_port: Out<'_, *mut Port>,
) -> Status {
    give(compiled_model, Side::Input, Which::Only, input_port)
}

/// The input at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_input_by_index(
    compiled_model: In<'_, CompiledModel>,
    index: usize,
    input_port: Out<'_, *mut Port>,
) -> Status {
    give(compiled_model, Side::Input, Which::Index(index), input_port)
}

/// The input of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_input_by_name(
    compiled_model: In<'_, CompiledModel>,
    name: Text<'_>,
    input_port: Out<'_, *mut Port>,
) -> Status {
    give(compiled_model, Side::Input, Which::Name(name), input_port)
}

/// The number of outputs.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_outputs_size(
    compiled_model: In<'_, CompiledModel>,
    size: Out<'_, usize>,
) -> Status {
    guard(|| {
        let count = compiled_model
            .required("compiled_model")?
            .model
            .outputs()
            .len();
        size.required("size")?.write(count);
        Ok(())
    })
}

/// The output, if there is one.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_output(
    compiled_model: In<'_, CompiledModel>,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(compiled_model, Side::Output, Which::Only, output_port)
}

/// The output at this position.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_output_by_index(
    compiled_model: In<'_, CompiledModel>,
    index: usize,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(
        compiled_model,
        Side::Output,
        Which::Index(index),
        output_port,
    )
}

/// The output of this name.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_output_by_name(
    compiled_model: In<'_, CompiledModel>,
    name: Text<'_>,
    output_port: Out<'_, *mut Port>,
) -> Status {
    give(compiled_model, Side::Output, Which::Name(name), output_port)
}

/// The model that runs: the one that was compiled.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_get_runtime_model(
    compiled_model: In<'_, CompiledModel>,
    model: Out<'_, *mut Model>,
) -> Status {
    guard(|| {
        let compiled = compiled_model.required("compiled_model")?;
        let model = model.required("model")?;
        model.write(handle(Model::new(compiled.model.model().clone())));
        Ok(())
    })
}

/// Sets no property: all are as the model was compiled.
fn set(model: In<'_, CompiledModel>, properties: &[Property<'_>]) -> Result<()> {
    let model = model.required("compiled_model")?;
    if properties.is_empty() {
        return Ok(());
    }
    // Unknown keys and wrong values are reported as such.
    let _ = crate::property::set_all(&mut model.settings.clone(), properties)?;
    Err(Failure::unsupported(
        "the properties of a compiled model cannot be changed, pass them when it is compiled",
    ))
}

variadic! {
    /// Fails: the properties of a compiled model cannot be changed.
    fn ov_compiled_model_set_property(compiled_model: In<'_, CompiledModel>; arguments) {
        set(compiled_model, &crate::property::pairs(arguments, 2)?)
    }
}

/// Fails, unless there is nothing to set: the properties of a compiled model cannot be changed.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_set_properties(
    compiled_model: In<'_, CompiledModel>,
    num_properties: usize,
    properties: Array<'_, Property<'_>>,
) -> Status {
    guard(|| set(compiled_model, listed(properties, num_properties)?))
}

/// A property of a compiled model, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_get_property(
    compiled_model: In<'_, CompiledModel>,
    property_key: Text<'_>,
    property_value: Out<'_, *mut c_char>,
) -> Status {
    guard(|| {
        let compiled = compiled_model.required("compiled_model")?;
        let key = property_key.required("property_key")?;
        let name = compiled.model.model().name();
        let value = compiled
            .settings
            .of_model(key, name, || compiled.model.statistics())?;
        give_text(property_value, "property_value", &value)
    })
}

/// Writes a compiled model to a file, for `ov_core_import_model`.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_export_model(
    compiled_model: In<'_, CompiledModel>,
    export_model_path: Text<'_>,
) -> Status {
    guard(|| {
        let compiled = compiled_model.required("compiled_model")?;
        let path = export_model_path.path().required("export_model_path")?;
        let bytes = with_large_stack(|| compiled.export())?;
        std::fs::write(path, bytes).map_err(|error| {
            Failure::new(Status::GeneralError, format!("{}: {error}", path.display()))
        })
    })
}

/// Frees a compiled model. Its requests go on.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_free(compiled_model: Option<Box<CompiledModel>>) {
    free(compiled_model);
}

/// Fails: the device has no contexts.
#[unsafe(no_mangle)]
extern "C" fn ov_compiled_model_get_context(
    compiled_model: In<'_, CompiledModel>,
    context: Out<'_, *mut RemoteContext>,
) -> Status {
    guard(|| {
        compiled_model.required("compiled_model")?;
        context.required("context")?;
        Err(no_contexts())
    })
}
