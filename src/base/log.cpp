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

log_limiter::log_limiter(options settings) : options_(std::move(settings)) {
  if (!options_.clock) options_.clock = system_clock();
}

/// The table has at most `options_.ids` slots. When it is full, a new id takes over a slot whose
/// period has passed, or shares `overflow_`.
log_limiter::slot& log_limiter::slot_of(std::string_view id,
                                        std::chrono::steady_clock::time_point now) {
  const auto match =
      std::find_if(slots_.begin(), slots_.end(), [&](const slot& s) { return s.id == id; });
  if (match != slots_.end()) return *match;
  if (slots_.size() < options_.ids) return slots_.emplace_back(slot{.id = std::string(id)});
  const auto idle = std::find_if(slots_.begin(), slots_.end(), [&](const slot& s) {
    return s.suppressed == 0 && now - s.last_admitted >= options_.period;
  });
  if (idle == slots_.end()) return overflow_;
  *idle = slot{.id = std::string(id)};
  return *idle;
}

std::optional<std::uint64_t> log_limiter::admit(std::string_view id) {
  const auto now = options_.clock->steady();
  const std::scoped_lock lock(mutex_);
  slot& limit = slot_of(id, now);
  if (limit.used && now - limit.last_admitted < options_.period) {
    ++limit.suppressed;
    return std::nullopt;
  }
  limit.used = true;
  limit.last_admitted = now;
  return std::exchange(limit.suppressed, 0);
}

logger::logger(log_sink sink, log_limiter::options limits)
    : sink_(std::move(sink)), limiter_(std::move(limits)) {}

logger::~logger() = default;

void logger::write(log_level level, std::string_view message,
                   std::span<const log_field> fields) const noexcept {
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
    const auto suppressed = limiter_.admit(id);
    if (!suppressed) return;
    if (*suppressed == 0) return write(level, message, fields);
    std::vector<log_field> all_fields(fields.begin(), fields.end());
    const std::string count = std::to_string(*suppressed);
    all_fields.push_back({.name = "suppressed", .value = count});
    write(level, message, all_fields);
  } catch (...) {
    failures_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace HOLDFAST_NAMESPACE
