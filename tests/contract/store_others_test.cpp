// The contract on the databases that are reached in other ways: H2 over its PostgreSQL port, and whatever has an ODBC driver.

#include <holdfast/database.hpp>

#include "contract/store_contract.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/tds_server.hpp"
#include "support/temporary_directory.hpp"

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

/// With the dialect that the driver tells, or as if nobody knew it.
enum class told : std::uint8_t { dialect, nothing };

/// One table for each test, made with the words of the dialect: a database that nobody knows has its table from its administrator.
template <told What>
std::shared_ptr<store> table_on(const std::string& url, std::shared_ptr<const clock> at) {
  static std::atomic<int> tables{0};
  const store_options named{.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true};
  auto made = open(url, {.clock = at}).store(named);
  if (What == told::dialect) return made;
  return open(url, {.resolve_dialect = [](sql::connection&) { return sql::dialect_id::unknown; }, .clock = std::move(at)})
      .store({.prefix = named.prefix});
}

template <told What>
struct on_psqlodbc {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> at) {
    static const auto& server = shared_server<postgres_server>();
    static const std::string url = odbc_postgres(server.port(), server.create_database("odbc"));
    return table_on<What>(url, std::move(at));
  }
};

template <told What>
struct on_maodbc {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> at) {
    static const auto& server = shared_server<mariadb_server>();
    static const std::string url = odbc_mariadb(server.port(), server.create_database("odbc"));
    return table_on<What>(url, std::move(at));
  }
};

template <told What>
struct on_sqliteodbc {
  [[nodiscard]] std::shared_ptr<store> make(std::shared_ptr<const clock> at) const {
    return table_on<What>(odbc_sqlite((directory.path() / "store.db").string()), std::move(at));
  }
  temporary_directory directory;
};

/// The words of SQL Server, through its driver, to something that speaks its protocol.
struct on_tdsodbc {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> at) {
    static const auto& server = shared_server<tds_server>();
    static const std::string url = odbc_tds(server.port(), server.create_database("tds"));
    return table_on<told::dialect>(url, std::move(at));
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(h2, StoreContract, on_h2);
INSTANTIATE_TYPED_TEST_SUITE_P(tdsodbc, StoreContract, on_tdsodbc);
INSTANTIATE_TYPED_TEST_SUITE_P(psqlodbc, StoreContract, on_psqlodbc<told::dialect>);
INSTANTIATE_TYPED_TEST_SUITE_P(psqlodbc_unknown, StoreContract, on_psqlodbc<told::nothing>);
INSTANTIATE_TYPED_TEST_SUITE_P(maodbc, StoreContract, on_maodbc<told::dialect>);
INSTANTIATE_TYPED_TEST_SUITE_P(maodbc_unknown, StoreContract, on_maodbc<told::nothing>);
INSTANTIATE_TYPED_TEST_SUITE_P(sqliteodbc, StoreContract, on_sqliteodbc<told::dialect>);
INSTANTIATE_TYPED_TEST_SUITE_P(sqliteodbc_unknown, StoreContract, on_sqliteodbc<told::nothing>);

}  // namespace
}  // namespace holdfast::test
