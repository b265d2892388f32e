#pragma once

/// \file
/// The Lua scripts that change counters inside Redis. The comment at the top of each .lua file says
/// what it takes and returns; counter.lua, the beginning of all of them, describes the hash of a
/// counter.

#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::sequence::redis {

/// One script for each file of this folder, by its name. KEYS[1] is always the counter.
struct counter_scripts {
  holdfast::redis::script allocate;
  holdfast::redis::script allocate_from_super_block;
  holdfast::redis::script allocate_by_clock;
  holdfast::redis::script peek;
  holdfast::redis::script raise;
  holdfast::redis::script raise_super_block;
  holdfast::redis::script replace;
  holdfast::redis::script forget;
  holdfast::redis::script definition;
  holdfast::redis::script redefine;
};

[[nodiscard]] const counter_scripts& scripts();

}  // namespace HOLDFAST_NAMESPACE::detail::sequence::redis
