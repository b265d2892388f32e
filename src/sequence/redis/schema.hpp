#pragma once

/// \file
/// The schema version of counters on Redis. A counter has its version in the field `schema`;
/// without that field it has version 1. Every script of a sequence refuses a counter with a newer
/// version, see counter.lua.

#include <holdfast/version.hpp>

#include "sequence/redis/counters.hpp"

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// The version of the counters that this code creates. Raise it, and let the scripts write the
/// field `schema`, when a counter gets fields that older code must not ignore.
inline constexpr int current_counter_schema = 1;
/// The oldest version that this code works with.
inline constexpr int oldest_counter_schema = 1;

/// The versions of all counters with one prefix: sorted, each once. Empty if there are no counters.
/// Throws errc::malformed for a version that is not a number, and errors of Redis.
[[nodiscard]] HOLDFAST_API std::vector<int> counter_schema_versions(const redis_counters& counters);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
