// What a configuration means: the options of the engine, of its store, and of its points.

#include "failover/config_fixture.hpp"

#include <gmock/gmock.h>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(config_test, the_published_keys_mean_what_they_did) {
  const auto plan = planned(R"(
[failover]
exception-policy = "NEVER_THROW"
[failover.store]
type = "JDBC"
url = "sqlite:answers.db"
async-executor.concurrency-limit = 50
async-executor.rejection-policy = "CALLER_RUNS"
jdbc.table-prefix = "APP_"
jdbc.allowed-payload-classes = ["com.acme", "com.acme.Other"]
pool.maximum = 40
[failover.scheduler]
cleanup-cron = "0 */5 * * * *"
cleanup-lease = "0s"
[failover.scatter]
timeout = "3s"
concurrency-limit = 4
partial = 2
unlisted = "serve"
)");
  EXPECT_EQ(plan.engine.exception_policy, exception_policy::never_throw);
  EXPECT_TRUE(warns(plan, "never_throw"));
  EXPECT_FALSE(warns(plan, "in memory"));
  EXPECT_EQ(plan.url, "sqlite:answers.db");
  EXPECT_EQ(plan.engine.storage.write_behind->max_entries, 50U);
  EXPECT_EQ(plan.engine.storage.write_behind->full, when_full::write_through);
  EXPECT_EQ(plan.store.prefix, "APP_");
  EXPECT_EQ(
      plan.engine.storage.payloads.allowlist().names(),
      (std::vector<std::string>{"com.acme", "com.acme.*", "com.acme.Other", "com.acme.Other.*"}));
  EXPECT_EQ(plan.database.pool.maximum, 40U);
  ASSERT_TRUE(plan.cleanup);
  EXPECT_EQ(plan.cleanup->cron, "0 */5 * * * *");
  EXPECT_EQ(plan.cleanup->lease, 0ms);
  EXPECT_EQ(plan.cleanup->prefix, "APP_");
  EXPECT_EQ(plan.engine.scatter.timeout, 3s);
  EXPECT_EQ(plan.engine.scatter.parallel, 4U);
  EXPECT_EQ(plan.engine.scatter.partial, partial::at_least(2));
  EXPECT_EQ(plan.engine.scatter.unlisted, unlisted::serve);
  EXPECT_EQ(planned("[failover.scatter]\nparallel = false\n").engine.scatter.parallel, 1U);
  EXPECT_FALSE(planned("[failover.scheduler]\nenabled = false\n").cleanup);
  EXPECT_FALSE(planned("[failover.store]\nasync = false\n").engine.storage.write_behind);
  EXPECT_EQ(planned("").store.start, start_mode::background);
  EXPECT_EQ(planned("[failover.store]\nstart = \"require\"\n").store.start, start_mode::require);
}

TEST_F(config_test, the_base_holds_where_the_file_is_silent) {
  engine_options base;
  base.threads.count = 3;
  base.scatter.timeout = 1s;
  const auto plan = planned("[failover]\nqueue = 9\n", base);
  EXPECT_EQ(plan.engine.threads.count, 3U);
  EXPECT_EQ(plan.engine.threads.queue, 9U);
  EXPECT_EQ(plan.engine.scatter.timeout, 1s);
  EXPECT_EQ(plan.engine.reports.cron, "") << "nobody would hear it";
  base.log = [](const log_record&) {};
  EXPECT_EQ(planned("", base).engine.reports.cron, "0 0 0 * * *");
  base.reports.every = 5s;
  EXPECT_EQ(planned("", base).engine.reports.cron, "");
  EXPECT_EQ(planned("[failover.scheduler]\nreport-cron = \"@hourly\"\n", base).engine.reports.cron,
            "@hourly");
}

TEST_F(config_test, type_and_url_must_agree) {
  EXPECT_TRUE(warns(planned(""), "lost when the process ends"));
  EXPECT_TRUE(
      warns(planned("[failover.store]\nurl = \"memory:\"\n"), "lost when the process ends"));
  EXPECT_THAT(refused("[failover.store]\ntype = \"jdbc\"\n"), HasSubstr("jdbc needs a database"));
  EXPECT_THAT(refused("[failover.store]\ntype = \"inmemory\"\nurl = \"sqlite:a.db\"\n"),
              HasSubstr("has no use for failover.store.url"));
}

