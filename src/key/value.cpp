#include <holdfast/key/value.hpp>

#include "base/hex.hpp"
#include "base/uuid.hpp"
#include "key/messages.hpp"

#include <algorithm>
#include <iterator>

namespace HOLDFAST_NAMESPACE::key {

namespace {

using namespace holdfast::detail::key;

/// The height of a container whose highest child has the height `child_height`.
std::uint32_t container_height(std::size_t child_height) {
  if (child_height + 1 > max_height) throw error(errc::too_deep, too_deep_message(max_height));
  return static_cast<std::uint32_t>(child_height + 1);
}

std::size_t highest(const std::vector<value>& items) {
  std::size_t height = 0;
  for (const auto& item : items) height = std::max(height, item.height());
  return height;
}

bool equal_values(const std::shared_ptr<const value>& a, const std::shared_ptr<const value>& b) {
  return a == b || (a && b && *a == *b);
}

}  // namespace

bool list::operator==(const list&) const = default;
bool set::operator==(const set&) const = default;
bool map::operator==(const map&) const = default;

bool enumeration::operator==(const enumeration& other) const {
  return text == other.text && float_mixin == other.float_mixin &&
         equal_values(underlying, other.underlying);
}
bool boxed_optional::operator==(const boxed_optional& other) const {
  return equal_values(item, other.item);
}

value::value(list v) : height_(container_height(highest(v.items))) { held_ = std::move(v); }
value::value(set v) : height_(container_height(highest(v.items))) { held_ = std::move(v); }
value::value(map v) {
  std::size_t height = 0;
  for (const auto& [k, item] : v.items) height = std::max({height, k.height(), item.height()});
  height_ = container_height(height);
  held_ = std::move(v);
}
// An enumerator has the height of its underlying value. If that is an enumerator too, it is
// replaced by its own underlying value, so that there are no chains.
value::value(enumeration v) {
  if (!v.underlying) v.underlying = std::make_shared<const value>();
  if (const auto* inner = v.underlying->if_is<enumeration>()) {
    v.float_mixin = v.float_mixin || inner->float_mixin;
    v.underlying = std::shared_ptr(inner->underlying);
  }
  height_ = v.underlying->height_;
  held_ = std::move(v);
}
value::value(boxed_optional v) : height_(v.item ? container_height(v.item->height()) : 1) {
  held_ = std::move(v);
}

/// Destroys a high value iteratively. Recursion would need a deep stack, which a thread may not
/// have.
void value::dismantle() noexcept {
  try {
    std::vector<value> pending;
    const auto move_items = [&pending](std::vector<value>& items) {
      std::move(items.begin(), items.end(), std::back_inserter(pending));
    };
    const auto move_children = [&](value& parent) {
      if (auto* as_list = std::get_if<list>(&parent.held_)) move_items(as_list->items);
      else if (auto* as_set = std::get_if<set>(&parent.held_)) move_items(as_set->items);
      else if (auto* as_map = std::get_if<map>(&parent.held_)) {
        for (auto& [k, item] : as_map->items) {
          pending.push_back(std::move(k));
          pending.push_back(std::move(item));
        }
      }
      parent.height_ = 1;
    };
    move_children(*this);
    while (!pending.empty()) {
      value next = std::move(pending.back());
      pending.pop_back();
      move_children(next);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory: the rest is destroyed recursively.
  }
}

bool value::operator==(const value& other) const { return held_ == other.held_; }

std::string_view value::type_name() const noexcept {
  static constexpr std::array<std::string_view, std::variant_size_v<variant>> names{
      "null",     "boolean",   "integer", "integer",  "big integer", "float",
      "double",   "character", "text",    "bytes",    "list",        "set",
      "map",      "uuid",      "decimal", "instant",  "date",        "time of day",
      "path",     "enum",      "array",   "optional", "object",      "object without text",
      "extension"};
  return names[held_.index()];
}

uuid uuid::parse(std::string_view text) {
  constexpr std::array<std::size_t, 5> group_sizes{8, 4, 4, 4, 12};  // in digits
  uuid result;
  bool valid = text.size() == 36;
  std::size_t text_offset = 0;
  std::size_t byte_offset = 0;
  for (const std::size_t size : group_sizes) {
    valid = valid && (text_offset == 0 || text[text_offset - 1] == '-') &&
            holdfast::detail::from_hex(text.substr(text_offset, size),
                                       result.bytes.data() + byte_offset);
    text_offset += size + 1;
    byte_offset += size / 2;
  }
  if (!valid)
    throw error(errc::invalid_argument,
                "not a UUID; expected 36 characters like 550e8400-e29b-41d4-a716-446655440000");
  return result;
}

std::string uuid::to_string() const { return holdfast::detail::uuid_text(bytes); }

}  // namespace HOLDFAST_NAMESPACE::key
