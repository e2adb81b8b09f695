#include "executor.hpp"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace vinelift {

struct Pool::State {
    std::mutex mutex;
    std::condition_variable is_more;
    std::deque<std::function<void()>> tasks;
    size_t most_threads = 1;
    size_t threads = 0;
    size_t idle = 0;
    bool is_closed = false;
    // Threads are not there in a child of the process that started them.
    pid_t process = getpid();
};

Pool::Pool(size_t threads) : state_(std::make_shared<State>()) {
    state_->most_threads = threads ? threads : 1;
}

Pool::~Pool() {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->is_closed = true;
    state_->is_more.notify_all();
}

void Pool::run(std::function<void()> task) {
    // After a fork, the parent's threads are not in this process, but may have held the lock: start with a fresh state.
    if (state_->process != getpid()) {
        auto fresh = std::make_shared<State>();
        fresh->most_threads = state_->most_threads;
        new std::shared_ptr<State>(std::move(state_));
        state_ = fresh;
    }
    auto& state = *state_;
    std::unique_lock<std::mutex> lock(state.mutex);
    state.tasks.push_back(std::move(task));
    if (state.tasks.size() <= state.idle || state.threads == state.most_threads) {
        state.is_more.notify_one();
        return;
    }
    try {
        std::thread([shared = state_] { serve(shared); }).detach();
        state.threads++;
    } catch (const std::system_error&) {
        if (state.threads) return;
        // The system gives no thread: the one that asks does the work.
        auto own = std::move(state.tasks.back());
        state.tasks.pop_back();
        lock.unlock();
        own();
    }
}

void Pool::serve(const std::shared_ptr<State>& shared) {
    auto& state = *shared;
    std::unique_lock<std::mutex> lock(state.mutex);
    for (;;) {
        if (!state.tasks.empty()) {
            auto task = std::move(state.tasks.front());
            state.tasks.pop_front();
            lock.unlock();
            task();
            task = nullptr;
            lock.lock();
        } else if (state.is_closed) {
            state.threads--;
            return;
        } else {
            state.idle++;
            state.is_more.wait(lock);
            state.idle--;
        }
    }
}

void Pool::run_and_wait(const std::vector<std::function<void()>>& tasks) {
    std::vector<std::future<void>> done;
    for (const auto& task : tasks) {
        auto packed = std::make_shared<std::packaged_task<void()>>(task);
        done.push_back(packed->get_future());
        run([packed] { (*packed)(); });
    }
    for (auto& one : done) one.get();
}

}  // namespace vinelift
