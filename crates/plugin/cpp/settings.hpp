// Properties: which there are, what they may be, and what they do.
#pragma once

#include "engine.hpp"

#include <openvino/openvino.hpp>
#include <string>
#include <vector>

namespace vinelift {

constexpr const char* device_name = "VINELIFT";

// The values of the properties that can be set.
class Settings {
public:
    // Sets some, or throws and sets none.
    void set(const ov::AnyMap& properties);
    // The value of one, of the type that OpenVINO has for it; empty if there is none of that name.
    ov::Any get(const std::string& name) const;
    // Which can be set.
    static std::vector<ov::PropertyName> names();

    bool is_profiling() const;
    // How many runs go on at a time, and how many threads each has.
    size_t streams() const;
    size_t threads_of_run() const;
    std::string level() const;
    std::string index_policy() const;
    // How caches are stored: the name of an element type.
    std::string kv_cache_precision() const;
    // The elements of a group in which factors of compressed weights are quantised; 0: they are not.
    size_t dynamic_quantization_group_size() const;

private:
    size_t threads() const;

    ov::AnyMap values_;
};

// A property that tells of the device; throws if there is none of that name.
ov::Any property_of_device(const std::string& name, const Settings& settings);

// A property that tells of a compiled model; throws if there is none of that name.
ov::Any property_of_model(const std::string& name, const std::string& model, const Settings& settings);

}  // namespace vinelift
