// The contract on the databases that are reached in other ways: H2 over its PostgreSQL port, and
// whatever has an ODBC driver.

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

  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    static const auto& server = shared_server<h2_server>();
    static const std::string url = server.url(server.create_database("contract"));
    static std::atomic<int> tables{0};
    return open(url, {.clock = std::move(time_source)})
        .store({.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true});
  }
};

/// Whether the store uses the dialect of the driver or treats it as unknown.
enum class dialect_mode : std::uint8_t { detected, unknown };

/// One table for each test. It is always created with the dialect of the driver: on an unknown
/// database an administrator creates the table.
template <dialect_mode Mode>
std::shared_ptr<store> table_on(const std::string& url, std::shared_ptr<const clock> time_source) {
  static std::atomic<int> tables{0};
  const store_options named{.prefix = "T" + std::to_string(++tables) + "_",
                            .create_schema = true,
                            .start = start_mode::require};
  auto result = open(url, {.clock = time_source}).store(named);
  if (Mode == dialect_mode::detected) return result;
  return open(url, {.resolve_dialect = [](sql::connection&) { return sql::dialect_id::unknown; },
                    .clock = std::move(time_source)})
      .store({.prefix = named.prefix, .start = start_mode::require});
}

template <dialect_mode Mode>
struct on_psqlodbc {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    static const auto& server = shared_server<postgres_server>();
    static const std::string url = odbc_postgres(server.port(), server.create_database("odbc"));
    return table_on<Mode>(url, std::move(time_source));
  }
};

template <dialect_mode Mode>
struct on_maodbc {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    static const auto& server = shared_server<mariadb_server>();
    static const std::string url = odbc_mariadb(server.port(), server.create_database("odbc"));
    return table_on<Mode>(url, std::move(time_source));
  }
};

template <dialect_mode Mode>
struct on_sqliteodbc {
  [[nodiscard]] std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) const {
    return table_on<Mode>(odbc_sqlite((directory.path() / "store.db").string()),
                          std::move(time_source));
  }
  temporary_directory directory;
};

/// The words of SQL Server, through its driver, to something that speaks its protocol.
struct on_tdsodbc {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    static const auto& server = shared_server<tds_server>();
    static const std::string url = odbc_tds(server.port(), server.create_database("tds"));
    return table_on<dialect_mode::detected>(url, std::move(time_source));
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(h2, StoreContract, on_h2);
INSTANTIATE_TYPED_TEST_SUITE_P(tdsodbc, StoreContract, on_tdsodbc);
INSTANTIATE_TYPED_TEST_SUITE_P(psqlodbc, StoreContract, on_psqlodbc<dialect_mode::detected>);
INSTANTIATE_TYPED_TEST_SUITE_P(psqlodbc_unknown, StoreContract, on_psqlodbc<dialect_mode::unknown>);
INSTANTIATE_TYPED_TEST_SUITE_P(maodbc, StoreContract, on_maodbc<dialect_mode::detected>);
INSTANTIATE_TYPED_TEST_SUITE_P(maodbc_unknown, StoreContract, on_maodbc<dialect_mode::unknown>);
INSTANTIATE_TYPED_TEST_SUITE_P(sqliteodbc, StoreContract, on_sqliteodbc<dialect_mode::detected>);
INSTANTIATE_TYPED_TEST_SUITE_P(sqliteodbc_unknown, StoreContract,
                               on_sqliteodbc<dialect_mode::unknown>);

}  // namespace
}  // namespace holdfast::test
