//! Properties: what they may be, what they are, and what they do.

use crate::device::{self, Device};
use crate::status::{Failure, Result, Status};
use std::collections::BTreeMap;
use vinelift::{CachePrecision, Config, IndexPolicy, Level, Specialization, Vectors};

/// The values of the properties that were set; the others have their initial values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(BTreeMap<&'static str, String>);

/// A property that can be set.
struct Property {
    key: &'static str,
    initial: &'static str,
    values: Values,
    /// Whether it is one of the choice among devices, and not of the processor itself.
    is_of_auto: bool,
    /// The message for the log callback when a program sets it to another value than the initial one; empty if it has
    /// an effect.
    no_effect: &'static str,
}

enum Values {
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
const INDEX_POLICY: &str = "VINELIFT_INDEX_POLICY";
const LEVEL: &str = "VINELIFT_LEVEL";
const SPECIALIZATION: &str = "VINELIFT_SPECIALIZATION";
const VECTORS: &str = "VINELIFT_VECTORS";
const THREADS: &str = "INFERENCE_NUM_THREADS";
const PRECISION: &str = "INFERENCE_PRECISION_HINT";
const KV_CACHE: &str = "KV_CACHE_PRECISION";
const QUANTIZATION: &str = "DYNAMIC_QUANTIZATION_GROUP_SIZE";

const STREAMS: &str = "NUM_STREAMS";
const HINT: &str = "PERFORMANCE_HINT";
const REQUESTS: &str = "PERFORMANCE_HINT_NUM_REQUESTS";
const REQUESTS_OF_MODEL: &str = "OPTIMAL_NUMBER_OF_INFER_REQUESTS";
const THROUGHPUT: &str = "THROUGHPUT";
const ALL_THROUGHPUT: &str = "CUMULATIVE_THROUGHPUT";

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
const OF_DEVICE: [&str; 10] = [
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
const OF_MODEL: [&str; 4] = [
    "SUPPORTED_PROPERTIES",
    "NETWORK_NAME",
    REQUESTS_OF_MODEL,
    "EXECUTION_DEVICES",
];

impl Settings {
    /// Sets the property `key`. Returns what there is to tell about it.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<Option<String>> {
        let property = settable(key)?;
        let value = property.values.read(value.trim()).ok_or_else(|| {
            let text = format!(
                "property {key} must be {}, found `{value}`",
                property.values
            );
            Failure::new(Status::ParameterMismatch, text)
        })??;
        let has_effect = property.no_effect.is_empty() || value == property.initial;
        let note = (!has_effect).then(|| {
            format!(
                "property {key} is kept as `{value}` and has no effect: {}",
                property.no_effect
            )
        });
        self.0.insert(property.key, value);
        Ok(note)
    }

    fn get(&self, property: &Property) -> &str {
        if property.key == PRECISION {
            return property.initial; // What it is, whatever was hinted at.
        }
        self.0
            .get(property.key)
            .map_or(property.initial, String::as_str)
    }

    fn number(&self, key: &str) -> usize {
        let text = settable(key).map(|property| self.get(property));
        text.ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// How many threads the runs of a model share.
    fn threads(&self) -> usize {
        match self.number(THREADS) {
            0 => device::threads(),
            some => some,
        }
    }

    /// Among how many runs at a time the threads are divided: as many as was said; or one; or, for
    /// throughput, as many as there are threads or requests.
    fn streams(&self) -> usize {
        if self.0.contains_key(STREAMS) {
            return self.number(STREAMS).max(1);
        }
        if !self.is(HINT, THROUGHPUT) && !self.is(HINT, ALL_THROUGHPUT) {
            return 1;
        }
        match self.number(REQUESTS) {
            0 => self.threads(),
            some => self.threads().min(some),
        }
    }

    fn is(&self, key: &str, value: &str) -> bool {
        settable(key).is_ok_and(|property| self.get(property) == value)
    }

    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.is(key, "YES")
    }

    /// How models are compiled.
    pub(crate) fn config(&self) -> Config {
        let initial = Config::default();
        Config {
            level: Level::ALL
                .into_iter()
                .find(|level| self.is(LEVEL, level.name()))
                .unwrap_or(initial.level),
            index_policy: if self.is(INDEX_POLICY, "error") {
                IndexPolicy::Error
            } else if self.is(INDEX_POLICY, "zero") {
                IndexPolicy::Zero
            } else {
                IndexPolicy::Spec
            },
            specialization: Specialization::ALL
                .into_iter()
                .find(|which| self.is(SPECIALIZATION, which.name()))
                .unwrap_or(initial.specialization),
            kv_cache_precision: CachePrecision::ALL
                .into_iter()
                .find(|precision| self.is(KV_CACHE, precision.name()))
                .unwrap_or(initial.kv_cache_precision),
            vectors: Vectors::ALL
                .into_iter()
                .find(|vectors| self.is(VECTORS, vectors.name()))
                .unwrap_or(initial.vectors),
            ..initial
        }
        .dynamic_quantization_group_size(self.number(QUANTIZATION))
        .threads(self.threads())
        .streams(self.streams())
    }

    /// The property `key` of a device.
    pub(crate) fn of_device(&self, key: &str, device: Device) -> Result<String> {
        Ok(match key {
            "SUPPORTED_PROPERTIES" => supported(&OF_DEVICE, device),
            REQUESTS_OF_MODEL | STREAMS => self.streams().to_string(),
            "AVAILABLE_DEVICES" => String::new(),
            "RANGE_FOR_ASYNC_INFER_REQUESTS" => "1 1 1".to_owned(),
            "RANGE_FOR_STREAMS" => format!("1 {}", device::threads()),
            "EXECUTION_DEVICES" => device::DEVICE.to_owned(),
            "FULL_DEVICE_NAME" => device::full_name(),
            "OPTIMIZATION_CAPABILITIES" => "FP32 EXPORT_IMPORT".to_owned(),
            "DEVICE_TYPE" => "integrated".to_owned(),
            "DEVICE_ARCHITECTURE" => std::env::consts::ARCH.to_owned(),
            _ => match settable(key)? {
                property if property.is_of(device) => self.get(property).to_owned(),
                _ => return Err(unknown(key, device)),
            },
        })
    }

    /// The property `key` of a model called `name` that was compiled with these.
    pub(crate) fn of_model(&self, key: &str, name: &str) -> Result<String> {
        Ok(match key {
            "SUPPORTED_PROPERTIES" => supported(&OF_MODEL, Device::Auto),
            "NETWORK_NAME" => name.to_owned(),
            REQUESTS_OF_MODEL | STREAMS => self.streams().to_string(),
            THREADS => self.threads().to_string(),
            "EXECUTION_DEVICES" => device::DEVICE.to_owned(),
            _ => self.get(settable(key)?).to_owned(),
        })
    }
}

/// The property `key`, if it can be set.
fn settable(key: &str) -> Result<&'static Property> {
    if let Some(property) = PROPERTIES.iter().find(|p| p.key == key) {
        return Ok(property);
    }
    if OF_DEVICE.contains(&key) || OF_MODEL.contains(&key) {
        let text = format!("property {key} cannot be used here, or only be read");
        return Err(Failure::new(Status::ParameterMismatch, text));
    }
    Err(unknown(key, Device::Auto))
}

