#pragma once

/// \file
/// Settings of Redis servers that break the promise of a sequence.

#include <holdfast/redis.hpp>
#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// The reasons why Redis could grant a block twice with this fence, and what to do about each.
/// Throws if a master does not answer.
[[nodiscard]] std::vector<std::string> unsafe_redis_settings(const holdfast::redis::client& client,
                                                             const sequence_fence& fence);

/// The same for one server, from its own report.
[[nodiscard]] HOLDFAST_API std::vector<std::string> unsafe_redis_settings(
    const holdfast::redis::server_report& server, const sequence_fence& fence);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
