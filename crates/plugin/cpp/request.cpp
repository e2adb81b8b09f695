#include "request.hpp"

#include "compiled.hpp"
#include "profiling.hpp"
#include "state.hpp"
#include "tensors.hpp"

#include <openvino/runtime/exception.hpp>

namespace vinelift {

Request::Request(std::shared_ptr<const Compiled> compiled)
    : compiled_(compiled),
      model_(compiled),
      request_(compiled->create_engine_request()),
      inputs_(compiled->inputs().size()),
      outputs_(compiled->outputs().size()) {}

const std::vector<ov::Port>& Request::get_inputs() const { return compiled_->inputs(); }
const std::vector<ov::Port>& Request::get_outputs() const { return compiled_->outputs(); }

Request::Place Request::find(const ov::Port& port) const {
    const std::vector<ov::Port>* sides[] = {&get_inputs(), &get_outputs()};
    for (const auto* side : sides)
        for (size_t k = 0; k < side->size(); k++)
            if ((*side)[k].get_node() == port.get_node()) return {side == sides[0], k};
    // A port of the model that was compiled, or of another compilation of it.
    OPENVINO_ASSERT(port.get_node(), "a port of no node");
    for (const auto* side : sides)
        for (size_t k = 0; k < side->size(); k++) {
            const auto& own = (*side)[k];
            if (own.get_node()->get_type_info() == port.get_node()->get_type_info() &&
                own.get_node()->get_friendly_name() == port.get_node()->get_friendly_name() &&
                own.get_names() == port.get_names())
                return {side == sides[0], k};
        }
    std::string names = port.get_node()->get_friendly_name();
    for (const auto& name : port.get_names()) names += ", " + name;
    OPENVINO_THROW("the model has no port of these names: ", names);
}

const ov::Port& Request::port_at(Place place) const {
    return place.is_input ? get_inputs()[place.position] : get_outputs()[place.position];
}

ov::Tensor& Request::tensor_at(Place place) const {
    auto& slot = place.is_input ? inputs_[place.position] : outputs_[place.position];
    if (!slot.tensor) {
        const auto& port = port_at(place);
        slot.tensor = zeros(port.get_element_type(), first_shape(port.get_partial_shape()));
    }
    return slot.tensor;
}

ov::SoPtr<ov::ITensor> Request::get_tensor(const ov::Port& port) const {
    auto place = find(port);
    OPENVINO_ASSERT(!place.is_input || inputs_[place.position].batch.empty(),
                    "the input has several tensors, one for each item of the batch");
    return ov::get_tensor_impl(tensor_at(place));
}

void Request::set_tensor(const ov::Port& port, const ov::SoPtr<ov::ITensor>& tensor) {
    OPENVINO_ASSERT(tensor._ptr, "no tensor");
    auto place = find(port);
    const auto& own = port_at(place);
    auto set = ov::make_tensor(tensor);
    OPENVINO_ASSERT(!set.is<ov::RemoteTensor>(), "the VINELIFT device has no remote tensors");
    const char* side = place.is_input ? "input" : "output";
    OPENVINO_ASSERT(set.get_element_type() == own.get_element_type(), "the ", side, " `", own.get_node()->get_friendly_name(),
                    "` must be of ", own.get_element_type(), ", found ", set.get_element_type());
    auto shape = ov::PartialShape(set.get_shape());
    // An output that is not as large yet gets its shape from a run. An empty tensor frees an input of the program's own.
    auto fits = own.get_partial_shape().compatible(shape) || (own.get_partial_shape().is_dynamic() && set.get_size() == 0);
    OPENVINO_ASSERT(fits, "the ", side, " `", own.get_node()->get_friendly_name(), "` must be of shape ",
                    own.get_partial_shape(), ", found ", set.get_shape());
    auto& slot = place.is_input ? inputs_[place.position] : outputs_[place.position];
    slot.tensor = std::move(set);
    slot.batch.clear();
}

std::vector<ov::SoPtr<ov::ITensor>> Request::get_tensors(const ov::Port& port) const {
    auto place = find(port);
    std::vector<ov::SoPtr<ov::ITensor>> tensors;
    if (place.is_input)
        for (const auto& one : inputs_[place.position].batch) tensors.push_back(ov::get_tensor_impl(one));
    return tensors;
}

void Request::set_tensors(const ov::Port& port, const std::vector<ov::SoPtr<ov::ITensor>>& tensors) {
    auto place = find(port);
    OPENVINO_ASSERT(place.is_input, "several tensors can be set for an input only");
    OPENVINO_ASSERT(!tensors.empty(), "no tensors");
    if (tensors.size() == 1) return set_tensor(port, tensors[0]);
    const auto& own = port_at(place);
    std::vector<ov::Tensor> batch;
    for (const auto& one : tensors) {
        auto tensor = ov::make_tensor(one);
        auto shape = tensor.get_shape();
        OPENVINO_ASSERT(!tensor.is<ov::RemoteTensor>(), "the VINELIFT device has no remote tensors");
        OPENVINO_ASSERT(tensor.get_element_type() == own.get_element_type() && !shape.empty() && shape[0] == 1,
                        "each item of a batch must be of ", own.get_element_type(), " and have 1 as its first extent");
        OPENVINO_ASSERT(batch.empty() || shape == batch[0].get_shape(), "the items of a batch differ in shape");
        batch.push_back(std::move(tensor));
    }
    auto shape = batch[0].get_shape();
    shape[0] = batch.size();
    OPENVINO_ASSERT(own.get_partial_shape().compatible(shape), "the input must be of shape ", own.get_partial_shape(),
                    ", found a batch of ", shape);
    inputs_[place.position].batch = std::move(batch);
}

void Request::put_batch_together(size_t position) {
    auto& slot = inputs_[position];
    auto shape = slot.batch[0].get_shape();
    shape[0] = slot.batch.size();
    slot.tensor = zeros(slot.batch[0].get_element_type(), shape);
    for (size_t k = 0; k < slot.batch.size(); k++) {
        ov::Coordinate begin(shape.size(), 0), end(shape);
        begin[0] = k;
        end[0] = k + 1;
        ov::Tensor item(slot.tensor, begin, end);
        slot.batch[k].copy_to(item);
    }
}

namespace {

// Where tensors are, for the time of a run.
class Views {
public:
    explicit Views(size_t most) {
        used_.reserve(most);
        owners_.reserve(most);
    }

