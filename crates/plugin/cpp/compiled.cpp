#include "compiled.hpp"

#include "blob.hpp"
#include "executor.hpp"
#include "request.hpp"

#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/util/variable.hpp>

namespace vinelift {

ov::Port input_port(const std::string& name, const std::unordered_set<std::string>& names, const ov::element::Type& type,
                    const ov::PartialShape& shape) {
    auto parameter = std::make_shared<ov::op::v0::Parameter>(type, shape);
    parameter->set_friendly_name(name);
    parameter->output(0).set_names(names);
    return std::shared_ptr<const ov::Node>(parameter)->output(0);
}

ov::Port output_port(const std::string& name, const std::unordered_set<std::string>& names, const ov::element::Type& type,
                     const ov::PartialShape& shape) {
    auto source = std::make_shared<ov::op::v0::Parameter>(type, shape);
    auto result = std::make_shared<ov::op::v0::Result>(source);
    result->set_friendly_name(name);
    result->output(0).set_names(names);
    return std::shared_ptr<const ov::Node>(result)->output(0);
}

Interface interface_of(const std::shared_ptr<const ov::Model>& model) {
    Interface interface;
    interface.name = model->get_friendly_name();
    for (const auto& input : model->inputs())
        interface.inputs.push_back(input_port(input.get_node()->get_friendly_name(), input.get_names(),
                                              input.get_element_type(), input.get_partial_shape()));
    for (const auto& output : model->outputs()) {
        // Its own names, and those of the tensor that it is.
        auto names = output.get_names();
        const auto& more = output.get_node()->get_input_tensor(0).get_names();
        names.insert(more.begin(), more.end());
        interface.outputs.push_back(output_port(output.get_node()->get_friendly_name(), names, output.get_element_type(),
                                                output.get_partial_shape()));
    }
    for (const auto& variable : model->get_variables()) {
        const auto& info = variable->get_info();
        interface.variables.push_back({info.variable_id, info.data_type, info.data_shape});
    }
    return interface;
}

Compiled::Compiled(const std::shared_ptr<const ov::Model>& model, Ir ir, Interface interface, const Settings& settings,
                   const std::shared_ptr<const ov::IPlugin>& plugin)
    : ICompiledModel(nullptr, plugin, std::make_shared<Here>(), std::make_shared<Here>()),
      ir_(std::move(ir)),
      interface_(std::move(interface)),
      settings_(settings),
      model_(model),
      runs_(std::make_shared<Pool>(settings.streams())),
      callbacks_(std::make_shared<Here>()) {
    auto engine_model = read(ir_);
    auto told = settings.of_engine();
    std::vector<EngineSetting> engine_settings;
    for (const auto& [key, value] : told) engine_settings.push_back({text(key), text(value)});
    EngineCompiled* compiled = nullptr;
    check(engine().compile(engine_model.get(), {engine_settings.data(), engine_settings.size()}, &compiled));
    compiled_ = CompiledHandle(compiled, engine().free_compiled);
}

std::shared_ptr<ov::IAsyncInferRequest> Compiled::create_infer_request() const {
    auto self = std::static_pointer_cast<const Compiled>(shared_from_this());
    return std::make_shared<AsyncRequest>(std::make_shared<Request>(self), runs_, callbacks_);
}

RequestHandle Compiled::create_engine_request() const {
    EngineRequest* request = nullptr;
    check(engine().create_request(compiled_.get(), settings_.is_profiling(), &request));
    return RequestHandle(request, engine().free_request);
}

void Compiled::export_model(std::ostream& stream) const { write_blob(stream, interface_, ir_); }

std::shared_ptr<const ov::Model> Compiled::get_runtime_model() const {
    OPENVINO_ASSERT(model_, "a model that was imported has no graph of OpenVINO's");
    return model_;
}

void Compiled::set_property(const ov::AnyMap& properties) {
    OPENVINO_ASSERT(properties.empty(),
                    "the properties of a compiled model cannot be changed, pass them when it is compiled");
}

ov::Any Compiled::get_property(const std::string& name) const {
    auto counts = [this] {
        EngineCounts counts{};
        check(engine().statistics(compiled_.get(), &counts));
        return counts;
    };
    return property_of_model(name, interface_.name, counts, settings_);
}

}  // namespace vinelift
