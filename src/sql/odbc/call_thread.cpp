#include "sql/odbc/call_thread.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"
#include "sql/odbc/driver_call.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

namespace {

constexpr int hanging_limit = 64;
constinit std::atomic<int> hanging_calls{0};  // used while the process ends

}  // namespace

struct call_thread::shared_state {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::function<void()> work{};
  std::exception_ptr failure{};
  bool busy = false;
  bool stopping = false;
  bool abandoned = false;  // the caller of run() has given up
};

int call_thread::hanging() noexcept { return hanging_calls.load(); }

call_thread::call_thread() : state_(std::make_shared<shared_state>()) {
  if (hanging() >= hanging_limit) {
    throw error(errc::unavailable,
                std::to_string(hanging_limit) +
                    " calls of ODBC drivers hang in this process; look at the database server, and "
                    "give the driver timeouts of its own",
                {.transient = true});
  }
  thread_ = start_quiet_thread("holdfast-odbc", [state = state_] { serve(state); });
}

call_thread::~call_thread() {
  if (!state_) return;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
}

void call_thread::forget() noexcept {
  // Leaks both objects: a thread that does not exist can neither be joined nor detached, and the
  // parent's thread may hold the mutex.
  (void)new (std::nothrow) std::jthread(std::move(thread_));
  (void)new (std::nothrow) std::shared_ptr<shared_state>(std::move(state_));
  state_.reset();
}

bool call_thread::run(std::function<void()> work, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  state_->work = std::move(work);
  state_->failure = nullptr;
  state_->busy = true;
  state_->changed.notify_all();
  if (!state_->changed.wait_until(lock, deadline, [this] { return !state_->busy; })) {
    state_->abandoned = true;
    ++hanging_calls;
    lost_ = true;
    thread_.detach();
    return false;
  }
  if (const auto failure = std::exchange(state_->failure, nullptr)) std::rethrow_exception(failure);
  return true;
}

void call_thread::serve(const std::shared_ptr<shared_state>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->stopping || state->busy; });
    if (!state->busy) return;
    auto work = std::move(state->work);
    lock.unlock();
    std::exception_ptr failure;
    {
      const driver_call mark;
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      work = nullptr;  // releases what it owns before the caller continues, or instead of it
    }
    lock.lock();
    if (state->abandoned) {
      --hanging_calls;
      return;
    }
    state->failure = std::move(failure);
    state->busy = false;
    state->changed.notify_all();
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
