#include "sql/odbc_thread.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql::odbc {

namespace {

constexpr int most_hanging = 64;
std::atomic<int>& hung_calls() {
  static std::atomic<int> count{0};
  return count;
}

}  // namespace

struct call_thread::shared {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::function<void()> work{};
  std::exception_ptr failure{};
  bool busy = false;
  bool ending = false;
  bool left_alone = false;
};

int call_thread::hanging() noexcept { return hung_calls().load(); }

call_thread::call_thread() : shared_(std::make_shared<shared>()) {
  if (hanging() >= most_hanging) {
    throw error(errc::unavailable,
                std::to_string(most_hanging) +
                    " calls of ODBC drivers hang in this process; look at the database server, and give the driver timeouts of its own",
                {.transient = true});
  }
  thread_ = start_quiet_thread("holdfast-odbc", [with = shared_] { serve(with); });
}

call_thread::~call_thread() {
  if (!shared_) return;
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->ending = true;
  }
  shared_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
}

void call_thread::forget() noexcept {
  // Neither joined nor detached: there is no such thread here, and its memory is the parent's business.
  auto* const thread = new (std::nothrow) std::jthread(std::move(thread_));
  auto* const kept = new (std::nothrow) std::shared_ptr<shared>(std::move(shared_));
  (void)thread;
  (void)kept;
  shared_.reset();
}

bool call_thread::run(std::function<void()> work, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(shared_->mutex);
  shared_->work = std::move(work);
  shared_->failure = nullptr;
  shared_->busy = true;
  shared_->changed.notify_all();
  if (!shared_->changed.wait_until(lock, until, [this] { return !shared_->busy; })) {
    shared_->left_alone = true;
    ++hung_calls();
    lost_ = true;
    thread_.detach();
    return false;
  }
  if (const auto failure = std::exchange(shared_->failure, nullptr)) std::rethrow_exception(failure);
  return true;
}

void call_thread::serve(const std::shared_ptr<shared>& with) {
  std::unique_lock lock(with->mutex);
  for (;;) {
    with->changed.wait(lock, [&] { return with->ending || with->busy; });
    if (!with->busy) return;
    auto work = std::move(with->work);
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    work = nullptr;  // what it held is let go here, also when nobody waits any more
    lock.lock();
    if (with->left_alone) {
      --hung_calls();
      return;
    }
    with->failure = std::move(failure);
    with->busy = false;
    with->changed.notify_all();
  }
}

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
