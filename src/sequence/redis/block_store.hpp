#pragma once

/// \file
/// Counters on Redis or Redis Cluster.

#include <holdfast/redis.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sequence {

struct redis_block_store_options {
  std::shared_ptr<const holdfast::redis::client> client{};
  /// Of the keys: {prefix}holdfast:seq:{name}
  std::string prefix{};
  sequence_fence fence{};
};

/// Throws errc::invalid_argument for an invalid fence or prefix.
[[nodiscard]] HOLDFAST_API std::shared_ptr<block_store> make_redis_block_store(
    redis_block_store_options options);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
