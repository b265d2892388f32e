// There is no SQL Server and no Oracle here. Their statements run on engines that stand in for
// them; what had to be changed for that is in the lists below, and docs/databases.md prints them:
// the last test compares.

#include "store/sql/statements.hpp"
#include "support/child_process.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using sql::dialect_id;

struct change {
  std::string why;
  std::string from;  ///< a regular expression
  std::string to;
};

struct stand_in {
  std::string name;
  std::string url;
  dialect_id dialect;
  std::vector<std::string> schema;
  std::vector<change> changes;
  std::string order{};     ///< of the upsert, where a change moved its parameters
  std::string empty_is{};  ///< what an empty payload comes back as
};

const change no_hints{"lock hints dropped", R"( WITH \((HOLDLOCK|ROWLOCK, READPAST)\))", ""};
const change guard_first{
    "the guard stands in WHEN MATCHED AND, not in UPDATE ... WHERE",
    R"(WHEN MATCHED THEN (UPDATE SET .*) WHERE (held\.AS_OF <= \? OR held\.AS_OF > \?) WHEN NOT)",
    "WHEN MATCHED AND ($2) THEN $1 WHEN NOT"};
const change no_extract{"times are read as they are, not through SYS_EXTRACT_UTC",
                        R"(SYS_EXTRACT_UTC\((\w+)\))", "$1"};
const change no_lob_compare{
    "DBMS_LOB.COMPARE written as =", R"(DBMS_LOB\.COMPARE\(PAYLOAD, \?\) = 0)", "PAYLOAD = ?"};
const std::string order_with_guard_first = "0,1,2,6,2,3,4,5,0,1,2,3,4,5";

std::string published(const std::string& time, const std::string& text) {
  return "CREATE TABLE FAILOVER_STORE (FAILOVER_NAME VARCHAR(50) NOT NULL, FAILOVER_KEY "
         "VARCHAR(256) NOT NULL, AS_OF " +
         time + " NOT NULL, EXPIRE_ON " + time + " NOT NULL, PAYLOAD " + text +
         ", PAYLOAD_CLASS VARCHAR(256), PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY))";
}

