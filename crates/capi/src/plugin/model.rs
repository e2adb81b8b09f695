//! Models: reading, what in them cannot run, compiling.

use super::ffi::{Failure, Keeper, Outcome, Slice, Text, guard, make};
use crate::settings::Settings;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock};
use vinelift::stack::with_large_stack;
use vinelift::{CompiledModel, Core, Error, Model};

/// One property that a model is compiled with.
#[repr(C)]
pub(crate) struct Setting {
    key: Text,
    value: Text,
}

/// How many plans a model has compiled so far, and the bytes of their code and of packed constants.
#[repr(C)]
pub(crate) struct Counts {
    plans: usize,
    code_bytes: usize,
    packed_bytes: usize,
}

/// The constants of one node, where they are in memory.
struct Part {
    bytes: Slice<u8>,
    keeper: Arc<Keeper>,
}

// SAFETY: these are bytes that nobody writes; the keeper may be let go of anywhere.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        debug_assert!(Arc::strong_count(&self.keeper) > 0);
        // SAFETY: the keeper holds the constants, whose memory nobody writes.
        unsafe { self.bytes.items() }
    }
}

fn core() -> Result<&'static Core, Failure> {
    static CORE: LazyLock<Result<Core, String>> =
        LazyLock::new(|| Core::new().map_err(|error| error.to_string()));
    CORE.as_ref()
        .map_err(|why| Failure::Engine(Error::Input(why.clone())))
}

/// Reads a model from the text of its IR, and from its constants, which `keeper` holds.
///
/// # Safety
/// The texts and parts are there; the parts stay until the keeper lets go of them, and nobody writes them. `model` can
/// be written.
pub(crate) unsafe extern "C" fn read(
    xml: Text,
    parts: Slice<Slice<u8>>,
    keeper: Keeper,
    model: *mut *mut Model,
) -> Outcome {
    guard(|| {
        let keeper = Arc::new(keeper);
        let part = |bytes: &Slice<u8>| {
            Bytes::from_owner(Part {
                bytes: *bytes,
                keeper: keeper.clone(),
            })
        };
        // SAFETY: the caller's promise.
        let (xml, parts) = unsafe { (xml.items(), parts.items()) };
        let parts = parts.iter().map(part);
        let core = core()?;
        let read = with_large_stack(|| core.read_model_from_parts(xml, parts))?;
        // SAFETY: the caller's promise.
        unsafe { *model = make(read) };
        Ok(())
    })
}

/// Calls `each` with the name of every layer that cannot run.
///
/// # Safety
/// The model is one that [`read`] made; `each` may be called with `context`.
pub(crate) unsafe extern "C" fn unsupported(
    model: &Model,
    context: *mut c_void,
    each: unsafe extern "C" fn(*mut c_void, Text),
) -> Outcome {
    guard(|| {
        let checked = with_large_stack(|| model.check().and_then(|()| model.infer().map(drop)));
        let Err(error) = checked else { return Ok(()) };
        let Error::Model { source, .. } = &error else {
            return Err(error.into());
        };
        let vinelift_graph::Error::Layers(layers) = source else {
            return Err(error.into());
        };
        let names: BTreeSet<&str> = layers.iter().map(|e| e.layer.name.as_str()).collect();
        for name in names {
            // SAFETY: the caller's promise.
            unsafe { each(context, Text::of_text(name)) };
        }
        Ok(())
    })
}

/// Writes how many plans were compiled so far, and the bytes of their code and of packed constants.
///
/// # Safety
/// The model is one that [`compile`] made; `counts` can be written.
pub(crate) unsafe extern "C" fn statistics(
    compiled: &CompiledModel,
    counts: *mut Counts,
) -> Outcome {
    guard(|| {
        let statistics = compiled.statistics();
        // SAFETY: the caller's promise.
        unsafe {
            *counts = Counts {
                plans: statistics.plans,
                code_bytes: statistics.code_bytes,
                packed_bytes: statistics.packed_bytes,
            };
        }
        Ok(())
    })
}

/// Compiles a model.
///
/// # Safety
/// The model is one that [`read`] made; the settings and their texts are there; `compiled` can be written.
pub(crate) unsafe extern "C" fn compile(
    model: &Model,
    settings: Slice<Setting>,
    compiled: *mut *mut CompiledModel,
) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let config = unsafe { read_settings(settings)? }.config();
        let core = core()?;
        let made = with_large_stack(|| core.compile_model_with(model, config))?;
        // SAFETY: the caller's promise.
        unsafe { *compiled = make(made) };
        Ok(())
    })
}

/// # Safety
/// The settings and their texts are there.
unsafe fn read_settings(list: Slice<Setting>) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    // SAFETY: the caller's promise.
    for Setting { key, value } in unsafe { list.items() } {
        // SAFETY: as above.
        let (key, value) = unsafe { (key.to_text(), value.to_text()) };
        let set = settings.set(&key, &value);
        set.map_err(|failure| Failure::Setting(failure.message))?;
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;
    use vinelift::{CachePrecision, Config, IndexPolicy, Level};

    fn config(pairs: &[(&'static str, &'static str)]) -> Result<Config, Failure> {
        let text = |&(key, value)| Setting {
            key: Text::of_text(key),
            value: Text::of_text(value),
        };
        let settings: Vec<Setting> = pairs.iter().map(text).collect();
        // SAFETY: the texts are static.
        unsafe { read_settings(Slice::of(&settings)) }.map(|settings| settings.config())
    }

    #[test]
    fn settings_are_read() {
        let config = config(&[
            ("VINELIFT_LEVEL", "Fused"),
            ("VINELIFT_INDEX_POLICY", "zero"),
            ("KV_CACHE_PRECISION", "u8"),
            ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "64"),
            ("INFERENCE_NUM_THREADS", "3"),
        ])
        .unwrap();
        assert_eq!(config.level, Level::Fused);
        assert_eq!(config.index_policy, IndexPolicy::Zero);
        assert_eq!(config.kv_cache_precision, CachePrecision::U8);
        assert_eq!(
            config.dynamic_quantization_group_size,
            NonZeroUsize::new(64)
        );
        assert_eq!(config.threads, NonZeroUsize::new(3));
    }

    #[test]
    fn values_that_a_setting_cannot_have() {
        let message = |key, value| config(&[(key, value)]).unwrap_err().to_string();
        assert_eq!(
            message("VINELIFT_LEVEL", "fast"),
            "property VINELIFT_LEVEL must be one of interpreted, fused, compiled, scheduled, found `fast`"
        );
        assert_eq!(
            message("KV_CACHE_PRECISION", "i4"),
            "property KV_CACHE_PRECISION must be one of f32, f16, bf16, u8, dynamic, found `i4`"
        );
    }
}
