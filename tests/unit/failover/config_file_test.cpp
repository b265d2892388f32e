// What a configuration may say, and how it is told what it may not.

#include "failover/config_fixture.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(config_test, an_unknown_key_is_refused_with_its_line_and_the_nearest_one) {
  EXPECT_EQ(
      refused("\n[failover.store]\ntpye = \"jdbc\"\n"),
      "line 3: failover.store.tpye: there is no such key; the nearest is failover.store.type");
  EXPECT_THAT(refused("[failover.points.\"a.b\"]\nexpirey = \"1h\"\n"),
              HasSubstr("the nearest is failover.points.\"a.b\".expiry"));
  EXPECT_THAT(refused("[failovr]\nenabled = true\n"), HasSubstr("the nearest is failover.enabled"));
  EXPECT_THAT(refused("[failover.stroe]\n"),
              HasSubstr("line 1: failover.stroe: there is no such key"));
  EXPECT_THAT(refused("failover = 3\n"), HasSubstr("this is a table, not a key"));
  EXPECT_THAT(refused("[failover.store.type]\n"), HasSubstr("this is a key, not a table"));
}

TEST_F(config_test, other_parts_of_the_file_are_the_applications) {
  EXPECT_EQ(refused("port = 80\n[server]\nname = \"x\"\n[failover]\nenabled = false\n"), "nothing");
}

TEST_F(config_test, everything_that_is_wrong_is_told_at_once_in_the_order_of_lines) {
  const auto all = refused(R"(
[failover]
enabled = "yes"
threads = 0
read-deadline = 10
exception-policy = "sometimes"
[failover.scatter]
partial = "most"
[failover.points.p]
expiry = "soon"
retry.budget = 1.5
[failover.scheduler]
cleanup-cron = "61 * * * * *"
)");
  for (const char* each : {
           "line 3: failover.enabled: 'yes' is not true or false; ",
           "line 4: failover.threads: this is not a whole number of at least 1; ",
           "line 5: failover.read-deadline: this is not a duration such as \"10s\"",
           "line 6: failover.exception-policy: 'sometimes' is not one of rethrow, never_throw, "
           "custom; ",
           "line 8: failover.scatter.partial: 'most' is not keep, drop, fail, or the number of "
           "slices that must be there; ",
           "line 10: failover.points.p.expiry: 'soon' is not an expiry such as \"24h\"",
           "line 11: failover.points.p.retry.budget: this is not a number from 0 to 1; ",
           "line 13: failover.scheduler.cleanup-cron: ",
       })
    EXPECT_THAT(all, HasSubstr(each));
  EXPECT_LT(all.find("line 3"), all.find("line 13"));
}

TEST_F(config_test, values_come_from_the_environment) {
  variables = {
      {"PREFIX", "DEV_"}, {"LIMIT", "77"}, {"ON", "false"}, {"CLASSES", "com.acme, com.other"}};
  const auto plan = planned(R"(
[failover]
threads = "${LIMIT}"
enabled = "${ON}"
[failover.store]
url = "sqlite:${NAME:answers}.db"
table-prefix = "A_${PREFIX}$${NOT}$"
allowed-payload-classes = "${CLASSES}"
)");
  EXPECT_EQ(plan.store.prefix, "A_DEV_${NOT}$");
  EXPECT_EQ(plan.engine.threads.count, 77U);
  EXPECT_EQ(plan.url, "sqlite:answers.db");
  EXPECT_FALSE(point(plan, "any").enabled);

  EXPECT_EQ(refused("[failover.store]\ntable-prefix = \"${MISSING}\"\n"),
            "line 2: failover.store.table-prefix: the environment variable MISSING is not set; set "
            "it, or give a default: "
            "${MISSING:default}");
  EXPECT_THAT(refused("[failover.store]\ntable-prefix = \"${A-B}\"\n"),
              HasSubstr("needs the name of a variable"));
  EXPECT_THAT(refused("[failover.store]\ntable-prefix = \"${A\"\n"), HasSubstr("has no }"));
  EXPECT_THAT(refused("[failover]\nthreads = \"16\"\n"), HasSubstr("is not a whole number"))
      << "a text is no number unless the environment gave it";
}

TEST_F(config_test, secrets_are_never_repeated) {
  variables = {{"SECRET", "hunter2"}};
  const auto said = refused(R"(
[failover]
exception-policy = "${SECRET}"
[failover.store]
type = "inmemory"
url = "postgresql://me:hunter2@host/db"
password = 12345
[failover.store.encryption]
enabled = true
key = "hunter2"
)");
  EXPECT_THAT(said, Not(HasSubstr("hunter2")));
  EXPECT_THAT(said, Not(HasSubstr("12345")));
  EXPECT_THAT(said, HasSubstr("failover.exception-policy: this is not one of"));
  EXPECT_THAT(refused("[failover.store]\npassword = hunter2\n"), Not(HasSubstr("unter2")));
  EXPECT_THAT(refused("[failover.store]\npassword = \"hunter2\n"), Not(HasSubstr("unter2")));
  // The TOML library repeats a number that is too large.
  EXPECT_THAT(refused("[failover.store]\nuser = 99999999999999999999\n"),
              HasSubstr("99999999999999999999"));
  EXPECT_THAT(refused("[failover.store]\npassword = 99999999999999999999\n"),
              Not(HasSubstr("99999999999999999999")));
}

