// Settings for which MariaDB is refused, on a real server; and the statements for MySQL inside a
// transaction of the caller.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/own_handles.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace holdfast::test {
namespace {

class SequenceSettings : public ::testing::Test {
 protected:
  /// The message with which a sequence is refused; empty if it gives an id.
  std::string refusal(const sequence_store_options& store = {}) {
    try {
      (void)open(server.url())
          .sequence(store.failover_skip == 0 ? "n" : "fenced", {.store = store})
          .next();
      return {};
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::unsupported_type) << e.what();
      EXPECT_FALSE(e.transient()) << e.what();
      return e.what();
    }
  }
  void set(const std::string& setting) { (void)server.run("SET GLOBAL " + setting); }

  mariadb_server server{
      {.settings = {"log-bin=binlog", "server-id=1", "sync-binlog=1", "binlog-format=ROW"}}};
};

TEST_F(SequenceSettings, AMariadbThatForgetsIsRefusedWithWhatToChange) {
  const sequence_store_options fenced{.failover_skip = 1000};
  (void)open(server.url()).block_store({.create_schema = true})->list(1);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(fenced), "");
  for (const std::string level : {"0", "2"}) {
    set("innodb_flush_log_at_trx_commit = " + level);
    EXPECT_NE(refusal().find("innodb_flush_log_at_trx_commit = " + level +
                             "): a crash loses commits; set it to 1"),
              std::string::npos)
        << refusal();
    EXPECT_EQ(refusal({.allow_unsafe = true}), "");
  }
  set("innodb_flush_log_at_trx_commit = 1");
  set("sync_binlog = 0");
  EXPECT_NE(refusal().find("sync_binlog = 0"), std::string::npos) << refusal();
  set("sync_binlog = 1");
  EXPECT_EQ(refusal(), "");
  // A replica that repeats statements stores its own id instead of that of this server. The server
  // also refuses our writes then.
  set("binlog_format = STATEMENT");
  const auto failure = failure_of([&] { (void)open(server.url()).sequence("n").next(); });
  EXPECT_NE(std::string(failure.what())
                .find("binlog_format = STATEMENT), so it refuses to write; set it to ROW or MIXED"),
            std::string::npos)
      << failure.what();
  EXPECT_FALSE(failure.transient());
  EXPECT_NE(refusal(fenced).find("binlog_format = STATEMENT"), std::string::npos)
      << refusal(fenced);
  set("binlog_format = MIXED");
  EXPECT_EQ(refusal(fenced), "");
}

/// A transaction on MariaDB that says that it is on MySQL, which has no RETURNING.
class mysql_transaction final : public join::transaction {
 public:
  explicit mysql_transaction(join::mariadb joined) : joined_(joined) {}
  [[nodiscard]] sql::dialect_id dialect() const override { return sql::dialect_id::mysql; }
  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    return joined_.execute(s, parameters);
  }

 private:
  join::mariadb joined_;
};

TEST(SequenceAsMySql, ATransactionWithAnOlderSnapshotSeesWhatWasGranted) {
  const auto& server = shared_server<mariadb_server>();
  const auto url = server.url(server.create_database("as_mysql"));
  (void)open(url).block_store({.create_schema = true})->list(1);
  const database db =
      open(url, {.resolve_dialect = [](sql::connection&) { return sql::dialect_id::mysql; }});
  mariadb_handle early(url);
  mariadb_handle late(url);
  auto ids = db.sequence("n", {.blocks = fixed_blocks{.size = 1}, .max = 3});
  const auto take = [&ids](mariadb_handle& handle) -> std::optional<std::int64_t> {
    mysql_transaction transaction(handle.joined());
    try {
      return ids.next_in_transaction(transaction);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::out_of_range) << e.what();
      return std::nullopt;
    }
  };
  const auto commit_one = [&] {
    late.run("START TRANSACTION");
    const auto id = take(late);
    late.run("COMMIT");
    return id;
  };
  EXPECT_EQ(commit_one(), 1);
  early.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  // In this snapshot the counter is at 1.
  early.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
  EXPECT_EQ(commit_one(), 2);
  EXPECT_EQ(take(early), 3);
  early.run("ROLLBACK");
  early.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
  EXPECT_EQ(commit_one(), 3);
  EXPECT_EQ(commit_one(), std::nullopt);
  EXPECT_EQ(take(early), std::nullopt)
      << "the sequence is at its end, although the snapshot is older";
  early.run("ROLLBACK");
}

}  // namespace
}  // namespace holdfast::test
