// The device.
#include "blob.hpp"
#include "compiled.hpp"
#include "device_api.hpp"
#include "engine.hpp"
#include "ir.hpp"
#include "settings.hpp"

#include <mutex>
#include <openvino/runtime/exception.hpp>
#include <sstream>

namespace vinelift {
namespace {

const Engine* the_engine = nullptr;

class Device : public ov::IPlugin {
public:
    using ov::IPlugin::compile_model;

    CompiledPtr compile_model(const ModelPtr& model, const ov::AnyMap& properties) const override {
        OPENVINO_ASSERT(model, "no model");
        return std::make_shared<Compiled>(model, to_ir(model), interface_of(model), settings_with(properties),
                                          shared_from_this());
    }

    CompiledPtr compile_model(const ModelPtr&, const ov::AnyMap&, const Context&) const override { no_contexts(); }
    Context create_context(const ov::AnyMap&) const override { no_contexts(); }
    Context get_default_context(const ov::AnyMap&) const override { no_contexts(); }

    void set_property(const ov::AnyMap& properties) override {
        std::lock_guard<std::mutex> lock(mutex_);
        settings_.set(properties);
    }

    ov::Any get_property(const std::string& name, const ov::AnyMap& arguments) const override {
        return property_of_device(name, settings_with(arguments));
    }

    CompiledPtr import_model(std::istream& stream, const ov::AnyMap& properties) const override {
        auto copy = std::make_shared<std::string>(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
        return imported({reinterpret_cast<const uint8_t*>(copy->data()), copy->size()}, copy, properties);
    }

    CompiledPtr import_model(const ov::Tensor& blob, const ov::AnyMap& properties) const override {
        auto kept = std::make_shared<ov::Tensor>(blob);
        const auto& bytes = *kept;
        return imported({static_cast<const uint8_t*>(bytes.data()), bytes.get_byte_size()}, kept, properties);
    }

    CompiledPtr import_model(std::istream&, const Context&, const ov::AnyMap&) const override { no_contexts(); }
    CompiledPtr import_model(const ov::Tensor&, const Context&, const ov::AnyMap&) const override { no_contexts(); }

    ov::SupportedOpsMap query_model(const ModelPtr& model, const ov::AnyMap& properties) const override {
        OPENVINO_ASSERT(model, "no model");
        settings_with(properties);
        ov::SupportedOpsMap supported;
        auto handle = read(to_ir(model));
        std::unordered_set<std::string> refused;
        auto each = [](void* refused, Text name) {
            static_cast<std::unordered_set<std::string>*>(refused)->insert(string(name));
        };
        check(engine().unsupported(handle.get(), &refused, each));
        for (const auto& node : model->get_ops())
            if (!refused.count(name_in_ir(node->get_friendly_name())))
                supported[node->get_friendly_name()] = device_name;
        return supported;
    }

private:
    Settings settings_with(const ov::AnyMap& properties) const {
        std::lock_guard<std::mutex> lock(mutex_);
        auto settings = settings_;
        settings.set(properties);
        return settings;
    }

    CompiledPtr imported(Bytes bytes, std::shared_ptr<void> owner, const ov::AnyMap& properties) const {
        auto [interface, ir] = read_blob(bytes, std::move(owner));
        return std::make_shared<Compiled>(nullptr, std::move(ir), std::move(interface), settings_with(properties),
                                          shared_from_this());
    }

    // The exception that tells callers that a device has none.
    [[noreturn]] static void no_contexts() {
        OPENVINO_THROW_NOT_IMPLEMENTED("the VINELIFT device has no remote contexts");
    }

    mutable std::mutex mutex_;
    Settings settings_;
};

}  // namespace

const Engine& engine() { return *the_engine; }

void check(Outcome outcome) {
    if (outcome.status == Status::ok) return;
    std::string message = outcome.message ? outcome.message : "";
    engine().free_message(outcome.message);
    if (outcome.status == Status::cancelled) ov::Cancelled::create(message);
    OPENVINO_THROW(message);
}

}  // namespace vinelift

extern "C" void vinelift_create_plugin(const vinelift::Engine* engine, std::shared_ptr<ov::IPlugin>* plugin) {
    vinelift::the_engine = engine;
    auto device = std::make_shared<vinelift::Device>();
    static const std::string version = vinelift::string(engine->version());
    device->set_version(ov::Version{version.c_str(), "vinelift_openvino"});
    *plugin = device;
}
