// The schema versions of store, sequences and outbox: the tables of before there were versions,
// with data in them, work before and after the upgrade; newer ones are refused.
// tests/vectors/schema_1 has those tables as text.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/admin.hpp>
#include <holdfast/schema.hpp>
#include <holdfast/worker.hpp>

#include "sql/connect.hpp"
#include "support/failure_of.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using sql::dialect_id;

constexpr int far_version = 99;

/// The sets that the tables of version 1 have; tests/integration/reporter_test.cpp has instances.
std::vector<schema_status> older_sets(const database& db, const schema_options& options = {}) {
  auto sets = read_schema_status(db, options);
  std::erase_if(sets, [](const schema_status& status) { return status.set == "instances"; });
  return sets;
}

// ---- backends: each test gets an empty database ----

struct on_sqlite {
  [[nodiscard]] std::string url() const {
    return "sqlite://" + (directory.path() / "sets.db").string();
  }
  temporary_directory directory{"schema", "", medium::memory};
};

template <class Server>
struct on_server {
  [[nodiscard]] std::string url() const { return server.url(name); }
  const typename Server::endpoint& server = shared_server<Server>();
  const std::string name = server.create_database("sets");
};

struct on_psqlodbc {
  [[nodiscard]] std::string url() const { return odbc_postgres(server.port(), name); }
  const postgres_endpoint& server = shared_server<postgres_server>();
  const std::string name = server.create_database("sets");
};

struct on_maodbc {
  [[nodiscard]] std::string url() const { return odbc_mariadb(server.port(), name); }
  const mariadb_endpoint& server = shared_server<mariadb_server>();
  const std::string name = server.create_database("sets");
};

/// Runs the statements of a file of tests/vectors/schema_1.
void load_tables(sql::connection& connection) {
  const std::string name(to_string(connection.dialect()));
  std::ifstream file(HOLDFAST_TEST_VECTORS "/schema_1/" + name + ".sql");
  ASSERT_TRUE(file) << name;
  std::string statement;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("--")) continue;
    statement += line + "\n";
    if (!line.ends_with(';')) continue;
    statement.erase(statement.rfind(';'));
    connection.run(statement);
    statement.clear();
  }
}

/// What handlers got, in order.
std::vector<std::string> delivered_payloads(const outbox& source) {
  std::mutex mutex;
  std::vector<std::string> payloads;
  worker consumer(source, [&](const delivery& item) {
    const std::scoped_lock lock(mutex);
    payloads.push_back(item.event().payload);
    return outcome::done();
  });
  (void)consumer.run_until_empty();
  return payloads;
}

template <class Backend>
class SchemaSets : public testing::Test {
 protected:
  Backend backend_{};
  const std::string url_ = backend_.url();
  const std::unique_ptr<sql::connection> connection_ = detail::sql::connector(url_, {})();
  const bool has_outbox_ = connection_->dialect() != dialect_id::h2;

  [[nodiscard]] schema_status status_of(const std::string& set) const {
    for (auto& status : read_schema_status(open(url_)))
      if (status.set == set) return status;
    ADD_FAILURE() << set;
    return {};
  }

  [[nodiscard]] std::shared_ptr<store> open_store(bool create = false) const {
    return open(url_).store(
        {.create_schema = create, .probe = start_probe::off, .start = start_mode::require});
  }
  [[nodiscard]] std::shared_ptr<block_store> open_counters(bool create = false) const {
    return open(url_).block_store({.create_schema = create, .allow_unsafe = true});
  }
  [[nodiscard]] outbox open_outbox(bool create = false) const {
    return open(url_).outbox({.prefix = "{shop}", .create_schema = create});
  }

  /// Uses what the files have, and adds to it. `round` tells the calls apart.
  void use_all(int round, bool create) {
    const auto entries = open_store(create);
    const auto kept = entries->find("country", "FR");
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->payload, "{\"name\":\"France\"}");
    entry added;
    added.name = "country";
    added.key = "K" + std::to_string(round);
    added.payload = "{}";
    added.as_of = kept->as_of;
    added.expire_on = kept->expire_on;
    entries->put({&added, 1});
    EXPECT_TRUE(entries->find("country", added.key));

