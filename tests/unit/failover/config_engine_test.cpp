// An engine from a file, on a real database.

#include <holdfast/database.hpp>
#include <holdfast/failover.hpp>
#include <holdfast/store/tenants.hpp>

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class config_engine_test : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    const auto path = directory.path() / "app.toml";
    std::ofstream(path) << "[failover.store]\nurl = \"sqlite://"
                        << (directory.path() / "answers.db").string()
                        << "\"\ncreate-schema = true\n"
                        << text;
    return path.string();
  }
  engine_options listening() {
    engine_options base;
    base.log = [this](const log_record& record) {
      const std::scoped_lock lock(mutex);
      log.emplace_back(record.message);
    };
    return base;
  }
  bool logged(std::string_view text) {
    const std::scoped_lock lock(mutex);
    for (const auto& each : log) {
      if (each.find(text) != std::string::npos) return true;
    }
    return false;
  }
  static std::chrono::steady_clock::time_point soon() {
    return std::chrono::steady_clock::now() + 30s;
  }
  auto owners(engine& owner_engine) {
    return owner_engine.protect("owner", [this](const std::string& id) -> std::string {
      if (down) throw std::runtime_error("down");
      return said + id;
    });
  }

  temporary_directory directory{};
  std::atomic<bool> down{false};
  std::string said = "owner of ";
  std::string who{};  ///< the tenant, by a resolver
  std::mutex mutex{};
  std::vector<std::string> log{};
};

TEST_F(config_engine_test, keeps_answers_in_the_database_of_the_file) {
  const auto path = file("table-prefix = \"APP_\"\n[failover.points.owner]\nexpiry = \"2h\"\n");
  {
    auto engine = engine::from_config(path);
    const auto owner = owners(engine);
    EXPECT_TRUE(owner("42").live());
    EXPECT_EQ(engine.points().at(0).expiry, expiry(2h).text());
    EXPECT_TRUE(engine.close(soon()).clean());
  }
  down = true;
  auto engine = engine::from_config(path);
  const auto owner = owners(engine);
  const auto again = owner("42");
  EXPECT_TRUE(again.stale());
  EXPECT_EQ(*again, "owner of 42");
  EXPECT_EQ(again.expires() - again.as_of(), 2h);
  EXPECT_THROW((void)owner("43"), std::runtime_error);
  EXPECT_TRUE(engine.health().healthy) << engine.health().problem;
}

TEST_F(config_engine_test, a_key_without_encryption_is_refused_before_anything_is_stored) {
  const auto path = file("encryption.key = \"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"\n");
  EXPECT_THROW((void)engine::from_config(path), error);
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "answers.db"));
}

TEST_F(config_engine_test, builds_the_whole_stack) {
  const auto path = file(R"(
tiered.enabled = true
encryption.enabled = true
encryption.key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
[failover.store.multitenant]
enabled = true
tenants.acme.table-prefix = "ACME_"
tenants.globex.table-prefix = "GLOBEX_"
[failover.scheduler]
cleanup-cron = "* * * * * *"
cleanup-jitter = "0s"
)");
  auto options = listening();
  options.threads.propagate = {};
  auto engine = engine::from_config(path, options);
  const auto owner = owners(engine);
  {
    const tenant_scope acme("acme");
    EXPECT_TRUE(owner("1").live());
  }
  ASSERT_TRUE(engine.flush(soon()));
  down = true;
  {
    const tenant_scope acme("acme");
    EXPECT_EQ(*owner("1"), "owner of 1");
  }
  {
    const tenant_scope globex("globex");
    EXPECT_THROW((void)owner("1"), std::runtime_error)
        << "what another tenant stored is not served";
  }
  {
    const tenant_scope mallory("mallory");
    EXPECT_THROW((void)owner("1"), std::runtime_error);
  }
  const auto raw = open("sqlite://" + (directory.path() / "answers.db").string())
                       .store({.prefix = "ACME_"})
                       ->find_all("owner", 10);
  ASSERT_EQ(raw.entries.size(), 1U);
  EXPECT_THAT(raw.entries[0].payload.value_or(""), ::testing::StartsWith("ENC(main:"));
}

TEST_F(config_engine_test, removes_what_expired_on_its_schedule) {
  auto engine = engine::from_config(
      file("[failover.scheduler]\ncleanup-cron = \"* * * * * *\"\ncleanup-jitter = "
           "\"0s\"\n[failover.points.owner]\nexpiry = \"200ms\"\nwrite-behind = false\n"));
  const auto owner = owners(engine);
  (void)owner("1");
  EXPECT_TRUE(eventually([&] { return engine.store()->count("owner") == 0; }));
}

TEST_F(config_engine_test, reports_at_the_moments_of_its_cron) {
  auto engine = engine::from_config(file("[failover.scheduler]\nreport-cron = \"* * * * * *\"\n"),
                                    listening());
  const auto owner = owners(engine);
  EXPECT_TRUE(eventually([&] { return logged("failover report"); }));
}

TEST_F(config_engine_test, switched_off_it_is_a_plain_call) {
  auto engine = engine::from_config(file("[failover]\nenabled = false\n"));
  const auto owner = owners(engine);
  (void)owner("1");
  down = true;
  EXPECT_THROW((void)owner("1"), std::runtime_error);
}

TEST_F(config_engine_test, a_bad_point_of_the_file_is_refused_when_it_is_registered) {
  auto engine = engine::from_config(file("[failover.points.owner]\nexpiry = \"policy:nightly\"\n"));
  EXPECT_THAT(failure_of([&] { (void)owners(engine); }).message(),
              HasSubstr("there is no expiry policy 'nightly'"));
}

TEST_F(config_engine_test, a_file_that_is_not_there) {
  const auto problem = failure_of([] { (void)engine::from_config("/nowhere/app.toml"); });
  EXPECT_EQ(problem.code(), errc::unavailable);
  EXPECT_EQ(problem.path(), "/nowhere/app.toml");
}

TEST_F(config_engine_test, warnings_go_to_the_log_and_memory_needs_no_database) {
  const auto path = directory.path() / "memory.toml";
  std::ofstream(path) << "[failover.observable]\ninstance.mode = \"auto\"\n";
  auto engine = engine::from_config(path.string(), listening());
  EXPECT_TRUE(logged("lost when the process ends"));
  EXPECT_TRUE(logged("failover.observable.instance.mode has no effect"));
  const auto owner = owners(engine);
  (void)owner("1");
  down = true;
  EXPECT_EQ(*owner("1"), "owner of 1");
}

TEST_F(config_engine_test, tenants_in_memory_are_kept_apart) {
  const auto path = directory.path() / "memory.toml";
  std::ofstream(path)
      << "[failover.store.multitenant]\nenabled = true\ndefault-tenant = \"a\"\n"
         "[failover.store.multitenant.tenants.a]\n[failover.store.multitenant.tenants.b]\n";
  auto options = listening();
  options.caller.tenant = [this] { return who; };
  auto engine = engine::from_config(path.string(), options);
  const auto owner = owners(engine);
  (void)owner("1");  // without a tenant: the default
  down = true;
  who = "a";
  EXPECT_EQ(*owner("1"), "owner of 1");
  who = "b";
  EXPECT_THROW((void)owner("1"), std::runtime_error);
}

}  // namespace

}  // namespace holdfast::test
