#pragma once

/// \file
/// How the handling of an event ended.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// What a handler says about an event. Made by one of the named functions; nothing said means done.
/// Thread-safety: as a value.
class HOLDFAST_API outcome {
 public:
  enum class kind : std::uint8_t {
    done,       ///< the effect has happened; the event goes
    retry,      ///< it failed and may succeed later; counts as an attempt
    throttled,  ///< not now: whoever is called asked for a pause; does not count
    ambiguous,  ///< nobody knows whether the effect happened (a timeout, a cut connection); counts, and is told apart where it is shown
    permanent   ///< it will never succeed; the event is parked at once
  };

  outcome() = default;
  [[nodiscard]] static outcome done() { return {}; }
  /// Without a pause: the backoff of the worker.
  [[nodiscard]] static outcome retry(std::string why, std::optional<std::chrono::milliseconds> after = {}) {
    return {kind::retry, std::move(why), after};
  }
  [[nodiscard]] static outcome throttled(std::chrono::milliseconds after, std::string why = "throttled") {
    return {kind::throttled, std::move(why), after};
  }
  [[nodiscard]] static outcome ambiguous(std::string why) { return {kind::ambiguous, std::move(why), {}}; }
  [[nodiscard]] static outcome permanent(std::string why) { return {kind::permanent, std::move(why), {}}; }

  [[nodiscard]] kind what() const noexcept { return kind_; }
  [[nodiscard]] bool is_done() const noexcept { return kind_ == kind::done; }
  /// For people; cut to a kilobyte where it is kept.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  [[nodiscard]] const std::optional<std::chrono::milliseconds>& after() const noexcept { return after_; }

 private:
  outcome(kind what, std::string why, std::optional<std::chrono::milliseconds> after) : kind_(what), why_(std::move(why)), after_(after) {}

  kind kind_ = kind::done;
  std::string why_{};
  std::optional<std::chrono::milliseconds> after_{};
};

/// The stable spelling: `done`, `retry`, `throttled`, `ambiguous`, `permanent`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(outcome::kind what) noexcept;

}  // namespace HOLDFAST_NAMESPACE
