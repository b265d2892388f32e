#pragma once

/// \file
/// An entry: the JSON text that Redis keeps for an event. Written here, except for what only the store knows; scripts never parse it.
///
///     {"v":1,"id":"...",<body>,"createdAt":1700000000000,"seq":17}

#include <holdfast/outbox/event.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
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
};
/// Fields that are not known are passed over: a later version may have written them. Throws errc::malformed for what is no entry, and
/// errc::unsupported_type for one of another version.
[[nodiscard]] HOLDFAST_API entry_content read_entry(std::string_view text);

/// A text, quoted and escaped, as JSON has it.
void append_json_text(std::string& to, std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::outboxes