TEST_F(config_test, a_pool_that_is_too_small_for_its_scatters_is_warned_about) {
  const auto plan = planned(
      "[failover.store]\nurl = \"sqlite:a.db\"\n[failover.scatter]\ntimeout = "
      "\"2s\"\n[failover.points.wide]\nscatter.concurrency-limit = "
      "64\n");
  EXPECT_TRUE(
      warns(plan, "pool.acquire_timeout (8000 ms) is above the deadline of a scatter (2000 ms)"));
  EXPECT_TRUE(warns(plan, "raise pool.maximum to 65"));
  EXPECT_TRUE(planned("[failover.store]\nurl = \"sqlite:a.db\"\n").warnings.empty());
}

TEST_F(config_test, sealing) {
  constexpr auto key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
  const std::string section =
      "[failover.store]\nurl = \"sqlite:a.db\"\nencryption.enabled = true\n";
  auto plan =
      planned(section + "encryption.key = \"" + key + "\"\nencryption.read-plaintext = true\n");
  ASSERT_TRUE(plan.layers.sealed);
  EXPECT_EQ(plan.layers.sealed->keys.keys().front().first, "main");
  EXPECT_TRUE(plan.layers.sealed->read_plaintext);
  plan = planned(section + "peer = \"java\"\nencryption.key = \"" + key + "\"\n");
  EXPECT_EQ(plan.layers.sealed->keys.keys().front().first, "aesgcm");
  EXPECT_EQ(plan.engine.keys.style, key::style::exact);
  plan = planned(section + "encryption.keys = \"may:" + key + "\"\n");
  EXPECT_EQ(plan.layers.sealed->keys.keys().front().first, "may");
  EXPECT_THAT(refused(section),
              HasSubstr("set one of failover.store.encryption.key, .keys and .keys-file"));
  EXPECT_THAT(refused(section + "encryption.key = \"c2hvcnQ=\"\n"),
              HasSubstr("line 4: failover.store.encryption.key: "));
  EXPECT_THAT(refused(section + "encryption.keys-file = \"/nowhere/keys\"\n"),
              HasSubstr("failover.store.encryption.keys-file: "));
  EXPECT_THAT(refused("[failover.store.encryption]\nenabled = true\nkey = \"x\"\n"),
              HasSubstr("a store in memory is not sealed"));
  const std::string off = "[failover.store]\nurl = \"sqlite:a.db\"\n";
  for (const std::string disabled : {"", "encryption.enabled = false\n"}) {
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
             {"key", key}, {"keys", std::string("may:") + key}, {"keys-file", "/nowhere/keys"}}) {
      const auto complaint =
          refused(off + disabled + "encryption." + name + " = \"" + value + "\"\n");
      EXPECT_THAT(complaint,
                  HasSubstr("failover.store.encryption." + name +
                            ": there is a key, but payloads would be stored unencrypted; "
                            "set failover.store.encryption.enabled = true, or remove the key"));
      EXPECT_EQ(complaint.find(key), std::string::npos);
    }
  }
  // Encryption was meant: a variable is not set, or the switch was forgotten.
  for (const std::string setting : {"key = \"${HOLDFAST_TEST_NOT_SET:}\"", "keys = \"\"",
                                    "keys-file = \"\"", "cipher = \"aesgcm\"", "read-java = true",
                                    "read-base64 = false", "read-plaintext = true"}) {
    const auto name = setting.substr(0, setting.find(' '));
    EXPECT_THAT(
        refused(off + "encryption." + setting + "\n"),
        HasSubstr("failover.store.encryption." + name +
                  ": payloads would be stored unencrypted; "
                  "set failover.store.encryption.enabled = true and a key, or enabled = false"));
    EXPECT_FALSE(
        planned(off + "encryption.enabled = false\nencryption." + setting + "\n").layers.sealed);
  }
  EXPECT_THAT(refused(section + "encryption.key = \"${HOLDFAST_TEST_NOT_SET:}\"\n"),
              HasSubstr("set one of"));
  EXPECT_THAT(refused(section + "peer = \"java\"\nencryption.key = \"" + key +
                      "\"\n[failover]\nkey-style = \"escaped\"\n"),
              HasSubstr("must be exact"));
}

