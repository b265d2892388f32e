#pragma once

/// \file
/// How a path finds its key in a table of known keys. A key is a structure with the member `name`,
/// in which `*` stands for any segment.

#include "failover/config/keys.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

/// Whether the name of a key is equal to this path.
[[nodiscard]] HOLDFAST_API bool is_name_of(std::string_view name, const key_path& path) noexcept;
/// Whether the name of a key starts with this path.
[[nodiscard]] HOLDFAST_API bool is_name_below(std::string_view name, const key_path& path) noexcept;
/// The name of a key with the segments of a path instead of `*`.
[[nodiscard]] HOLDFAST_API std::string with_segments(std::string_view name, const key_path& path);
/// How many characters of a path differ from a name. Looks at the beginning of a long path.
[[nodiscard]] HOLDFAST_API std::size_t distance_of(std::string_view name, const key_path& path);

/// Null if there is none.
template <class Key>
[[nodiscard]] const Key* find_in(std::span<const Key> table, const key_path& path) noexcept {
  for (const Key& key : table) {
    if (is_name_of(key.name, path)) return &key;
  }
  return nullptr;
}

template <class Key>
[[nodiscard]] bool has_section(std::span<const Key> table, const key_path& path) noexcept {
  for (const Key& key : table) {
    if (is_name_below(key.name, path)) return true;
  }
  return false;
}

/// The name that is most similar to a path, with its segments.
template <class Key>
[[nodiscard]] std::string nearest_in(std::span<const Key> table, const key_path& path) {
  std::string nearest;
  auto best = std::numeric_limits<std::size_t>::max();
  for (const Key& key : table) {
    auto candidate = with_segments(key.name, path);
    if (const auto distance = distance_of(candidate, path); distance < best) {
      best = distance;
      nearest = std::move(candidate);
    }
  }
  return nearest;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