const std::vector<stand_in>& stand_ins() {
  static const std::vector<stand_in> all{
      {"H2 in its MSSQLServer mode",
       "jdbc:h2:mem:mss;MODE=MSSQLServer",
       dialect_id::sqlserver,
       {published("TIMESTAMP(7) WITH TIME ZONE", "NVARCHAR(MAX)")},
       {no_hints,
        {"DATETIMEOFFSET(7) called TIMESTAMP(7) WITH TIME ZONE", R"(DATETIMEOFFSET\(7\))",
         "TIMESTAMP(7) WITH TIME ZONE"},
        {"times are read as they are, not through SWITCHOFFSET",
         R"(CAST\(SWITCHOFFSET\((\w+), '\+00:00'\) AS DATETIME2\(7\)\))", "$1"},
        {"DELETE TOP (n) written as DELETE with a limit",
         R"(WITH bound AS \(SELECT CAST\(\? AS TIMESTAMP\(7\) WITH TIME ZONE\) AS MOMENT\) DELETE TOP \(\?\) FROM (\S+) WHERE EXPIRE_ON < \(SELECT MOMENT FROM bound\))",
         "DELETE FROM $1 WHERE EXPIRE_ON < ? FETCH FIRST ? ROWS ONLY"}}},
      {"HSQLDB in its mss mode",
       "jdbc:hsqldb:mem:mss;sql.syntax_mss=true",
       dialect_id::sqlserver,
       {published("DATETIMEOFFSET(7)", "NVARCHAR(MAX)")},
       {no_hints,
        {"parameters in VALUES have types", R"(VALUES \(\?, \?, (.*), \?\)\) AS src)",
         "VALUES (CAST(? AS VARCHAR(50)), CAST(? AS VARCHAR(256)), $1, CAST(? AS VARCHAR(256)))) "
         "AS src"},
        {"times are read as they are, not through SWITCHOFFSET",
         R"(CAST\(SWITCHOFFSET\((\w+), '\+00:00'\) AS DATETIME2\(7\)\))", "$1"},
        {"DELETE TOP (n) written as DELETE with a limit",
         R"(WITH bound AS \(SELECT CAST\(\? AS DATETIMEOFFSET\(7\)\) AS MOMENT\) DELETE TOP \(\?\) FROM (\S+) WHERE EXPIRE_ON < \(SELECT MOMENT FROM bound\))",
         "DELETE FROM $1 WHERE EXPIRE_ON < ? LIMIT ?"}}},
      {"H2 in its Oracle mode",
       "jdbc:h2:mem:ora;MODE=Oracle",
       dialect_id::oracle,
       {published("TIMESTAMP(9) WITH TIME ZONE", "CLOB")},
       {guard_first, no_extract, no_lob_compare},
       order_with_guard_first,
       "null"},
      {"HSQLDB in its ora mode",
       "jdbc:hsqldb:mem:ora;sql.syntax_ora=true",
       dialect_id::oracle,
       {published("TIMESTAMP(9) WITH TIME ZONE", "CLOB")},
       {guard_first,
        no_extract,
        no_lob_compare,
        {"ROWNUM written as LIMIT", R"(EXPIRE_ON < \? AND ROWNUM <= \?)", "EXPIRE_ON < ? LIMIT ?"}},
       order_with_guard_first},
      {"PostgreSQL's MERGE",
       "jdbc:postgresql:",
       dialect_id::oracle,
       {"CREATE TABLE DUAL (DUMMY VARCHAR(1))", "INSERT INTO DUAL VALUES ('X')",
        published("TIMESTAMPTZ", "TEXT")},
       {{"a table DUAL is there", "USING DUAL", "USING DUAL"},
        guard_first,
        no_extract,
        no_lob_compare,
        {"ROWNUM written as LIMIT", R"(DELETE FROM (\S+) WHERE EXPIRE_ON < \? AND ROWNUM <= \?)",
         "DELETE FROM $1 WHERE ctid IN (SELECT ctid FROM $1 WHERE EXPIRE_ON < ? LIMIT ?)"}},
       order_with_guard_first},
  };
  return all;
}

std::string changed(std::string text, const stand_in& on, std::set<std::string>& used) {
  for (const auto& each : on.changes) {
    const std::regex pattern(each.from);
    if (std::regex_search(text, pattern)) used.insert(each.why);
    text = std::regex_replace(text, pattern, each.to);
  }
  return text;
}

std::string order_of(const sql::batch_statement& s, const stand_in& on) {
  if (!on.order.empty()) return on.order;
  std::string made;
  if (s.order.empty()) return "0,1,2,3,4,5,6";
  for (const auto each : s.order) made += (made.empty() ? "" : ",") + std::to_string(each);
  return made;
}

/// Of a server, when it is not inside the Java process.
std::string url_of(const stand_in& on) {
  if (on.url != "jdbc:postgresql:") return on.url;
  const auto& server = shared_server<postgres_server>();
  return "jdbc:postgresql://127.0.0.1:" + std::to_string(server.port()) + "/" +
         server.create_database("stand_in") + "?user=holdfast&password=secret";
}

void write_plan(std::ostream& to, const stand_in& on, std::set<std::string>& used) {
  const auto s = detail::store::make_statements(on.dialect, "", {});
  to << "engine\t" << on.name << '\t' << url_of(on) << '\n';
  for (const auto& each : on.schema) to << "exec\t" << each << '\n';
  to << "upsert\t" << changed(s.upsert.text + s.upsert.row + s.upsert.tail, on, used) << '\t'
     << order_of(s.upsert, on) << '\n';
  const std::vector<std::pair<std::string, const sql::statement*>> others{
      {"insert", &s.insert},         {"update", &s.update},         {"find", &s.find},
      {"find_first", &s.find_first}, {"find_after", &s.find_after}, {"erase", &s.erase},
      {"expire", &s.expire},         {"count", &s.count},           {"rewrite", &s.rewrite},
      {"name_after", &s.name_after}};
  for (const auto& [name, statement] : others)
    to << name << '\t' << changed(statement->text, on, used) << '\n';
  if (!on.empty_is.empty()) to << "empty_is\t" << on.empty_is << '\n';
  to << "end\n";
}

