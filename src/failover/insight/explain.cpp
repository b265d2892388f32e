// The sentences of a decision and of an outlook.

#include <holdfast/failover/decision.hpp>
#include <holdfast/failover/outlook.hpp>

#include <array>
#include <cstdio>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::microseconds;

/// `23:01:04 UTC`, with the date if it is not that of `today`.
std::string explained_time(timestamp time, timestamp today) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  std::array<char, 64> text{};
  const bool same_day = day == std::chrono::floor<std::chrono::days>(today);
  int length = 0;
  if (!same_day)
    length =
        std::snprintf(text.data(), text.size(), "%04d-%02u-%02u ", static_cast<int>(date.year()),
                      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  (void)std::snprintf(text.data() + length, text.size() - static_cast<std::size_t>(length),
                      "%02d:%02d:%02d UTC", static_cast<int>(clock.hours().count()),
                      static_cast<int>(clock.minutes().count()),
                      static_cast<int>(clock.seconds().count()));
  return text.data();
}

/// The two largest units: `210 ms`, `4 min`, `2 h 58 min`.
std::string explained_duration(microseconds duration) {
  struct unit {
    std::int64_t length;
    const char* name;
  };
  constexpr std::array<unit, 6> units{{{86'400'000'000, " d"},
                                       {3'600'000'000, " h"},
                                       {60'000'000, " min"},
                                       {1'000'000, " s"},
                                       {1000, " ms"},
                                       {1, " us"}}};
  const auto count = duration.count() < 0 ? 0 : duration.count();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto& large = units[i];
    if (count < large.length) continue;
    auto text = std::to_string(count / large.length) + large.name;
    const bool has_second_unit = i < 3;  // not `1 s 200 ms`
    if (!has_second_unit) return text;
    const auto& small = units[i + 1];
    if (const auto rest = count % large.length / small.length; rest != 0)
      text += " " + std::to_string(rest) + small.name;
    return text;
  }
  return "0 ms";
}

std::string explained_attempts(const decision& reported) {
  return reported.attempts > 1
             ? " in the last of " + std::to_string(reported.attempts) + " attempts"
             : "";
}

/// Why the answer is not live.
std::string explained_cause(const decision& reported) {
  switch (reported.cause) {
    case cause_code::failed:
      return "the upstream failed " +
             (reported.exception_type.empty() ? std::string()
                                              : "with " + reported.exception_type + " ") +
             "after " + explained_duration(reported.waited) + explained_attempts(reported);
    case cause_code::late:
      return "the upstream had not answered after " + explained_duration(reported.waited);
    case cause_code::refused:
      if (reported.breaker == breaker_state::open)
        return "the upstream was not asked: the breaker is open";
      if (reported.breaker == breaker_state::half_open)
        return "the upstream was not asked: the breaker tries it with other calls";
      return "the upstream was not asked: too many calls were running";
    case cause_code::fresh:
      return "it is younger than the soft expiry";
    case cause_code::refreshing:
      return "the point has a soft expiry; a refresh was started";
    case cause_code::drill:
      return "a drill rehearses an outage of the upstream";
    case cause_code::none:
    case cause_code::abandoned:
      break;
  }
  return "the call did not end with an answer";
}

/// Why no kept answer was served.
std::string explained_miss(const decision& reported) {
  const auto kept = reported.as_of
                        ? "the kept answer of " + explained_time(*reported.as_of, reported.time)
                        : std::string("the kept answer");
  switch (reported.miss) {
    case miss_reason::none:
      return "no kept answer was looked for";
    case miss_reason::no_key:
      return "the call has no key, so no answer is kept for it";
    case miss_reason::not_found:
      if (reported.as_of)
        return "a tombstone of " + explained_time(*reported.as_of, reported.time) +
               " says that there is no answer";
      return "no answer is kept for it";
    case miss_reason::expired:
      if (!reported.expires) return kept + " has expired";
      return kept + " expired at " + explained_time(*reported.expires, reported.time) + ", " +
             explained_duration(reported.time - *reported.expires) + " earlier";
    case miss_reason::not_allowed:
      return kept + " has a payload class that is not allowed here";
    case miss_reason::undecodable:
      return kept + " cannot be decoded";
    case miss_reason::older:
      return kept + " is older than one that was served before";
    case miss_reason::read_failed:
      return "the store could not be read";
    case miss_reason::read_late:
      return "the store did not answer in time";
  }
  return {};
}

std::string explained_service(const decision& reported) {
  std::string text = "Served the answer";
  if (reported.as_of)
    text += " of " + explained_time(*reported.as_of, reported.time) + " (" +
            explained_duration(reported.time - *reported.as_of) + " old)";
  text += reported.rule == decision_rule::soft_expiry ? " without asking the upstream, because "
                                                      : " because ";
  text += explained_cause(reported);
  if (reported.expires)
    text += "; it may be served until " + explained_time(*reported.expires, reported.time);
  return text + ".";
}

}  // namespace

std::string explain(const point_outlook& outlook) {
  if (!outlook.covered) {
    if (outlook.entries == 0) return "No calls are known, and no answer is kept.";
    return "No calls of the last hour are known; " +
           std::string(outlook.entries_at_least ? "at least " : "") +
           std::to_string(outlook.entries) + " answers are kept.";
  }
  // Rounded down: 99.9 % are not all.
  auto covered = "Of the calls of the last hour " +
                 std::to_string(static_cast<int>(*outlook.covered * 100 + 1e-9)) +
                 " % are covered now.";
  if (!outlook.first || !outlook.half || !outlook.most) return covered;
  const auto time_to = [&](timestamp time) { return explained_duration(time - outlook.time); };
  return "If the upstream stays down, the first answers expire in " + time_to(*outlook.first) +
         ", half of them in " + time_to(*outlook.half) + ", 90 % in " + time_to(*outlook.most) +
         ". " + covered;
}

std::string explain(const decision& reported) {
  switch (reported.rule) {
    case decision_rule::live:
      return "The upstream answered after " + explained_duration(reported.duration) + ".";
    case decision_rule::recovered:
    case decision_rule::soft_expiry:
    case decision_rule::drilled:
      return explained_service(reported);
    case decision_rule::substituted:
      return "Served a substitute because " + explained_cause(reported) + ", and " +
             explained_miss(reported) + ".";
    case decision_rule::passed:
      return "Nothing was served because " + explained_cause(reported) +
             ", and the failure rules pass this exception to the caller.";
    case decision_rule::invalidated:
      return "Nothing was served because " + explained_cause(reported) +
             ", and by the failure rules this exception says that the answer no longer exists.";
    case decision_rule::unserved:
      return "Nothing was served because " + explained_cause(reported) + ", and " +
             explained_miss(reported) + ".";
  }
  return {};
}

}  // namespace HOLDFAST_NAMESPACE
