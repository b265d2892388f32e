#include "serve/gateway/answer_builder.hpp"

#include "http/conditional.hpp"
#include "http/date.hpp"
#include "serve/gateway/freshness.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

using std::chrono::seconds;

/// The fields of a 304 (RFC 9110, section 15.4.5), and those of a CDN.
constexpr std::array<std::string_view, 9> not_modified_fields = {
    "cache-control", "content-location", "date", "etag",         "expires",
    "vary",          "set-cookie",       "age",  "last-modified"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(
      names, [&](std::string_view entry) { return http::equals_ignoring_case(entry, name); });
}

http::validators validators_of(const response_fields& fields, timestamp now) {
  http::validators current;
  if (const auto tag = fields.find("etag")) current.tag = http::parse_entity_tag(*tag);
  if (const auto date = fields.find("last-modified"))
    current.last_modified = http::parse_date(*date, std::chrono::floor<seconds>(now));
  return current;
}

std::string via_of(const response_fields& fields) {
  std::string via;
  fields.for_each("via", [&](std::string_view value) { via.append(value).append(", "); });
  return via + "1.1 holdfast";
}

/// Adds the fields that `accept` admits.
template <class Accept>
void add_fields(const response_fields& source, server_response& target, Accept accept) {
  for (const auto& field : source.entries()) {
    if (http::equals_ignoring_case(field.name, "cache-status") ||
        http::equals_ignoring_case(field.name, "via") || !accept(field.name))
      continue;
    if (http::equals_ignoring_case(field.name, "date")) target.has_date = true;
    target.fields.add(field.name, field.value);
  }
  target.fields.add("Via", via_of(source));
}

server_response not_modified(const response_fields& fields, bool with_age) {
  server_response response{.status = 304};
  add_fields(fields, response, [&](std::string_view name) {
    return is_one_of(name, not_modified_fields) &&
           (with_age || !http::equals_ignoring_case(name, "age"));
  });
  return response;
}

server_response whole(const stored_response& kept, const answer_request& request,
                      std::string_view omitted = {}) {
  server_response response{.status = kept.status};
  add_fields(kept.fields, response, [&](std::string_view name) {
    return !http::equals_ignoring_case(name, "age") && !http::equals_ignoring_case(name, omitted);
  });
  if (request.method == "HEAD") response.head_length = kept.content.size();
  else response.body = kept.content;
  return response;
}

server_response content_of(const stored_response& kept, const answer_request& request,
                           timestamp now) {
  const auto seconds_now = std::chrono::floor<seconds>(now);
  const auto current = validators_of(kept.fields, now);
  const auto& asked = request.conditions.fields();
  if (kept.status != 200 || asked.empty()) return whole(kept, request);
  const auto result = http::evaluate(request.method, asked, current, seconds_now);
  if (result == http::precondition::not_modified) return not_modified(kept.fields, false);
  if (result == http::precondition::failed) return {.status = 412};
  const auto range =
      http::read_range(request.method, asked, current, kept.content.size(), seconds_now);
  if (range.status == http::range_status::unsatisfiable) {
    server_response response{.status = 416};
    response.fields.add("Content-Range", "bytes */" + std::to_string(kept.content.size()));
    return response;
  }
  // Several ranges would need a body with parts, which a server may always refuse.
  if (range.status == http::range_status::whole || range.ranges.size() != 1)
    return whole(kept, request);
  const auto& part = range.ranges.front();
  auto response = whole(kept, request, "content-range");
  response.status = 206;
  response.fields.add("Content-Range", http::content_range(part, kept.content.size()));
  response.body = kept.content.substr(static_cast<std::size_t>(part.first),
                                      static_cast<std::size_t>(part.last - part.first + 1));
  return response;
}

}  // namespace

void copy_fields(const response_fields& source, server_response& target) {
  add_fields(source, target, [](std::string_view) { return true; });
}

std::string previous_status(const response_fields& fields) {
  std::string previous;
  fields.for_each("cache-status", [&](std::string_view value) {
    if (!previous.empty()) previous += ", ";
    previous += value;
  });
  return previous;
}

bool is_not_modified(const answer_request& request, int status, const response_fields& fields,
                     timestamp now) {
  const auto& asked = request.conditions.fields();
  if (status != 200 || asked.empty()) return false;
  return http::evaluate(request.method, asked, validators_of(fields, now),
                        std::chrono::floor<seconds>(now)) == http::precondition::not_modified;
}

server_response live_answer(const route& rules, const answer_request& request, int status,
                            const response_fields& fields, std::string content,
                            const http::cache_status& report, timestamp now) {
  server_response response;
  if (is_not_modified(request, status, fields, now)) {
    response = not_modified(fields, true);
  } else {
    response.status = status;
    copy_fields(fields, response);
    response.body = std::move(content);
  }
  add_cache_status(rules, request.address, report, previous_status(fields), response);
  return response;
}

server_response kept_answer(const route& rules, const answer_request& request,
                            const stored_response& kept, const kept_answer_facts& facts,
                            http::cache_status report, timestamp now) {
  auto response = content_of(kept, request, now);
  const auto age = age_at(kept.fields, facts.as_of, now);
  const auto remaining = freshness_lifetime(kept.fields, facts.as_of) - age;
  if (response.status != 412 && response.status != 416)
    response.fields.add("Age", static_cast<std::uint64_t>(age.count()));
  report.time_to_live = remaining.count();
  add_cache_status(rules, request.address, report, previous_status(kept.fields), response);
  response.fields.add("Holdfast-Answer", holdfast_answer_field(facts));
  if (rules.legacy_warning && remaining.count() <= 0)
    response.fields.add("Warning", "111 - \"Revalidation Failed\"");
  return response;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
