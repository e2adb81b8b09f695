//! `ov_property.h`: the keys of properties, and how properties are passed.

use crate::ffi::{Array, Text};
use crate::settings::Settings;
use crate::status::{Failure, Result};
use libc::c_char;

/// A property whose value is no text, but two functions.
const ENCRYPTION: &str = "CACHE_ENCRYPTION_CALLBACKS";

/// `ov_property_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Property<'a> {
    key: Text<'a>,
    /// A text, if that is what the property takes.
    value: Text<'a>,
}

/// The most arguments that a function of variable arguments reads.
pub(crate) const MOST_ARGUMENTS: usize = 24;

/// Defines a function of variable arguments: it takes [`MOST_ARGUMENTS`] after its own, of which it may
/// only look at those that the caller says there are.
macro_rules! variadic {
    ($(#[$doc:meta])* fn $name:ident($($parameter:ident: $ty:ty),* $(,)?; $arguments:ident) $body:block) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they stand for the variable arguments of C")]
        extern "C" fn $name(
            $($parameter: $ty,)*
            a0: Text<'_>, a1: Text<'_>, a2: Text<'_>, a3: Text<'_>, a4: Text<'_>, a5: Text<'_>,
            a6: Text<'_>, a7: Text<'_>, a8: Text<'_>, a9: Text<'_>, a10: Text<'_>, a11: Text<'_>,
            a12: Text<'_>, a13: Text<'_>, a14: Text<'_>, a15: Text<'_>, a16: Text<'_>, a17: Text<'_>,
            a18: Text<'_>, a19: Text<'_>, a20: Text<'_>, a21: Text<'_>, a22: Text<'_>, a23: Text<'_>,
        ) -> $crate::status::Status {
            let $arguments = &[
                a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
                a19, a20, a21, a22, a23,
            ];
            $crate::status::guard(|| $body)
        }
    };
}
pub(crate) use variadic;

/// The first `count` of the variable arguments.
pub(crate) fn arguments<'a>(
    all: &'a [Text<'a>; MOST_ARGUMENTS],
    count: usize,
) -> Result<&'a [Text<'a>]> {
    all.get(..count).ok_or_else(|| {
        let text = format!(
            "{count} variable arguments, at most {MOST_ARGUMENTS} are read; the functions that end in \
             `_props` and `_properties` take any number"
        );
        Failure::unsupported(text)
    })
}

/// Keys and values among the variable arguments.
pub(crate) fn pairs<'a>(
    all: &[Text<'a>; MOST_ARGUMENTS],
    count: usize,
) -> Result<Vec<Property<'a>>> {
    if !count.is_multiple_of(2) {
        let text = format!("{count} variable arguments, expected keys and values");
        return Err(Failure::argument(text));
    }
    let found = all.get(..count).map(|found| found.chunks_exact(2));
    let Some(found) = found else {
        return arguments(all, count).map(|_| Vec::new());
    };
    let pair = |pair: &[Text<'a>]| Property {
        key: pair[0],
        value: pair[1],
    };
    Ok(found.map(pair).collect())
}

/// The properties in an array.
pub(crate) fn listed<'a>(
    properties: Array<'a, Property<'a>>,
    count: usize,
) -> Result<&'a [Property<'a>]> {
    properties.items(count, "properties")
}

/// Sets `properties`: all of them, or none if one is wrong.
pub(crate) fn set_all(settings: &mut Settings, properties: &[Property<'_>]) -> Result<()> {
    let mut changed = settings.clone();
    for property in properties {
        let key = property.key.required("property_key")?;
        if key == ENCRYPTION {
            let text = format!("property {ENCRYPTION}: nothing is cached, so nothing is encrypted");
            return Err(Failure::unsupported(text));
        }
        changed.set(key, property.value.required("property_value")?)?;
    }
    *settings = changed;
    Ok(())
}

/// A constant text that C programs see as a `const char*`.
#[repr(transparent)]
struct Key(*const c_char);

// SAFETY: it points at a constant.
unsafe impl Sync for Key {}

macro_rules! keys {
    ($($name:ident = $text:literal;)*) => { $(
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals, reason = "the name is C's")]
        static $name: Key = Key($text.as_ptr());
    )* };
}

