#include "key/duplicate_keys.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::key {

namespace {

std::strong_ordering order_of(const instant& a, const instant& b) {
  if (const auto order = a.seconds <=> b.seconds; order != 0) return order;
  if (const auto order = a.nanoseconds <=> b.nanoseconds; order != 0) return order;
  return a.offset <=> b.offset;
}

/// Two values of one type that hold no other values.
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
        } else if constexpr (std::same_as<T, bool> || std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> ||
                             std::same_as<T, std::string> || std::same_as<T, byte_string>) {
          return x <=> y;
        } else {
          return std::strong_ordering::equal;  // null; no other type comes out of MessagePack
        }
      },
      a.get());
}

std::size_t children_of(const value& v) {
  if (const auto* items = v.if_is<list>()) return items->items.size();
  if (const auto* entries = v.if_is<map>()) return entries->items.size() * 2;
  return 0;
}

const value& child_of(const value& v, std::size_t index) {
  if (const auto* items = v.if_is<list>()) return items->items[index];
  const auto& entry = v.if_is<map>()->items[index / 2];
  return index % 2 == 0 ? entry.first : entry.second;
}

/// Whether they differ without looking at what they contain.
std::strong_ordering order_of_outsides(const value& a, const value& b) {
  if (const auto order = a.get().index() <=> b.get().index(); order != 0) return order;
  if (a.if_is<list>() != nullptr || a.if_is<map>() != nullptr) return children_of(a) <=> children_of(b);
  return order_of_scalars(a, b);
}

/// Some total order. Walks with a stack of its own: keys can be containers, as deep as the document allows.
/// Never looks at more of one value than the other has, so sorting costs no more than n log n of the bytes.
std::strong_ordering order_of(const value& a, const value& b) {
  struct position {
    const value* left;
    const value* right;
    std::size_t next;
  };
  if (const auto order = order_of_outsides(a, b); order != 0 || children_of(a) == 0) return order;
  std::vector<position> open{{&a, &b, 0}};
  while (!open.empty()) {
    auto& at = open.back();
    if (at.next == children_of(*at.left)) {
      open.pop_back();
      continue;
    }
    const value& left = child_of(*at.left, at.next);
    const value& right = child_of(*at.right, at.next);
    ++at.next;
    if (const auto order = order_of_outsides(left, right); order != 0) return order;
    if (children_of(left) != 0) open.push_back({&left, &right, 0});
  }
  return std::strong_ordering::equal;
}

/// An entry on its way into the sorted order. Texts are sorted by a hash first, which spares most of the looks at the texts themselves;
/// the order of keys with one hash is that of their contents, so that forged collisions cost no more than sorting does.
struct sortable_key {
  std::uint64_t hash = 0;
  std::size_t position = 0;
};

std::uint64_t hash_of(const value& key) {
  const auto* text = key.if_is<std::string>();
  return text != nullptr ? XXH3_64bits(text->data(), text->size()) : 0;
}

bool ascending(const value& a, const value& b) {
  const auto* left = a.if_is<std::string>();
  const auto* right = b.if_is<std::string>();
  return left != nullptr && right != nullptr ? *left < *right : order_of(a, b) < 0;
}

}  // namespace

std::optional<std::size_t> find_duplicate_key(const std::vector<std::pair<value, value>>& entries) {
  std::size_t in_order = 1;
  while (in_order < entries.size() && ascending(entries[in_order - 1].first, entries[in_order].first)) ++in_order;
  if (in_order >= entries.size()) return std::nullopt;

  std::vector<sortable_key> keys(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) keys[i] = {hash_of(entries[i].first), i};
  std::ranges::sort(keys, [&entries](const sortable_key& a, const sortable_key& b) {
    return a.hash != b.hash ? a.hash < b.hash : ascending(entries[a.position].first, entries[b.position].first);
  });
  const auto twin = std::ranges::adjacent_find(keys, [&entries](const sortable_key& a, const sortable_key& b) {
    return a.hash == b.hash && !ascending(entries[a.position].first, entries[b.position].first);
  });
  if (twin == keys.end()) return std::nullopt;
  return std::max(twin->position, (twin + 1)->position);
}

}  // namespace HOLDFAST_NAMESPACE::key