    const auto counters = open_counters(create);
    const auto grants = counters->allocate(
        std::vector<block_request>{{.name = "account.id", .count = 10, .limit = 1'000'000}});
    EXPECT_EQ(grants.front().block.first(), 501 + 10 * round);

    if (!has_outbox_) return;
    const auto events = open_outbox(create);
    const std::string payload = "\"" + std::to_string(round) + "\"";
    EXPECT_EQ(events.publish({.type = "t", .key = "ticket-7", .payload = payload}).status,
              publish_status::added);
    auto expected = round == 0 ? std::vector<std::string>{"{\"n\":1}", "{\"n\":2}"}
                               : std::vector<std::string>{};
    expected.push_back(payload);
    EXPECT_EQ(delivered_payloads(events), expected);
  }

  void record(const std::string& main_table, int version) {
    connection_->run("INSERT INTO HOLDFAST_SCHEMA (SET_NAME, VERSION, WRITTEN_BY) VALUES ('" +
                     main_table + "', " + std::to_string(version) + ", 'test')");
  }
};

using Backends = testing::Types<on_sqlite, on_server<postgres_server>, on_server<mariadb_server>,
                                on_server<h2_server>, on_psqlodbc, on_maodbc>;

struct backend_names {
  template <class Backend>
  static std::string GetName(int index) {
    static const char* const names[]{"sqlite", "postgresql", "mariadb", "h2", "psqlodbc", "maodbc"};
    return names[index];
  }
};

TYPED_TEST_SUITE(SchemaSets, Backends, backend_names);

TYPED_TEST(SchemaSets, TablesOfVersionOneWorkBeforeAndAfterTheUpgrade) {
  load_tables(*this->connection_);
  const schema_options options{.outbox_prefix = "{shop}"};
  for (const auto& status : older_sets(open(this->url_), options)) {
    EXPECT_EQ(status.version, 1) << status.set;
    EXPECT_EQ(status.verdict,
              status.current == 1 ? schema_verdict::current : schema_verdict::older);
  }
  this->use_all(0, false);
  this->use_all(1, true);  // create_schema leaves existing tables at their version
  for (const auto& status : older_sets(open(this->url_), options))
    EXPECT_EQ(status.version, 1) << status.set;

  // Programs that started before the upgrade continue to work after it.
  const auto entries = this->open_store();
  auto counters = this->open_counters();
  EXPECT_TRUE(entries->find("country", "FR"));
  EXPECT_TRUE(counters->peek("account.id"));
  const auto planned = upgrade_schema(open(this->url_), options, upgrade_mode::dry_run);
  const auto completed = upgrade_schema(open(this->url_), options);
  ASSERT_EQ(planned.size(), completed.size());
  for (std::size_t i = 0; i < planned.size(); ++i)
    EXPECT_EQ(planned[i].statements, completed[i].statements);
  for (const auto& status : older_sets(open(this->url_), options)) {
    EXPECT_EQ(status.version, status.current) << status.set;
    EXPECT_EQ(status.verdict, schema_verdict::current) << status.set;
  }
  EXPECT_TRUE(entries->find("country", "FR"));
  // H2 2.1.214 fails with a NullPointerException when a session that was open before the table was
  // altered runs a MERGE on it; docs/upgrading.md.
  if (this->connection_->dialect() == dialect_id::h2) counters = this->open_counters();
  EXPECT_EQ(counters->ensure_at_least("account.id", 600).last, 600);
  (void)counters->reset("account.id", 520, {.last = 600, .epoch = 1});
  this->use_all(2, false);
  this->use_all(3, true);
  EXPECT_TRUE(std::ranges::all_of(upgrade_schema(open(this->url_), options),
                                  [](const auto& upgrade) { return upgrade.statements.empty(); }));
}

