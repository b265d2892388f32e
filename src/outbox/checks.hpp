#pragma once

/// \file
/// Limits of an outbox and checks of its arguments; also which lane a key belongs to.

#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/options.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Number of events, ids or settlements in one call at most. The stack of Lua has about 8000 slots,
/// and an item needs several.
inline constexpr std::size_t max_events_per_call = 1000;
/// Maximum size of the events of one call of `publish`. As claim_request::bytes.
inline constexpr std::size_t max_bytes_per_call = std::size_t{4} << 20U;
/// Ten years: the longest delay, lease and so on.
inline constexpr std::chrono::hours longest_time{24 * 3660};
/// Lists and objects inside each other in a JSON payload. Parsers of receivers recurse.
inline constexpr std::size_t deepest_json = 1024;
/// Bytes of a payload inside an entry, whatever the options allow.
inline constexpr std::size_t largest_inline = std::size_t{16} << 20U;

// Each of these throws errc::invalid_argument, or errc::too_large for a payload. The message says
// what to change.
HOLDFAST_API void check_options(const outbox_options& options);
void check_event(const event& event, const outbox_options& options);
/// The part of check_event that also applies to events read from the store: names, headers, time to
/// live, depth of a JSON payload.
void check_fields(const event& event);
/// `name` says what the text is, for the message.
void check_name(std::string_view name, std::string_view text, bool may_be_empty);
void check_duration(std::string_view name, std::chrono::milliseconds duration,
                    std::chrono::milliseconds minimum);
void check_id(std::string_view id);
/// `prefix` is outbox_backend::key_prefix of the lane.
void check_commit(const commit_request& request, std::string_view prefix);

/// Returns why a payload of this size must not be inside an entry, or nothing. Applies to
/// publishing and to events read from the store.
[[nodiscard]] std::optional<std::string> inline_size_problem(std::size_t size,
                                                             const outbox_options& options);
/// Whether the text has more than deepest_json lists and objects inside each other.
[[nodiscard]] bool nests_too_deep(std::string_view json);

/// Returns the lane of an ordering key, or of the id of an event without a key: a hash modulo the
/// number of lanes, which is a power of two.
[[nodiscard]] HOLDFAST_API std::size_t lane_of(std::string_view key_or_id,
                                               std::size_t lanes) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
