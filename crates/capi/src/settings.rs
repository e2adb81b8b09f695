//! Settings: what the properties were set to, and what that does.

mod properties;

use crate::device::{self, Device};
use crate::status::{Failure, Result, Status};
use properties::{
    ALL_THROUGHPUT, CODE_BYTES, COMPILATIONS, HINT, INDEX_POLICY, KV_CACHE, LEVEL, OF_DEVICE,
    OF_MODEL, PACKED_BYTES, PRECISION, Property, QUANTIZATION, REQUESTS, REQUESTS_OF_MODEL,
    SPECIALIZATION, STREAMS, THREADS, THROUGHPUT, VECTORS, settable, supported, unknown,
};
pub(crate) use properties::{MMAP, PROFILING};
use std::collections::BTreeMap;
use vinelift::{CachePrecision, Config, IndexPolicy, Level, Specialization, Statistics, Vectors};

/// The values of the properties that were set; the others have their initial values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(BTreeMap<&'static str, String>);

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
            index_policy: IndexPolicy::ALL
                .into_iter()
                .find(|policy| self.is(INDEX_POLICY, policy.name()))
                .unwrap_or(initial.index_policy),
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

    /// The property `key` of a model called `name` that was compiled with these; `statistics` counts what it has compiled so far.
    pub(crate) fn of_model(
        &self,
        key: &str,
        name: &str,
        statistics: impl FnOnce() -> Statistics,
    ) -> Result<String> {
        Ok(match key {
            "SUPPORTED_PROPERTIES" => supported(&OF_MODEL, Device::Auto),
            "NETWORK_NAME" => name.to_owned(),
            REQUESTS_OF_MODEL | STREAMS => self.streams().to_string(),
            THREADS => self.threads().to_string(),
            "EXECUTION_DEVICES" => device::DEVICE.to_owned(),
            COMPILATIONS => statistics().plans.to_string(),
            CODE_BYTES => statistics().code_bytes.to_string(),
            PACKED_BYTES => statistics().packed_bytes.to_string(),
            _ => self.get(settable(key)?).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

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
            .of_model("SUPPORTED_PROPERTIES", "m", Statistics::default)
            .unwrap()
            .split(' ')
        {
            settings.of_model(key, "m", Statistics::default).unwrap();
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
            let streams = settings
                .of_model(STREAMS, "m", Statistics::default)
                .unwrap();
            let requests = settings.of_model(REQUESTS_OF_MODEL, "m", Statistics::default);
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
