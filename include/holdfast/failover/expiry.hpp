#pragma once

/// \file
/// How long an answer may be served: a duration, calendar months or years, or a named policy.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace HOLDFAST_NAMESPACE {

/// The input of an expiry policy.
struct expiry_request {
  std::string_view point;                     ///< name of the point
  timestamp now;                              ///< start of the call
  std::optional<std::string_view> payload{};  ///< encoded value; empty for a tombstone
};
/// Returns the last moment at which the answer may be served. If it throws or returns a moment in
/// the past, the answer is not stored.
using expiry_policy = std::function<timestamp(const expiry_request&)>;
using expiry_policies = std::map<std::string, expiry_policy, std::less<>>;

/// When an answer expires. `24h` is a duration. `std::chrono::months(1)` and `years(1)` follow the
/// calendar in UTC; a day that the month does not have becomes its last day: one month after
/// January 31 is the end of February.
/// Thread-safety: immutable.
class HOLDFAST_API expiry {
 public:
  /// One hour.
  expiry() : expiry(std::chrono::hours(1)) {}
  /// Not accepted: a number has no unit.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  expiry(Number /*without_unit*/) {  // NOLINT(google-explicit-constructor)
    static_assert(!std::is_arithmetic_v<Number>,
                  "holdfast: an expiry needs a unit; write 24h or std::chrono::hours(24)");
  }
  template <class Rep, class Period>
  expiry(std::chrono::duration<Rep, Period>
             time)  // NOLINT(google-explicit-constructor): `.expiry = 24h`
      : time_(saturated(std::chrono::duration<double, std::micro>(time).count(), time)) {}
  expiry(std::chrono::months calendar)
      : months_(calendar), calendar_(true) {}  // NOLINT(google-explicit-constructor)
  expiry(std::chrono::years calendar)
      : months_(calendar.count() * 12), calendar_(true) {}  // NOLINT(google-explicit-constructor)
  /// The policy of this name in engine_options::expiry_policies.
  [[nodiscard]] static expiry named(std::string policy);

  /// Name of the policy; empty for durations and calendar expiries.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Last moment at which an answer of `now` may be served, at most timestamp::max(). Not for named
  /// policies.
  [[nodiscard]] timestamp after(timestamp now) const noexcept;
  /// True for named policies and for a time greater than zero.
  [[nodiscard]] bool positive() const noexcept {
    return !name_.empty() || (calendar_ ? months_.count() > 0 : time_.count() > 0);
  }
  /// For logs and messages: `3600 s`, `1 month`, `policy 'nightly'`.
  [[nodiscard]] std::string text() const;
  bool operator==(const expiry&) const = default;

 private:
  template <class Duration>
  static std::chrono::microseconds saturated(double approximate, Duration exact) {
    if (approximate >= 9.2e18) return std::chrono::microseconds::max();
    if (approximate <= -9.2e18) return std::chrono::microseconds::min();
    return std::chrono::floor<std::chrono::microseconds>(exact);
  }

  std::string name_{};
  std::chrono::microseconds time_{};
  std::chrono::months months_{};
  bool calendar_ = false;
};

}  // namespace HOLDFAST_NAMESPACE
