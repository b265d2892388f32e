#pragma once

/// \file
/// Messages of the library on other threads, for the thread that prints them.

#include <holdfast/log.hpp>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

/// Messages from other threads to the thread that prints them. Drops messages while 1000 wait.
/// Thread-safety: every function may be called from any thread.
template <class T>
class message_queue {
 public:
  void push(T message) {
    const std::scoped_lock lock(mutex_);
    if (messages_.size() < 1000) messages_.push_back(std::move(message));
  }
  [[nodiscard]] std::vector<T> drain() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(messages_, {});
  }

 private:
  std::mutex mutex_{};
  std::vector<T> messages_{};
};

/// A log that queues warnings and errors, with their reason.
inline log_sink queue_warnings(message_queue<std::string>& queue) {
  return [&queue](const log_record& record) {
    if (record.level < log_level::warning) return;
    std::string line(record.message);
    for (const auto& [name, value] : record.fields) {
      const bool is_reason = name == "problem" || name == "reason" || name == "why";
      if (is_reason && !value.empty()) line.append(": ").append(value);
    }
    queue.push(std::move(line));
  };
}

}  // namespace holdfast::cli
