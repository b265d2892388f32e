#include "sequence/sql_block_store.hpp"

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

using sql::dialect_id;
using sql::type;

/// Asks one question whose answer is one row of text.
std::vector<std::string> ask(sql::connection& server, const std::string& question, std::size_t answers) {
  const auto rows = server.execute({.text = question, .results = std::vector<type>(answers, type::text)}, {}).rows;
  std::vector<std::string> found(answers);
  for (std::size_t i = 0; i < answers && !rows.empty(); ++i) {
    if (const auto* said = std::get_if<std::string>(&rows.at(0, i))) found[i] = *said;
  }
  return found;
}

void look_at_postgres(sql::connection& server, std::vector<std::string>& problems) {
  const auto said =
      ask(server, "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')", 3);
  if (said[0] == "off") problems.emplace_back("PostgreSQL does not sync (fsync = off): a crash of its machine loses commits; switch it on");
  if (said[1] == "off")
    problems.emplace_back(
        "PostgreSQL acknowledges before it has written (synchronous_commit = off): a crash loses commits; ALTER ROLE ... SET "
        "synchronous_commit = on");
  if (said[2] == "off") problems.emplace_back("PostgreSQL writes pages that a power cut can tear (full_page_writes = off); switch it on");
}

void look_at_mysql(sql::connection& server, std::vector<std::string>& problems, bool fenced) {
  const auto said =
      ask(server, "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR), CAST(@@log_bin AS CHAR), CAST(@@sync_binlog AS CHAR)", 3);
  const bool replicates = said[1] == "1" || said[1] == "ON";  // MySQL says the one, MariaDB the other
  if (said[0] != "1")
    problems.push_back("the server does not sync each commit (innodb_flush_log_at_trx_commit = " + said[0] +
                       "): a crash loses commits; set it to 1");
  if (replicates && said[2] != "1")
    problems.push_back("the server does not sync its binary log (sync_binlog = " + said[2] +
                       "): its replicas can know more than it does after a crash; set it to 1");
  if (fenced && replicates && ask(server, "SELECT CAST(@@binlog_format AS CHAR)", 1)[0] == "STATEMENT")
    problems.emplace_back(
        "the server's replicas repeat statements (binlog_format = STATEMENT), and write their own id where failover_skip looks for that of "
        "this server; set it to ROW");
}

void look_at_sqlite(sql::connection& server, std::vector<std::string>& problems) {
  const auto rows = server.execute({.text = "SELECT synchronous FROM pragma_synchronous", .results = {type::integer}}, {}).rows;
  const auto* level = rows.empty() ? nullptr : std::get_if<std::int64_t>(&rows.at(0, 0));
  if (level == nullptr || *level < 2)
    problems.emplace_back("SQLite does not sync each commit (PRAGMA synchronous below FULL): a power cut loses commits");
}

void look_at_h2(sql::connection& server, std::vector<std::string>& problems) {
  const auto said = ask(server, "SELECT SETTING_VALUE FROM INFORMATION_SCHEMA.SETTINGS WHERE SETTING_NAME = 'WRITE_DELAY'", 1);
  if (said[0] != "0")
    problems.emplace_back("H2 writes commits later (WRITE_DELAY = " + said[0] + "): a crash loses them; SET WRITE_DELAY 0");
}

void look_at_sqlserver(sql::connection& server, std::vector<std::string>& problems) {
  const auto said = ask(server, "SELECT delayed_durability_desc FROM sys.databases WHERE database_id = DB_ID()", 1);
  if (said[0] == "FORCED")
    problems.emplace_back("SQL Server acknowledges before it has written (DELAYED_DURABILITY = FORCED); set it to DISABLED or ALLOWED");
}

}  // namespace

std::vector<std::string> unsafe_settings_of(sql::connection& server, dialect_id dialect, bool fenced) {
  std::vector<std::string> problems;
  switch (dialect) {
    case dialect_id::postgresql:
      look_at_postgres(server, problems);
      break;
    case dialect_id::mysql:
    case dialect_id::mariadb:
      look_at_mysql(server, problems, fenced);
      break;
    case dialect_id::sqlite:
      look_at_sqlite(server, problems);
      break;
    case dialect_id::h2:
      look_at_h2(server, problems);
      break;
    case dialect_id::sqlserver:
      look_at_sqlserver(server, problems);
      break;
    case dialect_id::oracle:   // each commit says by itself that it waits
    case dialect_id::unknown:  // refused before
      break;
  }
  return problems;
}

}  // namespace HOLDFAST_NAMESPACE::detail
