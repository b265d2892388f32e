#pragma once

/// \file
/// The signals that end a command which otherwise runs until it is stopped.

#include <holdfast/error.hpp>

#include "terminal/text.hpp"

#include <csignal>
#include <cstdint>
#include <ctime>
#include <string>

namespace holdfast::cli {

/// The error of a command that a signal stopped, and that goes on when it is run again. `done` is a
/// verb: "imported". A total of 0 is not known.
[[nodiscard]] inline error stopped(const std::string& done, std::uint64_t count,
                                   std::uint64_t total) {
  return {errc::unavailable, "stopped after it " + done + " " + grouped(count) +
                                 (total > 0 ? " of " + grouped(total) : "") +
                                 "; run it again to go on"};
}

/// Blocks SIGINT and SIGTERM, so that the command can poll for them. Create it before any thread:
/// threads inherit the mask.
class stop_signals {
 public:
  stop_signals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &previous_mask_);
  }
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;
  /// A signal that came when the work was done does not kill the process.
  ~stop_signals() {
    while (wait(0)) {
    }
    pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
  }

  /// Waits for a signal; returns false after this time.
  [[nodiscard]] bool wait(long milliseconds = 250) const {
    const timespec timeout{.tv_sec = milliseconds / 1000,
                           .tv_nsec = milliseconds % 1000 * 1'000'000};
    return sigtimedwait(&signals_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t signals_{};
  sigset_t previous_mask_{};
};

}  // namespace holdfast::cli
