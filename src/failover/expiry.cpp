#include <holdfast/failover/expiry.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::days;
using std::chrono::microseconds;

/// The calendar of <chrono> ends in the year 32767; beyond that an answer never expires.
constexpr std::chrono::year last_year{32767};

timestamp after_months(timestamp now, std::chrono::months months) noexcept {
  const auto day = std::chrono::floor<days>(now);
  const std::chrono::year_month_day from(day);
  const auto in_months = static_cast<long long>(static_cast<int>(from.year())) * 12 + static_cast<unsigned>(from.month()) - 1 +
                         static_cast<long long>(months.count());
  if (in_months / 12 >= static_cast<int>(last_year)) return timestamp::max();
  const auto to = std::chrono::year(static_cast<int>(in_months / 12)) / static_cast<int>(in_months % 12 + 1) / from.day();
  const auto clamped = to.ok() ? std::chrono::sys_days(to) : std::chrono::sys_days(to.year() / to.month() / std::chrono::last);
  return clamped + (now - day);
}

std::string counted(long long count, const char* unit) { return std::to_string(count) + " " + unit + (count == 1 ? "" : "s"); }

}  // namespace

expiry expiry::named(std::string policy) {
  expiry made;
  made.time_ = {};
  made.name_ = std::move(policy);
  return made;
}

timestamp expiry::after(timestamp now) const noexcept {
  if (calendar_) return after_months(now, months_);
  return time_ >= timestamp::max() - now ? timestamp::max() : now + time_;
}

std::string expiry::text() const {
  if (!name_.empty()) return "policy '" + name_ + "'";
  if (calendar_) {
    return months_.count() % 12 == 0 ? counted(months_.count() / 12, "year") : counted(months_.count(), "month");
  }
  if (time_ % std::chrono::seconds(1) == microseconds::zero()) return std::to_string(time_ / std::chrono::seconds(1)) + " s";
  return std::to_string(time_.count()) + " us";
}

}  // namespace HOLDFAST_NAMESPACE
