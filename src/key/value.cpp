#include <holdfast/key/value.hpp>

#include "base/hex.hpp"

#include <algorithm>
#include <iterator>

namespace HOLDFAST_NAMESPACE::key {

namespace {

std::uint32_t checked_height(std::size_t children) {
  if (children + 1 > max_height) {
    throw error(errc::too_deep,
                "nested deeper than " + std::to_string(max_height) + " levels; flatten the value or hash the inner part first");
  }
  return static_cast<std::uint32_t>(children + 1);
}

std::size_t highest(const std::vector<value>& items) {
  std::size_t height = 0;
  for (const auto& item : items) height = std::max(height, item.height());
  return height;
}

}  // namespace

bool list::operator==(const list&) const = default;
bool set::operator==(const set&) const = default;
bool map::operator==(const map&) const = default;

namespace {
bool same(const std::shared_ptr<const value>& a, const std::shared_ptr<const value>& b) { return a == b || (a && b && *a == *b); }
}  // namespace

bool enumeration::operator==(const enumeration& other) const {
  return text == other.text && float_mixin == other.float_mixin && same(underlying, other.underlying);
}
bool boxed_optional::operator==(const boxed_optional& other) const { return same(item, other.item); }

value::value(list v) : height_(checked_height(highest(v.items))) { held_ = std::move(v); }
value::value(set v) : height_(checked_height(highest(v.items))) { held_ = std::move(v); }
value::value(map v) {
  std::size_t height = 0;
  for (const auto& [k, item] : v.items) height = std::max({height, k.height(), item.height()});
  height_ = checked_height(height);
  held_ = std::move(v);
}
// An enumerator is replaced by what it stands for and adds no level. A chain of them is collapsed, so that none can be long.
value::value(enumeration v) {
  if (!v.underlying) v.underlying = std::make_shared<const value>();
  if (const auto* inner = v.underlying->if_is<enumeration>()) {
    v.float_mixin = v.float_mixin || inner->float_mixin;
    v.underlying = std::shared_ptr(inner->underlying);
  }
  height_ = v.underlying->height_;
  held_ = std::move(v);
}
value::value(boxed_optional v) : height_(v.item ? checked_height(v.item->height()) : 1) { held_ = std::move(v); }

/// Takes a high value apart level by level: destroying it recursively would need a deep stack, which a thread may not have.
void value::dismantle() noexcept {
  try {
    std::vector<value> pending;
    const auto take_children = [&pending](value& from) {
      const auto take = [&pending](std::vector<value>& items) { std::move(items.begin(), items.end(), std::back_inserter(pending)); };
      if (auto* as_list = std::get_if<list>(&from.held_)) take(as_list->items);
      else if (auto* as_set = std::get_if<set>(&from.held_)) take(as_set->items);
      else if (auto* as_map = std::get_if<map>(&from.held_)) {
        for (auto& [k, item] : as_map->items) {
          pending.push_back(std::move(k));
          pending.push_back(std::move(item));
        }
      }
      from.height_ = 1;
    };
    take_children(*this);
    while (!pending.empty()) {
      value next = std::move(pending.back());
      pending.pop_back();
      take_children(next);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory for the list of children: what is left goes the recursive way.
  }
}

bool value::operator==(const value& other) const { return held_ == other.held_; }

std::string_view value::type_name() const noexcept {
  static constexpr std::array<std::string_view, std::variant_size_v<variant>> names{
      "null",     "boolean",     "integer", "integer", "big integer", "float",    "double",  "character",
      "text",     "bytes",       "list",    "set",     "map",         "uuid",     "decimal", "instant",
      "date",     "time of day", "path",    "enum",    "array",       "optional", "object",  "object without text",
      "extension"};
  return names[held_.index()];
}

uuid uuid::parse(std::string_view text) {
  uuid result;
  std::size_t at = 0;
  bool good = text.size() == 36;
  for (std::size_t i = 0; good && i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) good = text[at++] == '-';
    const int high = hex_digit(text[at]);
    const int low = hex_digit(text[at + 1]);
    good = good && high >= 0 && low >= 0;
    result.bytes[i] = static_cast<std::uint8_t>((high << 4) | low);
    at += 2;
  }
  if (!good) throw error(errc::invalid_argument, "not a UUID; expected 36 characters like 550e8400-e29b-41d4-a716-446655440000");
  return result;
}

std::string uuid::to_string() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(36, '-');
  std::size_t at = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) ++at;
    text[at++] = digits[bytes[i] >> 4];
    text[at++] = digits[bytes[i] & 15];
  }
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::key
