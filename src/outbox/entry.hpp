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

}  // namespace HOLDFAST_NAMESPACE::outboxes
