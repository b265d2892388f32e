#pragma once

/// \file
/// Messages of the library on other threads, for the thread that prints them.

#include <holdfast/log.hpp>

#include "terminal/command.hpp"

#include <memory>
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

/// A log record that owns its texts.
struct queued_record {
  log_level level = log_level::info;
  std::string message{};
  std::vector<std::pair<std::string, std::string>> fields{};

  explicit queued_record(const log_record& record) : level(record.level), message(record.message) {
    for (const auto& [name, value] : record.fields) fields.emplace_back(name, value);
  }
  void write_to(const console& io) const {
    std::vector<log_field> views;
    views.reserve(fields.size());
    for (const auto& [name, value] : fields) views.push_back({.name = name, .value = value});
    io.write({.level = level, .message = message, .fields = views});
  }
};
using record_queue = message_queue<queued_record>;

/// A log that queues what the command prints. The log owns the queue, because a report or a check
/// that waits for a database may outlive the command.
[[nodiscard]] inline log_sink queue_records(std::shared_ptr<record_queue> queue, log_level least) {
  return [queue = std::move(queue), least](const log_record& record) {
    if (record.level >= least) queue->push(queued_record(record));
  };
}

inline void print_records(const console& io, record_queue& queue) {
  for (const auto& record : queue.drain()) record.write_to(io);
}

}  // namespace holdfast::cli
