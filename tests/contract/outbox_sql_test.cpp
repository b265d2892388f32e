#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "contract/outbox_contract.hpp"
#include "contract/recurring_contract.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/virtual_clock.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace holdfast::test {
namespace {

/// SQLite has no clock of its own but ours.
struct on_sqlite {
  std::shared_ptr<outbox_backend> make(std::size_t lanes) {
    return open("sqlite://" +
                    (directory.path() / ("outbox" + std::to_string(++made) + ".db")).string(),
                {.clock = clock})
        .outbox({.lanes = lanes, .create_schema = true})
        .backend();
  }
  void pass(std::chrono::milliseconds time) const { clock->advance(time); }
  static constexpr bool commits = false;

  temporary_directory directory{"outbox", "", medium::memory};
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();
  int made = 0;
};

/// One database for each test program, one outbox for each test.
template <class Server>
struct on_server {
  static std::shared_ptr<outbox_backend> make(std::size_t lanes) {
    static const auto& server = shared_server<Server>();
    static const auto database = open(server.url(server.create_database("outbox")));
    static std::atomic<int> made{0};
    return database
        .outbox(
            {.prefix = "{t" + std::to_string(++made) + "}", .lanes = lanes, .create_schema = true})
        .backend();
  }
  static void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }
  static constexpr bool commits = false;
};

INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, OutboxContract, on_sqlite);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, RecurringContract, on_sqlite);
INSTANTIATE_TYPED_TEST_SUITE_P(postgresql, OutboxContract, on_server<postgres_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(postgresql, RecurringContract, on_server<postgres_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(mariadb, OutboxContract, on_server<mariadb_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(mariadb, RecurringContract, on_server<mariadb_server>);

}  // namespace
}  // namespace holdfast::test