TEST_F(config_test, what_is_no_toml_is_refused_with_its_line) {
  EXPECT_THAT(refused("[failover]\nenabled = \n"), HasSubstr("line 2: this is not TOML"));
  EXPECT_THAT(refused("[failover]\nenabled = true\nenabled = true\n"),
              HasSubstr("line 3: this is not TOML"));
  EXPECT_THAT(refused("[failover]\n[\x01x]\n"), HasSubstr("line 2: a control character"));
  EXPECT_THAT(refused("[failover]\n# \u00fc\nst\u028are = true\n"),
              HasSubstr("line 3: a letter that needs quotes"));
  EXPECT_THAT(refused("x = \"\"\"\n\u00fc\\\"\"\"\"\"\"\ny = 'a'\u3001\n"),
              HasSubstr("line 3: a letter that needs quotes"));
}

TEST_F(config_test, keys_of_the_java_library_that_mean_nothing_here_are_answered) {
  const std::pair<const char*, const char*> cases[]{
      {"[failover.dashboard]\nenabled = true", "prometheus_registry"},
      {"[failover.dashboard.cluster.snapshot]\ninterval-seconds = 3", "prometheus_registry"},
      {"[failover.aspect]\nenabled = true", "use failover.enabled"},
      {"[failover]\ntype = \"RESILIENCE\"", "breaker.enabled"},
      {"[failover.store]\ntype = \"CUSTOM\"", "create the store in code"},
      {"[failover.store]\ntype = \"CAFFEINE\"", "use inmemory"},
      {"[failover.store.caffeine]\nmax-size = 3", "failover.store.inmemory.max-entries"},
      {"[failover.store.jdbc.encryption]\ncipher = \"b64\"", "Base64 is not encryption"},
      {"[failover.store.jdbc]\nstrict-allowlist = false", "always checked"},
      {"[failover.store.multitenant]\nstrict = false", "always refused"},
      {"[failover.scatter]\nrejection-policy = \"CALLER_RUNS\"", "failover.threads"},
      {"[failover.store]\nurl = \"jdbc:postgresql://host/db\"", "omit jdbc:"},
  };
  for (const auto& [text, answer] : cases) EXPECT_THAT(refused(text), HasSubstr(answer)) << text;

  const auto plan = planned(
      "[failover.observable]\nasync.enabled = true\nasync.queue-capacity = 10\ninstance.id = "
      "\"a\"\ncardinality.max-apis = 7\n");
  EXPECT_TRUE(warns(plan, "line 2: failover.observable.async.enabled has no effect"));
  EXPECT_TRUE(warns(plan, "failover.observable.instance.id has no effect"));
  EXPECT_EQ(plan.engine.max_points, 7U);
  EXPECT_FALSE(plan.engine.reports.count_entries);
  EXPECT_TRUE(planned("[failover.store.jdbc]\nlive-entries-gauge-enabled = true\n")
                  .engine.reports.count_entries);
}

TEST_F(config_test, jdbc_may_be_left_out_but_not_said_twice) {
  EXPECT_EQ(planned("[failover.store.jdbc]\ntable-prefix = \"A_\"\n").store.prefix, "A_");
  EXPECT_EQ(planned("[failover.store]\ntable-prefix = \"A_\"\n").store.prefix, "A_");
  EXPECT_THAT(refused("[failover.store]\ntable-prefix = \"A_\"\njdbc.table-prefix = \"B_\"\n"),
              HasSubstr("line 2 sets this already"));
}

TEST(config_text, durations) {
  using config::parse_duration;
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration(" 500ms "), 500ms);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("2d"), 48h);
  EXPECT_EQ(parse_duration("0s"), 0s);
  EXPECT_EQ(parse_duration("106751991d"), 106751991 * 24h);
  for (const char* wrong : {"", " ", "10", "s", "-1s", "1.5s", "10 parsecs", "106751992d",
                            "99999999999999999999s", "106751991d 106751991d"})
    EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
}

TEST(config_text, expiries) {
  using config::parse_expiry;
  EXPECT_EQ(parse_expiry("24h"), expiry(24h));
  EXPECT_EQ(parse_expiry("3 months"), expiry(std::chrono::months(3)));
  EXPECT_EQ(parse_expiry("1year"), expiry(std::chrono::years(1)));
  EXPECT_EQ(parse_expiry("policy: nightly"), expiry::named("nightly"));
  for (const char* wrong : {"", "policy:", "months", "1 decade", "99999 years", "24"})
    EXPECT_EQ(parse_expiry(wrong), std::nullopt) << wrong;
}

