// Findings from facts. integration/store_probe_* tests the table and the repairs on real databases.

#include "store/doctor/server_findings.hpp"
#include "store/doctor/table_findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace holdfast::detail::store {
namespace {

using namespace std::chrono_literals;
using sql::dialect_id;

server_facts a_server(dialect_id dialect, std::vector<server_setting> settings = {}) {
  return {.dialect = dialect,
          .version = "1",
          .user = "app",
          .database = "db",
          .settings = std::move(settings)};
}

/// A table without problems.
table_facts a_table() {
  return {.name = "FAILOVER_STORE",
          .exists = true,
          .storage = "",
          .columns = {{.name = "FAILOVER_NAME",
                       .type = "varchar(50)",
                       .kind = column_kind::text,
                       .length = 50,
                       .not_null = true},
                      {.name = "FAILOVER_KEY",
                       .type = "varchar(256)",
                       .kind = column_kind::text,
                       .length = 256,
                       .not_null = true},
                      {.name = "AS_OF",
                       .type = "timestamptz",
                       .kind = column_kind::time,
                       .not_null = true},
                      {.name = "EXPIRE_ON",
                       .type = "timestamptz",
                       .kind = column_kind::time,
                       .not_null = true},
                      {.name = "PAYLOAD", .type = "text", .kind = column_kind::text},
                      {.name = "PAYLOAD_CLASS",
                       .type = "varchar(256)",
                       .kind = column_kind::text,
                       .length = 256}},
          .indexes = {{.name = "pk",
                       .primary = true,
                       .constraint = true,
                       .unique = true,
                       .columns = {"FAILOVER_NAME", "FAILOVER_KEY"}},
                      {.name = "ix", .columns = {"EXPIRE_ON"}}}};
}

std::vector<std::string> codes_of(const std::vector<probe_finding>& findings) {
  std::vector<std::string> codes;
  for (const auto& each : findings) codes.push_back(each.code);
  return codes;
}

std::vector<std::string> codes_for(const table_facts& table, const store_options& options = {},
                                   dialect_id dialect = dialect_id::postgresql) {
  return codes_of(find_table_problems(table, a_server(dialect), options.prefix, options));
}

using codes = std::vector<std::string>;

TEST(ProbeTransport, FindsConnectionsThatAreNotProtected) {
  using sql::transport_kind;
  for (const auto dialect : {dialect_id::postgresql, dialect_id::mariadb, dialect_id::h2}) {
    EXPECT_EQ(codes_of(find_transport_problems(transport_kind::plaintext, dialect)),
              codes_of({{.code = "plaintext", .problem = ""}}));
    EXPECT_EQ(find_transport_problems(transport_kind::plaintext, dialect).front().severity,
              severity::warning);
    EXPECT_EQ(codes_of(find_transport_problems(transport_kind::encrypted, dialect)),
              codes_of({{.code = "unverified", .problem = ""}}));
    EXPECT_EQ(find_transport_problems(transport_kind::encrypted, dialect).front().severity,
              severity::note);
    for (const auto fine :
         {transport_kind::verified, transport_kind::local, transport_kind::unknown})
      EXPECT_TRUE(find_transport_problems(fine, dialect).empty());
  }
  EXPECT_NE(find_transport_problems(transport_kind::plaintext, dialect_id::mysql)
                .front()
                .advice.find("tls=1&tls_ca="),
            std::string::npos);
  EXPECT_NE(find_transport_problems(transport_kind::encrypted, dialect_id::postgresql)
                .front()
                .advice.find("sslmode=verify-full"),
            std::string::npos);
}

TEST(ProbeTable, FindsNothingInAValidTable) { EXPECT_EQ(codes_for(a_table()), codes{}); }

TEST(ProbeTable, FindsEachMissingColumn) {
  for (std::size_t i = 0; i < 6; ++i) {
    auto table = a_table();
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(i));
    const auto findings = find_table_problems(table, a_server(dialect_id::postgresql), "", {});
    ASSERT_EQ(codes_of(findings), codes{"column"});
    EXPECT_EQ(findings[0].severity, severity::wrong);
    EXPECT_NE(findings[0].problem.find(a_table().columns[i].name), std::string::npos);
    EXPECT_EQ(findings[0].sql.empty(), i < 2) << "without its key a row cannot be repaired";
  }
}

TEST(ProbeTable, AUniqueIndexOnTheTwoColumnsServesAsKeyInAnyOrder) {
  auto table = a_table();
  table.indexes[0] = {.name = "u", .unique = true, .columns = {"FAILOVER_KEY", "FAILOVER_NAME"}};
  EXPECT_EQ(codes_for(table), codes{});
  table.indexes[0].unique = false;
  EXPECT_EQ(codes_for(table), codes{"primary_key"});
  table.indexes[0] = {
      .name = "u", .unique = true, .columns = {"FAILOVER_KEY", "FAILOVER_NAME", "TENANT"}};
  EXPECT_EQ(codes_for(table), codes{"primary_key"}) << "with one more column a key can occur twice";
}

