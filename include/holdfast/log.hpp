#pragma once

/// \file
/// What the library tells an operator. The library writes no log of its own: it hands records to a sink that the application gives.

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
  debug,    ///< for those who look for a fault; the only level that may show a payload
  info,     ///< something happened as it should
  warning,  ///< it works, but somebody should look
  error     ///< something was lost or does not work
};

/// The stable spelling: `debug`, `info`, `warning`, `error`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(log_level level) noexcept;

/// One detail of a record.
struct log_field {
  std::string_view name;
  std::string_view value;
};

/// One record. It refers to memory that is gone when the sink returns: copy what is kept.
struct log_record {
  log_level level = log_level::info;
  std::string_view message{};           ///< one line, without passwords; a sentence a person can act on
  std::span<const log_field> fields{};  ///< details for machines, often none
};

/// Called from any thread, from several at once. It should be quick: it is called where the record arises. What it throws is dropped.
using log_sink = std::function<void(const log_record&)>;

/// At most one record per message id and period; what was held back is counted and told with the next one that passes.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API log_limiter {
 public:
  struct options {
    std::chrono::milliseconds period = std::chrono::minutes(1);  ///< the shortest time between two records of one id
    std::size_t ids = 64;                                        ///< ids told apart; the others share one place
    std::shared_ptr<const holdfast::clock> clock{};              ///< the machine's unless given
  };
  explicit log_limiter(options how);
  log_limiter() : log_limiter(options{}) {}

  /// Nothing: hold this one back. Otherwise say it, and say that so many were held back since the last one.
  [[nodiscard]] std::optional<std::uint64_t> admit(std::string_view id);

 private:
  struct place {
    std::string id{};
    std::chrono::steady_clock::time_point said{};
    std::uint64_t held_back = 0;
    bool used = false;
  };
  place& place_of(std::string_view id, std::chrono::steady_clock::time_point now);

  options how_;
  std::mutex mutex_{};
  std::vector<place> places_{};
  place others_{};
};

/// Calls a sink and keeps its faults away from the work that is being told of.
/// Thread-safety: every function may be called from any thread. Nothing here throws.
class HOLDFAST_API logger {
 public:
  /// An empty sink is allowed: nothing is said then.
  explicit logger(log_sink sink = {}, log_limiter::options limits = {});
  logger(const logger&) = delete;
  logger& operator=(const logger&) = delete;
  ~logger();

  /// False when nobody listens: then do not spend time on making the text.
  [[nodiscard]] bool listened() const noexcept { return static_cast<bool>(sink_); }

  void write(log_level level, std::string_view message, std::span<const log_field> fields) const noexcept;
  void write(log_level level, std::string_view message, std::initializer_list<log_field> fields = {}) const noexcept {
    write(level, message, std::span<const log_field>(fields.begin(), fields.size()));
  }
  /// The same, at most once a period for each id. Gets a field `suppressed` when others were held back before it.
  void write_limited(std::string_view id, log_level level, std::string_view message, std::span<const log_field> fields) const noexcept;
  void write_limited(std::string_view id, log_level level, std::string_view message,
                     std::initializer_list<log_field> fields = {}) const noexcept {
    write_limited(id, level, message, std::span<const log_field>(fields.begin(), fields.size()));
  }

  /// Records lost because the sink threw.
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  const log_sink sink_;
  mutable log_limiter limiter_;
  mutable std::atomic<std::uint64_t> failures_{0};
};

}  // namespace HOLDFAST_NAMESPACE
