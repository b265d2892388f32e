#include "serve/api/event_filter.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

bool matches_pattern(std::string_view text, std::string_view pattern) noexcept {
  if (!pattern.ends_with('*')) return text == pattern;
  pattern.remove_suffix(1);
  return text.starts_with(pattern);
}

bool is_parked(const outbox_record& record) noexcept {
  return record.state == event_state::parked || record.state == event_state::blocking;
}

}  // namespace

bool event_filter::matches(const outbox_record& record) const {
  const auto& details = record.details;
  if (type && !matches_pattern(details.event.type, *type)) return false;
  if (key && details.event.key != *key) return false;
  if (error && !matches_pattern(details.last_error, *error)) return false;
  const auto since = is_parked(record) && record.until ? *record.until : details.created_at;
  return !before || since <= *before;
}

std::vector<query_parameter> filter_parameters() {
  return {{"type", parameter_type::text, "Type of the events; order.* for its beginning"},
          {"key", parameter_type::text, "Key of the events"},
          {"error", parameter_type::text, "Text of the last error; with * its beginning"},
          {"olderThan", parameter_type::duration,
           "Only events that were parked, or published, before this long"}};
}

event_filter read_filter(const api_request& request, timestamp now) {
  event_filter filter{
      .type = request.query("type"), .key = request.query("key"), .error = request.query("error")};
  if (const auto age = request.query_duration("olderThan")) filter.before = now - *age;
  return filter;
}

event_filter read_filter(json_object& object, timestamp now) {
  event_filter filter{
      .type = object.text("type"), .key = object.text("key"), .error = object.text("error")};
  if (const auto age = object.duration("olderThan")) filter.before = now - *age;
  object.finish();
  return filter;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
