#include "http/conditional.hpp"

#include "http/date.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

constexpr std::size_t max_ranges = 16;

/// Returns true if a list of tags, or `*`, matches. An ill-formed element matches nothing.
template <class Matches>
bool list_matches(const fields& request, std::string_view name,
                  const std::optional<validators>& current, Matches matches) {
  bool any = false;
  request.for_each(name, [&](std::string_view value) {
    if (!current) return;
    if (value == "*") {
      any = true;
      return;
    }
    if (!current->tag) return;
    for_each_element(value, [&](std::string_view element) {
      const auto tag = parse_entity_tag(element);
      if (tag && matches(*tag, *current->tag)) any = true;
    });
  });
  return any;
}

/// Returns the date of a field that occurs once.
std::optional<std::chrono::sys_seconds> date_field(const fields& request, std::string_view name,
                                                   std::chrono::sys_seconds now) {
  const auto value = request.find(name);
  if (!value || request.count(name) != 1) return std::nullopt;
  return parse_date(*value, now);
}

bool if_range_matches(const fields& request, const validators& current,
                      std::chrono::sys_seconds now) {
  const auto condition = request.find("if-range");
  if (!condition) return true;
  if (request.count("if-range") != 1) return false;
  if (const auto tag = parse_entity_tag(*condition))
    return current.tag && matches_strongly(*tag, *current.tag);
  const auto date = parse_date(*condition, now);
  return date && current.last_modified && *date == *current.last_modified;
}

enum class part_status : std::uint8_t { usable, beyond_end, ill_formed };

/// Reads `0-4`, `5-` or `-3`.
part_status read_part(std::string_view part, std::uint64_t size, byte_range& result) {
  const auto dash = part.find('-');
  if (dash == std::string_view::npos) return part_status::ill_formed;
  const auto begin = part.substr(0, dash);
  const auto end = part.substr(dash + 1);
  if (begin.empty()) {
    const auto suffix = parse_digits(end);
    if (!suffix) return part_status::ill_formed;
    if (*suffix == 0 || size == 0) return part_status::beyond_end;
    result = {size - std::min(*suffix, size), size - 1};
    return part_status::usable;
  }
  const auto first = parse_digits(begin);
  const auto last = end.empty() ? std::optional(~std::uint64_t{0}) : parse_digits(end);
  if (!first || !last || *last < *first) return part_status::ill_formed;
  if (*first >= size) return part_status::beyond_end;
  result = {*first, std::min(*last, size - 1)};
  return part_status::usable;
}

}  // namespace

std::optional<entity_tag> parse_entity_tag(std::string_view text) noexcept {
  entity_tag tag;
  if (text.starts_with("W/")) {
    tag.weak = true;
    text.remove_prefix(2);
  }
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  for (const char c : text.substr(1, text.size() - 2)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == '"' || byte == 0x7F) return std::nullopt;
  }
  tag.opaque = text;
  return tag;
}

bool matches_strongly(const entity_tag& a, const entity_tag& b) noexcept {
  return !a.weak && !b.weak && a.opaque == b.opaque;
}

bool matches_weakly(const entity_tag& a, const entity_tag& b) noexcept {
  return a.opaque == b.opaque;
}

precondition evaluate(std::string_view method, const fields& request,
                      const std::optional<validators>& current, std::chrono::sys_seconds now) {
  if (request.find("if-match")) {
    if (!list_matches(request, "if-match", current, matches_strongly)) return precondition::failed;
  } else if (const auto limit = date_field(request, "if-unmodified-since", now)) {
    if (current && current->last_modified && *current->last_modified > *limit)
      return precondition::failed;
  }
  const bool reads = method == "GET" || method == "HEAD";
  if (request.find("if-none-match")) {
    if (list_matches(request, "if-none-match", current, matches_weakly))
      return reads ? precondition::not_modified : precondition::failed;
  } else if (reads && current && current->last_modified) {
    const auto since = date_field(request, "if-modified-since", now);
    if (since && *current->last_modified <= *since) return precondition::not_modified;
  }
  return precondition::proceed;
}

range_request read_range(std::string_view method, const fields& request, const validators& current,
                         std::uint64_t size, std::chrono::sys_seconds now) {
  const auto value = request.find("range");
  constexpr std::string_view unit = "bytes=";
  if (method != "GET" || !value || request.count("range") != 1 ||
      !equals_ignoring_case(value->substr(0, unit.size()), unit) ||
      !if_range_matches(request, current, now))
    return {};
  range_request result;
  std::size_t parts = 0;
  bool ill_formed = false;
  for_each_element(value->substr(unit.size()), [&](std::string_view part) {
    byte_range range;
    const auto status = read_part(part, size, range);
    if (++parts > max_ranges || status == part_status::ill_formed) ill_formed = true;
    else if (status == part_status::usable) result.ranges.push_back(range);
  });
  if (ill_formed || parts == 0) return {};
  result.status = result.ranges.empty() ? range_status::unsatisfiable : range_status::partial;
  return result;
}

std::string content_range(const byte_range& range, std::uint64_t size) {
  return "bytes " + std::to_string(range.first) + '-' + std::to_string(range.last) + '/' +
         std::to_string(size);
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
