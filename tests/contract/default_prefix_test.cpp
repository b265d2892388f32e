// The outbox without a name: a new database gets the neutral prefix, and an outbox with the default
// prefix of earlier versions goes on.

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/schema.hpp>

#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#if HOLDFAST_TEST_REDIS
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

constexpr const char* former = "{identity:outbox}";
constexpr const char* current = "{holdfast}";

struct fresh_sqlite {
  temporary_directory directory{"prefix", "", medium::memory};
  [[nodiscard]] std::string url() const {
    return "sqlite://" + (directory.path() / "outbox.db").string();
  }
};

template <class Server>
struct fresh_database {
  std::string name = shared_server<Server>().create_database("prefix");
  [[nodiscard]] std::string url() const { return shared_server<Server>().url(name); }
};

#if HOLDFAST_TEST_REDIS
template <class Server>
struct fresh_redis {
  Server server{};
  [[nodiscard]] std::string url() const { return server.url(); }
};
#endif

template <class Fixture>
class DefaultPrefix : public ::testing::Test {
 protected:
  /// As a process that starts.
  [[nodiscard]] outbox open_default(std::size_t lanes = 1) {
    return open(fixture_.url(),
                {.log =
                     [this](const log_record& record) {
                       const std::scoped_lock lock(mutex_);
                       if (record.message.find("default prefix") != std::string_view::npos)
                         notices_.emplace_back(record.message);
                     }})
        .outbox({.lanes = lanes, .create_schema = true});
  }
  [[nodiscard]] outbox open_named(const std::string& prefix, std::size_t lanes = 1) {
    return open(fixture_.url()).outbox({.prefix = prefix, .lanes = lanes, .create_schema = true});
  }
  static std::vector<std::string> deliver(const outbox& box) {
    std::vector<std::string> payloads;
    for (std::size_t lane = 0; lane < box.lanes(); ++lane) {
      (void)box.drain(lane);
      for (;;) {
        const auto got = box.claim({.lane = lane, .run = 10});
        if (got.events.empty()) break;
        for (const auto& one : got.events) {
          payloads.push_back(one.event.payload);
          EXPECT_TRUE(box.ack(got.fence, one));
        }
      }
    }
    return payloads;
  }
  /// The row of the outbox in a list of sets.
  template <class Row, class Name>
  static Row set_of(const std::vector<Row>& rows, Name name) {
    const auto row = std::ranges::find(rows, "outbox", name);
    if (row == rows.end()) throw std::runtime_error("there is no set 'outbox'");
    return *row;
  }
  [[nodiscard]] schema_status outbox_status() {
    return set_of(read_schema_status(open(fixture_.url())), &schema_status::set);
  }

  Fixture fixture_{};
  std::mutex mutex_{};
  std::vector<std::string> notices_{};
};

TYPED_TEST_SUITE_P(DefaultPrefix);

TYPED_TEST_P(DefaultPrefix, ANewDatabaseHasTheNeutralOne) {
  EXPECT_EQ(this->outbox_status().verdict, schema_verdict::absent);
  const auto box = this->open_default();
  EXPECT_EQ(box.backend()->prefix(), current);
  (void)box.publish({.type = "t", .key = "k", .payload = "1"});
  EXPECT_EQ(this->deliver(this->open_named(current)), std::vector<std::string>{"1"});
  EXPECT_TRUE(this->notices_.empty());
  const auto status = this->outbox_status();
  EXPECT_EQ(status.verdict, schema_verdict::current);
  EXPECT_NE(status.tables.front().find("holdfast"), std::string::npos);
}

TYPED_TEST_P(DefaultPrefix, AnOutboxOfAnEarlierVersionGoesOn) {
  {
    const auto before = this->open_named(former);
    for (const char* payload : {"1", "2", "3"})
      (void)before.publish({.type = "t", .key = "k", .payload = payload});
    (void)before.schedule("ticket", std::chrono::milliseconds(0), {.type = "t", .payload = "4"});
  }
  EXPECT_NE(this->outbox_status().tables.front().find("identity"), std::string::npos);
  const auto box = this->open_default();
  EXPECT_EQ(box.backend()->prefix(), former);
  (void)box.publish({.type = "t", .key = "k", .payload = "5"});
  EXPECT_EQ(this->notices_.size(), 1U) << "once";
  // A process of the version before, at the same time.
  (void)this->open_named(former).publish({.type = "t", .key = "k", .payload = "6"});
  auto payloads = this->deliver(this->open_default());
  std::erase(payloads, "4");  // without a key
  EXPECT_EQ(payloads, (std::vector<std::string>{"1", "2", "3", "5", "6"}));
  EXPECT_EQ(this->open_named(former).admin().stats().events, 0U);
  EXPECT_EQ(this->open_default().backend()->prefix(), former) << "also when it is empty";
  const auto upgrade = this->set_of(upgrade_schema(open(this->fixture_.url())),
                                    [](const schema_upgrade& row) { return row.before.set; });
  EXPECT_EQ(upgrade.before.verdict, schema_verdict::current);
}

