#include "serve/gateway/revalidation.hpp"

#include "http/conditional.hpp"
#include "serve/gateway/keep_rules.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

/// With these a client asks for something else than the whole.
constexpr std::array<std::string_view, 4> partial_conditions = {"range", "if-range", "if-match",
                                                                "if-unmodified-since"};
/// They describe one answer, not the content.
constexpr std::array<std::string_view, 4> fields_of_one_answer = {"age", "cache-status", "via",
                                                                  "warning"};
/// They describe the content that is kept, which a 304 does not replace.
constexpr std::array<std::string_view, 7> fields_of_content = {
    "content-encoding", "content-range", "content-length", "content-md5",
    "content-digest",   "repr-digest",   "digest"};

bool has_name(std::string_view name, const auto& names) {
  return std::ranges::any_of(
      names, [&](std::string_view entry) { return http::equals_ignoring_case(entry, name); });
}

}  // namespace

bool is_confirmable(const route& rules, const gateway_request& request,
                    const stored_response& kept) {
  if (!kept.invalid.empty() || kept.status != 200) return false;
  if (!kept.fields.has("etag") && !kept.fields.has("last-modified")) return false;
  if (request.method != "GET" || request.facts.directives.no_store) return false;
  const auto& conditions = request.conditions.fields();
  if (std::ranges::any_of(partial_conditions,
                          [&](std::string_view name) { return conditions.find(name).has_value(); }))
    return false;
  return unkeyed_credential(rules, request.facts, kept.fields.cache_control()).empty();
}

void add_validators(const response_fields& kept, http::field_block& request) {
  if (const auto tag = kept.find("etag")) request.add("If-None-Match", *tag);
  if (const auto date = kept.find("last-modified")) request.add("If-Modified-Since", *date);
}

bool is_about(const response_fields& update, const response_fields& kept) {
  const auto text = update.find("etag");
  if (!text) return true;
  const auto current = http::parse_entity_tag(*text);
  const auto kept_text = kept.find("etag");
  const auto kept_tag = kept_text ? http::parse_entity_tag(*kept_text) : std::nullopt;
  return current && kept_tag && http::matches_weakly(*current, *kept_tag);
}

response_fields merge_fields(const response_fields& kept, const response_fields& update) {
  response_fields merged;
  const auto is_replaced = [&](std::string_view name) {
    return has_name(name, fields_of_one_answer) ||
           (update.has(name) && !has_name(name, fields_of_content));
  };
  for (const auto& field : kept.entries()) {
    if (!is_replaced(field.name)) merged.add(field.name, field.value);
  }
  for (const auto& field : update.entries()) {
    if (!has_name(field.name, fields_of_content)) merged.add(field.name, field.value);
  }
  return merged;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
