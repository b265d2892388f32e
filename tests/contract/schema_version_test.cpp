// The mechanism of schema versions, with a set of tables of its own, on every SQL database.

#include <holdfast/error.hpp>

#include "sql/connect.hpp"
#include "sql/schema_upgrade.hpp"
#include "support/child_process.hpp"
#include "support/failure_of.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/tds_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

namespace schema = ::holdfast::detail::sql;
using sql::dialect_id;
using connection_ptr = std::unique_ptr<sql::connection>;

std::string next_prefix() {
  static std::atomic<int> count{0};
  return "T" + std::to_string(::getpid()) + "_" + std::to_string(++count) + "_";
}

/// Runs the statements for MySQL, which has fewer IF NOT EXISTS, on MariaDB.
constexpr std::string_view as_mysql = "mysql as dialect of ";

connection_ptr connect(std::string url) {
  if (url.starts_with(as_mysql)) url.erase(0, as_mysql.size());
  return detail::sql::connector(url, {})();
}

dialect_id dialect_for(const std::string& url, const sql::connection& connection) {
  return url.starts_with(as_mysql) ? dialect_id::mysql : connection.dialect();
}

/// The column types of a set of things.
struct thing_types {
  std::string number;
  std::string text;
};

thing_types types_in(dialect_id dialect) {
  if (dialect == dialect_id::sqlserver) return {"BIGINT", "NVARCHAR(50)"};
  return {"BIGINT", "VARCHAR(50)"};
}

/// A set of one table. Version 2 added a column and an index, version 3 two more columns.
schema::schema_set things(const std::string& prefix, int current, int oldest = 1) {
  const std::string table = prefix + "THINGS";
  const auto create = [table](dialect_id dialect, int version) {
    const auto types = types_in(dialect);
    std::string text = dialect == dialect_id::sqlserver
                           ? "IF OBJECT_ID('" + table + "') IS NULL CREATE TABLE "
                           : std::string("CREATE TABLE IF NOT EXISTS ");
    text += table + " (ID " + types.number + " NOT NULL PRIMARY KEY";
    if (version >= 2) text += ", COLOUR " + types.text + " DEFAULT 'red'";
    if (version >= 3) text += ", WIDTH " + types.number + " DEFAULT 1, HEIGHT " + types.number;
    const std::string index = "IDX_" + schema::unqualified(table);
    // MySQL has no CREATE INDEX IF NOT EXISTS.
    const bool inside = dialect == dialect_id::mysql;
    if (version >= 2 && inside) text += ", INDEX " + index + " (COLOUR)";
    std::vector<std::string> statements{text + ")"};
    if (version >= 2 && !inside)
      statements.push_back(schema::add_index(dialect, index, table, "(COLOUR)").text);
    return statements;
  };
  const auto upgrade = [table](dialect_id dialect,
                               int version) -> std::vector<schema::schema_step> {
    const auto types = types_in(dialect);
    if (version == 2)
      return {schema::add_column(dialect, table, "COLOUR", types.text + " DEFAULT 'red'"),
              schema::add_index(dialect, "IDX_" + schema::unqualified(table), table, "(COLOUR)")};
    return {schema::add_column(dialect, table, "WIDTH", types.number + " DEFAULT 1"),
            schema::add_column(dialect, table, "HEIGHT", types.number)};
  };
  return {.name = "things",
          .tables = {table},
          .current = current,
          .oldest = oldest,
          .create = create,
          .upgrade = upgrade,
          .markers = {{2, table, "COLOUR"}, {3, table, "WIDTH"}},
          .command_options = "--prefix " + prefix};
}

std::int64_t number_from(sql::connection& connection, const std::string& query) {
  const auto rows = connection.execute({.text = query, .results = {sql::type::integer}}, {}).rows;
  return rows.empty() ? -1 : std::get<std::int64_t>(rows.at(0, 0));
}

bool has_column(sql::connection& connection, const std::string& table, const std::string& column) {
  try {
    (void)number_from(connection, "SELECT COUNT(*) FROM (SELECT " + column + " FROM " + table +
                                      " WHERE 1 = 0) X");
    return true;
  } catch (const error&) {
    return false;
  }
}

