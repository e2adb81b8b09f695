// The classes that a device of OpenVINO 2026 derives from, and the functions it calls, that OpenVINO's public headers do not
// declare. The binary interface is the order of virtual functions and the exported names, which are the same from 2026.1 to
// 2026.4. The classes differ in size between these versions: their members are declared as one array that is larger than
// in any of them.
#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <istream>
#include <memory>
#include <openvino/openvino.hpp>
#include <ostream>
#include <string>
#include <unordered_set>
#include <vector>

#define VINELIFT_IMPORTED __attribute__((visibility("default")))

namespace ov {

// A pointer to an object, and one to the library that its code is in.
template <class T>
struct SoPtr {
    SoPtr() = default;
    SoPtr(std::shared_ptr<T> object, std::shared_ptr<void> library = nullptr)
        : _ptr(std::move(object)), _so(std::move(library)) {}
    SoPtr(const SoPtr&) = default;
    SoPtr& operator=(const SoPtr&) = default;
    // The object goes before the library.
    ~SoPtr() { _ptr = {}; }

    std::shared_ptr<T> _ptr;
    std::shared_ptr<void> _so;
};

class ITensor;
class ICore;
class ICompiledModel;
class IRemoteContext;
class ISyncInferRequest;
class IAsyncInferRequest;

VINELIFT_IMPORTED SoPtr<ITensor> get_tensor_impl(const Tensor&);
VINELIFT_IMPORTED Tensor make_tensor(const SoPtr<ITensor>&);

namespace threading {

class ExecutorManager;

class VINELIFT_IMPORTED ITaskExecutor {
public:
    virtual ~ITaskExecutor() = default;
    virtual void run(std::function<void()> task) = 0;
    virtual void run_and_wait(const std::vector<std::function<void()>>& tasks);
};

}  // namespace threading

class VINELIFT_IMPORTED IPlugin : public std::enable_shared_from_this<IPlugin> {
public:
    using ModelPtr = std::shared_ptr<const Model>;
    using CompiledPtr = std::shared_ptr<ICompiledModel>;
    using Context = SoPtr<IRemoteContext>;

    void set_version(const Version&);
    const std::string& get_device_name() const;

    virtual CompiledPtr compile_model(const ModelPtr&, const AnyMap&) const = 0;
    virtual CompiledPtr compile_model(const std::filesystem::path&, const AnyMap&) const;
    virtual CompiledPtr compile_model(const ModelPtr&, const AnyMap&, const Context&) const = 0;
    virtual void set_property(const AnyMap&) = 0;
    virtual Any get_property(const std::string&, const AnyMap&) const = 0;
    virtual Context create_context(const AnyMap&) const = 0;
    virtual Context get_default_context(const AnyMap&) const = 0;
    virtual CompiledPtr import_model(std::istream&, const AnyMap&) const = 0;
    virtual CompiledPtr import_model(std::istream&, const Context&, const AnyMap&) const = 0;
    virtual CompiledPtr import_model(const Tensor&, const AnyMap&) const = 0;
    virtual CompiledPtr import_model(const Tensor&, const Context&, const AnyMap&) const = 0;
    virtual SupportedOpsMap query_model(const ModelPtr&, const AnyMap&) const = 0;
    virtual ~IPlugin() = default;
    virtual bool is_property_supported(const std::string&, const AnyMap&) const;

protected:
    IPlugin();

private:
    std::string device_name_;
    std::weak_ptr<ICore> core_;
    std::shared_ptr<threading::ExecutorManager> executors_;
    Version version_;
    // For members that another version has.
    alignas(16) char more_[256];
};

class VINELIFT_IMPORTED IVariableState : public std::enable_shared_from_this<IVariableState> {
public:
    explicit IVariableState(const std::string& name);
    virtual const std::string& get_name() const;
    virtual void reset();
    virtual void set_state(const SoPtr<ITensor>&);
    virtual SoPtr<ITensor> get_state() const;

protected:
    virtual ~IVariableState();

private:
    alignas(16) char members_[256];
};

using Port = Output<const Node>;

class VINELIFT_IMPORTED IInferRequest {
public:
    virtual ~IInferRequest();
    virtual void infer() = 0;
    virtual std::vector<ProfilingInfo> get_profiling_info() const = 0;
    virtual SoPtr<ITensor> get_tensor(const Port&) const = 0;
    virtual void set_tensor(const Port&, const SoPtr<ITensor>&) = 0;
    virtual std::vector<SoPtr<ITensor>> get_tensors(const Port&) const = 0;
    virtual void set_tensors(const Port&, const std::vector<SoPtr<ITensor>>&) = 0;
    virtual std::vector<SoPtr<IVariableState>> query_state() const = 0;
    virtual const std::shared_ptr<const ICompiledModel>& get_compiled_model() const = 0;
    virtual const std::vector<Port>& get_inputs() const = 0;
    virtual const std::vector<Port>& get_outputs() const = 0;
    virtual void check_tensors() const = 0;
};

class VINELIFT_IMPORTED IAsyncInferRequest : public IInferRequest {
public:
    using Executor = std::shared_ptr<threading::ITaskExecutor>;

    IAsyncInferRequest(const std::shared_ptr<IInferRequest>&, const Executor& runs, const Executor& callbacks);
    ~IAsyncInferRequest() override;
    void infer() override;
    std::vector<ProfilingInfo> get_profiling_info() const override;
    SoPtr<ITensor> get_tensor(const Port&) const override;
    void set_tensor(const Port&, const SoPtr<ITensor>&) override;
    std::vector<SoPtr<ITensor>> get_tensors(const Port&) const override;
    void set_tensors(const Port&, const std::vector<SoPtr<ITensor>>&) override;
    std::vector<SoPtr<IVariableState>> query_state() const override;
    const std::shared_ptr<const ICompiledModel>& get_compiled_model() const override;
    const std::vector<Port>& get_inputs() const override;
    const std::vector<Port>& get_outputs() const override;
    void check_tensors() const override;
    virtual void start_async();
    virtual void wait();
    virtual bool wait_for(const std::chrono::milliseconds&);
    virtual void cancel();
    virtual void set_callback(std::function<void(std::exception_ptr)>);

protected:
    // Throws if a run goes on.
    void check_state() const;
    void stop_and_wait();
    virtual void infer_thread_unsafe();
    virtual void start_async_thread_unsafe();

private:
    alignas(16) char members_[1024];
};

class VINELIFT_IMPORTED ICompiledModel : public std::enable_shared_from_this<ICompiledModel> {
public:
    using Executor = std::shared_ptr<threading::ITaskExecutor>;

    ICompiledModel(const std::shared_ptr<const Model>&,
                   const std::shared_ptr<const IPlugin>&,
                   const Executor& runs,
                   const Executor& callbacks);
    virtual const std::vector<Port>& outputs() const;
    virtual const std::vector<Port>& inputs() const;
    virtual std::shared_ptr<IAsyncInferRequest> create_infer_request() const;
    virtual void export_model(std::ostream&) const = 0;
    virtual std::shared_ptr<const Model> get_runtime_model() const = 0;
    virtual void set_property(const AnyMap&) = 0;
    virtual Any get_property(const std::string&) const = 0;
    virtual void release_memory();
    virtual ~ICompiledModel();

protected:
    virtual std::shared_ptr<ISyncInferRequest> create_sync_infer_request() const = 0;

private:
    alignas(16) char members_[1024];
};

}  // namespace ov
