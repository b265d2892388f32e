// Mistakes that people make with databases: each is one clear error, and nothing is lost.

#include <holdfast/database.hpp>
#include <holdfast/store/write_behind.hpp>

#include "sql/sqlite/connection.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

entry make_entry(std::string payload = "{}") {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = "k",
          .as_of = now,
          .expire_on = now + 1h,
          .payload = std::move(payload),
          .payload_class = "c"};
}

TEST(Open, RefusesWhatCannotBeMeant) {
  for (const char* bad :
       {"nosuch:x", "sqlite:", "sqlite://host/file.db", "sqlite:a.db?synchronous=maybe",
        "sqlite:a.db?mmap=all", "sqlite:a.db?nosuch=1", "mysql://h", "mysql://h/x?tls=yes",
        "memory", ""}) {
    EXPECT_EQ(failure_of([&] { (void)open(bad); }).code(), errc::invalid_argument) << bad;
  }
}

TEST(Open, SaysWhatIsWrongWithAFile) {
  temporary_directory directory;
  EXPECT_EQ(failure_of([&] {
              (void)open("sqlite:///nosuch/dir/x.db").store({.start = start_mode::require});
            }).code(),
            errc::permission);
  const auto text_file = directory.path() / "notes.txt";
  std::ofstream(text_file) << std::string(5000, 'x');
  EXPECT_EQ(failure_of([&] {
              (void)open("sqlite://" + text_file.string()).store({.start = start_mode::require});
            }).code(),
            errc::malformed);
  std::ifstream back(text_file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(back), {}).size(), 5000U)
      << "left as it was";
}

template <class Server>
class StoreErrors : public ::testing::Test {
 protected:
  const typename Server::endpoint& server = shared_server<Server>();
  std::string database = server.create_database("errors");
  std::string url = server.url(database);
};
using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(StoreErrors, servers);

TYPED_TEST(StoreErrors, AWrongPasswordIsRefusedAndNotPrinted) {
  const auto e = failure_of([&] {
    (void)open(this->url, {.password = "hunter2"}).store({.start = start_mode::require});
  });
  EXPECT_EQ(e.code(), errc::permission) << e.what();
  EXPECT_EQ(std::string(e.what()).find("hunter2"), std::string::npos);
}

TYPED_TEST(StoreErrors, ThePasswordMayComeFromAFile) {
  temporary_directory directory;
  std::ofstream(directory.path() / "password") << "secret\n";
  std::string without = this->url;
  without.erase(without.find(":secret"), 7);
  EXPECT_NO_THROW((void)open(without, {.password_file = (directory.path() / "password").string()})
                      .store({.create_schema = true, .start = start_mode::require}));
  EXPECT_EQ(failure_of([&] { (void)open(without, {.password_file = "/nosuch/file"}); }).code(),
            errc::permission);
}

TYPED_TEST(StoreErrors, AMissingTableSaysWhatToType) {
  const auto store = open(this->url).store({.prefix = "NOT_THERE_"});
  const auto e = failure_of([&] { (void)store->find("n", "k"); });
  EXPECT_EQ(e.code(), errc::missing_object);
  EXPECT_NE(e.message().find("holdfast store schema"), std::string::npos) << e.what();
  EXPECT_EQ(failure_of([&] {
              const auto one = make_entry();
              store->put({&one, 1});
            }).code(),
            errc::missing_object)
      << "not taken for a refused grammar";
  EXPECT_TRUE(store->health().native_upsert);
  EXPECT_FALSE(store->health().available);
}

