// A compiled model.
#pragma once

#include "device_api.hpp"
#include "engine.hpp"
#include "ir.hpp"
#include "settings.hpp"
#include "state.hpp"

#include <unordered_map>

namespace vinelift {

// The properties of a compiled model that OpenVINO asks for.
struct Interface {
    std::string name;
    std::vector<ov::Port> inputs;
    std::vector<ov::Port> outputs;
    std::vector<Variable> variables;
};

class Compiled : public ov::ICompiledModel {
public:
    // `model` is null if it was imported.
    Compiled(const std::shared_ptr<const ov::Model>& model, Ir ir, Interface interface, const Settings& settings,
             const std::shared_ptr<const ov::IPlugin>& plugin);

    const std::vector<ov::Port>& outputs() const override { return interface_.outputs; }
    const std::vector<ov::Port>& inputs() const override { return interface_.inputs; }
    std::shared_ptr<ov::IAsyncInferRequest> create_infer_request() const override;
    void export_model(std::ostream& stream) const override;
    std::shared_ptr<const ov::Model> get_runtime_model() const override;
    void set_property(const ov::AnyMap& properties) override;
    ov::Any get_property(const std::string& name) const override;
    void release_memory() override {}

    const std::vector<Variable>& variables() const { return interface_.variables; }
    RequestHandle create_engine_request() const;

protected:
    std::shared_ptr<ov::ISyncInferRequest> create_sync_infer_request() const override { return nullptr; }

private:
    Ir ir_;
    Interface interface_;
    Settings settings_;
    std::shared_ptr<const ov::Model> model_;
    CompiledHandle compiled_;
    Executor runs_;
    Executor callbacks_;
};

// The interface of a model of OpenVINO.
Interface interface_of(const std::shared_ptr<const ov::Model>& model);

// A port of a node of its own.
ov::Port input_port(const std::string& name, const std::unordered_set<std::string>& names, const ov::element::Type& type,
                    const ov::PartialShape& shape);
ov::Port output_port(const std::string& name, const std::unordered_set<std::string>& names, const ov::element::Type& type,
                     const ov::PartialShape& shape);

}  // namespace vinelift
