#pragma once

#include <holdfast/version.hpp>

#include <bitset>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// The longest sleep until a moment of the wall clock: the clock may be set meanwhile, so it is looked at again.
constexpr std::chrono::seconds longest_sleep_until_wall_time{60};

/// A cron expression of six fields, as Spring reads it, in UTC: second, minute, hour, day of month, month, day of week. A moment matches
/// when all six do (also both days: `0 0 0 13 * FRI` is Friday the 13th).
///
/// Each field: `*`, a number, a range `a-b`, a step `a-b/n`, `a/n` (from a on), `*/n`, and lists of these. Months and days also by name
/// (JAN, MON; any case); Sunday is 0 or 7. `?` is `*` for the two fields of days. Day of month: `L` is the last, `L-3` three before it. Day of
/// week: `FRIL` or `5L` is the last Friday of a month. Macros: @yearly @annually @monthly @weekly @daily @midnight @hourly.
///
/// Thread-safety: immutable after construction.
class HOLDFAST_API cron {
 public:
  /// Throws errc::invalid_argument: one line that names the field. Also for dates that never come, such as 30 February.
  [[nodiscard]] static cron parse(std::string_view expression);

  /// The first match after that moment, and never that moment itself. Nothing when there is none in the next 40 years.
  [[nodiscard]] std::optional<std::chrono::sys_seconds> next(std::chrono::sys_seconds after) const;

  /// As it was given.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  cron() = default;
  [[nodiscard]] bool matches(std::chrono::sys_days day, const std::chrono::year_month_day& date) const;
  [[nodiscard]] std::optional<std::chrono::seconds> next_time(std::chrono::seconds from) const;

  std::string text_{};
  std::bitset<60> seconds_{};
  std::bitset<60> minutes_{};
  std::bitset<24> hours_{};
  std::bitset<32> days_{};       // 1 to 31
  std::bitset<31> from_last_{};  // 0 is the last day of the month, 3 the third before it
  std::bitset<13> months_{};     // 1 to 12
  std::bitset<7> weekdays_{};    // 0 is Sunday
  std::bitset<7> last_weekdays_{};
};

}  // namespace HOLDFAST_NAMESPACE
