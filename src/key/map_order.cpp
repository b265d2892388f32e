#include "key/map_order.hpp"

#include "base/hex.hpp"
#include "key/json_string.hpp"
#include "key/number_text.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

using kind = map_key::kind;

/// Keys can be compared with keys of the same class only; keys of class `none` with no others.
enum class key_class : std::uint8_t { none, number, text, bytes };

key_class class_of(const map_key& k) noexcept {
  switch (k.type) {
    case kind::boolean:
    case kind::integer:
    case kind::unsigned_integer:
    case kind::float32:
    case kind::float64:
      return key_class::number;
    case kind::text:
      return key_class::text;
    case kind::bytes:
      return key_class::bytes;
    case kind::null:
    case kind::other:
      break;
  }
  return key_class::none;
}

bool is_float(const map_key& k) noexcept {
  return k.type == kind::float32 || k.type == kind::float64;
}
double float_of(const map_key& k) noexcept {
  return k.type == kind::float32 ? static_cast<double>(k.single) : k.number;
}

/// An integer of either 64-bit range.
struct signed_magnitude {
  bool negative;
  std::uint64_t magnitude;
};
signed_magnitude integer_of(const map_key& k) noexcept {
  switch (k.type) {
    case kind::boolean:
      return {false, k.truth ? 1U : 0U};
    case kind::integer:
      return k.integer < 0 ? signed_magnitude{true, 0U - static_cast<std::uint64_t>(k.integer)}
                           : signed_magnitude{false, static_cast<std::uint64_t>(k.integer)};
    default:
      return {false, k.unsigned_integer};
  }
}

std::strong_ordering compare(signed_magnitude a, signed_magnitude b) noexcept {
  if (a.negative != b.negative)
    return a.negative ? std::strong_ordering::less : std::strong_ordering::greater;
  return a.negative ? b.magnitude <=> a.magnitude : a.magnitude <=> b.magnitude;
}

/// Compares exactly, as Python does: 2^53 + 1 is greater than the double 2^53. `f` is not NaN.
std::strong_ordering compare(signed_magnitude a, double f) noexcept {
  constexpr double two_to_64 = 18446744073709551616.0;
  if (f >= two_to_64) return std::strong_ordering::less;
  if (f <= -two_to_64) return std::strong_ordering::greater;
  const double floor = std::floor(f);
  const bool negative = floor < 0;
  const signed_magnitude b{negative, static_cast<std::uint64_t>(negative ? -floor : floor)};
  const auto order = compare(a, b);
  return order == 0 && f != floor ? std::strong_ordering::less : order;
}

std::strong_ordering compare_numbers(const map_key& a, const map_key& b) noexcept {
  if (is_float(a) && is_float(b)) {
    const double x = float_of(a);
    const double y = float_of(b);
    return x < y   ? std::strong_ordering::less
           : x > y ? std::strong_ordering::greater
                   : std::strong_ordering::equal;
  }
  if (is_float(b)) return compare(integer_of(a), float_of(b));
  if (is_float(a)) return 0 <=> compare(integer_of(b), float_of(a));
  return compare(integer_of(a), integer_of(b));
}

/// Comparing UTF-8 bytewise gives the order of the code points.
/// As `<=>`, which is a function call for the few bytes of a key.
std::strong_ordering compare_texts(std::string_view a, std::string_view b) noexcept {
  const auto common = std::min(a.size(), b.size());
  const int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  return order != 0 ? order <=> 0 : a.size() <=> b.size();
}

std::strong_ordering compare_same_class(const map_key& a, const map_key& b) noexcept {
  return class_of(a) == key_class::number ? compare_numbers(a, b) : compare_texts(a.text, b.text);
}

/// A total order of all keys. Floats are ordered by their representation, so that NaN equals
/// itself.
std::strong_ordering compare_any(const map_key& a, const map_key& b) noexcept {
  if (a.type != b.type) return a.type <=> b.type;
  if (a.type == kind::null) return std::strong_ordering::equal;
  if (is_float(a)) return std::strong_order(float_of(a), float_of(b));
  return a.type == kind::other ? a.text <=> b.text : compare_same_class(a, b);
}

[[noreturn]] void fail_duplicate(const writer& w, const map_key& k) {
  w.fail(errc::duplicate, "the map has the key " + describe(k) + " twice; remove one");
}

}  // namespace

std::string describe(const map_key& k) {
  char number[32];  // NOLINT(*-avoid-c-arrays)
  switch (k.type) {
    case kind::null:
      return "null";
    case kind::boolean:
      return k.truth ? "true" : "false";
    case kind::integer:
      return std::to_string(k.integer);
    case kind::unsigned_integer:
      return std::to_string(k.unsigned_integer);
    case kind::float32:
      return {number, java_text(k.single, number)};
    case kind::float64:
      return {number, java_text(k.number, number)};
    case kind::bytes: {
      constexpr std::size_t max_bytes = 32;
      std::string text = "0x";
      append_hex(text, k.text.substr(0, max_bytes));
      return k.text.size() > max_bytes ? text + "..." : text;
    }
    case kind::text:
    case kind::other:
      break;
  }
  return quote(k.text);
}

void sort_entries(const writer& w, std::span<map_slot> slots) {
  if (slots.size() < 2) return;
  const auto first = class_of(slots.front().key);
  for (const map_slot& slot : slots) {
    if (first == key_class::none || class_of(slot.key) != first) {
      w.fail(errc::unsupported_type,
             "the map's keys " + describe(slots.front().key) + " and " +
                 describe(&slot == slots.data() ? slots[1].key : slot.key) +
                 " have types that cannot be compared; use keys of one type");
    }
    if (is_float(slot.key) && std::isnan(float_of(slot.key)))
      w.fail(errc::not_finite, "NaN has no order, so it cannot be one of several keys of a map");
  }
  const auto less = [](const map_slot& a, const map_slot& b) {
    return compare_same_class(a.key, b.key) < 0;
  };
  const auto not_ascending = [&](const map_slot& a, const map_slot& b) { return !less(a, b); };
  // Most maps are in order already, and then no key occurs twice.
  if (std::ranges::adjacent_find(slots, not_ascending) == slots.end()) return;
  std::sort(slots.begin(), slots.end(), less);
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (compare_same_class(slots[i - 1].key, slots[i].key) == 0) fail_duplicate(w, slots[i].key);
  }
}

void refuse_duplicates(const writer& w, std::span<const map_slot> slots) {
  std::vector<const map_key*> keys;
  keys.reserve(slots.size());
  for (const map_slot& slot : slots) keys.push_back(&slot.key);
  std::sort(keys.begin(), keys.end(),
            [](const map_key* a, const map_key* b) { return compare_any(*a, *b) < 0; });
  for (std::size_t i = 1; i < keys.size(); ++i) {
    if (compare_any(*keys[i - 1], *keys[i]) == 0) fail_duplicate(w, *keys[i]);
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
