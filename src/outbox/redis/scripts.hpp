#pragma once

/// \file
/// The Lua scripts of an outbox on Redis: one for each operation, on the keys of one lane, all of
/// which are declared. A script reads the server's clock once, does not parse the JSON of an entry,
/// and makes its checks before its first write. Scripts that take in new work are refused when the
/// server's memory is full. All others may still run, because they free memory.

#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Lua expression for the time: a list of seconds and microseconds. The test that compares Redis
/// with the outbox in memory passes another one, so that both have the same time.
inline constexpr std::string_view server_time = "redis.call('TIME')";

struct redis_scripts {
  explicit redis_scripts(std::string_view time = server_time);

  redis::script publish, commit;
  redis::script claim, extend, settle, park_followers;
  redis::script replay, discard, pause, schedule, cancel, drain, lock, unlock, workers;
  redis::script read_recurrences, update_recurrence;
  redis::script stats, inspect, repair;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