keys! {
    ov_property_key_auto_batch_timeout = c"AUTO_BATCH_TIMEOUT";
    ov_property_key_available_devices = c"AVAILABLE_DEVICES";
    ov_property_key_cache_dir = c"CACHE_DIR";
    ov_property_key_cache_encryption_callbacks = c"CACHE_ENCRYPTION_CALLBACKS";
    ov_property_key_cache_mode = c"CACHE_MODE";
    ov_property_key_device_capabilities = c"OPTIMIZATION_CAPABILITIES";
    ov_property_key_device_full_name = c"FULL_DEVICE_NAME";
    ov_property_key_device_priorities = c"MULTI_DEVICE_PRIORITIES";
    ov_property_key_enable_mmap = c"ENABLE_MMAP";
    ov_property_key_enable_profiling = c"PERF_COUNT";
    ov_property_key_force_tbb_terminate = c"FORCE_TBB_TERMINATE";
    ov_property_key_hint_enable_cpu_pinning = c"ENABLE_CPU_PINNING";
    ov_property_key_hint_enable_hyper_threading = c"ENABLE_HYPER_THREADING";
    ov_property_key_hint_execution_mode = c"EXECUTION_MODE_HINT";
    ov_property_key_hint_inference_precision = c"INFERENCE_PRECISION_HINT";
    ov_property_key_hint_model_priority = c"MODEL_PRIORITY";
    ov_property_key_hint_num_requests = c"PERFORMANCE_HINT_NUM_REQUESTS";
    ov_property_key_hint_performance_mode = c"PERFORMANCE_HINT";
    ov_property_key_hint_scheduling_core_type = c"SCHEDULING_CORE_TYPE";
    ov_property_key_inference_num_threads = c"INFERENCE_NUM_THREADS";
    ov_property_key_intel_auto_device_bind_buffer = c"DEVICE_BIND_BUFFER";
    ov_property_key_intel_auto_enable_runtime_fallback = c"ENABLE_RUNTIME_FALLBACK";
    ov_property_key_intel_auto_enable_startup_fallback = c"ENABLE_STARTUP_FALLBACK";
    ov_property_key_intel_gpu_config_file = c"CONFIG_FILE";
    ov_property_key_intel_gpu_context_type = c"CONTEXT_TYPE";
    ov_property_key_intel_gpu_dev_object_handle = c"DEV_OBJECT_HANDLE";
    ov_property_key_intel_gpu_mem_handle = c"MEM_HANDLE";
    ov_property_key_intel_gpu_ocl_context = c"OCL_CONTEXT";
    ov_property_key_intel_gpu_ocl_context_device_id = c"OCL_CONTEXT_DEVICE_ID";
    ov_property_key_intel_gpu_ocl_queue = c"OCL_QUEUE";
    ov_property_key_intel_gpu_shared_mem_type = c"SHARED_MEM_TYPE";
    ov_property_key_intel_gpu_tile_id = c"TILE_ID";
    ov_property_key_intel_gpu_va_device = c"VA_DEVICE";
    ov_property_key_intel_gpu_va_plane = c"VA_PLANE";
    ov_property_key_log_level = c"LOG_LEVEL";
    ov_property_key_max_batch_size = c"MAX_BATCH_SIZE";
    ov_property_key_model_name = c"NETWORK_NAME";
    ov_property_key_num_streams = c"NUM_STREAMS";
    ov_property_key_optimal_batch_size = c"OPTIMAL_BATCH_SIZE";
    ov_property_key_optimal_number_of_infer_requests = c"OPTIMAL_NUMBER_OF_INFER_REQUESTS";
    ov_property_key_range_for_async_infer_requests = c"RANGE_FOR_ASYNC_INFER_REQUESTS";
    ov_property_key_range_for_streams = c"RANGE_FOR_STREAMS";
    ov_property_key_supported_properties = c"SUPPORTED_PROPERTIES";
}
