#include "base/thread.hpp"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {
namespace {

/// Blocks signals in the calling thread. A thread that it starts meanwhile inherits the mask.
class blocked_signals {
 public:
  blocked_signals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;
  ~blocked_signals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

 private:
  sigset_t previous_{};
};

}  // namespace

std::jthread start_quiet_thread(const std::string& name, std::function<void()> body) {
  const blocked_signals inherited_mask;
  return std::jthread([name = name.substr(0, 15), body = std::move(body)] {
    if (!name.empty()) pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
}

}  // namespace HOLDFAST_NAMESPACE::detail