TYPED_TEST(StoreErrors, NobodyThereIsTransientAndQuick) {
  const auto start = std::chrono::steady_clock::now();
  const auto e = failure_of([&] {
    (void)open(this->server.url_through(1, this->database), {.connect_timeout = 500ms})
        .store({.start = start_mode::require});
  });
  EXPECT_EQ(e.code(), errc::unavailable);
  EXPECT_TRUE(e.transient());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TYPED_TEST(StoreErrors, APayloadAboveTheColumnIsRefusedAndNothingIsLost) {
  const auto store = open(this->url).store({.create_schema = true, .start = start_mode::require});
  const auto first = make_entry("small");
  store->put({&first, 1});
  this->server.run(
      "ALTER TABLE FAILOVER_STORE " + std::string(this->url.starts_with("mysql")
                                                      ? "MODIFY PAYLOAD VARCHAR(4000)"
                                                      : "ALTER COLUMN PAYLOAD TYPE VARCHAR(4000)"),
      this->database);
  const auto large = make_entry(std::string(4001, 'x'));
  EXPECT_EQ(failure_of([&] { store->put({&large, 1}); }).code(), errc::too_large);
  EXPECT_EQ(*store->find("n", "k")->payload, "small");
  const auto fits = make_entry(std::string(4000, 'y'));
  store->put({&fits, 1});
  EXPECT_EQ(store->find("n", "k")->payload->size(), 4000U) << "the published column works";
}

TYPED_TEST(StoreErrors, AColumnThatAMigrationAddedIsMendedAndNothingIsLost) {
  const auto store = make_write_behind(
      open(this->url).store({.create_schema = true, .start = start_mode::require}),
      {.retry_longest = 50ms});
  this->server.run("ALTER TABLE FAILOVER_STORE ADD COLUMN EXTRA INT NOT NULL", this->database);
  for (const char* key : {"a", "b", "c"}) {
    auto one = make_entry();
    one.key = key;
    store->put({&one, 1});
  }
  auto gone = make_entry();
  gone.key = "d";
  gone.payload.reset();
  gone.payload_class.clear();
  store->put({&gone, 1});
  EXPECT_TRUE(eventually([&] { return store->numbers().retried > 1; }));
  EXPECT_EQ(store->numbers().failed, 0U);
  EXPECT_EQ(store->numbers().pending, 4U);
  this->server.run("ALTER TABLE FAILOVER_STORE ALTER COLUMN EXTRA SET DEFAULT 0", this->database);
  EXPECT_TRUE(eventually([&] { return store->numbers().written == 4; }));
  EXPECT_EQ(store->count("n"), 4U);
}

TYPED_TEST(StoreErrors, ATableThatTakesNoTombstonesHoldsUpNothingElse) {
  const std::shared_ptr<holdfast::store> below =
      open(this->url).store({.create_schema = true, .start = start_mode::require});
  const auto store = make_write_behind(below, {.retry_longest = 50ms});
  this->server.run(
      "ALTER TABLE FAILOVER_STORE " + std::string(this->url.starts_with("mysql")
                                                      ? "MODIFY PAYLOAD LONGTEXT NOT NULL"
                                                      : "ALTER COLUMN PAYLOAD SET NOT NULL"),
      this->database);
  auto one = make_entry();
  one.key = "gone";
  one.payload.reset();
  one.payload_class.clear();
  store->put({&one, 1});
  const auto answer = make_entry();
  store->put({&answer, 1});
  EXPECT_TRUE(
      eventually([&] { return store->numbers().written == 1 && store->numbers().failed == 1; }));
  EXPECT_TRUE(store->find("n", "k"));
  const auto e = failure_of([&] { below->put({&one, 1}); });
  EXPECT_NE(e.message().find("takes no tombstones"), std::string::npos) << e.what();
}

TYPED_TEST(StoreErrors, AnySkewMayBeAllowed) {
  const auto store =
      open(this->url).store({.create_schema = true, .max_skew = std::chrono::microseconds::max()});
  auto one = make_entry("new");
  store->put({&one, 1});
  one.as_of -= 1us;
  one.payload = "old";
  store->put({&one, 1});
  EXPECT_EQ(*store->find("n", "k")->payload, "new");
}

TYPED_TEST(StoreErrors, ANulByteNeedsAColumnOfBytes) {
  const auto binary = make_entry(std::string("a\0b\xff", 4));
  const auto text_store =
      open(this->url).store({.create_schema = true, .start = start_mode::require});
  EXPECT_EQ(failure_of([&] { text_store->put({&binary, 1}); }).code(), errc::invalid_argument);
  const auto ill_formed = make_entry("a\xff");
  const auto refused = failure_of([&] { text_store->put({&ill_formed, 1}); });
  EXPECT_EQ(refused.code(), errc::ill_formed_text) << "on every database";
  EXPECT_NE(refused.message().find("choose payload_column::bytes"), std::string::npos);
  const auto byte_store = open(this->url).store(
      {.prefix = "BYTES_", .create_schema = true, .payload = payload_column::bytes});
  byte_store->put({&binary, 1});
  EXPECT_EQ(*byte_store->find("n", "k")->payload, *binary.payload);
}

TYPED_TEST(StoreErrors, AReplacedQueryThatIsRefusedFallsBackAndShows) {
  std::vector<std::string> lines;
  const auto db = open(
      this->url, {.log = [&](const log_record& record) { lines.emplace_back(record.message); }});
  const auto store = db.store(
      {.create_schema = true, .replace_query = [](store_query which, const std::string& standard) {
         return which == store_query::upsert ? "UPSERT " + standard : standard;
       }});
  auto e = make_entry("first");
  store->put({&e, 1});
  EXPECT_EQ(*store->find("n", "k")->payload, "first") << "insert";
  e.as_of += 1us;
  e.payload = "second";
  store->put({&e, 1});
  EXPECT_EQ(*store->find("n", "k")->payload, "second") << "update";
  e.as_of -= 1us;
  e.payload = "older";
  store->put({&e, 1});
  EXPECT_EQ(*store->find("n", "k")->payload, "second") << "the guard holds on this way too";
  EXPECT_FALSE(store->health().native_upsert);
  EXPECT_EQ(lines.size(), 1U) << "said once";
}

TEST(StoreOnSqlite, ARowThatCannotBeReadIsLeftOutAndCounted) {
  temporary_directory directory;
  const auto file = (directory.path() / "x.db").string();
  const auto store = open("sqlite://" + file).store({.create_schema = true});
  const auto good = make_entry();
  store->put({&good, 1});
  detail::sql::connect_sqlite({.file = file})
      ->run("INSERT INTO FAILOVER_STORE VALUES ('n', 'bad', 'yesterday', 0, 'x', 'c')");
  const auto page = store->find_all("n", 10);
  ASSERT_EQ(page.entries.size(), 1U) << "one bad row costs only itself";
  EXPECT_EQ(page.entries.front().key, "k");
  EXPECT_EQ(page.unreadable, 1U);
  EXPECT_EQ(failure_of([&] { (void)store->find("n", "bad"); }).code(), errc::malformed);
  EXPECT_EQ(store->health().unreadable, 2U);
}

}  // namespace
}  // namespace holdfast::test
