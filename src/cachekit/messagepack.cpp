#include <holdfast/cachekit/messagepack.hpp>

#include "base/utf8.hpp"
#include "cachekit/duplicate_keys.hpp"
#include "cachekit/messagepack_cursor.hpp"
#include "cachekit/time_parser.hpp"
#include "key/json_string.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::cachekit;

namespace {

/// A path shows at most this many levels at its beginning and at its end.
constexpr std::size_t max_path_levels = 16;

/// Estimated bytes of a heap allocation beside its contents.
constexpr std::uint64_t allocation_overhead = 16;
/// Bytes that find_duplicate_key needs for each key.
constexpr std::uint64_t duplicate_search_memory = 16;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string key_in_path(const value& key) {
  if (const auto* text = key.if_is<std::string>()) return holdfast::detail::key::quote(*text);
  if (const auto* number = key.if_is<std::uint64_t>()) return std::to_string(*number);
  if (const auto* number = key.if_is<std::int64_t>()) return std::to_string(*number);
  if (const auto* truth = key.if_is<bool>()) return *truth ? "true" : "false";
  return std::string(key.type_name());
}

/// Converts a map that CacheKit marks as a time: {"__date__": true, "value": "2024-01-31"}. Returns
/// nullopt for all other maps.
std::optional<value> as_temporal(const std::vector<std::pair<value, value>>& entries,
                                 bool naive_as_utc) {
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
  if (marker == "__datetime__") {
    auto instant = parse_instant(*text);
    if (!instant && naive_as_utc) instant = parse_instant(*text + 'Z');
    return instant;
  }
  if (marker == "__date__") return parse_date(*text);
  if (marker == "__time__") return parse_time_of_day(*text);
  return std::nullopt;
}

/// Reads one document. The open containers are on a stack of its own, not on the thread's stack.
class document_reader {
 public:
  document_reader(std::span<const std::byte> document, const decode_limits& limits)
      : cursor_(document), limits_(limits) {}

  value read() {
    while (!root_) read_token();
    if (!cursor_.at_end())
      fail(errc::malformed,
           "bytes follow the end of the value; expected exactly one MessagePack document");
    return std::move(*root_);
  }

 private:
  struct container {
    bool is_map = false;
    bool has_key = false;         // of a map: the last entry has a key but no value yet
    std::uint64_t remaining = 0;  // elements, or keys and values together
    std::vector<value> elements{};
    std::vector<std::pair<value, value>> entries{};
  };

  void read_token() {
    token next;
    if (!cursor_.next(next)) fail(errc::malformed, cursor_.problem());
    switch (next.kind) {
      case token_kind::null:
        return add(value());
      case token_kind::boolean:
        return add(value(next.truth));
      case token_kind::unsigned_integer:
        return add(value(next.number));
      case token_kind::negative_integer:
        return add(value(static_cast<std::int64_t>(next.number)));
      case token_kind::floating:
        return add(value(next.real));
      case token_kind::bytes:
        charge(next.payload.size() + allocation_overhead);
        return add(value(byte_string(next.payload.begin(), next.payload.end())));
      case token_kind::extension:
        charge(next.payload.size() + allocation_overhead);
        return add(value(
            extension{next.extension_type, byte_string(next.payload.begin(), next.payload.end())}));
      case token_kind::text: {
        const auto text = text_of(next.payload);
        if (!holdfast::detail::is_utf8(text))
          fail(errc::ill_formed_text, "text is not well-formed UTF-8; write binary data as bytes");
        if (text.size() > std::string().capacity()) charge(text.size() + allocation_overhead);
        return add(value(text));
      }
      case token_kind::list:
      case token_kind::map:
        return open(next);
    }
  }

  void open(const token& header) {
    // An empty container does not add a level below itself, a filled one does.
    const std::size_t depth = stack_.size() + 1;
    const std::size_t height = header.number == 0 ? depth : depth + 1;
    if (depth > limits_.max_depth || height > max_height) {
      fail(errc::too_deep, "nested deeper than " +
                               std::to_string(std::min(limits_.max_depth, max_height)) +
                               " levels; flatten the value");
    }
    const bool is_map = header.kind == token_kind::map;
    const std::uint64_t children = is_map ? header.number * 2 : header.number;
    if (children > limits_.max_items - items_) {
      fail(errc::too_large,
           "more than " + std::to_string(limits_.max_items) +
               " items; store less in one value or raise decode_limits::max_items");
    }
    items_ += static_cast<std::size_t>(children);
    if (header.number != 0) {
      const std::uint64_t child_memory =
          is_map ? sizeof(std::pair<value, value>) + duplicate_search_memory : sizeof(value);
      charge(header.number * child_memory + allocation_overhead);
    }
    // The cursor has checked the declared size, so it is safe to reserve memory for it.
    container& opened = stack_.emplace_back();
    opened.is_map = is_map;
    opened.remaining = children;
    if (is_map) opened.entries.reserve(static_cast<std::size_t>(header.number));
    else opened.elements.reserve(static_cast<std::size_t>(header.number));
    if (header.number == 0) add(close());
  }

