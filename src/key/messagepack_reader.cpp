#include <holdfast/key/messagepack.hpp>

#include "base/utf8.hpp"
#include "key/duplicate_keys.hpp"
#include "key/messagepack_cursor.hpp"
#include "key/time_parser.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

namespace {

using messagepack::cursor;
using messagepack::token;
using messagepack::token_kind;

/// A path is for people: of a long one the middle is left out, of a long key the end.
constexpr std::size_t shown_steps = 16;
constexpr std::size_t shown_key_length = 64;

/// What a heap allocation takes beside its contents, roughly; and what find_duplicate_key needs for a key.
constexpr std::uint64_t allocation_overhead = 16;
constexpr std::uint64_t duplicate_search = 16;

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::string quoted_key(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  const std::size_t shown = code_point_prefix(text, shown_key_length);
  std::string result = "\"";
  for (const char c : text.substr(0, shown)) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') result += '\\';
    if (code < 0x20 || code == 0x7f) {
      result += "\\u00";
      result += digits[code >> 4];
      result += digits[code & 15];
    } else {
      result += c;
    }
  }
  if (shown < text.size()) result += "...";
  return result + '"';
}

std::string key_in_path(const value& key) {
  if (const auto* text = key.if_is<std::string>()) return quoted_key(*text);
  if (const auto* number = key.if_is<std::uint64_t>()) return std::to_string(*number);
  if (const auto* number = key.if_is<std::int64_t>()) return std::to_string(*number);
  if (const auto* truth = key.if_is<bool>()) return *truth ? "true" : "false";
  return std::string(key.type_name());
}

/// The entry that marks a map as a point in time, as CacheKit writes them.
std::optional<value> as_temporal(const std::vector<std::pair<value, value>>& entries) {
  if (entries.size() != 2) return std::nullopt;
  const auto* first = entries[0].first.if_is<std::string>();
  const auto* second = entries[1].first.if_is<std::string>();
  if (first == nullptr || second == nullptr) return std::nullopt;
  const bool marker_first = *second == "value";
  if (!marker_first && *first != "value") return std::nullopt;
  const std::string& marker = marker_first ? *first : *second;
  const auto* marked = entries[marker_first ? 0 : 1].second.if_is<bool>();
  const auto* text = entries[marker_first ? 1 : 0].second.if_is<std::string>();
  if (marked == nullptr || !*marked || text == nullptr) return std::nullopt;
  if (marker == "__datetime__") return parse_instant(*text);
  if (marker == "__date__") return parse_date(*text);
  if (marker == "__time__") return parse_time_of_day(*text);
  return std::nullopt;
}

/// One document on its way to a value. Open containers are on a stack of its own.
class reader {
 public:
  reader(std::span<const std::byte> document, const decode_limits& limits) : cursor_(document), limits_(limits) {}

  value read() {
    while (!root_) step();
    if (!cursor_.at_end()) fail(errc::malformed, "bytes follow the end of the value; expected exactly one MessagePack document");
    return std::move(*root_);
  }

 private:
  struct container {
    bool is_map = false;
    bool has_key = false;         // of a map: the last entry still waits for its value
    std::uint64_t remaining = 0;  // elements, or keys and values together
    std::vector<value> elements{};
    std::vector<std::pair<value, value>> entries{};
  };

  void step() {
    token next;
    if (!cursor_.next(next)) fail(errc::malformed, cursor_.problem());
    switch (next.kind) {
      case token_kind::null:
        return finished(value());
      case token_kind::boolean:
        return finished(value(next.truth));
      case token_kind::unsigned_integer:
        return finished(value(next.number));
      case token_kind::negative_integer:
        return finished(value(static_cast<std::int64_t>(next.number)));
      case token_kind::floating:
        return finished(value(next.real));
      case token_kind::bytes:
        charge(next.payload.size() + allocation_overhead);
        return finished(value(byte_string(next.payload.begin(), next.payload.end())));
      case token_kind::extension:
        charge(next.payload.size() + allocation_overhead);
        return finished(value(extension{next.extension_type, byte_string(next.payload.begin(), next.payload.end())}));
      case token_kind::text: {
        const auto text = text_of(next.payload);
        if (!is_utf8(text)) fail(errc::ill_formed_text, "text is not well-formed UTF-8; write binary data as bytes");
        if (text.size() > std::string().capacity()) charge(text.size() + allocation_overhead);
        return finished(value(text));
      }
      case token_kind::list:
      case token_kind::map:
        return open(next);
    }
  }

