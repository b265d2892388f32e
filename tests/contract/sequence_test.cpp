// The contract of block stores in memory and on SQL databases.

#include <holdfast/database.hpp>
#include <holdfast/sequence/block_store.hpp>

#include "contract/sequence_contract.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <atomic>
#include <string>

namespace holdfast::test {
namespace {

struct in_memory {
  static std::shared_ptr<block_store> make() { return make_memory_block_store(); }
};

struct on_sqlite {
  [[nodiscard]] std::shared_ptr<block_store> make() const {
    return open("sqlite://" + (directory.path() / "ids.db").string())
        .block_store({.prefix = "T_", .create_schema = true});
  }
  temporary_directory directory;
};

/// One database for each test program, one table for each test.
template <class Server>
struct on_server {
  static std::shared_ptr<block_store> make(database_options options = {}) {
    static const auto& server = shared_server<Server>();
    static const std::string url = server.url(server.create_database("sequences"));
    static std::atomic<int> tables{0};
    return open(url, std::move(options))
        .block_store({.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true});
  }
};

/// The statements for MySQL, which has no RETURNING, on a MariaDB server.
struct as_mysql {
  static std::shared_ptr<block_store> make() {
    static const auto& server = shared_server<mariadb_server>();
    static const std::string url = server.url(server.create_database("as_mysql"));
    static std::atomic<int> tables{0};
    const sequence_store_options options{.prefix = "M" + std::to_string(++tables) + "_"};
    (void)open(url).block_store({.prefix = options.prefix, .create_schema = true})->list(1);
    return open(url, {.resolve_dialect = [](sql::connection&) { return sql::dialect_id::mysql; }})
        .block_store(options);
  }
};

/// Through an ODBC driver.
struct on_psqlodbc {
  static std::shared_ptr<block_store> make() {
    static const auto& server = shared_server<postgres_server>();
    static const std::string url = odbc_postgres(server.port(), server.create_database("odbc"));
    static std::atomic<int> tables{0};
    return open(url).block_store(
        {.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, BlockStoreContract, in_memory);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, BlockStoreContract, on_sqlite);
INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, BlockStoreContract, on_server<postgres_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(MariaDb, BlockStoreContract, on_server<mariadb_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(MySql, BlockStoreContract, as_mysql);
INSTANTIATE_TYPED_TEST_SUITE_P(H2, BlockStoreContract, on_server<h2_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(Psqlodbc, BlockStoreContract, on_psqlodbc);

// ---- Sequences.

struct sequences_in_memory {
  [[nodiscard]] holdfast::sequence sequence(std::string_view name, sequence_options options) const {
    return db.sequence(name, std::move(options));
  }
  database db = open("memory:");
};

struct sequences_on_sqlite {
  [[nodiscard]] holdfast::sequence sequence(std::string_view name, sequence_options options) const {
    options.store.create_schema = true;
    return open("sqlite://" + (directory.path() / "ids.db").string())
        .sequence(name, std::move(options));
  }
  temporary_directory directory;
};

/// A table for each test: several fixtures use one database.
std::string new_sequence_prefix() {
  static std::atomic<int> tables{0};
  return "S" + std::to_string(++tables) + "_";
}

/// `Place` has `static std::string url()` and `static database_options options()`.
template <class Place>
struct sequences_on {
  [[nodiscard]] holdfast::sequence sequence(std::string_view name, sequence_options options) const {
    options.store.prefix = prefix;
    options.store.create_schema = true;
    // As the driver names it: the statements for MySQL cannot create a table on MariaDB.
    (void)open(Place::url()).block_store(options.store)->list(1);
    options.store.create_schema = false;
    return open(Place::url(), Place::options()).sequence(name, std::move(options));
  }
  std::string prefix = new_sequence_prefix();
};

template <class Server>
struct at_server {
  static std::string url() {
    static const auto& server = shared_server<Server>();
    static const std::string created = server.url(server.create_database("whole"));
    return created;
  }
  static database_options options() { return {}; }
};
struct at_mysql : at_server<mariadb_server> {
  static database_options options() {
    return {.resolve_dialect = [](sql::connection&) { return sql::dialect_id::mysql; }};
  }
};
struct at_psqlodbc {
  static std::string url() {
    static const auto& server = shared_server<postgres_server>();
    static const std::string created =
        odbc_postgres(server.port(), server.create_database("whole_odbc"));
    return created;
  }
  static database_options options() { return {}; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, SequenceContract, sequences_in_memory);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, SequenceContract, sequences_on_sqlite);
INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, SequenceContract,
                               sequences_on<at_server<postgres_server>>);
INSTANTIATE_TYPED_TEST_SUITE_P(MariaDb, SequenceContract, sequences_on<at_server<mariadb_server>>);
INSTANTIATE_TYPED_TEST_SUITE_P(MySql, SequenceContract, sequences_on<at_mysql>);
INSTANTIATE_TYPED_TEST_SUITE_P(H2, SequenceContract, sequences_on<at_server<h2_server>>);
INSTANTIATE_TYPED_TEST_SUITE_P(Psqlodbc, SequenceContract, sequences_on<at_psqlodbc>);

}  // namespace
}  // namespace holdfast::test
