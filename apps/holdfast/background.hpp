#pragma once

/// \file
/// What a command needs that stays and works on other threads: their messages, and the signals that end it.

#include <holdfast/log.hpp>

#include <csignal>
#include <ctime>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

/// What the library tells on other threads, until this one shows it. Bounded: whoever cannot read as fast misses some.
template <class T>
class kept {
 public:
  void add(T one) {
    const std::scoped_lock lock(mutex_);
    if (held_.size() < 1000) held_.push_back(std::move(one));
  }
  [[nodiscard]] std::vector<T> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(held_, {});
  }

 private:
  std::mutex mutex_{};
  std::vector<T> held_{};
};

/// Warnings, with the reason where there is one.
inline log_sink keep_warnings(kept<std::string>& in) {
  return [&in](const log_record& record) {
    if (record.level < log_level::warning) return;
    std::string line(record.message);
    for (const auto& [name, value] : record.fields) {
      if ((name == "problem" || name == "why") && !value.empty()) line.append(": ").append(value);
    }
    in.add(std::move(line));
  };
}

/// SIGINT and SIGTERM, taken when asked for and not in between. Blocked before any thread is started, so that none gets them.
class stop_signals {
 public:
  stop_signals() {
    sigemptyset(&wanted_);
    sigaddset(&wanted_, SIGINT);
    sigaddset(&wanted_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &wanted_, &before_);
  }
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;
  ~stop_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// Whether one came within that time.
  [[nodiscard]] bool came(long milliseconds = 250) const {
    const timespec wait{.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1'000'000};
    return sigtimedwait(&wanted_, nullptr, &wait) > 0;
  }

 private:
  sigset_t wanted_{};
  sigset_t before_{};
};

}  // namespace holdfast::cli
