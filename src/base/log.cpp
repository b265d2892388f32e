#include <holdfast/log.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(log_level level) noexcept {
  switch (level) {
    case log_level::debug:
      return "debug";
    case log_level::info:
      return "info";
    case log_level::warning:
      return "warning";
    case log_level::error:
      return "error";
  }
  return "unknown";
}

log_limiter::log_limiter(options how) : how_(std::move(how)) {
  if (!how_.clock) how_.clock = system_clock();
}

/// The table never grows past its limit: an id that may speak again gives its place up, and when none does, the newcomers share one.
log_limiter::place& log_limiter::place_of(std::string_view id, std::chrono::steady_clock::time_point now) {
  const auto known = std::find_if(places_.begin(), places_.end(), [&](const place& one) { return one.id == id; });
  if (known != places_.end()) return *known;
  if (places_.size() < how_.ids) return places_.emplace_back(place{.id = std::string(id)});
  const auto idle =
      std::find_if(places_.begin(), places_.end(), [&](const place& one) { return one.held_back == 0 && now - one.said >= how_.period; });
  if (idle == places_.end()) return others_;
  *idle = place{.id = std::string(id)};
  return *idle;
}

std::optional<std::uint64_t> log_limiter::admit(std::string_view id) {
  const auto now = how_.clock->steady();
  const std::scoped_lock lock(mutex_);
  auto& at = place_of(id, now);
  if (at.used && now - at.said < how_.period) {
    ++at.held_back;
    return std::nullopt;
  }
  at.used = true;
  at.said = now;
  return std::exchange(at.held_back, 0);
}

logger::logger(log_sink sink, log_limiter::options limits) : sink_(std::move(sink)), limiter_(std::move(limits)) {}

logger::~logger() = default;

void logger::write(log_level level, std::string_view message, std::span<const log_field> fields) const noexcept {
  if (!sink_) return;
  try {
    sink_(log_record{.level = level, .message = message, .fields = fields});
  } catch (...) {
    failures_.fetch_add(1, std::memory_order_relaxed);
  }
}

void logger::write_limited(std::string_view id, log_level level, std::string_view message,
                           std::span<const log_field> fields) const noexcept {
  if (!sink_) return;
  try {
    const auto held_back = limiter_.admit(id);
    if (!held_back) return;
    if (*held_back == 0) return write(level, message, fields);
    std::vector<log_field> more(fields.begin(), fields.end());
    const std::string count = std::to_string(*held_back);
    more.push_back({.name = "suppressed", .value = count});
    write(level, message, more);
  } catch (...) {
    failures_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace HOLDFAST_NAMESPACE
