#pragma once

#include <csignal>
#include <ctime>

namespace holdfast::cli {

/// Blocks SIGINT, SIGTERM and SIGHUP, so that the command can poll for them. Create it before any
/// thread: threads inherit the mask.
class serve_signals {
 public:
  serve_signals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &previous_mask_);
  }
  serve_signals(const serve_signals&) = delete;
  serve_signals& operator=(const serve_signals&) = delete;
  ~serve_signals() { pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr); }

  /// Waits for a signal and returns it; returns 0 after this time.
  [[nodiscard]] int wait(long milliseconds) const {
    const timespec timeout{.tv_sec = milliseconds / 1000,
                           .tv_nsec = milliseconds % 1000 * 1'000'000};
    const int signal = sigtimedwait(&signals_, nullptr, &timeout);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t signals_{};
  sigset_t previous_mask_{};
};

}  // namespace holdfast::cli
