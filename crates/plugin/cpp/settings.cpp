#include "settings.hpp"

#include <algorithm>
#include <thread>

namespace vinelift {
namespace {

// Properties of the engine, whose values are texts that it checks.
constexpr const char* level_key = "VINELIFT_LEVEL";
constexpr const char* policy_key = "VINELIFT_INDEX_POLICY";
constexpr const char* specialization_key = "VINELIFT_SPECIALIZATION";
constexpr const char* vectors_key = "VINELIFT_VECTORS";

// What a compiled model tells besides.
constexpr const char* compilations_key = "VINELIFT_COMPILATIONS";
constexpr const char* code_bytes_key = "VINELIFT_CODE_BYTES";
constexpr const char* packed_bytes_key = "VINELIFT_PACKED_BYTES";

struct Entry {
    std::string name;
    ov::Any initial;
    // The value in OpenVINO's type for it; throws if it cannot be.
    ov::Any (*read)(const ov::Any&);
};

template <class T>
ov::Any as(const ov::Any& value) {
    // Numbers of Python and texts are read as texts.
    return value.is<T>() ? value : ov::Any(ov::Any(value.as<std::string>()).as<T>());
}

template <class T, ov::PropertyMutability M>
Entry entry(const ov::Property<T, M>& property, T initial) {
    return {property.name(), initial, as<T>};
}

Entry text(const char* name, const char* initial) { return {name, std::string(initial), as<std::string>}; }

// Those with an effect are read by the functions of `Settings`. The precision of what is computed is always the model's
// and threads are the system's to place, so the other hints have none; whoever gives them gets what they hint at or
// better.
const std::vector<Entry>& entries() {
    static const std::vector<Entry> all{
        entry(ov::enable_profiling, false),
        entry(ov::num_streams, ov::streams::Num(1)),
        entry(ov::inference_num_threads, int32_t(0)),
        entry(ov::hint::performance_mode, ov::hint::PerformanceMode::LATENCY),
        entry(ov::hint::num_requests, uint32_t(0)),
        text(level_key, "scheduled"),
        text(policy_key, "spec"),
        text(specialization_key, "hot"),
        text(vectors_key, "widest"),
        text("DEVICE_ID", ""),
        entry(ov::hint::inference_precision, ov::element::Type(ov::element::f32)),
        entry(ov::hint::execution_mode, ov::hint::ExecutionMode::ACCURACY),
        entry(ov::hint::model_priority, ov::hint::Priority::MEDIUM),
        entry(ov::hint::scheduling_core_type, ov::hint::SchedulingCoreType::ANY_CORE),
        entry(ov::hint::enable_cpu_pinning, false),
        entry(ov::hint::enable_hyper_threading, true),
        entry(ov::hint::dynamic_quantization_group_size, uint64_t(0)),
        entry(ov::hint::kv_cache_precision, ov::element::Type(ov::element::f32)),
        entry(ov::hint::allow_auto_batching, true),
        entry(ov::compilation_num_threads, int32_t(0)),
        entry(ov::cache_mode, ov::CacheMode::OPTIMIZE_SPEED),
        entry(ov::log::level, ov::log::Level::NO),
        entry(ov::enable_mmap, true),
    };
    return all;
}

// Properties that OpenVINO and its pipelines pass to any device, and that have no meaning for this one.
bool is_ignored(const std::string& name) {
    static const char* all[] = {"CACHE_DIR",          "LOADED_FROM_CACHE",   "WEIGHTS_PATH",
                                "ENABLE_WEIGHTLESS",  "MODEL_PTR",           "ENABLE_CPU_RESERVATION",
                                "WORKLOAD_TYPE",      "AUTO_BATCH_TIMEOUT",  "MODEL_DISTRIBUTION_POLICY",
                                "AFFINITY",           "KEY_CACHE_PRECISION", "VALUE_CACHE_PRECISION",
                                "KEY_CACHE_GROUP_SIZE", "VALUE_CACHE_GROUP_SIZE", "ACTIVATIONS_SCALE_FACTOR",
                                "CPU_DENORMALS_OPTIMIZATION", "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE",
                                "FORCE_TBB_TERMINATE", "COMPATIBILITY_CHECK", "SHARED_CONTEXT"};
    return std::any_of(std::begin(all), std::end(all), [&](const char* known) { return name == known; });
}

const Entry* find(const std::string& name) {
    const auto& all = entries();
    auto found = std::find_if(all.begin(), all.end(), [&](const Entry& entry) { return entry.name == name; });
    return found == all.end() ? nullptr : &*found;
}

[[noreturn]] void unknown(const std::string& name) {
    std::string known;
    for (const auto& entry : entries()) known += (known.empty() ? "" : ", ") + entry.name;
    OPENVINO_THROW("Unsupported property ", name, " by the VINELIFT device; known are ", known);
}

void check_number(const std::string& name, int64_t number) {
    OPENVINO_ASSERT(number >= 0 && number <= 4096, "property ", name, " must be from 0 to 4096, found ", number);
}

ov::Any read(const Entry& entry, const ov::Any& value) {
    ov::Any read;
    try {
        read = entry.read(value);
    } catch (const std::exception&) {
        OPENVINO_THROW("property ", entry.name, " cannot be `", value.as<std::string>(), "`");
    }
    if (entry.name == ov::inference_num_threads.name()) check_number(entry.name, read.as<int32_t>());
    if (entry.name == ov::num_streams.name() && read.as<ov::streams::Num>().num > 0)
        check_number(entry.name, read.as<ov::streams::Num>().num);
    if (entry.name == "DEVICE_ID") {
        auto id = read.as<std::string>();
        OPENVINO_ASSERT(id.empty() || id == "0", "there is one device VINELIFT, found DEVICE_ID `", id, "`");
    }
    return read;
}

ov::PropertyName read_only(const std::string& name) { return {name, ov::PropertyMutability::RO}; }

std::vector<ov::PropertyName> with_settings(std::initializer_list<const char*> told) {
    std::vector<ov::PropertyName> all;
    for (const char* name : told) all.push_back(read_only(name));
    auto settable = Settings::names();
    all.insert(all.end(), settable.begin(), settable.end());
    return all;
}

}  // namespace

void Settings::set(const ov::AnyMap& properties) {
    auto values = values_;
    for (const auto& [name, value] : properties) {
        // The bytes that a program wants encrypted would not be.
        OPENVINO_ASSERT(name != ov::cache_encryption_callbacks.name(), "the VINELIFT device does not encrypt its cache");
        if (is_ignored(name)) continue;
        const auto* entry = find(name);
        if (!entry) unknown(name);
        values[name] = read(*entry, value);
    }
    values_ = std::move(values);
}

ov::Any Settings::get(const std::string& name) const {
    auto set = values_.find(name);
    if (set != values_.end()) return set->second;
    const auto* entry = find(name);
    return entry ? entry->initial : ov::Any();
}

std::vector<ov::PropertyName> Settings::names() {
    std::vector<ov::PropertyName> all;
    for (const auto& entry : entries()) all.emplace_back(entry.name, ov::PropertyMutability::RW);
    return all;
}

bool Settings::is_profiling() const { return get(ov::enable_profiling.name()).as<bool>(); }

std::vector<std::pair<std::string, std::string>> Settings::of_engine() const {
    std::vector<std::pair<std::string, std::string>> all{
        {ov::inference_num_threads.name(), std::to_string(threads_of_run())}};
    for (const char* key :
         {level_key, policy_key, specialization_key, vectors_key, ov::hint::dynamic_quantization_group_size.name(),
          ov::hint::kv_cache_precision.name()})
        all.emplace_back(key, get(key).as<std::string>());
    return all;
}

size_t Settings::threads() const {
    auto number = get(ov::inference_num_threads.name()).as<int32_t>();
    return number > 0 ? static_cast<size_t>(number) : engine().threads();
}

size_t Settings::streams() const {
    if (values_.count(ov::num_streams.name())) {
        auto number = get(ov::num_streams.name()).as<ov::streams::Num>();
        if (number == ov::streams::AUTO) return threads();
        return number.num > 0 ? static_cast<size_t>(number.num) : 1;
    }
    auto hint = get(ov::hint::performance_mode.name()).as<ov::hint::PerformanceMode>();
    if (hint == ov::hint::PerformanceMode::LATENCY) return 1;
    auto requests = get(ov::hint::num_requests.name()).as<uint32_t>();
    return requests ? std::min<size_t>(threads(), requests) : threads();
}

size_t Settings::threads_of_run() const { return std::max<size_t>(threads() / streams(), 1); }

ov::Any property_of_device(const std::string& name, const Settings& settings) {
    using Names = std::vector<ov::PropertyName>;
    using Strings = std::vector<std::string>;
    if (name == ov::supported_properties.name())
        return with_settings({"SUPPORTED_PROPERTIES", "AVAILABLE_DEVICES", "FULL_DEVICE_NAME", "DEVICE_ARCHITECTURE",
                              "DEVICE_TYPE", "OPTIMIZATION_CAPABILITIES", "RANGE_FOR_STREAMS",
                              "RANGE_FOR_ASYNC_INFER_REQUESTS", "EXECUTION_DEVICES"});
    if (name == "INTERNAL_SUPPORTED_PROPERTIES") return Names{read_only("CACHING_PROPERTIES")};
    if (name == "CACHING_PROPERTIES")
        return Names{read_only("FULL_DEVICE_NAME"), read_only("DEVICE_ARCHITECTURE"), read_only(level_key),
                     read_only(policy_key), read_only(specialization_key), read_only(vectors_key),
                     read_only(ov::hint::kv_cache_precision.name()),
                     read_only(ov::hint::dynamic_quantization_group_size.name())};
    if (name == ov::available_devices.name()) return Strings{""};
    if (name == ov::device::full_name.name()) return string(engine().full_name());
    if (name == ov::device::architecture.name())
        return string(engine().target()) + " vinelift " + string(engine().version());
    if (name == ov::device::type.name()) return ov::device::Type::INTEGRATED;
    if (name == ov::device::capabilities.name()) return Strings{"FP32", "INT8", "EXPORT_IMPORT"};
    if (name == ov::range_for_streams.name())
        return std::tuple<unsigned, unsigned>{1, static_cast<unsigned>(engine().threads())};
    if (name == ov::range_for_async_infer_requests.name())
        return std::tuple<unsigned, unsigned, unsigned>{1, static_cast<unsigned>(engine().threads()), 1};
    if (name == ov::execution_devices.name()) return Strings{device_name};
    auto value = settings.get(name);
    if (value.empty()) unknown(name);
    return value;
}

ov::Any property_of_model(const std::string& name, const std::string& model,
                          const std::function<EngineCounts()>& counts, const Settings& settings) {
    if (name == ov::supported_properties.name())
        return with_settings({"SUPPORTED_PROPERTIES", "NETWORK_NAME", "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
                              "EXECUTION_DEVICES", compilations_key, code_bytes_key, packed_bytes_key});
    if (name == compilations_key) return static_cast<uint64_t>(counts().plans);
    if (name == code_bytes_key) return static_cast<uint64_t>(counts().code_bytes);
    if (name == packed_bytes_key) return static_cast<uint64_t>(counts().packed_bytes);
    if (name == ov::model_name.name()) return model;
    if (name == ov::optimal_number_of_infer_requests.name()) return static_cast<uint32_t>(settings.streams());
    if (name == ov::execution_devices.name()) return std::vector<std::string>{device_name};
    if (name == ov::num_streams.name()) return ov::streams::Num(static_cast<int32_t>(settings.streams()));
    if (name == ov::loaded_from_cache.name()) return false;
    auto value = settings.get(name);
    if (value.empty()) unknown(name);
    return value;
}

}  // namespace vinelift
