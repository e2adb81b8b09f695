//! `ov_core.h`: reading and compiling.

mod contexts;
mod versions;

use crate::common::give_text;
use crate::compiled_model::{CompiledModel, import};
use crate::device;
use crate::ffi::{Array, In, Out, Required, Text, WideText, free, handle};
use crate::model::Model;
use crate::property::{Property, listed, pairs, set_all};
use crate::settings::{MMAP, Settings};
use crate::status::{Failure, Result, Status, guard};
use crate::tensor::Tensor;
use crate::variadic::variadic;
use bytes::Bytes;
use libc::c_char;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use vinelift::stack::with_large_stack;

/// `ov_core_t`.
pub(crate) struct Core {
    core: vinelift::Core,
    settings: Mutex<Settings>,
}

impl Core {
    fn new() -> Result<Core> {
        Ok(Core {
            core: vinelift::Core::new()?,
            settings: Mutex::new(Settings::default()),
        })
    }

    fn settings(&self) -> Settings {
        self.settings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The settings with changes for one model.
    fn settings_with(&self, properties: &[Property<'_>]) -> Result<Settings> {
        let mut settings = self.settings();
        set_all(&mut settings, properties)?.tell();
        Ok(settings)
    }

    fn set(&self, device_name: Text<'_>, properties: &[Property<'_>]) -> Result<()> {
        device::check(device_name.optional("device_name")?)?;
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let notes = set_all(&mut settings, properties)?;
        drop(settings);
        notes.tell();
        Ok(())
    }

    /// Reads a model from files. Without a path of weights they are beside it.
    fn read(&self, path: &Path, weights: Option<&Path>) -> Result<vinelift::Model> {
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        let others = [
            "onnx",
            "pb",
            "pbtxt",
            "pdmodel",
            "tflite",
            "pt",
            "saved_model",
            "json",
        ];
        if others.contains(&extension.to_ascii_lowercase().as_str()) {
            let text = format!("{}: only models in IR format can be read", path.display());
            return Err(Failure::unsupported(text));
        }
        let weights = weights.filter(|w| !w.as_os_str().is_empty());
        let is_mapped = self.settings().is_on(MMAP);
        with_large_stack(|| -> Result<_> {
            if is_mapped {
                return Ok(match weights {
                    Some(weights) => self.core.read_model_with_weights(path, weights)?,
                    None => self.core.read_model(path)?,
                });
            }
            let beside = path.with_extension("bin");
            let weights = weights.or_else(|| beside.exists().then_some(beside.as_path()));
            let weights = weights.map_or(Ok(Vec::new()), bytes_of)?;
            Ok(self
                .core
                .read_model_from_memory(&bytes_of(path)?, weights)?)
        })
    }

    fn compile(
        &self,
        model: &vinelift::Model,
        device_name: Text<'_>,
        properties: &[Property<'_>],
    ) -> Result<CompiledModel> {
        device::check(device_name.optional("device_name")?)?;
        CompiledModel::new(&self.core, model, self.settings_with(properties)?)
    }
}

fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| Failure::new(Status::GeneralError, format!("{}: {error}", path.display())))
}

/// Makes a core.
#[unsafe(no_mangle)]
extern "C" fn ov_core_create(core: Out<'_, *mut Core>) -> Status {
    guard(|| create(None, core))
}

/// Makes a core. The file could only name plugins, which cannot be loaded: it must not be given.
#[unsafe(no_mangle)]
extern "C" fn ov_core_create_with_config(
    xml_config_file: Text<'_>,
    core: Out<'_, *mut Core>,
) -> Status {
    guard(|| {
        let path = xml_config_file.path().required("xml_config_file")?;
        create(Some(path), core)
    })
}

/// As `ov_core_create_with_config`.
#[unsafe(no_mangle)]
extern "C" fn ov_core_create_with_config_unicode(
    xml_config_file_ws: WideText<'_>,
    core: Out<'_, *mut Core>,
) -> Status {
    guard(|| {
        let name = "xml_config_file_ws";
        let path = xml_config_file_ws.path(name)?.required(name)?;
        create(Some(&path), core)
    })
}

fn create(config: Option<&Path>, out: Out<'_, *mut Core>) -> Result<()> {
    let out = out.required("core")?;
    if let Some(path) = config.filter(|path| !path.as_os_str().is_empty()) {
        let text = format!(
            "{}: a configuration names plugins, which cannot be loaded: the only device is built in",
            path.display()
        );
        return Err(Failure::unsupported(text));
    }
    out.write(handle(Core::new()?));
    Ok(())
}

