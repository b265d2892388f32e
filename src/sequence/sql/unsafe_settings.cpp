#include "sequence/sql/unsafe_settings.hpp"

#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using sql::dialect_id;
using sql::type;

/// Runs a query that returns one row with `count` texts.
std::vector<std::string> query_texts(sql::connection& server, const std::string& query,
                                     std::size_t count) {
  const auto rows =
      server.execute({.text = query, .results = std::vector<type>(count, type::text)}, {}).rows;
  std::vector<std::string> texts(count);
  for (std::size_t i = 0; i < count && !rows.empty(); ++i) {
    if (const auto* text = std::get_if<std::string>(&rows.at(0, i))) texts[i] = *text;
  }
  return texts;
}

void check_postgres(sql::connection& server, std::vector<std::string>& problems) {
  const auto settings =
      query_texts(server,
                  "SELECT current_setting('fsync'), current_setting('synchronous_commit'), "
                  "current_setting('full_page_writes')",
                  3);
  if (settings[0] == "off")
    problems.emplace_back(
        "PostgreSQL does not sync (fsync = off): a crash of its machine loses commits; switch it "
        "on");
  if (settings[1] == "off")
    problems.emplace_back(
        "PostgreSQL acknowledges before it has written (synchronous_commit = off): a crash loses "
        "commits; ALTER ROLE ... SET synchronous_commit = on");
  if (settings[2] == "off")
    problems.emplace_back(
        "PostgreSQL writes pages that a power cut can tear (full_page_writes = off); switch it on");
}

void check_mysql(sql::connection& server, std::vector<std::string>& problems, bool fenced) {
  const auto settings =
      query_texts(server,
                  "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR), CAST(@@log_bin AS "
                  "CHAR), CAST(@@sync_binlog AS CHAR)",
                  3);
  // "1" on MySQL, "ON" on MariaDB
  const bool replicates = settings[1] == "1" || settings[1] == "ON";
  if (settings[0] != "1")
    problems.push_back("the server does not sync each commit (innodb_flush_log_at_trx_commit = " +
                       settings[0] + "): a crash loses commits; set it to 1");
  if (replicates && settings[2] != "1")
    problems.push_back("the server does not sync its binary log (sync_binlog = " + settings[2] +
                       "): its replicas can know more than it does after a crash; set it to 1");
  if (fenced && replicates &&
      query_texts(server, "SELECT CAST(@@binlog_format AS CHAR)", 1)[0] == "STATEMENT")
    problems.emplace_back(
        "the replicas repeat statements (binlog_format = STATEMENT), so they store their own "
        "server id where failover_skip needs that of this server; set it to ROW");
}

void check_sqlite(sql::connection& server, std::vector<std::string>& problems) {
  const auto rows = server
                        .execute({.text = "SELECT synchronous FROM pragma_synchronous",
                                  .results = {type::integer}},
                                 {})
                        .rows;
  const auto* level = rows.empty() ? nullptr : std::get_if<std::int64_t>(&rows.at(0, 0));
  if (level == nullptr || *level < 2)
    problems.emplace_back(
        "SQLite does not sync each commit (PRAGMA synchronous below FULL): a power cut loses "
        "commits");
}

void check_h2(sql::connection& server, std::vector<std::string>& problems) {
  const auto delay = query_texts(
      server,
      // Behind the PostgreSQL port of H2 the name is in lower case.
      "SELECT SETTING_VALUE FROM INFORMATION_SCHEMA.SETTINGS WHERE UPPER(SETTING_NAME) = "
      "'WRITE_DELAY'",
      1)[0];
  if (delay != "0")
    problems.emplace_back("H2 writes commits later (WRITE_DELAY = " + delay +
                          "): a crash loses them; SET WRITE_DELAY 0");
}

void check_sqlserver(sql::connection& server, std::vector<std::string>& problems) {
  const auto durability = query_texts(
      server, "SELECT delayed_durability_desc FROM sys.databases WHERE database_id = DB_ID()",
      1)[0];
  if (durability == "FORCED")
    problems.emplace_back(
        "SQL Server acknowledges before it has written (DELAYED_DURABILITY = FORCED); set it to "
        "DISABLED or ALLOWED");
}

}  // namespace

std::vector<std::string> unsafe_sql_settings(sql::connection& server, dialect_id dialect,
                                             bool fenced) {
  std::vector<std::string> problems;
  switch (dialect) {
    case dialect_id::postgresql:
      check_postgres(server, problems);
      break;
    case dialect_id::mysql:
    case dialect_id::mariadb:
      check_mysql(server, problems, fenced);
      break;
    case dialect_id::sqlite:
      check_sqlite(server, problems);
      break;
    case dialect_id::h2:
      check_h2(server, problems);
      break;
    case dialect_id::sqlserver:
      check_sqlserver(server, problems);
      break;
    case dialect_id::oracle:   // each grant commits with COMMIT WRITE IMMEDIATE WAIT
    case dialect_id::unknown:  // refused by make_statements
      break;
  }
  return problems;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