  void open(const token& head) {
    // A value as high as the limit has room for an empty container at its lowest level, not for a filled one.
    const std::size_t depth = open_.size() + 1;
    const std::size_t height = head.number == 0 ? depth : depth + 1;
    if (depth > limits_.max_depth || height > max_height) {
      fail(errc::too_deep, "nested deeper than " + std::to_string(std::min(limits_.max_depth, max_height)) + " levels; flatten the value");
    }
    const bool is_map = head.kind == token_kind::map;
    const std::uint64_t children = is_map ? head.number * 2 : head.number;
    if (children > limits_.max_items - items_) {
      fail(errc::too_large,
           "more than " + std::to_string(limits_.max_items) + " items; store less in one value or raise decode_limits::max_items");
    }
    items_ += static_cast<std::size_t>(children);
    if (head.number != 0)
      charge(head.number * (is_map ? sizeof(std::pair<value, value>) + duplicate_search : sizeof(value)) + allocation_overhead);
    // The cursor has compared the count with the length of the document, for all containers together: it can be believed.
    container& inside = open_.emplace_back();
    inside.is_map = is_map;
    inside.remaining = children;
    if (is_map) inside.entries.reserve(static_cast<std::size_t>(head.number));
    else inside.elements.reserve(static_cast<std::size_t>(head.number));
    if (head.number == 0) finished(close());
  }

  /// Called before memory is allocated: a byte of the document may become a value of sizeof(value) bytes.
  void charge(std::uint64_t bytes) {
    if (bytes > limits_.max_memory - memory_) {
      fail(errc::too_large, "the value takes more than " + std::to_string(limits_.max_memory) +
                                " bytes of memory; store less in one value or raise decode_limits::max_memory");
    }
    memory_ += static_cast<std::size_t>(bytes);
  }

  /// A value is whole: it goes into the container around it, which may become whole by it, and so on outwards.
  void finished(value done) {
    while (!open_.empty()) {
      container& around = open_.back();
      if (!around.is_map) {
        around.elements.push_back(std::move(done));
      } else if (around.has_key) {
        around.entries.back().second = std::move(done);
        around.has_key = false;
      } else {
        around.entries.emplace_back(std::move(done), value());
        around.has_key = true;
      }
      if (--around.remaining != 0) return;
      done = close();
    }
    root_ = std::move(done);
  }

  value close() {
    container& full = open_.back();
    if (full.is_map) {
      if (const auto twin = find_duplicate_key(full.entries)) {
        const std::string key = key_in_path(full.entries[*twin].first);
        open_.pop_back();
        fail(errc::duplicate, "a map holds this key twice; write each key once", ".items[" + key + ']');
      }
    }
    container whole = std::move(full);
    open_.pop_back();
    if (!whole.is_map) return value(list{std::move(whole.elements)});
    if (limits_.temporal) {
      if (auto temporal = as_temporal(whole.entries)) return std::move(*temporal);
    }
    return value(map{std::move(whole.entries)});
  }

  static std::string step_into(const container& around) {
    if (!around.is_map) return '[' + std::to_string(around.elements.size()) + ']';
    if (around.has_key) return ".items[" + key_in_path(around.entries.back().first) + ']';
    return ".keys[" + std::to_string(around.entries.size()) + ']';
  }

  [[noreturn]] void fail(errc code, const std::string& message, const std::string& last_step = {}) const {
    std::string path = "value";
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_.size() > 2 * shown_steps && i == shown_steps) {
        path += "...";
        i = open_.size() - shown_steps;
      }
      path += step_into(open_[i]);
    }
    throw error(code, message, {.path = path + last_step});
  }

  cursor cursor_;
  decode_limits limits_;
  std::size_t items_ = 1;   // declared so far; the root is one
  std::size_t memory_ = 0;  // charged so far
  std::vector<container> open_{};
  std::optional<value> root_{};
};

}  // namespace

value decode_value(std::span<const std::byte> document, const decode_limits& limits) {
  constexpr std::size_t least_depth = 32;  // the protocol's range
  constexpr std::size_t most_depth = 1024;
  static_assert(max_height >= least_depth && max_height <= most_depth, "the default must be in the range");
  if (limits.max_depth < least_depth || limits.max_depth > most_depth) {
    throw error(errc::invalid_argument, "decode_limits::max_depth is " + std::to_string(limits.max_depth) + "; it must be from 32 to 1024");
  }
  if (limits.max_items == 0) throw error(errc::invalid_argument, "decode_limits::max_items is 0; even null is an item");
  if (document.empty()) throw error(errc::malformed, "the document is empty; expected one MessagePack value", {.path = "value"});
  if (document.size() > limits.max_bytes) {
    throw error(errc::too_large,
                "the document has more than " + std::to_string(limits.max_bytes) + " bytes; raise decode_limits::max_bytes",
                {.path = "value"});
  }
  if (text_of(document).starts_with("CK")) {
    // Its first byte alone would read as the integer 67, which helps nobody to see what happened.
    throw error(errc::malformed, "this is a frame of CacheKit's Python auto mode, not an interop value; write it with interop mode",
                {.path = "value"});
  }
  return reader(document, limits).read();
}

}  // namespace HOLDFAST_NAMESPACE::key