    View add(const ov::Tensor& tensor) {
        used_.push_back(tensor);
        owners_.emplace_back(used_.back());
        return owners_.back().view;
    }

private:
    std::vector<ov::Tensor> used_;
    std::vector<TensorView> owners_;
};

void store_anywhere(const View& from, ov::Tensor& tensor) {
    if (tensor.is_continuous()) return store(from, tensor);
    auto whole = zeros(tensor.get_element_type(), tensor.get_shape());
    store(from, whole);
    whole.copy_to(tensor);
}

}  // namespace

void Request::infer() {
    Views views(inputs_.size() + outputs_.size());
    std::vector<View> inputs, outputs;
    for (size_t k = 0; k < inputs_.size(); k++) {
        if (!inputs_[k].batch.empty()) put_batch_together(k);
        inputs.push_back(views.add(dense(tensor_at({true, k}))));
    }
    for (size_t k = 0; k < outputs_.size(); k++) {
        // Only dense memory is written in place; the rest is copied from where the engine has it.
        const auto& tensor = tensor_at({false, k});
        outputs.push_back(tensor.is_continuous() ? views.add(tensor) : View());
    }
    struct Target {
        Request& request;
        std::exception_ptr failure;
    } target{*this, nullptr};
    auto take = [](void* context, size_t position, const View& view) {
        auto& target = *static_cast<Target*>(context);
        try {
            store_anywhere(view, target.request.tensor_at({false, position}));
            return true;
        } catch (...) {
            target.failure = std::current_exception();
            return false;
        }
    };
    auto outcome = engine().infer(request_.get(), {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()},
                                  {&target, take});
    if (target.failure) {
        engine().free_message(outcome.message);
        std::rethrow_exception(target.failure);
    }
    check(outcome);
}

void Request::set_cancelled(bool is_cancelled) { engine().set_cancelled(request_.get(), is_cancelled); }

std::vector<ov::ProfilingInfo> Request::get_profiling_info() const {
    struct Times {
        std::vector<KernelTime> all;
        std::exception_ptr failure;
    } times;
    auto take = [](void* context, const TimeOfKernel& kernel) {
        auto& times = *static_cast<Times*>(context);
        try {
            auto rounded = std::chrono::microseconds((kernel.nanoseconds + 500) / 1000);
            times.all.push_back({string(kernel.name), string(kernel.how), rounded});
            return true;
        } catch (...) {
            times.failure = std::current_exception();
            return false;
        }
    };
    auto outcome = engine().times(request_.get(), {&times, take});
    if (times.failure) {
        engine().free_message(outcome.message);
        std::rethrow_exception(times.failure);
    }
    check(outcome);
    return profiling_infos(times.all);
}

std::vector<ov::SoPtr<ov::IVariableState>> Request::query_state() const {
    std::vector<ov::SoPtr<ov::IVariableState>> states;
    for (const auto& variable : compiled_->variables())
        states.emplace_back(std::make_shared<State>(variable, request_));
    return states;
}

AsyncRequest::AsyncRequest(const std::shared_ptr<Request>& request, const Executor& runs, const Executor& callbacks)
    : IAsyncInferRequest(request, runs, callbacks), request_(request) {}

AsyncRequest::~AsyncRequest() { stop_and_wait(); }

void AsyncRequest::start_async() {
    check_state();
    request_->set_cancelled(false);
    IAsyncInferRequest::start_async();
}

void AsyncRequest::infer() {
    check_state();
    request_->set_cancelled(false);
    IAsyncInferRequest::infer();
}

void AsyncRequest::cancel() {
    request_->set_cancelled(true);
    IAsyncInferRequest::cancel();
}

}  // namespace vinelift
