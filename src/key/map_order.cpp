#include "key/map_order.hpp"

#include "key/digest.hpp"
#include "key/number_text.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

namespace {

using kind = map_key::kind;

/// Only keys of one class can be compared.
enum class comparable : std::uint8_t { nothing, number, text, bytes };

comparable class_of(const map_key& k) noexcept {
  switch (k.type) {
    case kind::boolean:
    case kind::integer:
    case kind::unsigned_integer:
    case kind::float32:
    case kind::float64:
      return comparable::number;
    case kind::text:
      return comparable::text;
    case kind::bytes:
      return comparable::bytes;
    case kind::null:
    case kind::other:
      break;
  }
  return comparable::nothing;
}

bool is_float(const map_key& k) noexcept { return k.type == kind::float32 || k.type == kind::float64; }
double float_of(const map_key& k) noexcept { return k.type == kind::float32 ? static_cast<double>(k.single) : k.number; }

/// A whole number as sign and magnitude, so that both 64-bit ranges fit.
struct whole {
  bool negative;
  std::uint64_t magnitude;
};
whole whole_of(const map_key& k) noexcept {
  switch (k.type) {
    case kind::boolean:
      return {false, k.truth ? 1U : 0U};
    case kind::integer:
      return k.integer < 0 ? whole{true, 0U - static_cast<std::uint64_t>(k.integer)} : whole{false, static_cast<std::uint64_t>(k.integer)};
    default:
      return {false, k.unsigned_integer};
  }
}

std::strong_ordering compare(whole a, whole b) noexcept {
  if (a.negative != b.negative) return a.negative ? std::strong_ordering::less : std::strong_ordering::greater;
  return a.negative ? b.magnitude <=> a.magnitude : a.magnitude <=> b.magnitude;
}

/// Exact, as Python compares: 2^53 + 1 is more than 2^53 as a double. `f` is not NaN.
std::strong_ordering compare(whole a, double f) noexcept {
  constexpr double beyond = 18446744073709551616.0;  // 2^64
  if (f >= beyond) return std::strong_ordering::less;
  if (f <= -beyond) return std::strong_ordering::greater;
  const double floor = std::floor(f);
  const bool negative = floor < 0;
  const whole b{negative, static_cast<std::uint64_t>(negative ? -floor : floor)};
  const auto order = compare(a, b);
  return order == 0 && f != floor ? std::strong_ordering::less : order;
}

std::strong_ordering compare_numbers(const map_key& a, const map_key& b) noexcept {
  if (is_float(a) && is_float(b)) {
    const double x = float_of(a);
    const double y = float_of(b);
    return x < y ? std::strong_ordering::less : x > y ? std::strong_ordering::greater : std::strong_ordering::equal;
  }
  if (is_float(b)) return compare(whole_of(a), float_of(b));
  if (is_float(a)) return 0 <=> compare(whole_of(b), float_of(a));
  return compare(whole_of(a), whole_of(b));
}

/// UTF-8 sorts bytewise as its code points do, and string_view compares unsigned bytes.
std::strong_ordering compare_same_class(const map_key& a, const map_key& b) noexcept {
  return class_of(a) == comparable::number ? compare_numbers(a, b) : a.text <=> b.text;
}

[[noreturn]] void fail_duplicate(const writer& on, const map_key& k) {
  on.fail(errc::duplicate, "the map has the key " + shown(k) + " twice; remove one");
}

}  // namespace

std::string shown(const map_key& k) {
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
    case kind::bytes:
      return "0x" + to_hex(k.text.substr(0, 32)) + (k.text.size() > 32 ? "..." : "");
    case kind::text:
    case kind::other:
      break;
  }
  // Long keys are cut, and what a terminal or a log would act on is shown as an escape.
  std::string text = "\"";
  for (const char c : k.text.substr(0, 60)) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) text += "\\x" + to_hex(std::string_view(&c, 1));
    else text += c;
  }
  if (k.text.size() > 60) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80U) != 0) text.pop_back();  // no half character
    text += "...";
  }
  return text + '"';
}

void sort_entries(const writer& on, std::span<map_slot> slots) {
  if (slots.size() < 2) return;
  const auto first = class_of(slots.front().key);
  for (const map_slot& slot : slots) {
    if (first == comparable::nothing || class_of(slot.key) != first) {
      on.fail(errc::unsupported_type, "the map's keys " + shown(slots.front().key) + " and " +
                                          shown(&slot == slots.data() ? slots[1].key : slot.key) +
                                          " are of kinds that have no common order; use keys of one kind");
    }
    if (is_float(slot.key) && std::isnan(float_of(slot.key))) {
      on.fail(errc::not_finite, "NaN has no order, so it cannot be one of several keys of a map");
    }
  }
  const auto less = [](const map_slot& a, const map_slot& b) { return compare_same_class(a.key, b.key) < 0; };
  if (!std::is_sorted(slots.begin(), slots.end(), less)) std::sort(slots.begin(), slots.end(), less);
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (compare_same_class(slots[i - 1].key, slots[i].key) == 0) fail_duplicate(on, slots[i].key);
  }
}

void refuse_duplicates(const writer& on, std::span<const map_slot> slots) {
  std::vector<const map_key*> keys;
  keys.reserve(slots.size());
  for (const map_slot& slot : slots) keys.push_back(&slot.key);
  const auto order = [](const map_key& a, const map_key& b) -> std::strong_ordering {
    if (a.type != b.type) return a.type <=> b.type;
    switch (a.type) {
      case kind::null:
        return std::strong_ordering::equal;
      case kind::float32:
      case kind::float64:
        return std::strong_order(float_of(a), float_of(b));
      default:
        return a.type == kind::other ? a.text <=> b.text : compare_same_class(a, b);
    }
  };
  std::sort(keys.begin(), keys.end(), [&](const map_key* a, const map_key* b) { return order(*a, *b) < 0; });
  for (std::size_t i = 1; i < keys.size(); ++i) {
    if (order(*keys[i - 1], *keys[i]) == 0) fail_duplicate(on, *keys[i]);
  }
}

}  // namespace HOLDFAST_NAMESPACE::key
