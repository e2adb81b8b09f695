//! `ov_property.h`: the keys of properties, and how properties are passed.

use crate::ffi::{Array, Text};
use crate::settings::Settings;
use crate::status::{Failure, Result};
use crate::util::log;
use crate::variadic::Arguments;
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

/// Keys and values among variable arguments, of which there are `count`.
pub(crate) fn pairs<'a>(arguments: Arguments<'a>, count: usize) -> Result<Vec<Property<'a>>> {
    if !count.is_multiple_of(2) {
        let text = format!("{count} variable arguments, expected keys and values");
        return Err(Failure::argument(text));
    }
    let texts = arguments.texts(count)?;
    let pair = |pair: &[Text<'a>]| Property {
        key: pair[0],
        value: pair[1],
    };
    Ok(texts.chunks_exact(2).map(pair).collect())
}

/// The properties in an array.
pub(crate) fn listed<'a>(
    properties: Array<'a, Property<'a>>,
    count: usize,
) -> Result<&'a [Property<'a>]> {
    properties.items(count, "properties")
}

/// Messages for the log callback about properties that were set.
#[must_use = "the program is told, while no lock is held: its callback may call anything"]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    /// Tells them to the log callback.
    pub(crate) fn tell(self) {
        self.0.iter().for_each(|note| log(note));
    }
}

/// Sets `properties`: all of them, or none if one is wrong.
pub(crate) fn set_all(settings: &mut Settings, properties: &[Property<'_>]) -> Result<Notes> {
    let mut changed = settings.clone();
    let mut notes = Vec::new();
    for property in properties {
        let key = property.key.required("property_key")?;
        if key == ENCRYPTION {
            let text = format!("property {ENCRYPTION}: nothing is cached, so nothing is encrypted");
            return Err(Failure::unsupported(text));
        }
        notes.extend(changed.set(key, property.value.required("property_value")?)?);
    }
    *settings = changed;
    Ok(Notes(notes))
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
