//! Models: reading, what in them cannot run, compiling.

use super::ffi::{Failure, Keeper, Outcome, Slice, Text, guard, make};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use vinelift::stack::with_large_stack;
use vinelift::{CachePrecision, CompiledModel, Config, Core, Error, IndexPolicy, Level, Model};

/// How a model is compiled.
#[repr(C)]
pub(crate) struct Settings {
    level: Text,
    index_policy: Text,
    kv_cache_precision: Text,
    /// 0: nothing is quantised that the model does not quantise.
    dynamic_quantization_group_size: usize,
    /// How many threads a run uses.
    threads: usize,
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

/// Compiles a model.
///
/// # Safety
/// The model is one that [`read`] made; the texts of the settings are there; `compiled` can be written.
pub(crate) unsafe extern "C" fn compile(
    model: &Model,
    settings: &Settings,
    compiled: *mut *mut CompiledModel,
) -> Outcome {
    guard(|| {
        // SAFETY: the caller's promise.
        let config = unsafe { settings.config()? };
        let core = core()?;
        let made = with_large_stack(|| core.compile_model_with(model, config))?;
        // SAFETY: the caller's promise.
        unsafe { *compiled = make(made) };
        Ok(())
    })
}

impl Settings {
    /// # Safety
    /// The texts are there.
    unsafe fn config(&self) -> Result<Config, Failure> {
        // SAFETY: the caller's promise.
        let (level, policy) = unsafe { (self.level.to_text(), self.index_policy.to_text()) };
        // SAFETY: as above.
        let cache = unsafe { self.kv_cache_precision.to_text() };
        let caches = CachePrecision::ALL.map(|precision| (precision.name(), precision));
        let levels = Level::ALL.map(|level| (level.name(), level));
        let policies = [
            ("spec", IndexPolicy::Spec),
            ("error", IndexPolicy::Error),
            ("zero", IndexPolicy::Zero),
        ];
        Ok(Config {
            level: choose("VINELIFT_LEVEL", &levels, &level)?,
            index_policy: choose("VINELIFT_INDEX_POLICY", &policies, &policy)?,
            kv_cache_precision: choose("KV_CACHE_PRECISION", &caches, &cache)?,
            threads: NonZeroUsize::new(self.threads),
            ..Config::default()
        }
        .dynamic_quantization_group_size(self.dynamic_quantization_group_size))
    }
}

/// The value of that name.
fn choose<T: Copy>(
    key: &'static str,
    values: &[(&'static str, T)],
    name: &str,
) -> Result<T, Failure> {
    let found = values.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    let names = || values.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| Failure::Setting {
            key,
            expected: names().join(", "),
            found: name.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let settings = |level: &'static str, cache: &'static str| Settings {
            level: Text::of_text(level),
            index_policy: Text::of_text("zero"),
            kv_cache_precision: Text::of_text(cache),
            dynamic_quantization_group_size: 64,
            threads: 3,
        };
        // SAFETY: the texts are static.
        let config = unsafe { settings("Fused", "u8").config() }.unwrap();
        assert_eq!(config.level, Level::Fused);
        assert_eq!(config.index_policy, IndexPolicy::Zero);
        assert_eq!(config.kv_cache_precision, CachePrecision::U8);
        assert_eq!(
            config.dynamic_quantization_group_size,
            NonZeroUsize::new(64)
        );
        assert_eq!(config.threads, NonZeroUsize::new(3));
        // SAFETY: as above.
        let message = |level, cache| unsafe { settings(level, cache).config() }.unwrap_err();
        assert_eq!(
            message("fast", "f32").to_string(),
            "VINELIFT_LEVEL must be one of interpreted, fused, compiled, scheduled, found `fast`"
        );
        assert_eq!(
            message("fused", "i4").to_string(),
            "KV_CACHE_PRECISION must be one of f32, f16, bf16, u8, found `i4`"
        );
    }
}
