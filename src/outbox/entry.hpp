#pragma once

/// \file
/// An entry: the JSON text that is kept for an event. Written here, except for what only the store knows; scripts parse it only
/// for the key of an event whose claim is damaged.
///
///     {"v":1,"id":"...",<body>,"createdAt":1700000000000,"seq":17}

#include <holdfast/error.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::outboxes {

/// The version of the layout, the `v` of an entry.
inline constexpr int entry_version = 1;

/// What is known before the store is asked: everything but id, time and sequence. Without braces.
[[nodiscard]] HOLDFAST_API std::string entry_body(const event& what);

/// The whole entry.
[[nodiscard]] HOLDFAST_API std::string entry_text(std::string_view id, std::string_view body, std::int64_t created_ms,
                                                  std::int64_t sequence);

/// What an entry holds.
struct entry_content {
  event what{};
  std::int64_t created_ms = 0;
  std::int64_t sequence = 0;
  std::string problem{};  ///< of read_or_explain: why it cannot be read
};
/// Fields that are not known are passed over: a later version may have written them. Throws errc::malformed for what is no entry, and
/// errc::unsupported_type for one of another version. Checks names, headers and the depth of JSON as `publish` does: NUL in a type, a
/// line break in a content type or 200 KB of a name are malformed. The size of the payload is checked by the outbox, which knows its limit.
[[nodiscard]] HOLDFAST_API entry_content read_entry(std::string_view text);

/// Why an event has neither type nor payload.
[[nodiscard]] inline std::string unreadable(const error& problem) { return std::string("its entry cannot be read: ") + problem.what(); }
/// Reads the entry of the event with this id and key (nothing: the key is not known). Does not throw for an entry that is unreadable, or of
/// another event: returns an event with this id and key and without a type, which the outbox parks, and `problem` says why.
[[nodiscard]] HOLDFAST_API entry_content read_or_explain(std::string_view text, std::string_view id, std::optional<std::string_view> key);
/// What a ticket will become, by the body that is kept of it. It has no id yet.
[[nodiscard]] entry_content read_ticket(std::string_view body, std::string_view key);

/// A text, quoted and escaped, as JSON has it.
void append_json_text(std::string& to, std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::outboxes
