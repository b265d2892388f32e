#pragma once

/// \file
/// How long an answer may be served: a duration, calendar months or years, or a policy by its name.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// What an expiry policy may look at.
struct expiry_request {
  std::string_view point;                     ///< its name
  timestamp now;                              ///< when the call started
  std::optional<std::string_view> payload{};  ///< the encoded value; nothing for a tombstone
};
/// Gives the last moment at which the answer may be served. What it throws, and a moment in the past, mean: do not store it.
using expiry_policy = std::function<timestamp(const expiry_request&)>;
using expiry_policies = std::map<std::string, expiry_policy, std::less<>>;

/// When an answer expires. `24h` is a duration; `std::chrono::months(1)` and `years(1)` are counted on the calendar, in UTC, and end at the
/// last day of a month that is too short: January 31st and a month is the end of February.
/// Thread-safety: immutable.
class HOLDFAST_API expiry {
 public:
  /// An hour.
  expiry() : expiry(std::chrono::hours(1)) {}
  template <class Rep, class Period>
  expiry(std::chrono::duration<Rep, Period> time)  // NOLINT(google-explicit-constructor): `.expiry = 24h`
      : time_(saturated(std::chrono::duration<double, std::micro>(time).count(), time)) {}
  expiry(std::chrono::months calendar) : months_(calendar), calendar_(true) {}              // NOLINT(google-explicit-constructor)
  expiry(std::chrono::years calendar) : months_(calendar.count() * 12), calendar_(true) {}  // NOLINT(google-explicit-constructor)
  /// A policy of engine_options::expiry_policies.
  [[nodiscard]] static expiry named(std::string policy);

  /// Empty unless it was named.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The last moment at which an answer of `now` may be served; at the end of time when it lies beyond. Not for named ones.
  [[nodiscard]] timestamp after(timestamp now) const noexcept;
  /// More than nothing.
  [[nodiscard]] bool positive() const noexcept { return !name_.empty() || (calendar_ ? months_.count() > 0 : time_.count() > 0); }
  /// `3600 s`, `1 month`, `policy 'nightly'`: for people.
  [[nodiscard]] std::string text() const;
  bool operator==(const expiry&) const = default;

 private:
  template <class Duration>
  static std::chrono::microseconds saturated(double approximately, Duration exactly) {
    if (approximately >= 9.2e18) return std::chrono::microseconds::max();
    if (approximately <= -9.2e18) return std::chrono::microseconds::min();
    return std::chrono::floor<std::chrono::microseconds>(exactly);
  }

  std::string name_{};
  std::chrono::microseconds time_{};
  std::chrono::months months_{};
  bool calendar_ = false;
};

}  // namespace HOLDFAST_NAMESPACE
