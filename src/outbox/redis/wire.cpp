#include "outbox/redis/wire.hpp"

#include "outbox/entry.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

void add_quota(redis::command& command, const outbox_quota& quota) {
  command.arg(quota.events).arg(quota.bytes).arg(quota.overdue.count());
}

void add_event(redis::command& command, const event& event) {
  command.arg(event.id).arg(event.key).arg(event.delay.count()).arg(entry_body(event));
}

std::int64_t read_number(std::string_view text) {
  if (const auto number = parse_whole<std::int64_t>(text)) return *number;
  constexpr double limit = 9e18;
  if (const auto number = parse_whole<double>(text); number && !std::isnan(*number))
    return static_cast<std::int64_t>(std::clamp(*number, -limit, limit));
  throw error(errc::malformed, "Redis replied '" + std::string(text.substr(0, 40)) +
                                   "' where a number was expected");
}

std::int64_t read_number(const redis::reply& reply) {
  return reply.is_integer() ? reply.integer() : read_number(std::string_view(reply.text()));
}

timestamp read_timestamp(std::string_view text) {
  constexpr std::int64_t last_timestamp_ms = 253'402'300'799'999;
  return timestamp(std::chrono::milliseconds(
      std::clamp<std::int64_t>(read_number(text), -last_timestamp_ms, last_timestamp_ms)));
}

std::optional<std::chrono::milliseconds> read_duration(const redis::reply& reply) {
  if (reply.is_text() && reply.text().empty()) return std::nullopt;
  return std::chrono::milliseconds(read_number(reply));
}

std::vector<bool> read_flags(const redis::reply& reply) {
  std::vector<bool> flags;
  for (const char flag : reply.text()) flags.push_back(flag == '1');
  return flags;
}

std::vector<receipt> read_receipts(std::span<const event> events, const redis::reply& flags) {
  const auto added = read_flags(flags);
  std::vector<receipt> receipts;
  receipts.reserve(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    receipts.push_back({.id = events[i].id,
                        .status = added.at(i) ? publish_status::added : publish_status::duplicate});
  }
  return receipts;
}

bool is_over_quota(const redis::reply::list& parts) { return parts.at(0).text() == "full"; }

error quota_error(const redis::reply::list& parts) {
  const auto& quota = parts.at(1).text();
  const auto& used = parts.at(2).text();
  const auto& limit = parts.at(3).text();
  const std::string message =
      quota == "overdue"
          ? "the outbox is behind: an event is overdue by " + used + " ms of " + limit
          : "the outbox is full: " + used + ' ' + quota + " of " + limit;
  return {errc::too_large, message, {.transient = true}};
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
