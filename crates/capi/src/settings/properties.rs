//! The properties: their names, the values that they may have, and those that they start with.

use crate::device::{self, Device};
use crate::status::{Failure, Result, Status};

/// A property that can be set.
pub(super) struct Property {
    pub(super) key: &'static str,
    pub(super) initial: &'static str,
    pub(super) values: Values,
    /// Whether it is one of the choice among devices, and not of the processor itself.
    is_of_auto: bool,
    /// The message for the log callback when a program sets it to another value than the initial one; empty if it has
    /// an effect.
    pub(super) no_effect: &'static str,
}

/// The values that a property may have.
pub(super) enum Values {
    /// `YES` or `NO`.
    Bool,
    /// From 0.
    Number,
    /// From 0, of up to 64 bits.
    Size,
    /// As `Number`; or a word that leaves it to us.
    Streams,
    OneOf(&'static [&'static str]),
    Devices,
    Any,
}

use Values::{Any, Bool, Devices, Number, OneOf, Size, Streams};

const fn property(
    key: &'static str,
    initial: &'static str,
    values: Values,
    no_effect: &'static str,
) -> Property {
    Property {
        key,
        initial,
        values,
        is_of_auto: false,
        no_effect,
    }
}

const fn auto(
    key: &'static str,
    initial: &'static str,
    values: Values,
    no_effect: &'static str,
) -> Property {
    Property {
        is_of_auto: true,
        ..property(key, initial, values, no_effect)
    }
}

pub(crate) const PROFILING: &str = "PERF_COUNT";
pub(crate) const MMAP: &str = "ENABLE_MMAP";
pub(super) const INDEX_POLICY: &str = "VINELIFT_INDEX_POLICY";
pub(super) const LEVEL: &str = "VINELIFT_LEVEL";
pub(super) const SPECIALIZATION: &str = "VINELIFT_SPECIALIZATION";
pub(super) const VECTORS: &str = "VINELIFT_VECTORS";
pub(super) const COMPILATIONS: &str = "VINELIFT_COMPILATIONS";
pub(super) const CODE_BYTES: &str = "VINELIFT_CODE_BYTES";
pub(super) const PACKED_BYTES: &str = "VINELIFT_PACKED_BYTES";
pub(super) const THREADS: &str = "INFERENCE_NUM_THREADS";
pub(super) const PRECISION: &str = "INFERENCE_PRECISION_HINT";
pub(super) const KV_CACHE: &str = "KV_CACHE_PRECISION";
pub(super) const QUANTIZATION: &str = "DYNAMIC_QUANTIZATION_GROUP_SIZE";

pub(super) const STREAMS: &str = "NUM_STREAMS";
pub(super) const HINT: &str = "PERFORMANCE_HINT";
pub(super) const REQUESTS: &str = "PERFORMANCE_HINT_NUM_REQUESTS";
pub(super) const REQUESTS_OF_MODEL: &str = "OPTIMAL_NUMBER_OF_INFER_REQUESTS";
pub(super) const THROUGHPUT: &str = "THROUGHPUT";
pub(super) const ALL_THROUGHPUT: &str = "CUMULATIVE_THROUGHPUT";

const ONE_DEVICE: &str = "there is one device";

/// The properties that can be set.
#[rustfmt::skip]
static PROPERTIES: &[Property] = &[
    property(PROFILING, "NO", Bool, ""),
    auto(MMAP, "YES", Bool, ""),
    property(INDEX_POLICY, "spec", OneOf(&["spec", "error", "zero"]), ""),
    property(LEVEL, "scheduled", OneOf(&["interpreted", "fused", "compiled", "scheduled"]), ""),
    property(SPECIALIZATION, "hot", OneOf(&["generic", "hot", "always"]), ""),
    property(VECTORS, "widest", OneOf(&["widest", "256", "128"]), ""),
    property("DEVICE_ID", "", OneOf(&["", "0"]), ""),
    auto("MULTI_DEVICE_PRIORITIES", "", Devices, ""),
    property(STREAMS, "1", Streams, ""),
    property(THREADS, "0", Number, ""),
    property(HINT, "LATENCY", OneOf(&["LATENCY", THROUGHPUT, ALL_THROUGHPUT, "UNDEFINED", ""]), ""),
    property(REQUESTS, "0", Number, ""),
    auto("AUTO_BATCH_TIMEOUT", "0", Number, "requests are not batched"),
    property("EXECUTION_MODE_HINT", "ACCURACY", OneOf(&["ACCURACY", "PERFORMANCE"]), "the precision is always the model's"),
    property(PRECISION, "f32", OneOf(&["f32", "f16", "bf16", "dynamic", "undefined", ""]), "the precision is always the model's, and at least f32"),
    property(QUANTIZATION, "0", Size, ""),
    property(KV_CACHE, "f32", OneOf(&["f32", "f16", "bf16", "u8", "dynamic"]), ""),
    property("ENABLE_CPU_PINNING", "NO", Bool, "threads are the system's to place"),
    property("ENABLE_CPU_RESERVATION", "NO", Bool, "threads are the system's to place"),
    property("ENABLE_HYPER_THREADING", "YES", Bool, "threads are the system's to place"),
    property("SCHEDULING_CORE_TYPE", "ANY_CORE", OneOf(&["ANY_CORE", "PCORE_ONLY", "ECORE_ONLY"]), "threads are the system's to place"),
    auto("MODEL_PRIORITY", "MEDIUM", OneOf(&["LOW", "MEDIUM", "HIGH", "DEFAULT"]), ONE_DEVICE),
    auto("DEVICE_BIND_BUFFER", "NO", Bool, ONE_DEVICE),
    auto("ENABLE_STARTUP_FALLBACK", "NO", Bool, ONE_DEVICE),
    auto("ENABLE_RUNTIME_FALLBACK", "NO", Bool, ONE_DEVICE),
    property("CACHE_DIR", "", Any, "nothing is cached in files: code is made in memory, for the shapes that are seen"),
    auto("CACHE_MODE", "OPTIMIZE_SPEED", OneOf(&["OPTIMIZE_SPEED", "OPTIMIZE_SIZE"]), "nothing is cached in files"),
    property("LOG_LEVEL", "LOG_NONE", OneOf(&["LOG_NONE", "LOG_ERROR", "LOG_WARNING", "LOG_INFO", "LOG_DEBUG", "LOG_TRACE"]), "messages go to the log callback, all of them"),
    auto("FORCE_TBB_TERMINATE", "NO", Bool, "there are no threads of TBB"),
];

