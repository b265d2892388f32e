// The contract on the databases that are reached in other ways: H2 over its PostgreSQL port, and whatever has an ODBC driver.

#include <holdfast/database.hpp>

#include "contract/store_contract.hpp"
#include "support/h2_server.hpp"
#include "support/shared_server.hpp"

#include <atomic>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

/// One database for each test program, one table for each test.
struct on_h2 {
  static constexpr std::size_t largest_payload = 1'048'576;  // characters, in one value

  static std::shared_ptr<store> make(std::shared_ptr<const clock> at) {
    static const auto& server = shared_server<h2_server>();
    static const std::string url = server.url(server.create_database("contract"));
    static std::atomic<int> tables{0};
    return open(url, {.clock = std::move(at)}).store({.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(h2, StoreContract, on_h2);

}  // namespace
}  // namespace holdfast::test
