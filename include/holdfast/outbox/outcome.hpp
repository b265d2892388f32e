#pragma once

/// \file
/// What a handler reports about an event.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// The result of handling an event. Create it with one of the named functions.
/// Thread-safety: as a value.
class HOLDFAST_API outcome {
 public:
  enum class kind : std::uint8_t {
    done,       ///< the effect happened; the event is removed
    retry,      ///< it failed and may succeed later; counts as an attempt
    throttled,  ///< the receiver asked for a pause; does not count as an attempt
    ambiguous,  ///< the effect may have happened (timeout, lost connection); counts as an attempt
    permanent   ///< it will never succeed; the event is parked at once
  };

  /// `done`.
  outcome() = default;
  [[nodiscard]] static outcome done() { return {}; }
  /// Without `after`, the backoff of the worker decides when to retry.
  [[nodiscard]] static outcome retry(std::string reason,
                                     std::optional<std::chrono::milliseconds> after = {}) {
    return {kind::retry, std::move(reason), after};
  }
  [[nodiscard]] static outcome throttled(std::chrono::milliseconds after,
                                         std::string reason = "throttled") {
    return {kind::throttled, std::move(reason), after};
  }
  [[nodiscard]] static outcome ambiguous(std::string reason) {
    return {kind::ambiguous, std::move(reason), {}};
  }
  [[nodiscard]] static outcome permanent(std::string reason) {
    return {kind::permanent, std::move(reason), {}};
  }

  [[nodiscard]] kind code() const noexcept { return kind_; }
  [[nodiscard]] bool is_done() const noexcept { return kind_ == kind::done; }
  /// The reason, for people. The outbox keeps the first kilobyte.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// Delay before the next delivery, if the handler chose one.
  [[nodiscard]] const std::optional<std::chrono::milliseconds>& after() const noexcept {
    return after_;
  }

 private:
  outcome(kind value, std::string reason, std::optional<std::chrono::milliseconds> after)
      : kind_(value), reason_(std::move(reason)), after_(after) {}

  kind kind_ = kind::done;
  std::string reason_{};
  std::optional<std::chrono::milliseconds> after_{};
};

/// `done`, `retry`, `throttled`, `ambiguous`, `permanent`. These names do not change.
[[nodiscard]] HOLDFAST_API std::string_view to_string(outcome::kind kind) noexcept;

}  // namespace HOLDFAST_NAMESPACE
