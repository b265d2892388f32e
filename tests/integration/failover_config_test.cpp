// Engines from a file on real servers: what SQLite shows in the unit tests, where the answers are
// on another machine.

#include <holdfast/database.hpp>
#include <holdfast/failover.hpp>
#include <holdfast/store/tenants.hpp>

#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

template <class Server>
class EngineFromAFileOn : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file(const std::string& text) const {
    const auto path = directory_.path() / "app.toml";
    std::ofstream(path) << "[failover.store]\nurl = \"" << server_.url(name_)
                        << "\"\ncreate-schema = true\n"
                        << text;
    return path.string();
  }
  auto owners(engine& on) {
    return on.protect("owner", [this](const std::string& id) -> std::string {
      if (down_) throw std::runtime_error("down");
      return "owner of " + id;
    });
  }
  static std::chrono::steady_clock::time_point soon() {
    return std::chrono::steady_clock::now() + 60s;
  }

  const typename Server::endpoint& server_ = shared_server<Server>();
  const std::string name_ = server_.create_database("config");
  temporary_directory directory_{};
  std::atomic<bool> down_{false};
};

using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(EngineFromAFileOn, servers);

TYPED_TEST(EngineFromAFileOn, AnswersSurviveARestartAndAreCounted) {
  const auto path = this->file(
      "table-prefix = \"APP_\"\njdbc.live-entries-gauge-enabled = true\n[failover]\nread-deadline "
      "= \"30s\"\n"
      "[failover.points.owner]\nexpiry = \"2h\"\n");
  {
    auto engine = engine::from_config(path);
    const auto owner = this->owners(engine);
    EXPECT_TRUE(owner("42").live());
    EXPECT_TRUE(owner("43").live());
    EXPECT_TRUE(engine.close(this->soon()).clean());
  }
  this->down_ = true;
  const auto registry = make_prometheus_registry();
  auto engine = engine::from_config(path, {.metrics = registry});
  const auto owner = this->owners(engine);
  const auto again = owner("42");
  EXPECT_TRUE(again.stale());
  EXPECT_EQ(*again, "owner of 42");
  EXPECT_EQ(again.expires() - again.as_of(), 2h) << "to the microsecond, whatever the column keeps";
  EXPECT_THROW((void)owner("44"), std::runtime_error);
  EXPECT_TRUE(engine.health().healthy) << engine.health().problem;
  engine.report();
  EXPECT_THAT(
      registry->text(),
      ::testing::HasSubstr("holdfast_failover_live_entries{domain=\"owner\",name=\"owner\"} 2"));
}

TYPED_TEST(EngineFromAFileOn, TheWholeStackKeepsTenantsApartAndTheirRowsSealed) {
  const auto path = this->file(R"(tiered.enabled = true
encryption.enabled = true
encryption.key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
[failover]
read-deadline = "30s"
[failover.store.multitenant]
enabled = true
tenants.acme.table-prefix = "ACME_"
tenants.globex.table-prefix = "GLOBEX_"
)");
  {
    auto engine = engine::from_config(path);
    const auto owner = this->owners(engine);
    const tenant_scope acme("acme");
    EXPECT_TRUE(owner("1").live());
    EXPECT_TRUE(engine.close(this->soon()).clean());
  }
  this->down_ = true;
  auto engine = engine::from_config(path);
  const auto owner = this->owners(engine);
  {
    const tenant_scope acme("acme");
    EXPECT_EQ(*owner("1"), "owner of 1");
  }
  {
    const tenant_scope globex("globex");
    EXPECT_THROW((void)owner("1"), std::runtime_error)
        << "what another tenant stored is not served";
  }
  const auto raw =
      open(this->server_.url(this->name_)).store({.prefix = "ACME_"})->find_all("owner", 10);
  ASSERT_EQ(raw.entries.size(), 1U);
  EXPECT_THAT(raw.entries[0].payload.value_or(""), ::testing::StartsWith("ENC(main:"));
}

}  // namespace
}  // namespace holdfast::test
