#include "sql/odbc/driver_call.hpp"

#include "sql/odbc/call_thread.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

namespace {

// Constants of initialisation without destructors: threads use them while the process ends.
constinit std::atomic<int> running_calls{0};
constinit std::atomic<bool> process_ends{false};

/// Its destructor runs after those of all static objects of the program: it was constructed first.
class process_end {
 public:
  process_end() {
    // The threads of the parent do not exist in a forked child.
    (void)::pthread_atfork(nullptr, nullptr, [] { running_calls = 0; });
  }
  process_end(const process_end&) = delete;
  process_end& operator=(const process_end&) = delete;
  ~process_end() {
    process_ends = true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    // A call that hangs has been given up, and is not waited for.
    while (running_calls > call_thread::hanging() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

constexpr int earliest = 101;  // lower numbers are reserved
[[gnu::init_priority(earliest)]] const process_end end_of_process;

}  // namespace

driver_call::driver_call() noexcept {
  ++running_calls;
  if (!process_ends) return;
  --running_calls;
  for (;;) ::pause();
}

driver_call::~driver_call() { --running_calls; }

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
