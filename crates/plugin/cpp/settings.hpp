// Properties: which there are, what they may be, and what they do.
#pragma once

#include "engine.hpp"

#include <functional>
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
    // How many runs go on at a time.
    size_t streams() const;
    // Keys and values of what the engine compiles a model with, as its C API has them.
    std::vector<std::pair<std::string, std::string>> of_engine() const;

private:
    // How many threads all runs have, and each.
    size_t threads() const;
    size_t threads_of_run() const;

    ov::AnyMap values_;
};

// A property that tells of the device; throws if there is none of that name.
ov::Any property_of_device(const std::string& name, const Settings& settings);

// A property that tells of a compiled model; throws if there is none of that name. `counts` is called for those that count.
ov::Any property_of_model(const std::string& name, const std::string& model,
                          const std::function<EngineCounts()>& counts, const Settings& settings);

}  // namespace vinelift