TEST(ProbeTable, AKeyOnOtherColumnsIsAccepted) {
  auto table = a_table();
  table.indexes.push_back({.name = "id", .primary = true, .unique = true, .columns = {"ID"}});
  EXPECT_EQ(codes_for(table), codes{});
  table.indexes.back().columns = {"AS_OF"};
  EXPECT_EQ(codes_for(table), codes{"key_in_the_way"});
}

TEST(ProbeTable, AnExtraColumnMustNotRequireAValue) {
  auto table = a_table();
  table.columns.push_back(
      {.name = "OWNER", .type = "text", .kind = column_kind::text, .not_null = true});
  EXPECT_EQ(codes_for(table), codes{});
  table.columns.back().needs_value = true;
  EXPECT_EQ(codes_for(table), codes{"extra_column"});
}

TEST(ProbeTable, ThePayloadColumnMustMatchTheOptions) {
  auto table = a_table();
  EXPECT_EQ(codes_for(table, {.payload = payload_column::bytes}), codes{"payload_type"});
  table.columns[4].kind = column_kind::bytes;
  EXPECT_EQ(codes_for(table, {.payload = payload_column::bytes}), codes{});
  EXPECT_EQ(codes_for(table), codes{"payload_type"});
}

TEST(ProbeTable, AConfiguredZoneIsEnough) {
  auto table = a_table();
  table.columns[2].kind = column_kind::local_time;
  EXPECT_EQ(codes_for(table), codes{"time_zone"});
  EXPECT_EQ(codes_for(table, {.zone = "UTC"}), codes{});
}

TEST(ProbeSkew, SubtractsTheRoundTrip) {
  EXPECT_TRUE(find_clock_problems(900ms, 0ms, 5min).empty());
  EXPECT_TRUE(find_clock_problems(-900ms, 0ms, 5min).empty());
  EXPECT_TRUE(find_clock_problems(3s, 2s, 5min).empty()) << "a slow response proves nothing";
  const auto some = find_clock_problems(2s, 100ms, 5min);
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].severity, severity::warning);
  EXPECT_NE(some[0].problem.find("2.0 s ahead"), std::string::npos) << some[0].problem;
  EXPECT_EQ(find_clock_problems(-301s, 500ms, 5min).at(0).severity, severity::failing);
  EXPECT_EQ(find_clock_problems(-301s, 2s, 5min).at(0).severity, severity::warning)
      << "not certainly beyond max_skew";
  EXPECT_EQ(find_clock_problems(10ms, 1ms, 5ms).at(0).severity, severity::failing)
      << "for any max_skew";
}

TEST(ProbeServer, ASettingIsRepairedAtItsSource) {
  const auto sql_for = [](const std::string& source) {
    const auto findings = find_server_problems(
        a_server(dialect_id::postgresql,
                 {{.name = "synchronous_commit", .value = "off", .source = source}}));
    return findings.size() == 1 && !findings[0].sql.empty() ? findings[0].sql[0] : std::string();
  };
  EXPECT_EQ(sql_for("database"), "ALTER DATABASE db RESET synchronous_commit");
  EXPECT_EQ(sql_for("user"), "ALTER ROLE app RESET synchronous_commit");
  EXPECT_EQ(sql_for("database user"), "ALTER ROLE app IN DATABASE db RESET synchronous_commit");
  EXPECT_EQ(sql_for("configuration file"), "ALTER SYSTEM SET synchronous_commit = on");
  EXPECT_EQ(sql_for("client"), "");
  EXPECT_EQ(sql_for("command line"), "");
}

TEST(ProbeServer, FindsOnlyUnsafeSettings) {
  for (const std::string value : {"on", "local", "remote_write", "remote_apply"}) {
    EXPECT_TRUE(find_server_problems(a_server(dialect_id::postgresql,
                                              {{.name = "synchronous_commit", .value = value}}))
                    .empty())
        << value;
  }
  for (const std::string value : {"1", "3"}) {
    EXPECT_TRUE(
        find_server_problems(a_server(dialect_id::mariadb,
                                      {{.name = "innodb_flush_log_at_trx_commit", .value = value}}))
            .empty());
  }
  EXPECT_TRUE(
      find_server_problems(a_server(dialect_id::mariadb, {{.name = "log_bin", .value = "OFF"},
                                                          {.name = "sync_binlog", .value = "0"}}))
          .empty())
      << "there is no log to sync";
  for (const std::string value : {"", "ext4"}) {
    EXPECT_TRUE(find_server_problems(
                    a_server(dialect_id::sqlite, {{.name = "file_system", .value = value}}))
                    .empty());
  }
  EXPECT_EQ(codes_of(find_server_problems(
                a_server(dialect_id::sqlite, {{.name = "file_system", .value = "nfs"}}))),
            codes{"file_system"});
}

}  // namespace
}  // namespace holdfast::detail::store
