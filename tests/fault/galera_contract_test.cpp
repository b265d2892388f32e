// The contracts of outbox, store and sequences on a MariaDB cluster with Galera. Each transaction
// of the outbox goes to another node than the one before it.

#include <holdfast/database.hpp>
#include <holdfast/sequence/block_store.hpp>

#include "contract/outbox_contract.hpp"
#include "contract/recurring_contract.hpp"
#include "contract/sequence_contract.hpp"
#include "contract/store_contract.hpp"
#include "fault/galera_nodes.hpp"
#include "sql/connect.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

/// A connection to each node. The wait with which each transaction of the outbox begins goes to the
/// next node, and so does what follows.
class connection_to_next_node final : public sql::connection {
 public:
  explicit connection_to_next_node(std::vector<std::unique_ptr<sql::connection>> nodes)
      : nodes_(std::move(nodes)) {}

  [[nodiscard]] sql::dialect_id dialect() const noexcept override { return node().dialect(); }
  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    return node().execute(s, parameters);
  }
  sql::outcome batch(const sql::batch_statement& s,
                     std::span<const std::vector<sql::parameter>> columns,
                     std::span<const sql::parameter> common) override {
    return node().batch(s, columns, common);
  }
  void run(const std::string& text) override {
    if (text.find("wsrep_sync_wait") != std::string::npos) index_ = (index_ + 1) % nodes_.size();
    node().run(text);
  }
  void begin() override { node().begin(); }
  void commit() override { node().commit(); }
  void rollback() noexcept override { node().rollback(); }
  void limit(std::chrono::milliseconds longest) override {
    for (const auto& each : nodes_) each->limit(longest);
  }
  [[nodiscard]] bool broken() const noexcept override {
    return std::ranges::any_of(nodes_, [](const auto& each) { return each->broken(); });
  }

 private:
  [[nodiscard]] sql::connection& node() const { return *nodes_[index_]; }

  std::vector<std::unique_ptr<sql::connection>> nodes_;
  std::size_t index_ = 0;
};

database open_on_all_nodes(const std::string& name) {
  std::vector<sql::connection_factory> factories;
  for (std::size_t i = 0; i < shared_galera().size(); ++i)
    factories.push_back(detail::sql::connector(shared_galera().node(i).url(name), {}));
  return {[factories] {
            std::vector<std::unique_ptr<sql::connection>> connections;
            connections.reserve(factories.size());
            for (const auto& connect : factories) connections.push_back(connect());
            return std::make_unique<connection_to_next_node>(std::move(connections));
          },
          {}};
}

std::string create_database(const std::string& purpose) {
  return shared_galera().node(0).create_database(purpose);
}

struct outbox_on_galera {
  static std::shared_ptr<outbox_backend> make(std::size_t lanes) {
    static const auto database = open_on_all_nodes(create_database("outbox"));
    static std::atomic<int> made{0};
    return database
        .outbox(
            {.prefix = "{t" + std::to_string(++made) + "}", .lanes = lanes, .create_schema = true})
        .backend();
  }
  static void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }
  static constexpr bool commits = false;
};

INSTANTIATE_TYPED_TEST_SUITE_P(galera, OutboxContract, outbox_on_galera);
INSTANTIATE_TYPED_TEST_SUITE_P(galera, RecurringContract, outbox_on_galera);

/// Through one node: the store does not wait for what others have written.
struct store_on_galera {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    static const auto url = shared_galera().node(1).url(create_database("store"));
    static std::atomic<int> tables{0};
    return open(url, {.clock = std::move(time_source)})
        .store({.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(galera, StoreContract, store_on_galera);

struct blocks_on_galera {
  static std::shared_ptr<block_store> make() {
    static const auto url = shared_galera().node(2).url(create_database("blocks"));
    static std::atomic<int> tables{0};
    return open(url).block_store(
        {.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true});
  }
};

struct sequences_on_galera {
  [[nodiscard]] holdfast::sequence sequence(std::string_view name, sequence_options options) const {
    static const auto url = shared_galera().node(0).url(create_database("sequences"));
    options.store.prefix = prefix;
    options.store.create_schema = true;
    return open(url).sequence(name, std::move(options));
  }
  static std::string new_prefix() {
    static std::atomic<int> tables{0};
    return "S" + std::to_string(++tables) + "_";
  }
  std::string prefix = new_prefix();
};

INSTANTIATE_TYPED_TEST_SUITE_P(galera, BlockStoreContract, blocks_on_galera);
INSTANTIATE_TYPED_TEST_SUITE_P(galera, SequenceContract, sequences_on_galera);

}  // namespace
}  // namespace holdfast::test