fn unknown(key: &str, device: Device) -> Failure {
    let known = supported(&OF_DEVICE, device);
    let text = format!("there is no property {key} here, known are {known}");
    Failure::new(Status::NotFound, text)
}

fn supported(read_only: &[&'static str], device: Device) -> String {
    let all = read_only.iter().copied();
    let own = PROPERTIES.iter().filter(|p| p.is_of(device));
    let all = all.chain(own.map(|p| p.key));
    all.collect::<Vec<_>>().join(" ")
}

impl Property {
    fn is_of(&self, device: Device) -> bool {
        device == Device::Auto || !self.is_of_auto
    }
}

impl Values {
    /// The value as it is kept; `None` if it is none of these.
    fn read(&self, text: &str) -> Option<Result<String>> {
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
    use std::num::NonZeroUsize;

    #[test]
    fn every_property_starts_as_a_value_that_it_may_have() {
        for property in PROPERTIES {
            let read = property.values.read(property.initial);
            assert_eq!(read.unwrap().unwrap(), property.initial, "{}", property.key);
        }
    }

    #[test]
    fn what_is_supported_can_be_read() {
        let settings = Settings::default();
        for device in [Device::Processor, Device::Auto] {
            let supported = settings.of_device("SUPPORTED_PROPERTIES", device);
            for key in supported.unwrap().split(' ') {
                settings.of_device(key, device).unwrap();
            }
        }
        let of_processor = settings.of_device(MMAP, Device::Processor);
        assert_eq!(of_processor.unwrap_err().status, Status::NotFound);
        for key in settings
            .of_model("SUPPORTED_PROPERTIES", "m")
            .unwrap()
            .split(' ')
        {
            settings.of_model(key, "m").unwrap();
        }
    }

    #[test]
    fn threads_are_divided_among_streams() {
        let told = |properties: &[(&str, &str)]| {
            let mut settings = Settings::default();
            for (key, value) in properties {
                settings.set(key, value).unwrap();
            }
            let threads = settings
                .config()
                .threads_of_a_run()
                .map_or(0, NonZeroUsize::get);
            let streams = settings.of_model(STREAMS, "m").unwrap();
            let requests = settings.of_model(REQUESTS_OF_MODEL, "m");
            assert_eq!(requests.unwrap(), streams);
            (threads, streams.parse::<usize>().unwrap())
        };
        let all = device::threads();
        assert_eq!(told(&[]), (all, 1));
        assert_eq!(told(&[(THREADS, "6")]), (6, 1));
        assert_eq!(told(&[(THREADS, "6"), (STREAMS, "4")]), (1, 4));
        assert_eq!(told(&[(THREADS, "6"), (STREAMS, "2")]), (3, 2));
        assert_eq!(told(&[(THREADS, "6"), (STREAMS, "0")]), (6, 1));
        assert_eq!(told(&[(THREADS, "6"), (HINT, THROUGHPUT)]), (1, 6));
        let hinted = [(THREADS, "6"), (HINT, THROUGHPUT), (REQUESTS, "2")];
        assert_eq!(told(&hinted), (3, 2));
        assert_eq!(told(&[(HINT, "LATENCY"), (REQUESTS, "2")]), (all, 1));
        assert_eq!(told(&[(STREAMS, "AUTO")]), (1, all));
        assert_eq!(told(&[(STREAMS, "NUMA")]), (all, 1));
    }

    #[test]
    fn values_are_checked_and_kept() {
        let mut settings = Settings::default();
        settings.set(PROFILING, "true").unwrap();
        assert!(settings.is_on(PROFILING));
        let get = |settings: &Settings, key| settings.of_device(key, Device::Auto).unwrap();
        settings.set("INFERENCE_PRECISION_HINT", "bf16").unwrap();
        assert_eq!(get(&settings, "INFERENCE_PRECISION_HINT"), "f32");
        assert_eq!(settings.set(QUANTIZATION, "0").unwrap(), None);
        settings.set(QUANTIZATION, &u64::MAX.to_string()).unwrap();
        let size = |settings: &Settings| settings.config().dynamic_quantization_group_size;
        assert_eq!(size(&settings), NonZeroUsize::new(usize::MAX));
        settings.set(QUANTIZATION, "32").unwrap();
        assert_eq!(get(&settings, QUANTIZATION), "32");
        assert_eq!(size(&settings), NonZeroUsize::new(32));
        let note = settings.set("CACHE_DIR", "x").unwrap().unwrap();
        assert_eq!(
            note,
            "property CACHE_DIR is kept as `x` and has no effect: nothing is cached in files: code is made in memory, for the shapes that are seen"
        );
        settings.set(INDEX_POLICY, "zero").unwrap();
        settings.set(LEVEL, "fused").unwrap();
        settings.set(KV_CACHE, "U8").unwrap();
        assert_eq!(get(&settings, KV_CACHE), "u8");
        let config = settings.config();
        assert_eq!(
            (config.index_policy, config.level, config.kv_cache_precision),
            (IndexPolicy::Zero, Level::Fused, CachePrecision::U8)
        );
        let mut message = |key: &str, value: &str| settings.set(key, value).unwrap_err().message;
        assert_eq!(
            message(PROFILING, "maybe"),
            "property PERF_COUNT must be YES or NO, found `maybe`"
        );
        assert_eq!(
            message("PERFORMANCE_HINT", "SPEED"),
            "property PERFORMANCE_HINT must be one of LATENCY, THROUGHPUT, CUMULATIVE_THROUGHPUT, UNDEFINED, found `SPEED`"
        );
        assert_eq!(
            message(QUANTIZATION, "-1"),
            "property DYNAMIC_QUANTIZATION_GROUP_SIZE must be a number from 0, found `-1`"
        );
        assert_eq!(
            message(KV_CACHE, "i4"),
            "property KV_CACHE_PRECISION must be one of f32, f16, bf16, u8, dynamic, found `i4`"
        );
        assert_eq!(
            message("FULL_DEVICE_NAME", "x"),
            "property FULL_DEVICE_NAME cannot be used here, or only be read"
        );
        assert!(message("SPEED", "x").starts_with("there is no property SPEED here, known are "));
        assert!(message("MULTI_DEVICE_PRIORITIES", "GPU").contains("no device 'GPU'"));
    }
}
