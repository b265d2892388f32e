#pragma once

/// \file
/// What may be given to an outbox.

#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/options.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::outboxes {

inline constexpr std::size_t most_in_a_call = 1000;                    ///< Lua's stack ends at about 8000 values
inline constexpr std::size_t longest_name = 256;                       ///< bytes of a key, a type, a ticket...
inline constexpr std::size_t longest_error = 1024;                     ///< bytes of an error that is kept
inline constexpr std::chrono::hours longest_time{24 * 3660};           ///< a delay, a lease...: ten years
inline constexpr std::size_t deepest_json = 1024;                      ///< lists and objects in each other; parsers of receivers recurse
inline constexpr std::size_t largest_inline = std::size_t{16} << 20U;  ///< bytes of a payload inside an entry, whatever the options say

/// Each throws errc::invalid_argument (too_large for sizes), and says what to change.
void check_options(const outbox_options& options);
void check_event(const event& what, const outbox_options& options);
/// The parts of check_event that also apply to events read from the store. Names, headers, time to live, depth of a JSON payload:
void check_fields(const event& event);
/// and the size of a payload that is in the entry: why it is refused, or nothing.
[[nodiscard]] std::optional<std::string> inline_size_problem(std::size_t size, const outbox_options& options);
/// Whether lists and objects stand in each other more than deepest_json deep.
[[nodiscard]] bool nests_too_deep(std::string_view json);
void check_name(std::string_view what, std::string_view text, bool may_be_empty);
void check_duration(std::string_view what, std::chrono::milliseconds time, std::chrono::milliseconds least);
void check_id(std::string_view id);
void check_commit(const commit_request& request, std::string_view prefix);

/// Cut to what is kept, between characters; ill-formed bytes become '?', NUL a space.
[[nodiscard]] std::string kept_error(std::string_view text);

/// The lane of an ordering key, or of the id of an event without one: FNV-1a of its bytes, mixed, modulo the number of lanes (a power of two).
[[nodiscard]] HOLDFAST_API std::size_t lane_of(std::string_view key_or_id, std::size_t lanes) noexcept;

}  // namespace HOLDFAST_NAMESPACE::outboxes
