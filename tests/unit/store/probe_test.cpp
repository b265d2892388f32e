// What facts mean. That databases tell these facts, and that the cures cure, is tested on real ones (integration/store_probe_*).

#include "store/probe_facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace holdfast::probing {
namespace {

using namespace std::chrono_literals;
using sql::dialect_id;

server a_server(dialect_id dialect, std::vector<setting> settings = {}) {
  return {.dialect = dialect, .version = "1", .user = "app", .database = "db", .settings = std::move(settings)};
}

/// A table as it should be.
table a_table() {
  return {.name = "FAILOVER_STORE",
          .there = true,
          .storage = "",
          .columns = {{.name = "FAILOVER_NAME", .type = "varchar(50)", .kind = kind::text, .length = 50, .not_null = true},
                      {.name = "FAILOVER_KEY", .type = "varchar(256)", .kind = kind::text, .length = 256, .not_null = true},
                      {.name = "AS_OF", .type = "timestamptz", .kind = kind::moment, .not_null = true},
                      {.name = "EXPIRE_ON", .type = "timestamptz", .kind = kind::moment, .not_null = true},
                      {.name = "PAYLOAD", .type = "text", .kind = kind::text},
                      {.name = "PAYLOAD_CLASS", .type = "varchar(256)", .kind = kind::text, .length = 256}},
          .indexes = {{.name = "pk", .primary = true, .constraint = true, .unique = true, .columns = {"FAILOVER_NAME", "FAILOVER_KEY"}},
                      {.name = "ix", .columns = {"EXPIRE_ON"}}}};
}

std::vector<std::string> codes_of(const std::vector<probe_finding>& findings) {
  std::vector<std::string> codes;
  for (const auto& each : findings) codes.push_back(each.code);
  return codes;
}

std::vector<std::string> judged(const table& facts, const store_options& options = {}, dialect_id dialect = dialect_id::postgresql) {
  return codes_of(judge_table(facts, a_server(dialect), options.prefix, options));
}

using codes = std::vector<std::string>;

TEST(ProbeTransport, WhatCanBeReadOrPosedAsIsFound) {
  using sql::transport_kind;
  const auto found = [](transport_kind transport, dialect_id dialect) { return judge_transport(transport, dialect); };
  for (const auto dialect : {dialect_id::postgresql, dialect_id::mariadb, dialect_id::h2}) {
    EXPECT_EQ(codes_of(found(transport_kind::plaintext, dialect)), codes_of({{.code = "plaintext", .problem = ""}}));
    EXPECT_EQ(found(transport_kind::plaintext, dialect).front().severity, severity::warning);
    EXPECT_EQ(codes_of(found(transport_kind::encrypted, dialect)), codes_of({{.code = "unverified", .problem = ""}}));
    EXPECT_EQ(found(transport_kind::encrypted, dialect).front().severity, severity::note);
    for (const auto fine : {transport_kind::verified, transport_kind::local, transport_kind::unknown})
      EXPECT_TRUE(found(fine, dialect).empty());
  }
  EXPECT_NE(found(transport_kind::plaintext, dialect_id::mysql).front().advice.find("tls=1&tls_ca="), std::string::npos);
  EXPECT_NE(found(transport_kind::encrypted, dialect_id::postgresql).front().advice.find("sslmode=verify-full"), std::string::npos);
}

TEST(ProbeTable, NothingToSayOfASoundOne) { EXPECT_EQ(judged(a_table()), codes{}); }

TEST(ProbeTable, EveryColumnIsMissed) {
  for (std::size_t i = 0; i < 6; ++i) {
    auto facts = a_table();
    facts.columns.erase(facts.columns.begin() + static_cast<std::ptrdiff_t>(i));
    const auto found = judge_table(facts, a_server(dialect_id::postgresql), "", {});
    ASSERT_EQ(codes_of(found), codes{"column"});
    EXPECT_EQ(found[0].severity, severity::wrong);
    EXPECT_NE(found[0].problem.find(a_table().columns[i].name), std::string::npos);
    EXPECT_EQ(found[0].sql.empty(), i < 2) << "without its key a row is nobody's";
  }
}

TEST(ProbeTable, AUniqueIndexOnTheTwoColumnsServesAsKeyInAnyOrder) {
  auto facts = a_table();
  facts.indexes[0] = {.name = "u", .unique = true, .columns = {"FAILOVER_KEY", "FAILOVER_NAME"}};
  EXPECT_EQ(judged(facts), codes{});
  facts.indexes[0].unique = false;
  EXPECT_EQ(judged(facts), codes{"primary_key"});
  facts.indexes[0] = {.name = "u", .unique = true, .columns = {"FAILOVER_KEY", "FAILOVER_NAME", "TENANT"}};
  EXPECT_EQ(judged(facts), codes{"primary_key"}) << "one more column lets a key come twice";
}

TEST(ProbeTable, AKeyOfOthersIsNotInTheWay) {
  auto facts = a_table();
  facts.indexes.push_back({.name = "id", .primary = true, .unique = true, .columns = {"ID"}});
  EXPECT_EQ(judged(facts), codes{});
  facts.indexes.back().columns = {"AS_OF"};
  EXPECT_EQ(judged(facts), codes{"key_in_the_way"});
}

TEST(ProbeTable, AColumnOfOthersMayWantAValueOnlyIfSomethingGivesOne) {
  auto facts = a_table();
  facts.columns.push_back({.name = "OWNER", .type = "text", .kind = kind::text, .not_null = true});
  EXPECT_EQ(judged(facts), codes{});
  facts.columns.back().needs_value = true;
  EXPECT_EQ(judged(facts), codes{"extra_column"});
}

TEST(ProbeTable, ThePayloadColumnMustBeWhatTheStoreIsOpenedFor) {
  auto facts = a_table();
  EXPECT_EQ(judged(facts, {.payload = payload_column::bytes}), codes{"payload_type"});
  facts.columns[4].kind = kind::bytes;
  EXPECT_EQ(judged(facts, {.payload = payload_column::bytes}), codes{});
  EXPECT_EQ(judged(facts), codes{"payload_type"});
}

TEST(ProbeTable, AZoneThatIsStatedIsEnough) {
  auto facts = a_table();
  facts.columns[2].kind = kind::local_moment;
  EXPECT_EQ(judged(facts), codes{"time_zone"});
  EXPECT_EQ(judged(facts, {.zone = "UTC"}), codes{});
}

TEST(ProbeSkew, TheRoundTripIsTakenIntoAccount) {
  EXPECT_TRUE(judge_skew(900ms, 0ms, 5min).empty());
  EXPECT_TRUE(judge_skew(-900ms, 0ms, 5min).empty());
  EXPECT_TRUE(judge_skew(3s, 2s, 5min).empty()) << "a slow answer proves nothing";
  const auto some = judge_skew(2s, 100ms, 5min);
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].severity, severity::warning);
  EXPECT_NE(some[0].problem.find("2.0 s ahead"), std::string::npos) << some[0].problem;
  EXPECT_EQ(judge_skew(-301s, 500ms, 5min).at(0).severity, severity::failing);
  EXPECT_EQ(judge_skew(-301s, 2s, 5min).at(0).severity, severity::warning) << "beyond max_skew it must be surely";
  EXPECT_EQ(judge_skew(10ms, 1ms, 5ms).at(0).severity, severity::failing) << "whatever max_skew is";
}

