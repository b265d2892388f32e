#pragma once

/// \file
/// Cron expressions with six fields, in UTC.

#include <holdfast/version.hpp>

#include <bitset>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// The longest sleep until a time of the wall clock. The clock may be set in the meantime, so the
/// sleeper must read it again.
constexpr std::chrono::seconds longest_sleep_until_wall_time{60};

/// A cron expression in the syntax of Spring, in UTC. It has six fields: second, minute, hour, day
/// of month, month, day of week. A time matches if all six fields match: `0 0 0 13 * FRI` is Friday
/// the 13th.
///
/// | field | syntax |
/// | --- | --- |
/// | all | `*`, a number, a range `a-b`, a step `a-b/n`, `a/n` (from a on), `*/n`, lists of these |
/// | month, day of week | also names (JAN, MON; any case); Sunday is 0 or 7 |
/// | day of month | also `?` for `*`, `L` for the last day, `L-3` for the third day before it |
/// | day of week | also `?` for `*`, `FRIL` or `5L` for the last Friday of a month |
///
/// Macros replace all fields: @yearly @annually @monthly @weekly @daily @midnight @hourly.
///
/// Thread-safety: immutable after construction.
class HOLDFAST_API cron {
 public:
  /// Throws errc::invalid_argument if the expression is invalid or never matches, such as 30
  /// February. The message is one line and names the field.
  [[nodiscard]] static cron parse(std::string_view expression);

  /// The first match later than `after`, or nullopt if there is none in the next 40 years.
  [[nodiscard]] std::optional<std::chrono::sys_seconds> next(std::chrono::sys_seconds after) const;

  /// Whether it matches in every hour of a day, as `0 */10 * * * *` does.
  [[nodiscard]] bool matches_every_hour() const noexcept { return hours_.count() == 24; }

  /// The expression that was parsed.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  cron() = default;
  [[nodiscard]] bool matches(std::chrono::sys_days day,
                             const std::chrono::year_month_day& date) const;
  [[nodiscard]] std::optional<std::chrono::seconds> next_time(std::chrono::seconds start) const;

  std::string text_{};
  std::bitset<60> seconds_{};
  std::bitset<60> minutes_{};
  std::bitset<24> hours_{};
  std::bitset<32> days_{};       // 1 to 31
  std::bitset<31> from_last_{};  // 0 is the last day of the month, 3 the third day before it
  std::bitset<13> months_{};     // 1 to 12
  std::bitset<7> weekdays_{};    // 0 is Sunday
  std::bitset<7> last_weekdays_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail
