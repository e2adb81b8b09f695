// Where requests run.
#pragma once

#include "device_api.hpp"

namespace vinelift {

// Threads that take tasks in the order in which they come. They are started when they are first needed; those that
// are there go on until all that was given is done, also if the pool itself has gone.
class Pool : public ov::threading::ITaskExecutor {
public:
    explicit Pool(size_t threads);
    ~Pool() override;
    void run(std::function<void()> task) override;
    void run_and_wait(const std::vector<std::function<void()>>& tasks) override;

private:
    struct State;
    static void serve(const std::shared_ptr<State>& state);

    std::shared_ptr<State> state_;
};

// The thread that asks.
class Here : public ov::threading::ITaskExecutor {
public:
    void run(std::function<void()> task) override { task(); }
    void run_and_wait(const std::vector<std::function<void()>>& tasks) override {
        for (const auto& task : tasks) task();
    }
};

}  // namespace vinelift