TYPED_TEST(SchemaSets, NewTablesHaveTheCurrentVersion) {
  for (const auto& status : older_sets(open(this->url_))) {
    EXPECT_EQ(status.verdict, schema_verdict::absent) << status.set;
    EXPECT_EQ(status.version, std::nullopt) << status.set;
  }
  (void)this->open_store(true);
  (void)this->open_counters(true)->list(1);
  if (this->has_outbox_) (void)this->open_outbox(true).admin().stats();
  for (const auto& status : older_sets(open(this->url_), {.outbox_prefix = "{shop}"})) {
    EXPECT_EQ(status.version, status.current) << status.set;
    EXPECT_EQ(status.verdict, schema_verdict::current) << status.set;
  }
  for (const auto& upgrade : upgrade_schema(open(this->url_), {.outbox_prefix = "{shop}"}))
    EXPECT_TRUE(upgrade.statements.empty()) << upgrade.before.set;
}

TYPED_TEST(SchemaSets, NewerTablesAreRefused) {
  load_tables(*this->connection_);
  (void)upgrade_schema(open(this->url_), {.outbox_prefix = "{shop}"});
  this->connection_->run("UPDATE HOLDFAST_SCHEMA SET VERSION = " + std::to_string(far_version));
  const auto refuses = [](const std::string& table, const std::function<void()>& use) {
    const auto failure = failure_of(use);
    EXPECT_EQ(failure.code(), errc::unsupported_type) << failure.what();
    for (const std::string& part : {table, std::string("version 99"), std::string("update the")})
      EXPECT_NE(failure.message().find(part), std::string::npos) << failure.what();
  };
  for (const bool create : {false, true}) {
    refuses("FAILOVER_STORE", [&] { (void)this->open_store(create); });
    refuses("SEQUENCES", [&] { (void)this->open_counters(create)->list(1); });
    refuses("SEQUENCES", [&] {
      (void)open(this->url_)
          .sequence("account.id", {.store = {.create_schema = create, .allow_unsafe = true}})
          .next();
    });
    if (!this->has_outbox_) continue;
    refuses("shop_OUTBOX", [&] { (void)this->open_outbox(create).admin().stats(); });
    refuses("shop_OUTBOX",
            [&] { (void)this->open_outbox(create).publish({.type = "t", .payload = "1"}); });
  }
  for (const auto& status : older_sets(open(this->url_), {.outbox_prefix = "{shop}"})) {
    EXPECT_EQ(status.version, far_version) << status.set;
    EXPECT_EQ(status.verdict, schema_verdict::newer) << status.set;
  }
  refuses("FAILOVER_STORE", [&] { (void)upgrade_schema(open(this->url_)); });
}

// The version belongs to one prefix.
TYPED_TEST(SchemaSets, PrefixesHaveTheirOwnVersions) {
  (void)this->open_store(true);
  (void)this->open_counters(true)->list(1);
  this->record("OLD_SEQUENCES", far_version);
  EXPECT_EQ(this->status_of("sequences").verdict, schema_verdict::current);
  EXPECT_EQ(failure_of([&] {
              (void)open(this->url_).block_store({.prefix = "OLD_", .allow_unsafe = true})->list(1);
            }).code(),
            this->connection_->dialect() == dialect_id::postgresql ? errc::missing_object
                                                                   : errc::unsupported_type);
}

