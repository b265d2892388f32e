// The disk that loses power: it must lose what SQLite did not sync, and nothing else.

#include "support/temporary_directory.hpp"
#include "support/unsynced_content.hpp"
#include "support/unsynced_vfs.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

namespace holdfast::test {

// GoogleTest prints a parameter with this.
static void PrintTo(power_loss loss, std::ostream* out) {
  *out << (loss == power_loss::drop ? "drop" : "partial");
}

}  // namespace holdfast::test

namespace {

using namespace holdfast::test;

// ---- content

TEST(UnsyncedContent, DropsWhatWasNotSynced) {
  std::mt19937_64 random(1);
  unsynced_content file("durable");
  file.write(0, "DURABLE and more");
  EXPECT_EQ(file.after(power_loss::drop, random), "durable");
  file.sync();
  EXPECT_EQ(file.after(power_loss::drop, random), "DURABLE and more");
  file.truncate(3);
  EXPECT_EQ(file.after(power_loss::drop, random), "DURABLE and more");
  file.sync();
  EXPECT_EQ(file.after(power_loss::drop, random), "DUR");
}

TEST(UnsyncedContent, FillsAHoleWithZeros) {
  std::mt19937_64 random(1);
  unsynced_content file;
  file.write(4, "x");
  file.sync();
  EXPECT_EQ(file.after(power_loss::drop, random), std::string("\0\0\0\0x", 5));
}

TEST(UnsyncedContent, KeepsAnyMixtureOfVersionsButNeverPartOfASector) {
  const std::string old(3 * unsynced_content::sector, 'o');
  unsynced_content file(old);
  file.write(0, std::string(3 * unsynced_content::sector, 'm'));
  file.write(0, std::string(2 * unsynced_content::sector, 'n'));
  std::mt19937_64 random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 2'000; ++i) {
    const auto content = file.after(power_loss::partial, random);
    ASSERT_EQ(content.size(), old.size());
    std::string sectors;
    for (std::size_t at = 0; at < content.size(); at += unsynced_content::sector) {
      ASSERT_EQ(content.substr(at, unsynced_content::sector),
                std::string(unsynced_content::sector, content[at]));
      sectors += content[at];
    }
    seen.insert(sectors);
  }
  EXPECT_EQ(seen.size(), 3U * 3U * 2U) << "every sector in every version";
}

