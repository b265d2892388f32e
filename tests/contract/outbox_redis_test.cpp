#include <holdfast/redis.hpp>

#include "contract/outbox_contract.hpp"
#include "contract/recurring_contract.hpp"
#include "outbox/redis/backend.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <memory>
#include <string>
#include <thread>
#include <vector>

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

/// The scripts add a number to the time of the server.
struct on_redis {
  static constexpr bool commits = true;
  std::shared_ptr<redis::client> client =
      std::make_shared<redis::client>(shared_server<redis_server>().url());
  std::chrono::seconds offset{0};

  [[nodiscard]] std::shared_ptr<outbox_backend> make(std::size_t lanes) {
    prefixes.push_back("{" + shared_server<redis_server>().unique_prefix("outbox") + "}");
    return std::make_shared<detail::outbox::redis_backend>(
        client, outbox_options{.prefix = prefixes.back(), .lanes = lanes},
        "redis.call('TIME'); time[1] = time[1] + "
        "(tonumber(redis.call('HGET', KEYS[12], 'test-offset') or 0))");
  }
  static void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }
  void set_clock(std::chrono::milliseconds difference) {
    offset += std::chrono::floor<std::chrono::seconds>(difference);
    for (const auto& prefix : prefixes) {
      (void)client->call(
          redis::command("HSET").key(prefix + ":meta").arg("test-offset").arg(offset.count()));
    }
  }
  std::vector<std::string> prefixes{};
};

using on_a_cluster = on_a_redis<redis_cluster>;

INSTANTIATE_TYPED_TEST_SUITE_P(redis, OutboxContract, on_redis);
INSTANTIATE_TYPED_TEST_SUITE_P(redis, RecurringContract, on_redis);
INSTANTIATE_TYPED_TEST_SUITE_P(cluster, OutboxContract, on_a_cluster);
INSTANTIATE_TYPED_TEST_SUITE_P(cluster, RecurringContract, on_a_cluster);

}  // namespace
}  // namespace holdfast::test
