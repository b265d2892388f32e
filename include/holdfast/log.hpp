#pragma once

/// \file
/// Log records for an operator. The library does not write a log: it passes records to a sink of
/// the application.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

enum class log_level : std::uint8_t {
  debug,    ///< details for debugging; the only level that may show a payload
  info,     ///< a normal event
  warning,  ///< works, but an operator should look at it
  error     ///< data was lost, or a function does not work
};

/// The stable name: `debug`, `info`, `warning`, `error`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(log_level level) noexcept;

/// One detail of a record.
struct log_field {
  std::string_view name;
  std::string_view value;
};

/// One record. It refers to memory that is valid only until the sink returns.
struct log_record {
  log_level level = log_level::info;
  /// One line that an operator can act on. Never contains a password.
  std::string_view message{};
  /// Details for machines. Often empty.
  std::span<const log_field> fields{};
};

/// Receives records, from several threads at once. It should be fast, because it runs on the thread
/// that does the work. Its exceptions are dropped.
using log_sink = std::function<void(const log_record&)>;

/// Admits at most one record per message id and period. Counts the suppressed records and reports
/// their number with the next admitted one.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API log_limiter {
 public:
  struct options {
    /// Minimum time between two records with the same id.
    std::chrono::milliseconds period = std::chrono::minutes(1);
    /// Number of ids that are limited separately. Further ids share one slot.
    std::size_t ids = 64;
    /// Null: the clock of this machine.
    std::shared_ptr<const holdfast::clock> clock{};
  };
  explicit log_limiter(options settings);
  log_limiter() : log_limiter(options{}) {}

  /// Returns nullopt if this record must be suppressed. Otherwise returns the number of records
  /// that were suppressed since the last admitted one.
  [[nodiscard]] std::optional<std::uint64_t> admit(std::string_view id);

 private:
  struct slot {
    std::string id{};
    std::chrono::steady_clock::time_point last_admitted{};
    std::uint64_t suppressed = 0;
    bool used = false;
  };
  slot& slot_of(std::string_view id, std::chrono::steady_clock::time_point now);

  options options_;
  std::mutex mutex_{};
  std::vector<slot> slots_{};
  slot overflow_{};
};

/// Calls a sink and catches its exceptions, so that logging never breaks the work.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API logger {
 public:
  /// If the sink is empty, all records are dropped.
  explicit logger(log_sink sink = {}, log_limiter::options limits = {});
  logger(const logger&) = delete;
  logger& operator=(const logger&) = delete;
  ~logger();

  /// Returns false if there is no sink. The caller can then skip formatting a message.
  [[nodiscard]] bool listened() const noexcept { return static_cast<bool>(sink_); }

  void write(log_level level, std::string_view message,
             std::span<const log_field> fields) const noexcept;
  void write(log_level level, std::string_view message,
             std::initializer_list<log_field> fields = {}) const noexcept {
    write(level, message, std::span<const log_field>(fields.begin(), fields.size()));
  }
  /// As `write`, at most once per period for each id. Adds the field `suppressed` if records were
  /// suppressed before this one.
  void write_limited(std::string_view id, log_level level, std::string_view message,
                     std::span<const log_field> fields) const noexcept;
  void write_limited(std::string_view id, log_level level, std::string_view message,
                     std::initializer_list<log_field> fields = {}) const noexcept {
    write_limited(id, level, message, std::span<const log_field>(fields.begin(), fields.size()));
  }

  /// Number of records lost because the sink threw.
  [[nodiscard]] std::uint64_t failures() const noexcept {
    return failures_.load(std::memory_order_relaxed);
  }

 private:
  const log_sink sink_;
  mutable log_limiter limiter_;
  mutable std::atomic<std::uint64_t> failures_{0};
};

}  // namespace HOLDFAST_NAMESPACE
