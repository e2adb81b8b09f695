#include "state.hpp"

#include "tensors.hpp"

namespace vinelift {

State::State(const Variable& variable, std::shared_ptr<EngineRequest> request)
    : IVariableState(variable.name), variable_(variable), request_(std::move(request)) {}

void State::reset() { check(engine().reset_variable(request_.get(), text(variable_.name))); }

void State::set_state(const ov::SoPtr<ov::ITensor>& value) {
    auto tensor = dense(ov::make_tensor(value));
    TensorView view(tensor);
    check(engine().set_variable(request_.get(), text(variable_.name), text(tensor.get_element_type().get_type_name()),
                                &view.view));
}

ov::SoPtr<ov::ITensor> State::get_state() const {
    struct Copy {
        ov::Tensor tensor;
        std::exception_ptr failure;
    } copy{zeros(variable_.type, first_shape(variable_.shape)), nullptr};
    auto take = [](void* context, const View& view) {
        auto& copy = *static_cast<Copy*>(context);
        try {
            store(view, copy.tensor);
            return true;
        } catch (...) {
            copy.failure = std::current_exception();
            return false;
        }
    };
    auto outcome = engine().get_variable(request_.get(), text(variable_.name), {&copy, take});
    if (copy.failure) {
        engine().free_message(outcome.message);
        std::rethrow_exception(copy.failure);
    }
    check(outcome);
    return ov::get_tensor_impl(copy.tensor);
}

}  // namespace vinelift