TEST(UnsyncedContent, HasOneOfTheSizesItHad) {
  unsynced_content file(std::string(1'000, 'a'));
  file.truncate(0);
  file.write(0, std::string(300, 'b'));
  std::mt19937_64 random(1);
  std::set<std::size_t> sizes;
  for (int i = 0; i < 1'000; ++i) sizes.insert(file.after(power_loss::partial, random).size());
  EXPECT_EQ(sizes, (std::set<std::size_t>{0, 300, 1'000}));
}

// ---- SQLite

struct sqlite_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class connection {
 public:
  connection(const std::string& path, const std::string& vfs) {
    sqlite3* opened = nullptr;
    const int result = sqlite3_open_v2(path.c_str(), &opened,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs.c_str());
    db_.reset(opened);
    if (result != SQLITE_OK) throw sqlite_error(sqlite3_errmsg(opened));
  }

  // The first column of the first row.
  std::string run(const std::string& sql) {
    std::string first;
    char* message = nullptr;
    const auto keep = [](void* to, int, char** values, char**) {
      auto& text = *static_cast<std::string*>(to);
      if (text.empty() && values[0] != nullptr) text = values[0];
      return 0;
    };
    if (sqlite3_exec(db_.get(), sql.c_str(), keep, &first, &message) != SQLITE_OK) {
      const std::string copy = message != nullptr ? message : "?";
      sqlite3_free(message);
      throw sqlite_error(copy);
    }
    return first;
  }

 private:
  struct closer {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  std::unique_ptr<sqlite3, closer> db_;
};

struct outcome {
  int acknowledged = 0;
  int lost = 0;     // acknowledged, and not there
  int damaged = 0;  // databases that could not be read, or contradict themselves
};

// Writes rows until the power fails, looks what is there, again and again. A damaged database is
// thrown away.
outcome lose_power_often(const std::string& journal, const std::string& synchronous,
                         unsynced_vfs::options how, int rounds = 50) {
  const temporary_directory place("power", "", medium::memory);
  const auto path = (place.path() / "test.db").string();
  unsynced_vfs disk("losing", how);
  std::mt19937_64 random(how.seed);
  outcome result;
  std::set<int> acknowledged;
  int next = 0;

  for (int round = 0; round < rounds; ++round) {
    try {
      connection db(path, disk.name());
      db.run("PRAGMA journal_mode=" + journal);
      db.run("PRAGMA synchronous=" + synchronous);
      db.run("PRAGMA wal_autocheckpoint=10");
      db.run("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, s TEXT)");
      db.run("CREATE INDEX IF NOT EXISTS i ON t (s)");
      if (db.run("PRAGMA integrity_check") != "ok") throw sqlite_error("integrity_check");
      for (const int n : acknowledged) {
        if (db.run("SELECT count(*) FROM t WHERE n = " + std::to_string(n)) != "1") ++result.lost;
      }
      db.run("DELETE FROM t");
      acknowledged.clear();
      disk.crash_after(1 + random() % 400);
      for (;;) {
        const int n = ++next;
        db.run("INSERT INTO t VALUES (" + std::to_string(n) + ", hex(randomblob(" +
               std::to_string(random() % 3'000) + ")))");
        acknowledged.insert(n);
        ++result.acknowledged;
      }
    } catch (const sqlite_error&) {
      if (disk.off()) ADD_FAILURE() << "a handle is still open";
      if (disk.crashes() != static_cast<std::uint64_t>(round) + 1) {
        // Not the power: the database itself.
        ++result.damaged;
        result.lost += static_cast<int>(acknowledged.size());
        acknowledged.clear();
        disk.crash();
        for (const auto* suffix : {"", "-wal", "-journal", "-shm"})
          std::filesystem::remove(path + suffix);
      }
    }
  }
  EXPECT_GT(result.acknowledged, rounds) << "the power failed before anything was written";
  return result;
}

class PowerLoss : public ::testing::TestWithParam<power_loss> {};

TEST_P(PowerLoss, TakesNothingFromAWriteAheadLogWithFull) {
  const auto result = lose_power_often("WAL", "FULL", {.seed = 11, .loss = GetParam()});
  EXPECT_EQ(result.lost, 0);
  EXPECT_EQ(result.damaged, 0);
}

TEST_P(PowerLoss, TakesNothingFromARollbackJournalWithExtra) {
  const auto result = lose_power_often("DELETE", "EXTRA", {.seed = 12, .loss = GetParam()});
  EXPECT_EQ(result.lost, 0);
  EXPECT_EQ(result.damaged, 0);
}

TEST_P(PowerLoss, TakesNothingFromARollbackJournalWithFullWhenDeletionsAreSafe) {
  const auto result = lose_power_often(
      "DELETE", "FULL", {.seed = 13, .loss = GetParam(), .deletions_may_be_lost = false});
  EXPECT_EQ(result.lost, 0);
  EXPECT_EQ(result.damaged, 0);
}

// The commit is the deletion of the journal, which FULL does not sync: the last transaction comes
// back undone.
TEST_P(PowerLoss, TakesTheLastTransactionFromARollbackJournalWithFull) {
  const auto result = lose_power_often("DELETE", "FULL", {.seed = 14, .loss = GetParam()});
  EXPECT_GT(result.lost, 0);
  EXPECT_LE(result.lost, 50);
  EXPECT_EQ(result.damaged, 0);
}

TEST_P(PowerLoss, TakesRowsWithoutSyncs) {
  EXPECT_GT(lose_power_often("WAL", "OFF", {.seed = 15, .loss = GetParam()}).lost, 0);
  EXPECT_GT(lose_power_often("DELETE", "OFF", {.seed = 16, .loss = GetParam()}).lost, 0);
}

// NORMAL in WAL mode syncs only at checkpoints: rows are lost, the database stays whole.
TEST_P(PowerLoss, TakesRowsFromAWriteAheadLogWithNormal) {
  const auto result = lose_power_often("WAL", "NORMAL", {.seed = 17, .loss = GetParam()});
  EXPECT_GT(result.lost, 0);
  EXPECT_EQ(result.damaged, 0);
}

INSTANTIATE_TEST_SUITE_P(All, PowerLoss, ::testing::Values(power_loss::drop, power_loss::partial),
                         [](const auto& how) {
                           return how.param == power_loss::drop ? "drop" : "partial";
                         });

TEST(UnsyncedVfs, IsOffUntilWhatWasOpenIsClosed) {
  const temporary_directory place;
  const auto path = (place.path() / "test.db").string();
  unsynced_vfs disk("off", {.loss = power_loss::drop});
  auto first = std::make_unique<connection>(path, disk.name());
  first->run(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (n); INSERT INTO t VALUES "
      "(1)");
  EXPECT_GT(disk.syncs(), 0U);
  EXPECT_GT(disk.changes(), disk.syncs());
  disk.crash();
  EXPECT_THROW(first->run("INSERT INTO t VALUES (2)"), sqlite_error);
  EXPECT_THROW(first->run("SELECT * FROM t"), sqlite_error);
  EXPECT_TRUE(disk.off());
  EXPECT_THROW(connection(path, disk.name()).run("SELECT * FROM t"), sqlite_error);
  first.reset();
  EXPECT_FALSE(disk.off());
  EXPECT_EQ(connection(path, disk.name()).run("SELECT count(*) FROM t"), "1");
}

TEST(UnsyncedVfs, LeavesOnDiskOnlyWhatWasSynced) {
  const temporary_directory place;
  const auto path = (place.path() / "test.db").string();
  unsynced_vfs disk("sizes", {.loss = power_loss::drop});
  {
    connection db(path, disk.name());
    db.run("PRAGMA synchronous=OFF; CREATE TABLE t (n)");
    EXPECT_GT(std::filesystem::file_size(path), 0U);
    disk.crash();
    EXPECT_FALSE(std::filesystem::exists(path)) << "nobody ever synced it";
  }
  {
    connection db(path, disk.name());
    db.run("PRAGMA synchronous=FULL; CREATE TABLE t (n)");
    db.run("PRAGMA synchronous=OFF; INSERT INTO t VALUES (hex(randomblob(100000)))");
    EXPECT_GT(std::filesystem::file_size(path), 100'000U);
    disk.crash();
    EXPECT_LT(std::filesystem::file_size(path), 100'000U);
  }
}

// Several connections, readers among them, use the shared memory of the write-ahead log.
TEST(UnsyncedVfs, ServesSeveralConnections) {
  const temporary_directory place;
  const auto path = (place.path() / "test.db").string();
  unsynced_vfs disk("several");
  connection writer(path, disk.name());
  writer.run("PRAGMA journal_mode=WAL; CREATE TABLE t (n); INSERT INTO t VALUES (1)");
  connection reader(path, disk.name());
  reader.run("BEGIN");
  EXPECT_EQ(reader.run("SELECT count(*) FROM t"), "1");
  writer.run("INSERT INTO t VALUES (2)");
  EXPECT_EQ(reader.run("SELECT count(*) FROM t"), "1") << "its snapshot";
  reader.run("COMMIT");
  EXPECT_EQ(reader.run("SELECT count(*) FROM t"), "2");
}

}  // namespace