TEST(ProbeServer, ASettingIsTakenBackByWhoeverMadeIt) {
  const auto sql_for = [](const std::string& source) {
    const auto found = judge_server(a_server(dialect_id::postgresql, {{.name = "synchronous_commit", .value = "off", .source = source}}));
    return found.size() == 1 && !found[0].sql.empty() ? found[0].sql[0] : std::string();
  };
  EXPECT_EQ(sql_for("database"), "ALTER DATABASE db RESET synchronous_commit");
  EXPECT_EQ(sql_for("user"), "ALTER ROLE app RESET synchronous_commit");
  EXPECT_EQ(sql_for("database user"), "ALTER ROLE app IN DATABASE db RESET synchronous_commit");
  EXPECT_EQ(sql_for("configuration file"), "ALTER SYSTEM SET synchronous_commit = on");
  EXPECT_EQ(sql_for("client"), "");
  EXPECT_EQ(sql_for("command line"), "");
}

TEST(ProbeServer, OnlyWhatIsUnsafeIsMentioned) {
  for (const std::string value : {"on", "local", "remote_write", "remote_apply"}) {
    EXPECT_TRUE(judge_server(a_server(dialect_id::postgresql, {{.name = "synchronous_commit", .value = value}})).empty()) << value;
  }
  for (const std::string value : {"1", "3"}) {
    EXPECT_TRUE(judge_server(a_server(dialect_id::mariadb, {{.name = "innodb_flush_log_at_trx_commit", .value = value}})).empty());
  }
  EXPECT_TRUE(
      judge_server(a_server(dialect_id::mariadb, {{.name = "log_bin", .value = "OFF"}, {.name = "sync_binlog", .value = "0"}})).empty())
      << "no log, nothing to sync";
  for (const std::string value : {"", "ext4"}) {
    EXPECT_TRUE(judge_server(a_server(dialect_id::sqlite, {{.name = "file_system", .value = value}})).empty());
  }
  EXPECT_EQ(codes_of(judge_server(a_server(dialect_id::sqlite, {{.name = "file_system", .value = "nfs"}}))), codes{"file_system"});
}

}  // namespace
}  // namespace holdfast::probing