/// The properties that tell of the device.
pub(super) const OF_DEVICE: [&str; 10] = [
    "SUPPORTED_PROPERTIES",
    "AVAILABLE_DEVICES",
    REQUESTS_OF_MODEL,
    "RANGE_FOR_ASYNC_INFER_REQUESTS",
    "RANGE_FOR_STREAMS",
    "EXECUTION_DEVICES",
    "FULL_DEVICE_NAME",
    "OPTIMIZATION_CAPABILITIES",
    "DEVICE_TYPE",
    "DEVICE_ARCHITECTURE",
];

/// The properties that tell of a compiled model, besides what it was compiled with.
pub(super) const OF_MODEL: [&str; 7] = [
    "SUPPORTED_PROPERTIES",
    "NETWORK_NAME",
    REQUESTS_OF_MODEL,
    "EXECUTION_DEVICES",
    COMPILATIONS,
    CODE_BYTES,
    PACKED_BYTES,
];

/// The property `key`, if it can be set.
pub(super) fn settable(key: &str) -> Result<&'static Property> {
    if let Some(property) = PROPERTIES.iter().find(|p| p.key == key) {
        return Ok(property);
    }
    if OF_DEVICE.contains(&key) || OF_MODEL.contains(&key) {
        let text = format!("property {key} cannot be used here, or only be read");
        return Err(Failure::new(Status::ParameterMismatch, text));
    }
    Err(unknown(key, Device::Auto))
}

pub(super) fn unknown(key: &str, device: Device) -> Failure {
    let known = supported(&OF_DEVICE, device);
    let text = format!("there is no property {key} here, known are {known}");
    Failure::new(Status::NotFound, text)
}

pub(super) fn supported(read_only: &[&'static str], device: Device) -> String {
    let all = read_only.iter().copied();
    let own = PROPERTIES.iter().filter(|p| p.is_of(device));
    let all = all.chain(own.map(|p| p.key));
    all.collect::<Vec<_>>().join(" ")
}

impl Property {
    pub(super) fn is_of(&self, device: Device) -> bool {
        device == Device::Auto || !self.is_of_auto
    }
}

impl Values {
    /// The value as it is kept; `None` if it is none of these.
    pub(super) fn read(&self, text: &str) -> Option<Result<String>> {
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        let value = match self {
            Bool => match text.to_ascii_uppercase().as_str() {
                "YES" | "TRUE" | "ON" | "1" => "YES",
                "NO" | "FALSE" | "OFF" | "0" => "NO",
                _ => return None,
            },
            Number if is_number(text) => text,
            Size if text.parse::<u64>().is_ok() => text,
            Streams if matches!(text, "-1" | "AUTO") => {
                return Some(Ok(device::threads().to_string()));
            }
            Streams if matches!(text, "-2" | "NUMA") => "1",
            Streams if is_number(text) => text,
            Number | Size | Streams => return None,
            OneOf(values) => values.iter().find(|v| v.eq_ignore_ascii_case(text))?,
            Devices => return Some(device::check_list(text).map(|()| text.to_owned())),
            Any => text,
        };
        Some(Ok(value.to_owned()))
    }
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bool => f.write_str("YES or NO"),
            Number | Size => f.write_str("a number from 0"),
            Streams => f.write_str("a number from 0, AUTO or NUMA"),
            OneOf(values) => {
                let named: Vec<&str> = values.iter().copied().filter(|v| !v.is_empty()).collect();
                write!(f, "one of {}", named.join(", "))
            }
            Devices => f.write_str("a list of devices"),
            Any => f.write_str("a text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_starts_as_a_value_that_it_may_have() {
        for property in PROPERTIES {
            let read = property.values.read(property.initial);
            assert_eq!(read.unwrap().unwrap(), property.initial, "{}", property.key);
        }
    }
}
