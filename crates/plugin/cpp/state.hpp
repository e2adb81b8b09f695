// A variable of a request.
#pragma once

#include "device_api.hpp"
#include "engine.hpp"

namespace vinelift {

// A variable as the model declares it.
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
    // The value. Before a run has set it: zeros, with extent 0 for dimensions that are not known.
    ov::SoPtr<ov::ITensor> get_state() const override;

private:
    Variable variable_;
    std::shared_ptr<EngineRequest> request_;
};

}  // namespace vinelift
