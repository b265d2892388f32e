#pragma once

/// \file
/// Arguments and replies that several scripts have in common.

#include <holdfast/error.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Length of an id, which is a UUID.
inline constexpr std::size_t id_length = 36;

void add_quota(redis::command& command, const outbox_quota& quota);
void add_event(redis::command& command, const event& event);

/// A whole number. Redis may write a score as 1.7e12; an infinite one becomes 9e18. Throws
/// errc::malformed if it is not a number.
[[nodiscard]] std::int64_t read_number(std::string_view text);
[[nodiscard]] std::int64_t read_number(const redis::reply& reply);
/// Milliseconds since 1970, at most the year 9999: a score that another program wrote may be
/// infinite.
[[nodiscard]] timestamp read_timestamp(std::string_view text);
/// Milliseconds; empty text: nothing.
[[nodiscard]] std::optional<std::chrono::milliseconds> read_duration(const redis::reply& reply);
/// `101` as true, false, true.
[[nodiscard]] std::vector<bool> read_flags(const redis::reply& reply);
/// For each event whether it was added, from such flags.
[[nodiscard]] std::vector<receipt> read_receipts(std::span<const event> events,
                                                 const redis::reply& flags);
/// Whether a script refused new work because of a quota; then quota_error() has the error.
[[nodiscard]] bool is_over_quota(const redis::reply::list& parts);
[[nodiscard]] error quota_error(const redis::reply::list& parts);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