TYPED_TEST_P(DefaultPrefix, ProcessesThatStartAtTheSameTimeAgree) {
  const auto start_all = [&] {
    std::vector<std::string> prefixes(6);
    std::vector<std::thread> processes;
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      processes.emplace_back([&, i] {
        const auto box = this->open_default(4);
        (void)box.publish({.type = "t", .key = "k" + std::to_string(i), .payload = "p"});
        prefixes[i] = box.backend()->prefix();
      });
    }
    for (auto& one : processes) one.join();
    return prefixes;
  };
  (void)this->open_named(former, 4).publish({.type = "t", .payload = "p"});
  EXPECT_EQ(start_all(), std::vector<std::string>(6, former));
  EXPECT_EQ(this->deliver(this->open_default(4)).size(), 7U);
}

TYPED_TEST_P(DefaultPrefix, ProcessesThatCreateItAgree) {
  std::vector<std::string> prefixes(6);
  std::vector<std::thread> processes;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    processes.emplace_back([&, i] {
      const auto box = this->open_default();
      (void)box.publish({.type = "t", .key = "k" + std::to_string(i), .payload = "p"});
      prefixes[i] = box.backend()->prefix();
    });
  }
  for (auto& one : processes) one.join();
  EXPECT_EQ(prefixes, std::vector<std::string>(6, current));
  EXPECT_EQ(this->deliver(this->open_default()).size(), 6U);
}

TYPED_TEST_P(DefaultPrefix, OfTwoTheNeutralOneIsUsedAndAWarningSaysSo) {
  (void)this->open_named(former).publish({.type = "t", .payload = "former"});
  (void)this->open_named(current).publish({.type = "t", .payload = "current"});
  const auto box = this->open_default();
  EXPECT_EQ(this->deliver(box), std::vector<std::string>{"current"});
  ASSERT_EQ(this->notices_.size(), 1U);
  EXPECT_NE(this->notices_[0].find("two outboxes"), std::string::npos);
  EXPECT_EQ(this->deliver(this->open_named(former)), std::vector<std::string>{"former"});
}

REGISTER_TYPED_TEST_SUITE_P(DefaultPrefix, ANewDatabaseHasTheNeutralOne,
                            AnOutboxOfAnEarlierVersionGoesOn, ProcessesThatStartAtTheSameTimeAgree,
                            ProcessesThatCreateItAgree, OfTwoTheNeutralOneIsUsedAndAWarningSaysSo);

INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, DefaultPrefix, fresh_sqlite);
INSTANTIATE_TYPED_TEST_SUITE_P(postgresql, DefaultPrefix, fresh_database<postgres_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(mariadb, DefaultPrefix, fresh_database<mariadb_server>);
#if HOLDFAST_TEST_REDIS
INSTANTIATE_TYPED_TEST_SUITE_P(redis, DefaultPrefix, fresh_redis<redis_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(cluster, DefaultPrefix, fresh_redis<redis_cluster>);

TEST(DefaultPrefixAcl, AUserOfTheFormerPrefixNeedsNoNewPermissions) {
  redis_server server;
  server.run({"ACL", "SETUSER", "app", "on", ">secret", "~{identity:outbox*", "+@all"});
  const auto url = "redis://app:secret@" + server.address();
  (void)open(server.url()).outbox({.prefix = former}).publish({.type = "t", .payload = "1"});
  const auto box = open(url).outbox();
  (void)box.publish({.type = "t", .payload = "2"});
  EXPECT_EQ(box.backend()->prefix(), former);
  EXPECT_EQ(box.admin().stats().events, 2U);
}
#endif

TEST(DefaultPrefixInMemory, IsTheNeutralOne) {
  const auto database = open("memory:");
  (void)database.outbox().publish({.type = "t", .payload = "1"});
  EXPECT_EQ(database.outbox({.prefix = current}).admin().stats().events, 1U);
}

}  // namespace
}  // namespace holdfast::test
