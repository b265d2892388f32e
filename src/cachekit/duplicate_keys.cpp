#include "cachekit/duplicate_keys.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::cachekit {

namespace {

std::strong_ordering order_of(const instant& a, const instant& b) {
  if (const auto order = a.seconds <=> b.seconds; order != 0) return order;
  if (const auto order = a.nanoseconds <=> b.nanoseconds; order != 0) return order;
  return a.offset <=> b.offset;
}

/// Orders two scalars of one type.
std::strong_ordering order_of_scalars(const value& a, const value& b) {
  return std::visit(
      [&b]<class T>(const T& x) -> std::strong_ordering {
        const T& y = *b.if_is<T>();
        if constexpr (std::same_as<T, double>) {
          return std::bit_cast<std::uint64_t>(x) <=> std::bit_cast<std::uint64_t>(y);
        } else if constexpr (std::same_as<T, instant>) {
          return order_of(x, y);
        } else if constexpr (std::same_as<T, date>) {
          return x.day <=> y.day;
        } else if constexpr (std::same_as<T, time_of_day>) {
          return x.since_midnight <=> y.since_midnight;
        } else if constexpr (std::same_as<T, extension>) {
          const auto order = x.type <=> y.type;
          return order != 0 ? order : x.bytes <=> y.bytes;
        } else if constexpr (std::same_as<T, bool> || std::same_as<T, std::int64_t> ||
                             std::same_as<T, std::uint64_t> || std::same_as<T, std::string> ||
                             std::same_as<T, byte_string>) {
          return x <=> y;
        } else {
          return std::strong_ordering::equal;  // null; MessagePack has no other types
        }
      },
      a.get());
}

std::size_t child_count(const value& v) {
  if (const auto* items = v.if_is<list>()) return items->items.size();
  if (const auto* entries = v.if_is<map>()) return entries->items.size() * 2;
  return 0;
}

const value& child_of(const value& v, std::size_t index) {
  if (const auto* items = v.if_is<list>()) return items->items[index];
  const auto& entry = v.if_is<map>()->items[index / 2];
  return index % 2 == 0 ? entry.first : entry.second;
}

/// Orders two values by type, size or scalar, without comparing the children of containers.
std::strong_ordering shallow_order(const value& a, const value& b) {
  if (const auto order = a.get().index() <=> b.get().index(); order != 0) return order;
  if (a.if_is<list>() != nullptr || a.if_is<map>() != nullptr)
    return child_count(a) <=> child_count(b);
  return order_of_scalars(a, b);
}

/// A total order of values. Walks containers with a stack of its own, because keys can be nested as
/// deep as the document allows. Compares containers of the same size only, so sorting takes at most
/// n log n of the bytes.
std::strong_ordering order_of(const value& a, const value& b) {
  struct compared_pair {
    const value* first;
    const value* second;
    std::size_t next_child;
  };
  if (const auto order = shallow_order(a, b); order != 0 || child_count(a) == 0) return order;
  std::vector<compared_pair> stack{{&a, &b, 0}};
  while (!stack.empty()) {
    auto& top = stack.back();
    if (top.next_child == child_count(*top.first)) {
      stack.pop_back();
      continue;
    }
    const value& first = child_of(*top.first, top.next_child);
    const value& second = child_of(*top.second, top.next_child);
    ++top.next_child;
    if (const auto order = shallow_order(first, second); order != 0) return order;
    if (child_count(first) != 0) stack.push_back({&first, &second, 0});
  }
  return std::strong_ordering::equal;
}

/// Texts are sorted by hash first, which avoids most text comparisons. Keys with equal hashes are
/// sorted by content, so that forged collisions still take n log n.
struct sortable_key {
  std::uint64_t hash = 0;
  std::size_t position = 0;
};

std::uint64_t hash_of(const value& key) {
  const auto* text = key.if_is<std::string>();
  return text != nullptr ? XXH3_64bits(text->data(), text->size()) : 0;
}

bool ascending(const value& a, const value& b) {
  const auto* text_a = a.if_is<std::string>();
  const auto* text_b = b.if_is<std::string>();
  return text_a != nullptr && text_b != nullptr ? *text_a < *text_b : order_of(a, b) < 0;
}

}  // namespace

std::optional<std::size_t> find_duplicate_key(const std::vector<std::pair<value, value>>& entries) {
  std::size_t sorted = 1;  // number of entries at the front with ascending keys
  while (sorted < entries.size() && ascending(entries[sorted - 1].first, entries[sorted].first))
    ++sorted;
  if (sorted >= entries.size()) return std::nullopt;

  std::vector<sortable_key> keys(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) keys[i] = {hash_of(entries[i].first), i};
  std::ranges::sort(keys, [&entries](const sortable_key& a, const sortable_key& b) {
    return a.hash != b.hash ? a.hash < b.hash
                            : ascending(entries[a.position].first, entries[b.position].first);
  });
  const auto duplicate =
      std::ranges::adjacent_find(keys, [&entries](const sortable_key& a, const sortable_key& b) {
        return a.hash == b.hash && !ascending(entries[a.position].first, entries[b.position].first);
      });
  if (duplicate == keys.end()) return std::nullopt;
  return std::max(duplicate->position, (duplicate + 1)->position);
}

}  // namespace HOLDFAST_NAMESPACE::detail::cachekit
