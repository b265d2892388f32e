#include "serve/api/endpoint_table.hpp"

#include <holdfast/error.hpp>

#include <simdjson.h>

#include <algorithm>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

[[noreturn]] void refuse_row(const endpoint& row, const std::string& reason) {
  throw error(errc::internal, "the endpoint " + std::string(row.method) + " " +
                                  std::string(row.path) + " " + reason);
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

void check_path(const endpoint& row) {
  if (!row.path.starts_with('/')) refuse_row(row, "has a path without a slash at its beginning");
  std::vector<std::string_view> names;
  for (const auto segment : split_path(row.path)) {
    const auto name = parameter_of(segment);
    if (!is_name(name.empty() ? segment : name))
      refuse_row(row, "has the segment '" + std::string(segment) + "', which is not a name");
    if (name.empty()) continue;
    if (std::ranges::find(names, name) != names.end())
      refuse_row(row, "has the parameter " + std::string(name) + " twice");
    names.push_back(name);
  }
}

void check_scope(const endpoint& row) {
  const auto segments = split_path(row.path);
  auto rest = row.scope;
  for (auto begin = rest.find('{'); begin != std::string_view::npos; begin = rest.find('{')) {
    const auto end = std::min(rest.find('}', begin), rest.size() - 1);
    const auto parameter = rest.substr(begin, end + 1 - begin);
    if (std::ranges::find(segments, parameter) == segments.end())
      refuse_row(row, "has a scope with " + std::string(parameter) + ", which its path has not");
    rest.remove_prefix(end + 1);
  }
}

void check_schema(const endpoint& row, std::string_view schema) {
  if (schema.empty()) return;
  simdjson::dom::parser parser;
  simdjson::dom::element parsed;
  const auto status = parser.parse(simdjson::padded_string(schema)).get(parsed);
  if (status != simdjson::SUCCESS || !(parsed.is_object() || parsed.is_bool()))
    refuse_row(row, "has a schema that is not a JSON object");
}

/// Paths with parameters of other names are the same path.
bool is_same_path(std::string_view a, std::string_view b) {
  return std::ranges::equal(split_path(a), split_path(b),
                            [](std::string_view first, std::string_view second) {
                              const bool is_parameter = !parameter_of(first).empty();
                              return is_parameter ? !parameter_of(second).empty() : first == second;
                            });
}

}  // namespace

std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.empty()) return segments;
  for (;;) {
    const auto slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

std::string_view parameter_of(std::string_view segment) noexcept {
  const bool is_parameter = segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
  return is_parameter ? segment.substr(1, segment.size() - 2) : std::string_view{};
}

void endpoint_table::add(endpoint row) {
  check_path(row);
  check_scope(row);
  check_schema(row, row.request_schema);
  check_schema(row, row.response_schema);
  if (row.method.empty() || row.method == "HEAD" || row.method == "OPTIONS")
    refuse_row(row, "has a method that the dispatcher answers itself");
  if (static_cast<bool>(row.answer) == static_cast<bool>(row.start))
    refuse_row(row, "needs one of answer and start");
  if (row.statuses.empty()) refuse_row(row, "names no status");
  if (row.accepts.empty() && !row.request_schema.empty())
    refuse_row(row, "has a schema for content that it does not accept");
  for (const auto& other : rows_) {
    if (!is_same_path(other.path, row.path)) continue;
    if (other.path != row.path)
      refuse_row(row, "has other names of parameters than " + std::string(other.path));
    if (other.method == row.method) refuse_row(row, "is in the table twice");
  }
  rows_.push_back(std::move(row));
}

std::size_t endpoint_table::max_body() const noexcept {
  std::size_t most = 0;
  for (const auto& row : rows_) {
    if (!row.accepts.empty()) most = std::max(most, row.max_body);
  }
  return most;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