/// Frees a core. What was made with it stays.
#[unsafe(no_mangle)]
extern "C" fn ov_core_free(core: Option<Box<Core>>) {
    free(core);
}

/// Reads a model in IR format. If `bin_path` is `NULL`, the constants are beside it.
#[unsafe(no_mangle)]
extern "C" fn ov_core_read_model(
    core: In<'_, Core>,
    model_path: Text<'_>,
    bin_path: Text<'_>,
    model: Out<'_, *mut Model>,
) -> Status {
    guard(|| {
        let (core, out) = (core.required("core")?, model.required("model")?);
        let path = model_path.path().required("model_path")?;
        out.write(handle(Model::new(core.read(path, bin_path.path())?)));
        Ok(())
    })
}

/// As `ov_core_read_model`.
#[unsafe(no_mangle)]
extern "C" fn ov_core_read_model_unicode(
    core: In<'_, Core>,
    model_path: WideText<'_>,
    bin_path: WideText<'_>,
    model: Out<'_, *mut Model>,
) -> Status {
    guard(|| {
        let (core, out) = (core.required("core")?, model.required("model")?);
        let path = model_path.path("model_path")?.required("model_path")?;
        let weights = bin_path.path("bin_path")?;
        out.write(handle(Model::new(core.read(&path, weights.as_deref())?)));
        Ok(())
    })
}

/// Reads a model in IR format from memory. The tensor of weights may be freed at once; its memory, unless
/// it is the program's own, is the model's from now on, and must not be written.
#[unsafe(no_mangle)]
extern "C" fn ov_core_read_model_from_memory_buffer(
    core: In<'_, Core>,
    model_str: Array<'_, u8>,
    str_len: usize,
    weights: In<'_, Tensor>,
    model: Out<'_, *mut Model>,
) -> Status {
    guard(|| {
        let (core, out) = (core.required("core")?, model.required("model")?);
        let text = model_str.items(str_len, "model_str")?;
        if text.is_empty() {
            return Err(Failure::argument("`model_str` is NULL or `str_len` is 0"));
        }
        let weights = weights.map_or(Ok(Bytes::new()), |tensor| tensor.0.keep())?;
        let read = || core.core.read_model_from_memory(text, weights);
        out.write(handle(Model::new(with_large_stack(read)?)));
        Ok(())
    })
}

