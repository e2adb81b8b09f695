// A variable of a request.
#pragma once

#include "device_api.hpp"
#include "engine.hpp"

namespace vinelift {

// What a model says of a variable.
struct Variable {
    std::string name;
    ov::element::Type type;
    ov::PartialShape shape;
};

class State : public ov::IVariableState {
public:
    State(const Variable& variable, std::shared_ptr<EngineRequest> request);
    ~State() override = default;

    void reset() override;
    void set_state(const ov::SoPtr<ov::ITensor>& value) override;
    // What it holds. Before a run has set it these are zeros, of extent 0 where that is not known.
    ov::SoPtr<ov::ITensor> get_state() const override;

private:
    Variable variable_;
    std::shared_ptr<EngineRequest> request_;
};

}  // namespace vinelift