/// The page has a row for each key, in the order of the table: | `name` | default | meaning |
TEST(config_keys, the_page_shows_the_table) {
  std::ifstream page(HOLDFAST_CONFIGURATION_PAGE);
  ASSERT_TRUE(page) << HOLDFAST_CONFIGURATION_PAGE;
  std::vector<std::string> shown;
  for (std::string line; std::getline(page, line) && line != "## Coming from the Java library";) {
    if (line.starts_with("| `failover.")) shown.push_back(line);
  }
  std::vector<std::string> expected;
  for (const auto& each : config::known_keys()) {
    std::ostringstream row;
    row << "| `" << each.name << "` | ";
    if (each.kind == config::value_kind::ignored) row << "no effect";
    else if (!each.default_value.empty()) row << '`' << each.default_value << '`';
    row << " | " << each.description;
    if (!each.choices.empty()) row << ": " << each.choices;
    row << " |";
    expected.push_back(row.str());
  }
  shown.resize(std::max(shown.size(), expected.size()));
  expected.resize(shown.size());
  for (std::size_t i = 0; i < shown.size(); ++i) EXPECT_EQ(shown[i], expected[i]);
}

TEST(config_keys, every_default_of_the_table_is_a_value_of_its_kind_and_changes_nothing) {
  std::string text;
  for (const auto& each : config::known_keys()) {
    if (each.default_value.empty() || each.name.find('*') != std::string_view::npos) continue;
    const bool bare = each.kind == config::value_kind::flag ||
                      each.kind == config::value_kind::count ||
                      each.kind == config::value_kind::rate;
    text.append(each.name)
        .append(bare ? " = " : " = \"")
        .append(each.default_value)
        .append(bare ? "\n" : "\"\n");
  }
  const auto plain = config::make_plan("a", "", {});
  const auto said = config::make_plan("b", text, {});
  EXPECT_EQ(said.warnings, plain.warnings);
  EXPECT_EQ(said.engine.exception_policy, plain.engine.exception_policy);
  EXPECT_EQ(said.engine.keys.style, plain.engine.keys.style);
  EXPECT_EQ(said.engine.storage.read_deadline, plain.engine.storage.read_deadline);
  EXPECT_EQ(said.engine.storage.max_payload, plain.engine.storage.max_payload);
  EXPECT_EQ(said.engine.threads.count, plain.engine.threads.count);
  EXPECT_EQ(said.engine.threads.queue, plain.engine.threads.queue);
  EXPECT_EQ(said.engine.linger, plain.engine.linger);
  EXPECT_EQ(said.engine.storage.max_skew, plain.engine.storage.max_skew);
  EXPECT_EQ(said.engine.max_points, plain.engine.max_points);
  ASSERT_TRUE(said.engine.storage.write_behind && plain.engine.storage.write_behind);
  EXPECT_EQ(said.engine.storage.write_behind->max_entries,
            plain.engine.storage.write_behind->max_entries);
  EXPECT_EQ(said.engine.storage.write_behind->full, plain.engine.storage.write_behind->full);
  EXPECT_EQ(said.engine.scatter.timeout, plain.engine.scatter.timeout);
  EXPECT_EQ(said.engine.scatter.parallel, plain.engine.scatter.parallel);
  EXPECT_EQ(said.engine.scatter.partial, plain.engine.scatter.partial);
  EXPECT_EQ(said.engine.scatter.max_slices, plain.engine.scatter.max_slices);
  EXPECT_EQ(said.engine.scatter.unlisted, plain.engine.scatter.unlisted);
  EXPECT_EQ(said.memory.max_entries, plain.memory.max_entries);
  EXPECT_EQ(said.memory.max_bytes, plain.memory.max_bytes);
  EXPECT_EQ(said.database.pool.maximum, plain.database.pool.maximum);
  EXPECT_EQ(said.database.pool.acquire_timeout, plain.database.pool.acquire_timeout);
  EXPECT_EQ(said.database.connect_timeout, plain.database.connect_timeout);
  EXPECT_EQ(said.database.statement_timeout, plain.database.statement_timeout);
  EXPECT_EQ(said.store.probe, plain.store.probe);
  EXPECT_EQ(said.store.start, plain.store.start);
  EXPECT_EQ(said.store.create_schema, plain.store.create_schema);
  ASSERT_TRUE(said.cleanup && plain.cleanup);
  EXPECT_EQ(said.cleanup->cron, plain.cleanup->cron);
  EXPECT_EQ(said.cleanup->jitter, plain.cleanup->jitter);
  EXPECT_EQ(said.cleanup->batch, plain.cleanup->batch);
  EXPECT_EQ(said.cleanup->lease, plain.cleanup->lease);
  EXPECT_EQ(said.layers.sealed.has_value(), plain.layers.sealed.has_value());
  EXPECT_EQ(said.layers.tiered.has_value(), plain.layers.tiered.has_value());
  EXPECT_EQ(said.tenants.has_value(), plain.tenants.has_value());
}

}  // namespace

}  // namespace holdfast::test
