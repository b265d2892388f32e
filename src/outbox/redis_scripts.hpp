#pragma once

/// \file
/// What an outbox on Redis does, as Lua: each operation one script on the keys of one lane, all of them declared. Scripts read the server's
/// clock once, never look into the JSON of an entry, and write only at their end. All but those that take in new work are allowed to run when
/// the memory is full: they are what makes room.

#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::outboxes {

/// Where a script gets the time from: `TIME`. A test that compares with a model gives another expression: a list of seconds and microseconds.
inline constexpr std::string_view server_time = "redis.call('TIME')";

struct redis_scripts {
  explicit redis_scripts(std::string_view time = server_time);

  redis::script publish, claim, extend, settle, park_followers, replay, discard, pause, schedule, cancel, drain, lock, renew, unlock,
      commit, stats, look, repair;
};

}  // namespace HOLDFAST_NAMESPACE::outboxes
