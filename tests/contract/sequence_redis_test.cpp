// The contract of block stores on Redis and Redis Cluster, with the fences that do not skip
// ordinals.

#include <holdfast/redis.hpp>

#include "contract/sequence_contract.hpp"
#include "sequence/redis/block_store.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

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

}  // namespace
}  // namespace holdfast::test