fn compile(
    core: In<'_, Core>,
    model: In<'_, Model>,
    device_name: Text<'_>,
    properties: &[Property<'_>],
    out: Out<'_, *mut CompiledModel>,
) -> Result<()> {
    let (core, out) = (core.required("core")?, out.required("compiled_model")?);
    let model = model.required("model")?.current();
    out.write(handle(core.compile(&model, device_name, properties)?));
    Ok(())
}

fn compile_file(
    core: In<'_, Core>,
    path: Option<&Path>,
    device_name: Text<'_>,
    properties: &[Property<'_>],
    out: Out<'_, *mut CompiledModel>,
) -> Result<()> {
    let (core, out) = (core.required("core")?, out.required("compiled_model")?);
    let model = core.read(path.required("model_path")?, None)?;
    out.write(handle(core.compile(&model, device_name, properties)?));
    Ok(())
}

variadic! {
    /// Compiles a model, with properties as variable arguments.
    fn ov_core_compile_model(
        core: In<'_, Core>,
        model: In<'_, Model>,
        device_name: Text<'_>,
        property_args_size: usize,
        compiled_model: Out<'_, *mut CompiledModel>;
        arguments
    ) {
        let properties = pairs(arguments, property_args_size)?;
        compile(core, model, device_name, &properties, compiled_model)
    }
}

/// Compiles a model, with properties in an array.
#[unsafe(no_mangle)]
extern "C" fn ov_core_compile_model_props(
    core: In<'_, Core>,
    model: In<'_, Model>,
    device_name: Text<'_>,
    num_properties: usize,
    properties: Array<'_, Property<'_>>,
    compiled_model: Out<'_, *mut CompiledModel>,
) -> Status {
    guard(|| {
        let properties = listed(properties, num_properties)?;
        compile(core, model, device_name, properties, compiled_model)
    })
}

variadic! {
    /// Reads and compiles a model, with properties as variable arguments.
    fn ov_core_compile_model_from_file(
        core: In<'_, Core>,
        model_path: Text<'_>,
        device_name: Text<'_>,
        property_args_size: usize,
        compiled_model: Out<'_, *mut CompiledModel>;
        arguments
    ) {
        let properties = pairs(arguments, property_args_size)?;
        compile_file(core, model_path.path(), device_name, &properties, compiled_model)
    }
}

/// Reads and compiles a model, with properties in an array.
#[unsafe(no_mangle)]
extern "C" fn ov_core_compile_model_from_file_props(
    core: In<'_, Core>,
    model_path: Text<'_>,
    device_name: Text<'_>,
    num_properties: usize,
    properties: Array<'_, Property<'_>>,
    compiled_model: Out<'_, *mut CompiledModel>,
) -> Status {
    guard(|| {
        let properties = listed(properties, num_properties)?;
        compile_file(
            core,
            model_path.path(),
            device_name,
            properties,
            compiled_model,
        )
    })
}

variadic! {
    /// As `ov_core_compile_model_from_file`.
    fn ov_core_compile_model_from_file_unicode(
        core: In<'_, Core>,
        model_path: WideText<'_>,
        device_name: Text<'_>,
        property_args_size: usize,
        compiled_model: Out<'_, *mut CompiledModel>;
        arguments
    ) {
        let properties = pairs(arguments, property_args_size)?;
        let path = model_path.path("model_path")?;
        compile_file(core, path.as_deref(), device_name, &properties, compiled_model)
    }
}

/// As `ov_core_compile_model_from_file_props`.
#[unsafe(no_mangle)]
extern "C" fn ov_core_compile_model_from_file_unicode_props(
    core: In<'_, Core>,
    model_path: WideText<'_>,
    device_name: Text<'_>,
    num_properties: usize,
    properties: Array<'_, Property<'_>>,
    compiled_model: Out<'_, *mut CompiledModel>,
) -> Status {
    guard(|| {
        let properties = listed(properties, num_properties)?;
        let path = model_path.path("model_path")?;
        compile_file(
            core,
            path.as_deref(),
            device_name,
            properties,
            compiled_model,
        )
    })
}

/// Fails: operators cannot be added.
#[unsafe(no_mangle)]
extern "C" fn ov_core_add_extension(core: In<'_, Core>, path: Text<'_>) -> Status {
    guard(|| {
        core.required("core")?;
        let path = path.path().required("path")?.display();
        let text = format!(
            "{path}: extensions are compiled against OpenVINO's C++ classes and cannot be loaded"
        );
        Err(Failure::unsupported(text))
    })
}

variadic! {
    /// Sets a property of what is compiled from now on: a key and a value.
    fn ov_core_set_property(core: In<'_, Core>, device_name: Text<'_>; arguments) {
        core.required("core")?.set(device_name, &pairs(arguments, 2)?)
    }
}

/// Sets properties of what is compiled from now on.
#[unsafe(no_mangle)]
extern "C" fn ov_core_set_properties(
    core: In<'_, Core>,
    device_name: Text<'_>,
    num_properties: usize,
    properties: Array<'_, Property<'_>>,
) -> Status {
    guard(|| {
        let core = core.required("core")?;
        core.set(device_name, listed(properties, num_properties)?)
    })
}

/// A property of the device, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_core_get_property(
    core: In<'_, Core>,
    device_name: Text<'_>,
    property_key: Text<'_>,
    property_value: Out<'_, *mut c_char>,
) -> Status {
    guard(|| {
        let core = core.required("core")?;
        let device = device::check(device_name.optional("device_name")?)?;
        let key = property_key.required("property_key")?;
        let value = core.settings().of_device(key, device)?;
        give_text(property_value, "property_value", &value)
    })
}

/// Makes a compiled model of what `ov_compiled_model_export_model` wrote.
#[unsafe(no_mangle)]
extern "C" fn ov_core_import_model(
    core: In<'_, Core>,
    content: Array<'_, u8>,
    content_size: usize,
    device_name: Text<'_>,
    compiled_model: Out<'_, *mut CompiledModel>,
) -> Status {
    guard(|| {
        let (core, out) = (
            core.required("core")?,
            compiled_model.required("compiled_model")?,
        );
        device::check(Some(device_name.required("device_name")?))?;
        let bytes = content.items(content_size, "content")?;
        out.write(handle(import(&core.core, bytes, core.settings())?));
        Ok(())
    })
}

/// Forgets the log callback. Nothing else lives outside of handles but the threads that compile, which
/// are idle, and end with the process.
#[unsafe(no_mangle)]
extern "C" fn ov_shutdown() {
    crate::util::ov_util_reset_log_callback();
}