TEST(StandIns, RunEveryStatementOfSqlServerAndOracle) {
  temporary_directory directory;
  const auto plan = directory.path() / "plan";
  {
    std::ofstream out(plan);
    for (const auto& each : stand_ins()) {
      std::set<std::string> used;
      write_plan(out, each, used);
      for (const auto& one : each.changes)
        EXPECT_TRUE(used.contains(one.why)) << each.name << " does not need: " << one.why;
    }
  }
  const auto done = run_program(
      {.argv = {"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
                "-Duser.timezone=UTC", "-cp",
                "/usr/share/java/h2.jar:/usr/share/java/hsqldb.jar:/usr/share/java/postgresql.jar",
                HOLDFAST_TEST_STAND_INS, plan.string()}},
      std::chrono::minutes(2));
  ASSERT_TRUE(done.status.success()) << done.error << done.output;
  std::istringstream lines(done.output);
  std::map<std::string, int> ran;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.ends_with("\tok")) << line;
    ++ran[line.substr(0, line.find('\t'))];
  }
  for (const auto& each : stand_ins())
    EXPECT_EQ(ran[each.name], 10 + static_cast<int>(each.schema.size())) << each.name;
}

/// What ran on the real engine, what on a stand-in and what was changed for it, what never: as the
/// page has it.
std::string table_of_proofs() {
  std::string made = "| words of | ran on | changed for it |\n| --- | --- | --- |\n";
  const auto row = [&made](const std::string& words, const std::string& on,
                           const std::string& what) {
    made.append("| ").append(words).append(" | ").append(on).append(" | ").append(what).append(
        " |\n");
  };
  const auto joined = [](const std::vector<std::string>& all) {
    std::string text;
    std::set<std::string> seen;
    for (const auto& each : all)
      if (seen.insert(each).second) text.append(text.empty() ? "" : "; ").append(each);
    return text;
  };
  row("H2", "**the real engine**, H2 2.1", "nothing");
  row("unknown", "**real engines** through their ODBC drivers: PostgreSQL, MariaDB, SQLite",
      "nothing");
  const auto told =
      run_program({.argv = {"/usr/bin/python3", "-B", "-c",
                            "import sys; sys.path.insert(0, sys.argv[1]); import tds_server; "
                            "print('\\n'.join(w for w, _, _ in tds_server.REWRITES))",
                            HOLDFAST_TEST_SUPPORT}});
  std::vector<std::string> on_the_way;
  std::istringstream lines(told.output);
  for (std::string line; std::getline(lines, line);) on_the_way.push_back(line);
  row("SQL Server",
      "a stand-in: PostgreSQL's MERGE, behind a server of the tests that speaks TDS, through the "
      "real FreeTDS driver",
      joined(on_the_way));
  for (const auto& each : stand_ins()) {
    std::vector<std::string> whys;
    for (const auto& one : each.changes) whys.push_back(one.why);
    if (each.empty_is == "null")
      whys.emplace_back(
          "(an empty payload comes back as NULL, as in Oracle: the store tells it by its class)");
    row(each.dialect == dialect_id::oracle ? "Oracle" : "SQL Server", "a stand-in: " + each.name,
        joined(whys));
  }
  row("SQL Server", "SQL Server itself", "**never run**");
  row("Oracle", "Oracle itself, and its ODBC driver", "**never run**");
  return made;
}

TEST(StandIns, AreListedOnThePage) {
  std::ifstream page(HOLDFAST_TEST_DATABASES_PAGE);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_NE(text.find(table_of_proofs()), std::string::npos) << "docs/databases.md should have:\n"
                                                             << table_of_proofs();
}

}  // namespace
}  // namespace holdfast::test