/// A connection that runs an action before each statement.
class interrupted_connection final : public sql::connection {
 public:
  interrupted_connection(connection_ptr inner, std::function<void()> before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  dialect_id dialect() const noexcept override { return inner_->dialect(); }
  sql::outcome execute(const sql::statement& s, std::span<const sql::parameter> p) override {
    before_();
    return inner_->execute(s, p);
  }
  sql::outcome batch(const sql::batch_statement& s, std::span<const std::vector<sql::parameter>> c,
                     std::span<const sql::parameter> common) override {
    before_();
    return inner_->batch(s, c, common);
  }
  void run(const std::string& text) override {
    before_();
    inner_->run(text);
  }
  void begin() override {
    before_();
    inner_->begin();
  }
  void commit() override {
    before_();
    inner_->commit();
  }
  void rollback() noexcept override { inner_->rollback(); }
  void limit(std::chrono::milliseconds longest) override { inner_->limit(longest); }
  bool broken() const noexcept override { return inner_->broken(); }

 private:
  connection_ptr inner_;
  std::function<void()> before_;
};

/// Upgrades a set and kills itself before a statement. Exit code 7: there were fewer statements.
HOLDFAST_WORKER(killed_upgrade) {
  int remaining = std::stoi(arguments.at(2));
  interrupted_connection connection(connect(arguments.at(0)), [&] {
    if (remaining-- == 0) (void)::kill(::getpid(), SIGKILL);
  });
  (void)schema::upgrade_schema(connection, dialect_for(arguments.at(0), connection),
                               things(arguments.at(1), 3));
  return 7;
}

struct on_sqlite {
  static std::string url() {
    static const temporary_directory directory;
    return "sqlite://" + (directory.path() / "schema.db").string();
  }
};

template <class Server>
struct on_server {
  static std::string url() {
    static const auto& server = shared_server<Server>();
    static const std::string url = server.url(server.create_database("schema"));
    return url;
  }
};

struct on_mysql {
  static std::string url() { return std::string(as_mysql) + on_server<mariadb_server>::url(); }
};

struct on_psqlodbc {
  static std::string url() {
    static const auto& server = shared_server<postgres_server>();
    static const std::string url = odbc_postgres(server.port(), server.create_database("schema"));
    return url;
  }
};

struct on_maodbc {
  static std::string url() {
    static const auto& server = shared_server<mariadb_server>();
    static const std::string url = odbc_mariadb(server.port(), server.create_database("schema"));
    return url;
  }
};

struct on_sqliteodbc {
  static std::string url() {
    static const temporary_directory directory;
    return odbc_sqlite((directory.path() / "schema.db").string());
  }
};

struct on_tdsodbc {
  static std::string url() {
    static const auto& server = shared_server<tds_server>();
    static const std::string url = odbc_tds(server.port(), server.create_database("schema"));
    return url;
  }
};

template <class Backend>
class SchemaVersion : public testing::Test {
 protected:
  const std::string url_ = Backend::url();
  const std::string prefix_ = next_prefix();
  const connection_ptr connection_ = connect(url_);
  const dialect_id dialect_ = dialect_for(url_, *connection_);
  const std::string table_ = prefix_ + "THINGS";

