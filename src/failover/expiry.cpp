#include <holdfast/failover/expiry.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::days;
using std::chrono::microseconds;

/// The last year of the <chrono> calendar. An answer that expires later never expires.
constexpr std::chrono::year last_year{32767};

timestamp after_months(timestamp now, std::chrono::months months) noexcept {
  const auto day = std::chrono::floor<days>(now);
  const std::chrono::year_month_day start(day);
  const auto total_months = static_cast<long long>(static_cast<int>(start.year())) * 12 +
                            static_cast<unsigned>(start.month()) - 1 +
                            static_cast<long long>(months.count());
  if (total_months / 12 >= static_cast<int>(last_year)) return timestamp::max();
  const auto target = std::chrono::year(static_cast<int>(total_months / 12)) /
                      static_cast<int>(total_months % 12 + 1) / start.day();
  const auto clamped =
      target.ok() ? std::chrono::sys_days(target)
                  : std::chrono::sys_days(target.year() / target.month() / std::chrono::last);
  return clamped + (now - day);
}

std::string counted(long long count, const char* unit) {
  return std::to_string(count) + " " + unit + (count == 1 ? "" : "s");
}

}  // namespace

expiry expiry::named(std::string policy) {
  expiry result;
  result.time_ = {};
  result.name_ = std::move(policy);
  return result;
}

timestamp expiry::after(timestamp now) const noexcept {
  if (calendar_) return after_months(now, months_);
  return time_ >= timestamp::max() - now ? timestamp::max() : now + time_;
}

std::string expiry::text() const {
  if (!name_.empty()) return "policy '" + name_ + "'";
  if (calendar_) {
    return months_.count() % 12 == 0 ? counted(months_.count() / 12, "year")
                                     : counted(months_.count(), "month");
  }
  if (time_ % std::chrono::seconds(1) == microseconds::zero())
    return std::to_string(time_ / std::chrono::seconds(1)) + " s";
  return std::to_string(time_.count()) + " us";
}

}  // namespace HOLDFAST_NAMESPACE
