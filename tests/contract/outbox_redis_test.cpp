#include <holdfast/redis.hpp>

#include "contract/outbox_contract.hpp"
#include "outbox/redis/backend.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <memory>
#include <string>
#include <thread>

namespace holdfast::test {
namespace {

template <class Server>
struct on_a_redis {
  static constexpr bool commits = true;

  [[nodiscard]] std::shared_ptr<outbox_backend> make(std::size_t lanes) const {
    const auto& server = shared_server<Server>();
    auto client = std::make_shared<redis::client>(server.url());
    const auto prefix = "{" + server.unique_prefix("outbox") + "}";
    return std::make_shared<detail::outbox::redis_backend>(
        std::move(client), outbox_options{.prefix = prefix, .lanes = lanes});
  }
  static void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }
};

using on_redis = on_a_redis<redis_server>;
using on_a_cluster = on_a_redis<redis_cluster>;

INSTANTIATE_TYPED_TEST_SUITE_P(redis, OutboxContract, on_redis);
INSTANTIATE_TYPED_TEST_SUITE_P(cluster, OutboxContract, on_a_cluster);

}  // namespace
}  // namespace holdfast::test