  [[nodiscard]] int create(int current) {
    return schema::create_schema(*connection_, dialect_, things(prefix_, current));
  }
  [[nodiscard]] int read(int current, int oldest = 1) {
    return schema::read_schema_version(*connection_, dialect_, things(prefix_, current, oldest));
  }
  [[nodiscard]] schema::schema_state inspect(int current = 3) {
    return schema::inspect_schema(*connection_, dialect_, things(prefix_, current));
  }
  std::vector<std::string> upgrade(int current = 3) {
    return schema::upgrade_schema(*connection_, dialect_, things(prefix_, current));
  }
  /// The tables before there were versions.
  void create_without_version() {
    for (const auto& text : things(prefix_, 1).create(dialect_, 1)) connection_->run(text);
    connection_->run("INSERT INTO " + table_ + " (ID) VALUES (7)");
  }
  [[nodiscard]] bool has(const std::string& column) {
    return has_column(*connection_, table_, column);
  }
};

using Backends =
    testing::Types<on_sqlite, on_server<postgres_server>, on_server<mariadb_server>, on_mysql,
                   on_server<h2_server>, on_psqlodbc, on_maodbc, on_sqliteodbc, on_tdsodbc>;

struct backend_names {
  template <class Backend>
  static std::string GetName(int index) {
    static const char* const names[]{"sqlite",   "postgresql", "mariadb",    "mysql",  "h2",
                                     "psqlodbc", "maodbc",     "sqliteodbc", "tdsodbc"};
    return names[index];
  }
};

TYPED_TEST_SUITE(SchemaVersion, Backends, backend_names);

TYPED_TEST(SchemaVersion, TablesWithoutARowHaveVersionOne) {
  EXPECT_FALSE(this->inspect().exists);
  this->create_without_version();
  EXPECT_TRUE(this->inspect().exists);
  EXPECT_EQ(this->inspect().recorded, std::nullopt);
  EXPECT_EQ(this->inspect().version, 1);
  EXPECT_EQ(this->read(1), 1);
  EXPECT_EQ(this->read(2), 1);
  // Code that works only with later versions names the command.
  const auto failure = failure_of([this] { (void)this->read(3, 2); });
  EXPECT_EQ(failure.code(), errc::unsupported_type);
  EXPECT_NE(failure.message().find("holdfast schema upgrade URL --prefix " + this->prefix_),
            std::string::npos)
      << failure.message();
  EXPECT_NE(failure.message().find("version 1"), std::string::npos) << failure.message();
}

TYPED_TEST(SchemaVersion, TablesThatDoNotExistAreNotRefused) {
  EXPECT_EQ(this->read(3, 2), 3);
  EXPECT_EQ(this->read(1), 1);
  EXPECT_TRUE(this->upgrade().empty());
}

TYPED_TEST(SchemaVersion, CreatingRecordsTheVersion) {
  EXPECT_EQ(this->create(2), 2);
  EXPECT_EQ(this->create(2), 2);
  EXPECT_EQ(this->inspect().recorded, 2);
  EXPECT_TRUE(this->has("COLOUR"));
  EXPECT_FALSE(this->has("WIDTH"));
  EXPECT_EQ(this->read(2), 2);
  EXPECT_EQ(this->read(3), 2);
}

TYPED_TEST(SchemaVersion, NewerTablesAreRefused) {
  EXPECT_EQ(this->create(3), 3);
  for (const auto& open : std::vector<std::function<void()>>{[this] { (void)this->read(2); },
                                                             [this] { (void)this->create(2); },
                                                             [this] { (void)this->upgrade(2); }}) {
    const auto failure = failure_of(open);
    EXPECT_EQ(failure.code(), errc::unsupported_type);
    EXPECT_FALSE(failure.transient());
    for (const std::string& part : {this->table_, std::string("version 3"), std::string("up to 2"),
                                    std::string("update the program")})
      EXPECT_NE(failure.message().find(part), std::string::npos) << failure.message();
  }
  EXPECT_EQ(this->inspect().recorded, 3);
}

TYPED_TEST(SchemaVersion, CreatingKeepsTheVersionOfExistingTables) {
  this->create_without_version();
  EXPECT_EQ(this->create(2), 1);
  EXPECT_FALSE(this->has("COLOUR"));
  EXPECT_EQ(this->read(2), 1);
  EXPECT_EQ(this->inspect().recorded, 1);
}

TYPED_TEST(SchemaVersion, TheScriptRecordsWhatTheTablesAre) {
  const auto run_script = [this](int current) {
    const auto set = things(this->prefix_, current);
    for (const auto& text : schema::create_script(this->dialect_, {&set, 1}))
      this->connection_->run(text);
  };
  run_script(2);
  EXPECT_EQ(this->inspect().recorded, 2);
  run_script(2);
  EXPECT_EQ(this->inspect().recorded, 2);
  this->connection_->run("DROP TABLE " + this->table_);
  this->connection_->run("DELETE FROM HOLDFAST_SCHEMA WHERE SET_NAME = '" +
                         schema::schema_row_name(this->dialect_, things(this->prefix_, 1)) + "'");
  for (const auto& text : things(this->prefix_, 2).create(this->dialect_, 2))
    this->connection_->run(text);
  run_script(3);
  EXPECT_EQ(this->inspect().recorded, 2);
}

TYPED_TEST(SchemaVersion, UpgradesTablesWithData) {
  this->create_without_version();
  const auto set = things(this->prefix_, 3);
  const auto planned = schema::upgrade_statements(this->dialect_, set, this->inspect());
  EXPECT_EQ(this->upgrade(), planned);
  EXPECT_EQ(planned.size(), 8U);  // two that record, four steps, two that raise the version
  EXPECT_EQ(this->read(3), 3);
  EXPECT_EQ(number_from(*this->connection_,
                        "SELECT ID FROM " + this->table_ + " WHERE COLOUR = 'red' AND WIDTH = 1"),
            7);
  EXPECT_TRUE(this->upgrade().empty());
  EXPECT_TRUE(schema::upgrade_statements(this->dialect_, set, this->inspect()).empty());
}

TYPED_TEST(SchemaVersion, UpgradesFromAnyVersion) {
  EXPECT_EQ(this->create(2), 2);
  EXPECT_EQ(this->upgrade().size(), 3U);
  EXPECT_TRUE(this->has("HEIGHT"));
  EXPECT_EQ(this->read(3), 3);
}

TYPED_TEST(SchemaVersion, StepsThatRanBeforeAreSkipped) {
  this->create_without_version();
  // As if a process died after it changed the table, and before it recorded the version.
  const auto set = things(this->prefix_, 3);
  for (const auto& step : set.upgrade(this->dialect_, 2)) this->connection_->run(step.text);
  (void)this->upgrade();
  EXPECT_EQ(this->read(3), 3);
  EXPECT_TRUE(this->has("HEIGHT"));
}

TYPED_TEST(SchemaVersion, SeveralUpgradesAtOnce) {
  this->create_without_version();
  std::vector<std::jthread> threads;
  std::atomic<int> ready{0};
  // The stand-in of SQL Server asks for a table and creates it in two steps. H2 cannot alter a
  // table in two sessions at once; docs/upgrading.md.
  const bool alone = this->dialect_ == dialect_id::sqlserver || this->dialect_ == dialect_id::h2;
  const int upgrades = alone ? 1 : 4;
  for (int i = 0; i < upgrades; ++i) {
    threads.emplace_back([this, &ready, upgrades] {
      const auto connection = connect(this->url_);
      ++ready;
      while (ready < upgrades) std::this_thread::yield();
      try {
        (void)schema::upgrade_schema(*connection, this->dialect_, things(this->prefix_, 3));
      } catch (const error& failure) {
        ADD_FAILURE() << failure.what();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(this->inspect().recorded, 3);
  EXPECT_TRUE(this->has("HEIGHT"));
}

TYPED_TEST(SchemaVersion, SeveralCreateAtOnce) {
  std::vector<std::jthread> threads;
  std::atomic<int> ready{0};
  const int creations = this->dialect_ == dialect_id::sqlserver ? 1 : 4;  // as above
  for (int i = 0; i < creations; ++i) {
    threads.emplace_back([this, &ready, creations] {
      const auto connection = connect(this->url_);
      ++ready;
      while (ready < creations) std::this_thread::yield();
      try {
        EXPECT_EQ(schema::create_schema(*connection, this->dialect_, things(this->prefix_, 2)), 2);
      } catch (const error& failure) {
        ADD_FAILURE() << failure.what();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(this->inspect().recorded, 2);
}

TYPED_TEST(SchemaVersion, AKillBeforeAnyStatementIsRepaired) {
  for (int statement = 0;; ++statement) {
    const std::string prefix = next_prefix();
    const auto set = things(prefix, 3);
    for (const auto& text : set.create(this->dialect_, 1)) this->connection_->run(text);
    const auto result = run_program(
        worker_options("killed_upgrade", {this->url_, prefix, std::to_string(statement)}));
    if (!result.status.signalled) {
      EXPECT_EQ(result.status.code, 7) << result.error;
      EXPECT_GT(statement, 8);
      break;
    }
    ASSERT_EQ(result.status.code, SIGKILL) << statement;
    const auto state = schema::inspect_schema(*this->connection_, this->dialect_, set);
    // A recorded version is never ahead of the columns.
    EXPECT_TRUE(state.version < 2 || has_column(*this->connection_, prefix + "THINGS", "COLOUR"));
    EXPECT_TRUE(state.version < 3 || has_column(*this->connection_, prefix + "THINGS", "HEIGHT"));
    (void)schema::upgrade_schema(*this->connection_, this->dialect_, set);
    EXPECT_EQ(schema::read_schema_version(*this->connection_, this->dialect_, set), 3);
    EXPECT_TRUE(has_column(*this->connection_, prefix + "THINGS", "HEIGHT"));
  }
}

// ---- rights and schemas ----

TEST(SchemaVersionRights, PostgresqlUserWhoMayOnlyUseTheTables) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("rights");
  const auto owner = connect(server.url(name));
  const std::string user = "limited_" + std::to_string(::getpid());
  server.run("CREATE ROLE " + user + " LOGIN PASSWORD 'secret'", name);
  const auto set = things("R_", 2);
  for (const auto& text : set.create(dialect_id::postgresql, 1)) owner->run(text);
  server.run("GRANT SELECT, INSERT, UPDATE, DELETE ON R_THINGS TO " + user, name);
  server.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC", name);
  const auto limited = connect("postgresql://" + user +
                               ":secret@127.0.0.1:" + std::to_string(server.port()) + "/" + name);
  EXPECT_EQ(schema::read_schema_version(*limited, dialect_id::postgresql, set), 1);
  // After an upgrade by the owner, the user may not read the table of versions: the columns tell.
  (void)schema::upgrade_schema(*owner, dialect_id::postgresql, set);
  EXPECT_EQ(schema::read_schema_version(*limited, dialect_id::postgresql, set), 2);
  EXPECT_EQ(failure_of([&] {
              (void)schema::upgrade_schema(*limited, dialect_id::postgresql, things("R_", 3));
            }).code(),
            errc::permission);
}

TEST(SchemaVersionRights, MariadbUserWhoMayOnlyUseTheTables) {
  const auto& server = shared_server<mariadb_server>();
  const auto name = server.create_database("rights");
  const auto owner = connect(server.url(name));
  const std::string user = "limited_" + std::to_string(::getpid());
  server.run("CREATE USER " + user + "@'%' IDENTIFIED BY 'secret'", name);
  const auto set = things("R_", 2);
  for (const auto& text : set.create(dialect_id::mariadb, 1)) owner->run(text);
  server.run("GRANT SELECT, INSERT, UPDATE, DELETE ON " + name + ".R_THINGS TO " + user, name);
  const auto limited = connect("mysql://" + user +
                               ":secret@127.0.0.1:" + std::to_string(server.port()) + "/" + name);
  EXPECT_EQ(schema::read_schema_version(*limited, dialect_id::mariadb, set), 1);
  (void)schema::upgrade_schema(*owner, dialect_id::mariadb, set);
  EXPECT_EQ(schema::read_schema_version(*limited, dialect_id::mariadb, set), 2);
}

// Tables of version 1 need no row, so their users need no rights on the table of versions.
TEST(SchemaVersionRights, VersionOneNeedsNoTableOfVersions) {
  const auto& server = shared_server<mariadb_server>();
  const auto name = server.create_database("rights");
  const std::string user = "creator_" + std::to_string(::getpid());
  server.run("CREATE USER " + user + "@'%' IDENTIFIED BY 'secret'", name);
  server.run("GRANT CREATE, INDEX, SELECT ON " + name + ".R_THINGS TO " + user, name);
  const auto limited = connect("mysql://" + user +
                               ":secret@127.0.0.1:" + std::to_string(server.port()) + "/" + name);
  EXPECT_EQ(schema::create_schema(*limited, dialect_id::mariadb, things("R_", 1)), 1);
  EXPECT_EQ(schema::read_schema_version(*limited, dialect_id::mariadb, things("R_", 1)), 1);
}

// The version is that of the schema in which PostgreSQL finds the table.
TEST(SchemaVersionRights, PostgresqlSearchPath) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("path");
  const auto connection = connect(server.url(name));
  const auto set = things("", 2);
  EXPECT_EQ(schema::create_schema(*connection, dialect_id::postgresql, set), 2);
  connection->run("CREATE SCHEMA other");
  connection->run("SET search_path = other, public");
  connection->run("CREATE TABLE other.THINGS (ID BIGINT NOT NULL PRIMARY KEY)");
  EXPECT_EQ(schema::read_schema_version(*connection, dialect_id::postgresql, set), 1);
  EXPECT_EQ(schema::upgrade_schema(*connection, dialect_id::postgresql, set).size(), 5U);
  EXPECT_EQ(schema::read_schema_version(*connection, dialect_id::postgresql, set), 2);
  connection->run("CREATE SCHEMA third");
  connection->run("SET search_path = third, other, public");
  EXPECT_EQ(schema::create_schema(*connection, dialect_id::postgresql, things("", 3)), 3);
  connection->run("SET search_path = other");
  EXPECT_EQ(schema::read_schema_version(*connection, dialect_id::postgresql, things("", 3)), 2);
}

}  // namespace
}  // namespace holdfast::test
