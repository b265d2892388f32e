// The contract of block stores on Redis, Redis Cluster and Redis behind Sentinels, with the fences
// that do not skip ordinals, and the contract of sequences on them.

#include <holdfast/database.hpp>
#include <holdfast/redis.hpp>

#include "contract/sequence_contract.hpp"
#include "sequence/redis/block_store.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast::test {
namespace {

template <class Server>
std::shared_ptr<block_store> store_on(sequence_fence fence) {
  const auto& server = shared_server<Server>();
  return detail::sequence::make_redis_block_store(
      {.client = std::make_shared<const redis::client>(server.url()),
       .prefix = server.unique_prefix("contract"),
       .fence = std::move(fence)});
}

template <class Server>
struct without_fence {
  static std::shared_ptr<block_store> make() { return store_on<Server>(no_fence{}); }
};

/// Small super-blocks, so that the tests cross their ends.
template <class Server>
struct with_super_blocks {
  static std::shared_ptr<block_store> make() {
    return store_on<Server>(super_blocks{.source = make_memory_block_store(), .size = 100});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Redis, BlockStoreContract, without_fence<redis_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisSuperBlocks, BlockStoreContract,
                               with_super_blocks<redis_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisCluster, BlockStoreContract, without_fence<redis_cluster>);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisClusterSuperBlocks, BlockStoreContract,
                               with_super_blocks<redis_cluster>);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisSentinelSuperBlocks, BlockStoreContract,
                               with_super_blocks<redis_sentinels>);

// ---- Sequences.

template <class Server, class Fence>
struct redis_sequences {
  [[nodiscard]] holdfast::sequence sequence(std::string_view name, sequence_options options) const {
    options.store = {.prefix = prefix, .allow_unsafe = true, .fence = fence};
    return open(shared_server<Server>().url()).sequence(name, std::move(options));
  }
  static sequence_fence make_fence() {
    if constexpr (std::is_same_v<Fence, super_blocks>)
      return super_blocks{.source = make_memory_block_store(), .size = 100};
    // The counter waits for `max_skew` at its first block.
    else if constexpr (std::is_same_v<Fence, clock_fence>)
      return clock_fence{.max_skew = std::chrono::milliseconds(100)};
    else if constexpr (std::is_same_v<Fence, wait_fence>)
      return wait_fence{.replicas = 1, .longest = std::chrono::seconds(60)};
    else return no_fence{};
  }
  std::string prefix = shared_server<Server>().unique_prefix("sequence");
  sequence_fence fence = make_fence();
};

using redis_super = redis_sequences<redis_server, super_blocks>;
using redis_clock = redis_sequences<redis_server, clock_fence>;
using redis_bare = redis_sequences<redis_server, no_fence>;
using cluster_super = redis_sequences<redis_cluster, super_blocks>;
using sentinel_super = redis_sequences<redis_sentinels, super_blocks>;
using sentinel_clock = redis_sequences<redis_sentinels, clock_fence>;
using sentinel_wait = redis_sequences<redis_sentinels, wait_fence>;
INSTANTIATE_TYPED_TEST_SUITE_P(RedisSuperBlocks, SequenceContract, redis_super);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisClock, SequenceContract, redis_clock);
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, SequenceContract, redis_bare);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisCluster, SequenceContract, cluster_super);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisSentinelSuperBlocks, SequenceContract, sentinel_super);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisSentinelClock, SequenceContract, sentinel_clock);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisSentinelWait, SequenceContract, sentinel_wait);

}  // namespace
}  // namespace holdfast::test
