#pragma once

/// \file
/// An entry: the JSON text that the store keeps for an event.
///
///     {"v":1,"id":"...",<body>,"createdAt":1700000000000,"seq":17}
///
/// The library writes the body. The store adds id, time and sequence. Scripts parse an entry only
/// for the key of an event whose claim record is damaged.

#include <holdfast/error.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Version of the layout: the field `v` of an entry.
inline constexpr int entry_version = 1;

/// Returns the fields that are known before the store is asked: all but id, time and sequence.
/// Without braces.
[[nodiscard]] HOLDFAST_API std::string entry_body(const event& event);

/// Returns the whole entry.
[[nodiscard]] HOLDFAST_API std::string entry_text(std::string_view id, std::string_view body,
                                                  std::int64_t created_ms, std::int64_t sequence);

struct entry_content {
  holdfast::event event{};
  std::int64_t created_ms = 0;
  std::int64_t sequence = 0;
  /// Why the entry cannot be read. Only set by read_or_explain and read_ticket.
  std::string problem{};
};

/// Reads an entry. Ignores unknown fields, which a later version may have written. Throws
/// errc::malformed if the text is not an entry, and errc::unsupported_type if it has another
/// version. Checks names, headers and the depth of JSON as `publish` does: a NUL in a type, a line
/// break in a content type or a name of 200 KB is malformed. The outbox checks the size of the
/// payload, because it knows the limit.
[[nodiscard]] HOLDFAST_API entry_content read_entry(std::string_view text);

/// Reads the entry of the event with this id, and this key unless it is unknown. If the entry
/// cannot be read or belongs to another event, returns an event with this id and key but without a
/// type, which the outbox parks, and sets `problem`.
[[nodiscard]] HOLDFAST_API entry_content read_or_explain(std::string_view text, std::string_view id,
                                                         std::optional<std::string_view> key);

/// Reads the body that is kept for a ticket. The event does not have an id yet.
[[nodiscard]] entry_content read_ticket(std::string_view body, std::string_view key);

/// Appends a text as a JSON string, quoted and escaped.
void append_json_text(std::string& out, std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
