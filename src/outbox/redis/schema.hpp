#pragma once

/// \file
/// The schema version of an outbox on Redis: the field `schema` of the hash {prefix}:meta. Without
/// that field the version is 1.

#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The version of the outboxes that this code creates. To raise it, add the changes of the keys to
/// upgrade_redis_outbox, and let the scripts work with the version before as well.
inline constexpr int current_outbox_schema = 1;
/// The oldest version that this code works with.
inline constexpr int oldest_outbox_schema = 1;

/// The hash that describes an outbox: layout, lanes, schema.
[[nodiscard]] HOLDFAST_API std::string meta_key(std::string_view prefix);

/// Throws errc::unsupported_type if this code does not work with an outbox of this version.
HOLDFAST_API void check_outbox_schema(std::string_view prefix, int version);

/// The version of an outbox. Nothing if there is no outbox with this prefix. Throws errc::malformed
/// for a version that is not a number, and errors of Redis.
[[nodiscard]] HOLDFAST_API std::optional<int> read_outbox_schema(
    const holdfast::redis::client& client, std::string_view prefix);

/// The number of lanes of an outbox; 1 if there is no outbox with this prefix, or its number was
/// damaged. Throws errors of Redis.
[[nodiscard]] HOLDFAST_API std::size_t read_lane_count(const holdfast::redis::client& client,
                                                       std::string_view prefix);

/// Brings an outbox to the current version. It may be called at the same time by several processes,
/// and again after a failure. Throws as check_outbox_schema, and errors of Redis.
HOLDFAST_API void upgrade_redis_outbox(const holdfast::redis::client& client,
                                       std::string_view prefix);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
