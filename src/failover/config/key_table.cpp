#include "failover/config/key_table.hpp"

#include "base/edit_distance.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

namespace {

constexpr std::size_t longest_compared = 128;  // bounds the cost of the comparison

/// Removes the first segment of a name and returns it.
std::string_view take_segment(std::string_view& name) noexcept {
  const auto dot = std::min(name.find('.'), name.size());
  const auto segment = name.substr(0, dot);
  name.remove_prefix(std::min(dot + 1, name.size()));
  return segment;
}

/// Removes the segments of a path from the beginning of a name. Returns false if they differ.
bool skip_path(std::string_view& name, const key_path& path) noexcept {
  return std::ranges::all_of(path, [&](const std::string& segment) {
    if (name.empty()) return false;
    const auto expected = take_segment(name);
    return expected == "*" || expected == segment;
  });
}

}  // namespace

bool is_name_of(std::string_view name, const key_path& path) noexcept {
  return skip_path(name, path) && name.empty();
}

bool is_name_below(std::string_view name, const key_path& path) noexcept {
  return skip_path(name, path);
}

std::string with_segments(std::string_view name, const key_path& path) {
  std::string text;
  for (std::size_t position = 0; !name.empty(); ++position) {
    const auto segment = take_segment(name);
    if (position != 0) text.push_back('.');
    if (segment == "*" && position < path.size())
      text.append(dotted({path[position]}), 0, longest_compared);
    else text.append(segment);
  }
  return text;
}

std::size_t distance_of(std::string_view name, const key_path& path) {
  return edit_distance(dotted(path).substr(0, longest_compared), name);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