  /// Counts memory before it is allocated. One byte of the document can become a value of
  /// sizeof(value) bytes.
  void charge(std::uint64_t bytes) {
    if (bytes > limits_.max_memory - memory_) {
      fail(errc::too_large,
           "the value takes more than " + std::to_string(limits_.max_memory) +
               " bytes of memory; store less in one value or raise decode_limits::max_memory");
    }
    memory_ += static_cast<std::size_t>(bytes);
  }

  /// Adds a complete value to the innermost open container. If that completes the container, it is
  /// added to the container around it, and so on.
  void add(value complete) {
    while (!stack_.empty()) {
      container& parent = stack_.back();
      if (!parent.is_map) {
        parent.elements.push_back(std::move(complete));
      } else if (parent.has_key) {
        parent.entries.back().second = std::move(complete);
        parent.has_key = false;
      } else {
        parent.entries.emplace_back(std::move(complete), value());
        parent.has_key = true;
      }
      if (--parent.remaining != 0) return;
      complete = close();
    }
    root_ = std::move(complete);
  }

  /// Removes the innermost container, which is complete, and returns it as a value.
  value close() {
    container closed = std::move(stack_.back());
    stack_.pop_back();
    if (!closed.is_map) return value(list{std::move(closed.elements)});
    if (const auto duplicate = find_duplicate_key(closed.entries)) {
      fail(errc::duplicate, "a map has this key twice; write each key once",
           ".items[" + key_in_path(closed.entries[*duplicate].first) + ']');
    }
    if (limits_.temporal) {
      if (auto temporal = as_temporal(closed.entries, limits_.naive_as_utc))
        return std::move(*temporal);
    }
    return value(map{std::move(closed.entries)});
  }

  static std::string path_step(const container& parent) {
    if (!parent.is_map) return '[' + std::to_string(parent.elements.size()) + ']';
    if (parent.has_key) return ".items[" + key_in_path(parent.entries.back().first) + ']';
    return ".keys[" + std::to_string(parent.entries.size()) + ']';
  }

  [[noreturn]] void fail(errc code, const std::string& message,
                         const std::string& last_step = {}) const {
    std::string path = "value";
    for (std::size_t i = 0; i < stack_.size(); ++i) {
      if (stack_.size() > 2 * max_path_levels && i == max_path_levels) {
        path += "...";
        i = stack_.size() - max_path_levels;
      }
      path += path_step(stack_[i]);
    }
    throw error(code, message, {.path = path + last_step});
  }

  messagepack_cursor cursor_;
  decode_limits limits_;
  std::size_t items_ = 1;   // declared so far, including the root
  std::size_t memory_ = 0;  // charged so far
  std::vector<container> stack_{};
  std::optional<value> root_{};
};

}  // namespace

value decode_value(std::span<const std::byte> document, const decode_limits& limits) {
  // The range that the protocol allows.
  constexpr std::size_t min_depth = 32;
  constexpr std::size_t max_depth = 1024;
  static_assert(max_height >= min_depth && max_height <= max_depth,
                "the default must be in the range");
  if (limits.max_depth < min_depth || limits.max_depth > max_depth) {
    throw error(errc::invalid_argument, "decode_limits::max_depth is " +
                                            std::to_string(limits.max_depth) +
                                            "; it must be from 32 to 1024");
  }
  if (limits.max_items == 0)
    throw error(errc::invalid_argument, "decode_limits::max_items is 0; it must be at least 1");
  if (document.empty())
    throw error(errc::malformed, "the document is empty; expected one MessagePack value",
                {.path = "value"});
  if (document.size() > limits.max_bytes) {
    throw error(errc::too_large,
                "the document has more than " + std::to_string(limits.max_bytes) +
                    " bytes; raise decode_limits::max_bytes",
                {.path = "value"});
  }
  if (text_of(document).starts_with("CK")) {
    // Without this check the first byte would be read as the integer 67, followed by extra bytes.
    throw error(
        errc::malformed,
        "this is a frame of CacheKit for Python; pass it to unwrap_frame first, or write the "
        "value with interop mode",
        {.path = "value"});
  }
  return document_reader(document, limits).read();
}

}  // namespace HOLDFAST_NAMESPACE::key