TEST_F(config_test, tenants) {
  const std::string section =
      "[failover.store]\nurl = \"sqlite:a.db\"\n[failover.store.multitenant]\nenabled = true\n";
  auto plan = planned(section +
                      "default-tenant = \"acme\"\ntenants.acme.table-prefix = "
                      "\"ACME_\"\n[failover.store.multitenant.tenants.globex]\n");
  ASSERT_TRUE(plan.tenants);
  EXPECT_EQ(plan.tenants->tenants, (std::vector<std::string>{"acme", "globex"}));
  EXPECT_EQ(plan.tenants->default_tenant, "acme");
  EXPECT_EQ(plan.store.realms.at("acme"), "ACME_");
  EXPECT_EQ(plan.store.realms.at("globex"), "globex_");
  plan = planned(section + "strategy = \"SCHEMA\"\ntenants.acme.schema = \"a1\"\n");
  EXPECT_EQ(plan.store.realms.at("acme"), "a1.");
  EXPECT_THAT(refused(section), HasSubstr("there are no tenants"));
  EXPECT_THAT(refused(section + "default-tenant = \"x\"\ntenants.acme.table-prefix = \"A_\"\n"),
              HasSubstr("default-tenant: is not one of"));
  EXPECT_THAT(refused(section + "tenants.acme.schema = \"a\"\n"),
              HasSubstr("is of the other strategy"));
  EXPECT_THAT(
      refused(section + "tenants.a.table-prefix = \"A_\"\ntenants.b.table-prefix = \"A_\"\n"),
      HasSubstr("the same place"));
  EXPECT_THAT(refused("[failover.store.multitenant.tenants.acme]\ntable-prefix = \"A_\"\n"),
              HasSubstr("set true, or remove them"));
}

TEST_F(config_test, a_point_is_configured_by_its_name) {
  const auto plan = planned(R"(
[failover.points.country-by-code]
expiry = "24h"
soft-expiry = "5m"
domain = "country"
deadline = "250ms"
late = "cancel"
exception-policy = "custom"
vary = ["user"]
single-flight = true
write-behind = false
retry.attempts = 2
breaker.open-for = "1m"
scatter.timeout = "1s"
[failover.points."with.dots"]
expiry = "1 month"
breaker.enabled = true
[failover.points.off]
enabled = false
retry.enabled = false
)");
  const auto one = point(plan, "country-by-code", {.concurrency_limit = 7});
  EXPECT_EQ(one.expiry, expiry(24h));
  EXPECT_EQ(one.soft_expiry, 5min);
  EXPECT_EQ(one.domain, "country");
  EXPECT_EQ(one.deadline, 250ms);
  EXPECT_EQ(one.late, late_call::cancel);
  EXPECT_EQ(one.exception_policy, exception_policy::custom);
  EXPECT_EQ(one.vary, std::vector<std::string>{"user"});
  EXPECT_TRUE(one.single_flight);
  EXPECT_EQ(one.write_behind, false);
  EXPECT_EQ(one.concurrency_limit, 7U) << "the code's, where the file is silent";
  ASSERT_TRUE(one.retry && one.breaker && one.scatter);
  EXPECT_EQ(one.retry->attempts, 2U);
  EXPECT_EQ(one.retry->backoff, 50ms);
  EXPECT_EQ(one.breaker->open_for, 1min);
  EXPECT_EQ(one.scatter->timeout, 1s);
  EXPECT_EQ(one.scatter->parallel, 16U);

  const auto dotted = point(plan, "with.dots");
  EXPECT_EQ(dotted.expiry, expiry(std::chrono::months(1)));
  EXPECT_TRUE(dotted.breaker && !dotted.retry && !dotted.scatter);
  EXPECT_EQ(plan.points->unclaimed(), std::vector<std::string>{"off"});
  const auto off = point(plan, "off", {.retry = retry_options{}});
  EXPECT_FALSE(off.enabled || off.retry);
  EXPECT_TRUE(plan.points->unclaimed().empty());
  EXPECT_EQ(point(plan, "another", {.expiry = 3h}).expiry, expiry(3h));
}

}  // namespace

}  // namespace holdfast::test
