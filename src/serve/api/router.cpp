#include "serve/api/router.hpp"

#include <holdfast/error.hpp>

#include "base/utf8.hpp"

#include <algorithm>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

std::string decode_parameter(std::string_view name, std::string_view segment) {
  auto value = http::percent_decode(segment);
  if (!value || !is_utf8(*value))
    throw error(errc::ill_formed_text, "must be UTF-8, percent-encoded",
                {.path = std::string(name)});
  return *std::move(value);
}

std::string join_methods(const std::set<std::string_view>& methods) {
  std::string text;
  for (const auto method : methods) text.append(text.empty() ? "" : ", ").append(method);
  return text;
}

}  // namespace

struct router::search {
  std::string_view method;
  std::vector<std::string_view> segments;
  const endpoint* row = nullptr;
  std::set<std::string_view> allowed{};
};

router::router(const endpoint_table& table) {
  for (const auto& row : table.rows()) {
    node* place = &root_;
    for (const auto segment : split_path(row.path)) {
      const bool is_parameter = !parameter_of(segment).empty();
      auto& child = is_parameter ? place->parameter : place->children[std::string(segment)];
      if (!child) child = std::make_unique<node>();
      place = child.get();
    }
    place->rows.push_back(&row);
  }
}

/// The depth is limited by that of the table.
void router::visit(const node& place, std::size_t depth, search& state) {
  if (depth == state.segments.size()) {
    for (const auto* row : place.rows) {
      state.allowed.insert(row->method);
      if (row->method == state.method && state.row == nullptr) state.row = row;
    }
    return;
  }
  const auto segment = state.segments[depth];
  const auto child = place.children.find(segment);
  if (child != place.children.end()) visit(*child->second, depth + 1, state);
  // A parameter is never empty.
  if (state.row == nullptr && place.parameter && !segment.empty())
    visit(*place.parameter, depth + 1, state);
}

route router::find(std::string_view method, std::string_view path) const {
  const bool is_head = method == "HEAD";
  search state{.method = is_head ? "GET" : method, .segments = split_path(path)};
  visit(root_, 0, state);
  if (is_head && state.row != nullptr && state.row->start) state.row = nullptr;
  route result{.row = state.row};
  if (!state.allowed.empty()) {
    if (state.allowed.contains("GET")) state.allowed.insert("HEAD");
    state.allowed.insert("OPTIONS");
    result.allowed = join_methods(state.allowed);
  }
  if (result.row == nullptr) return result;
  const auto names = split_path(result.row->path);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = parameter_of(names[i]);
    if (!name.empty())
      result.parameters.emplace_back(name, decode_parameter(name, state.segments[i]));
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