#if HOLDFAST_TEST_REDIS
TEST(SchemaSetsRedis, DataWithoutAVersionHasVersionOne) {
  const auto& server = shared_server<redis_server>();
  const auto prefix = server.unique_prefix("schema");
  const std::string outbox_prefix = "{" + prefix + "}";
  const schema_options options{.prefix = prefix, .outbox_prefix = outbox_prefix};
  const auto database = open(server.url());
  for (const auto& status : read_schema_status(database, options))
    EXPECT_EQ(status.verdict, schema_verdict::absent) << status.set;
  // As programs before schema versions wrote them.
  server.run({"HSET", prefix + "holdfast:seq:{account.id}", "last", "500", "epoch", "1"});
  server.run({"HSET", outbox_prefix + ":meta", "layout", "1", "lanes", "1"});
  const auto use = [&](std::int64_t first) {
    const auto counters =
        database.block_store({.prefix = prefix, .allow_unsafe = true, .fence = no_fence{}});
    EXPECT_EQ(counters
                  ->allocate(std::vector<block_request>{
                      {.name = "account.id", .count = 10, .limit = 1'000'000}})
                  .front()
                  .block.first(),
              first);
    const auto events = database.outbox({.prefix = outbox_prefix});
    EXPECT_EQ(events.publish({.type = "t", .payload = "1"}).status, publish_status::added);
    EXPECT_EQ(delivered_payloads(events), std::vector<std::string>{"1"});
  };
  use(501);
  for (const auto& status : read_schema_status(database, options))
    EXPECT_EQ(status.version, 1) << status.set;
  (void)upgrade_schema(database, options, upgrade_mode::dry_run);
  for (const auto& status : read_schema_status(database, options))
    EXPECT_EQ(status.version, 1) << status.set;
  (void)upgrade_schema(database, options);
  for (const auto& status : read_schema_status(database, options))
    EXPECT_EQ(status.version, status.current) << status.set;
  use(511);
}

TEST(SchemaSetsRedis, NewDataHasTheCurrentVersion) {
  const auto& server = shared_server<redis_server>();
  const std::string outbox_prefix = "{" + server.unique_prefix("schema") + "}";
  const auto database = open(server.url());
  (void)database.outbox({.prefix = outbox_prefix}).admin().stats();
  const auto status = read_schema_status(database, {.outbox_prefix = outbox_prefix}).back();
  EXPECT_EQ(status.version, status.current);
  EXPECT_EQ(server.run({"HGET", outbox_prefix + ":meta", "schema"}),
            std::to_string(status.current));
}

TEST(SchemaSetsRedis, NewerDataIsRefused) {
  const auto& server = shared_server<redis_server>();
  const auto prefix = server.unique_prefix("schema");
  const std::string outbox_prefix = "{" + prefix + "}";
  const auto database = open(server.url());
  const std::string counter = prefix + "holdfast:seq:{account.id}";
  server.run({"HSET", counter, "last", "500", "epoch", "1", "schema", "99"});
  server.run({"HSET", outbox_prefix + ":meta", "layout", "1", "lanes", "1", "schema", "99"});
  const auto refuses = [](const std::function<void()>& use) {
    const auto failure = failure_of(use);
    EXPECT_EQ(failure.code(), errc::unsupported_type) << failure.what();
    EXPECT_FALSE(failure.transient());
    for (const char* part : {"version 99", "up to ", "update the program"})
      EXPECT_NE(failure.message().find(part), std::string::npos) << failure.what();
  };
  const auto counters =
      database.block_store({.prefix = prefix, .allow_unsafe = true, .fence = no_fence{}});
  refuses([&] {
    (void)counters->allocate(
        std::vector<block_request>{{.name = "account.id", .count = 10, .limit = 1'000'000}});
  });
  refuses([&] { (void)counters->peek("account.id"); });
  refuses([&] { (void)counters->ensure_at_least("account.id", 600); });
  EXPECT_EQ(server.run({"HGET", counter, "last"}), "500");
  refuses([&] { (void)database.outbox({.prefix = outbox_prefix}).admin().stats(); });
  const schema_options options{.prefix = prefix, .outbox_prefix = outbox_prefix};
  for (const auto& status : read_schema_status(database, options)) {
    EXPECT_EQ(status.version, far_version) << status.set;
    EXPECT_EQ(status.verdict, schema_verdict::newer) << status.set;
  }
  refuses([&] { (void)upgrade_schema(database, options); });
}
#endif

TEST(SchemaSetsMemory, HasNoVersions) {
  EXPECT_EQ(failure_of([] { (void)read_schema_status(open("memory:")); }).code(),
            errc::invalid_argument);
}

}  // namespace
}  // namespace holdfast::test
