// The engine, which is written in Rust: `Engine` is its table of functions. The structs are those of `ffi.rs`, `model.rs`,
// `request.rs` and `table.rs` in `src/plugin` of `vinelift-capi`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace vinelift {

struct EngineModel;
struct EngineCompiled;
struct EngineRequest;

template <class T>
struct Slice {
    const T* start = nullptr;
    size_t len = 0;
};

using Text = Slice<char>;
using Bytes = Slice<uint8_t>;

// A tensor. Its bytes, or its elements if they are strings.
struct View {
    Slice<size_t> dims;
    void* bytes = nullptr;
    size_t byte_len = 0;
    Slice<Text> texts;
};

struct Keeper {
    void* object;
    void (*release)(void*);
};

enum class Status : int32_t { ok = 0, error = 1, cancelled = 2, caller = 3 };

struct Outcome {
    Status status;
    char* message;
};

// A property that a model is compiled with.
struct EngineSetting {
    Text key;
    Text value;
};

// How many plans a model has compiled so far, and the bytes of their code and of packed constants.
struct EngineCounts {
    size_t plans;
    size_t code_bytes;
    size_t packed_bytes;
};

struct Sink {
    void* context;
    bool (*take)(void* context, size_t position, const View&);
};

template <class T>
struct Each {
    void* context;
    bool (*take)(void* context, const T&);
};

struct TimeOfKernel {
    Text name;
    Text how;
    uint64_t nanoseconds;
};

struct Engine {
    Text (*version)();
    Text (*target)();
    Text (*full_name)();
    size_t (*threads)();
    void (*free_message)(char*);
    Outcome (*read)(Text xml, Slice<Bytes> parts, Keeper, EngineModel**);
    void (*free_model)(EngineModel*);
    Outcome (*unsupported)(const EngineModel*, void* context, void (*each)(void*, Text));
    Outcome (*compile)(const EngineModel*, Slice<EngineSetting>, EngineCompiled**);
    Outcome (*statistics)(const EngineCompiled*, EngineCounts*);
    void (*free_compiled)(EngineCompiled*);
    Outcome (*create_request)(const EngineCompiled*, bool is_timed, EngineRequest**);
    void (*free_request)(EngineRequest*);
    Outcome (*infer)(const EngineRequest*, Slice<View> inputs, Slice<View> outputs, Sink);
    void (*set_cancelled)(const EngineRequest*, bool is_cancelled);
    Outcome (*times)(const EngineRequest*, Each<TimeOfKernel>);
    Outcome (*get_variable)(const EngineRequest*, Text name, Each<View>);
    Outcome (*set_variable)(const EngineRequest*, Text name, Text element_type, const View*);
    Outcome (*reset_variable)(const EngineRequest*, Text name);
};

// The engine of this process.
const Engine& engine();

// Throws what went wrong.
void check(Outcome);

inline Text text(const std::string& text) { return {text.data(), text.size()}; }
inline std::string string(Text text) { return std::string(text.start, text.len); }

using ModelHandle = std::unique_ptr<EngineModel, void (*)(EngineModel*)>;
using CompiledHandle = std::shared_ptr<EngineCompiled>;
using RequestHandle = std::unique_ptr<EngineRequest, void (*)(EngineRequest*)>;

}  // namespace vinelift
