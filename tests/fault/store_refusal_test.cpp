// Servers that are there but do not take writes: read-only, disk full. Every acknowledged write is
// there, and writing goes on afterwards.

#include <holdfast/database.hpp>

#include "fault/write_storm.hpp"
#include "support/limited_disk.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/read_only.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

template <class Server>
class StoreRefusals : public ::testing::Test {};
using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(StoreRefusals, servers);

TYPED_TEST(StoreRefusals, AReadOnlyServerStillAnswersAndSaysWhyItDoesNotWrite) {
  TypeParam server;
  const auto store = open(server.url(), {.statement_timeout = 2s}).store({.create_schema = true});
  const auto start = system_clock()->now();
  store->put(make_entry("k", start, "before"));
  make_read_only(server, true);
  // The setting reaches sessions that exist a moment later.
  const auto refused = [&]() -> std::string {
    const auto until = std::chrono::steady_clock::now() + 20s;
    for (int tried = 1; std::chrono::steady_clock::now() < until; ++tried) {
      try {
        store->put(make_entry("other", start + 1us * tried, "x"));
      } catch (const error& e) {
        EXPECT_TRUE(e.transient()) << "a primary may be back: " << e.what();
        EXPECT_FALSE(e.in_doubt());
        return e.what();
      }
    }
    return "";
  }();
  EXPECT_NE(refused.find("read-only"), std::string::npos) << refused;
  EXPECT_EQ(*store->find("n", "k")->payload, "before") << "reading goes on";
  make_read_only(server, false);
  bool written = false;
  for (int tried = 0; tried < 50 && !written; ++tried) {
    try {
      store->put(make_entry("k", start + 1s, "after"));
      written = true;
    } catch (const error& e) {
      EXPECT_TRUE(e.transient()) << e.what();
    }
  }
  ASSERT_TRUE(written);
  EXPECT_EQ(*store->find("n", "k")->payload, "after");
}

TYPED_TEST(StoreRefusals, AFullDiskLosesNothingThatWasAcknowledged) {
  limited_disk disk;
  TypeParam server({.directory = disk.path()});
  const auto url = server.url();
  const auto store = open(url, {.statement_timeout = 5s}).store({.create_schema = true});
  acknowledged ledger;
  disk.leave(24U << 20U);
  std::string refusal;
  int written = 0;
  for (int i = 0; i < 2000 && refusal.empty(); ++i) {
    const auto as_of = system_clock()->now();
    const auto key = "k" + std::to_string(i);
    // Bytes that do not compress away.
    std::string noise(60'000, ' ');
    std::minstd_rand random(static_cast<unsigned>(i) + 1);
    for (char& c : noise) c = static_cast<char>('!' + random() % 90);
    auto e = make_entry(key, as_of, key + "@" + std::to_string(as_of.time_since_epoch().count()));
    auto large = make_entry("large" + std::to_string(i), as_of, noise);
    const entry both[]{e, large};
    try {
      store->put(both);
      ledger.note(key, as_of);
      ++written;
    } catch (const error& failure) {
      EXPECT_TRUE(failure.transient()) << failure.what();
      refusal = failure.what();
    }
  }
  EXPECT_FALSE(refusal.empty()) << "the disk never got full";
  EXPECT_GT(written, 20);
  disk.leave(512U << 20U);  // somebody made room
  // PostgreSQL stops itself when there is no room for its log
  if (!server.running()) server.start();
  server.kill9();
  server.start();
  const auto after = open(url).store();
  ledger.check(*after);
  after->put(make_entry("new", system_clock()->now(), "written again"));
  EXPECT_EQ(*after->find("n", "new")->payload, "written again");
}

}  // namespace
}  // namespace holdfast::test
