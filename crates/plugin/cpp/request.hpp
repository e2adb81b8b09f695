// A request: the tensors of a program, and runs on them.
#pragma once

#include "device_api.hpp"
#include "engine.hpp"

namespace vinelift {

class Compiled;

class Request : public ov::IInferRequest {
public:
    explicit Request(std::shared_ptr<const Compiled> compiled);

    void infer() override;
    std::vector<ov::ProfilingInfo> get_profiling_info() const override;
    ov::SoPtr<ov::ITensor> get_tensor(const ov::Port& port) const override;
    void set_tensor(const ov::Port& port, const ov::SoPtr<ov::ITensor>& tensor) override;
    std::vector<ov::SoPtr<ov::ITensor>> get_tensors(const ov::Port& port) const override;
    void set_tensors(const ov::Port& port, const std::vector<ov::SoPtr<ov::ITensor>>& tensors) override;
    std::vector<ov::SoPtr<ov::IVariableState>> query_state() const override;
    const std::shared_ptr<const ov::ICompiledModel>& get_compiled_model() const override { return model_; }
    const std::vector<ov::Port>& get_inputs() const override;
    const std::vector<ov::Port>& get_outputs() const override;
    void check_tensors() const override {}

    // Whether the run that goes on, or is about to, ends early.
    void set_cancelled(bool is_cancelled);

private:
    // One of the tensors of the request. It is made when it is first asked for.
    struct Slot {
        ov::Tensor tensor;
        // The parts of a batch, which are put together for each run.
        std::vector<ov::Tensor> batch;
    };
    struct Place {
        bool is_input;
        size_t position;
    };

    Place find(const ov::Port& port) const;
    const ov::Port& port_at(Place place) const;
    ov::Tensor& tensor_at(Place place) const;
    void put_batch_together(size_t position);

    std::shared_ptr<const Compiled> compiled_;
    std::shared_ptr<const ov::ICompiledModel> model_;
    // States may outlive the request that they were asked of.
    std::shared_ptr<EngineRequest> request_;
    mutable std::vector<Slot> inputs_;
    mutable std::vector<Slot> outputs_;
};

// The request as a program has it.
class AsyncRequest : public ov::IAsyncInferRequest {
public:
    AsyncRequest(const std::shared_ptr<Request>& request, const Executor& runs, const Executor& callbacks);
    ~AsyncRequest() override;
    void start_async() override;
    void infer() override;
    void cancel() override;

private:
    std::shared_ptr<Request> request_;
};

}  // namespace vinelift
