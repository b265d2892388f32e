#pragma once

#include <holdfast/redis.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include <functional>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE {

struct redis_block_store_parts {
  std::shared_ptr<const redis::client> client{};
  std::function<std::shared_ptr<const redis::client>()> connect{};  ///< another client for the same server, for a child process
  std::string prefix{};                                             ///< of the keys: {prefix}holdfast:seq:{name}
  sequence_fence fence{};
};

/// Throws errc::invalid_argument for a fence that is not chosen or cannot hold.
HOLDFAST_API void check_sequence_fence(const sequence_fence& fence);

/// Counters on a Redis, or a Redis Cluster: a key for each. Throws errc::invalid_argument for a fence that is not chosen or cannot hold, and for
/// a bad prefix.
[[nodiscard]] HOLDFAST_API std::shared_ptr<block_store> make_redis_block_store(redis_block_store_parts parts);

}  // namespace HOLDFAST_NAMESPACE
