#include "store/doctor/probe.hpp"

#include "sql/read_only_server.hpp"
#include "sql/table_access.hpp"
#include "sql/watched_session.hpp"
#include "store/doctor/catalog_queries.hpp"
#include "store/doctor/repair_statements.hpp"
#include "store/doctor/server_findings.hpp"
#include "store/doctor/table_findings.hpp"
#include "store/sql/realm_statements.hpp"
#include "store/sql/table_lease.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(severity s) noexcept {
  static constexpr std::array<std::string_view, 4> names{"note", "warning", "failing", "wrong"};
  return names[static_cast<std::size_t>(s)];
}

namespace detail::store {

namespace {

using namespace std::chrono;
using sql::dialect_id;
using sql::type;

/// A store with a thousand tenants must start quickly. `holdfast store doctor` checks all tables.
constexpr std::size_t max_tables_at_start = 16;

std::string server_title(const server_facts& server) {
  // In the order of dialect_id
  static constexpr std::array<std::string_view, 8> products{
      "SQLite", "PostgreSQL", "MySQL", "MariaDB", "H2", "SQL Server", "Oracle", "unknown"};
  std::string title(products[static_cast<std::size_t>(server.dialect)]);
  if (!server.version.empty()) title.append(" ").append(server.version);
  return title;
}

std::string_view clock_query(dialect_id dialect) {
  switch (dialect) {
    case dialect_id::postgresql:
      return "SELECT clock_timestamp()";
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return "SELECT UTC_TIMESTAMP(6)";
    case dialect_id::h2:
      return "SELECT CURRENT_TIMESTAMP(6)";
    case dialect_id::sqlserver:
      return "SELECT SYSUTCDATETIME()";
    default:
      return {};  // SQLite uses the clock of this machine
  }
}

/// Runs the store's statements on a row with a random key, in a transaction that is rolled back.
void try_statements(sql::connection& connection, const store_statements& statements,
                    const store_options& options, timestamp now) {
  std::random_device random;
  const std::string random_key =
      "probe-" + std::to_string(random()) + "-" + std::to_string(random());
  const std::string_view name = "holdfast";
  const std::string_view key = random_key;
  const std::string_view text = "{}";
  const sql::parameter payload = options.payload == payload_column::bytes
                                     ? sql::parameter(std::as_bytes(std::span(text)))
                                     : sql::parameter(text);
  const sql::parameter payload_class = std::string_view("probe");
  const timestamp later = now + hours(1);
  connection.begin();
  try {
    if (statements.native) {
      const std::vector<std::vector<sql::parameter>> columns{{name},  {key},     {now},
                                                             {later}, {payload}, {payload_class}};
      const std::vector<sql::parameter> common(statements.upsert.common.size(), later);
      (void)connection.batch(statements.upsert, columns, common);
    } else {
      const sql::parameter row[]{name, key, now, later, payload, payload_class};
      (void)connection.execute(statements.insert, row);
    }
    const sql::parameter identity[]{name, key};
    (void)connection.execute(statements.find, identity);
    const sql::parameter version[]{name, key, now, now + microseconds(1)};
    (void)connection.execute(statements.erase, version);
  } catch (...) {
    connection.rollback();
    throw;
  }
  connection.rollback();
}

/// A probe of one database over one connection.
class database_probe {
 public:
  /// `try_writing`: also run the store's statements and roll them back.
  database_probe(sql::connection& connection, dialect_id dialect, const holdfast::clock& clock,
                 const store_options& options, bool try_writing)
      : connection_(connection),
        clock_(clock),
        options_(options),
        try_writing_(try_writing),
        server_{.dialect = dialect},
        report_{.dialect = dialect} {}

  probe_report run(std::size_t max_tables) && {
    if (has_catalog_queries(server_.dialect)) {
      server_ = query_server(connection_, server_.dialect);
      add(find_server_problems(server_));
    }
    if (server_.dialect == dialect_id::h2) probe_h2();
    add(find_transport_problems(connection_.transport(), server_.dialect));
    if (auto* const watched = dynamic_cast<sql::watched_session*>(&connection_))
      add(find_intermediary_problems(watched->intermediary()));
    report_.server = server_title(server_);
    compare_clocks();
    for (const auto& [realm, prefix] : prefixes_of_realms(options_)) {
      if (report_.tables.size() == max_tables) break;
      report_.tables.push_back(prefix + "FAILOVER_STORE");
      probe_table(realm, prefix);
    }
    if (try_writing_ && max_tables != 0 && server_.dialect != dialect_id::unknown) probe_lease();
    sort_findings();
    return std::move(report_);
  }

 private:
  void add(std::vector<probe_finding> findings) {
    for (auto& finding : findings) report_.findings.push_back(std::move(finding));
  }

  /// There are no catalog queries for H2. Only its version and its durability are queried.
  void probe_h2() {
    const auto rows = connection_
                          .execute({.text = "SELECT H2VERSION(), (SELECT MAX(SETTING_VALUE) FROM "
                                            "INFORMATION_SCHEMA.SETTINGS WHERE "
                                            "UPPER(SETTING_NAME) = 'WRITE_DELAY')",
                                    .results = {type::text, type::text}},
                                   {})
                          .rows;
    if (const auto* version = std::get_if<std::string>(&rows.at(0, 0))) server_.version = *version;
    const auto* delay = std::get_if<std::string>(&rows.at(0, 1));
    if (delay != nullptr && *delay == "0") return;
    report_.findings.push_back(
        {.code = "write_delay",
         .severity = severity::warning,
         .problem = "write_delay is " + (delay != nullptr ? *delay : std::string("500")) +
                    " ms: a crash loses acknowledged writes",
         .sql = {"SET WRITE_DELAY 0"},
         .advice = "only an administrator of the database may set it, and it must be set again "
                   "after each start of H2"});
  }

  /// The server's time lies between request and response, so the middle is assumed. The fastest of
  /// several attempts has the smallest error.
  void compare_clocks() {
    const auto query = clock_query(server_.dialect);
    if (query.empty()) return;
    const int attempts = try_writing_ ? 3 : 1;
    for (int i = 0; i < attempts; ++i) {
      const auto sent = clock_.now();
      const auto start = clock_.steady();
      const auto outcome =
          connection_.execute({.text = std::string(query), .results = {type::time}}, {});
      const auto half = duration_cast<microseconds>(clock_.steady() - start) / 2;
      const auto* server_time = std::get_if<timestamp>(&outcome.rows.at(0, 0));
      if (server_time == nullptr || (report_.skew && half >= report_.skew_within)) continue;
      report_.skew = *server_time - (sent + half);
      report_.skew_within = half;
    }
    if (report_.skew)
      add(find_clock_problems(*report_.skew, report_.skew_within, options_.max_skew));
  }

  void probe_table(const std::string& realm, const std::string& prefix) {
    table_facts table{.name = prefix + "FAILOVER_STORE"};
    if (has_catalog_queries(server_.dialect) && !examine_table(table, prefix)) return;
    if (!try_writing_) return;
    try {
      realm_statements statements(server_.dialect, options_,
                                  [this](const auto& statement, auto parameters) {
                                    return connection_.execute(statement, parameters);
                                  });
      try_statements(connection_, statements.for_realm(realm), options_, clock_.now());
    } catch (const error& e) {
      if (connection_.broken()) throw;
      add_statement_failure(e, table, prefix);
    }
  }

  /// The table of leases, without which no process cleans on a schedule.
  void probe_lease() {
    const sql::table_need need{.table = options_.prefix + "HOLDFAST_LEASE",
                               .columns = {"LEASE_NAME", "OWNER", "HELD_UNTIL", "FENCE"},
                               .privileges = {"INSERT", "UPDATE"}};
    sql::table_lack lack;
    try {
      lack = sql::examine_table(connection_, need);
    } catch (const error& e) {
      if (connection_.broken()) throw;
      if (!detail::sql::is_read_only_server(e))  // which was reported with the table of entries
        add_statement_failure(e, {.name = need.table}, options_.prefix);
      return;
    }
    if (lack.nothing() || server_read_only()) return;
    const std::string effect = "; expired entries are not removed (cleanup, clean --watch)";
    if (!lack.exists) {
      report_.findings.push_back({.code = "lease_table",
                                  .severity = severity::failing,
                                  .problem = "the table " + need.table + " does not exist" + effect,
                                  .sql = {lease_schema(server_.dialect, options_.prefix)}});
      return;
    }
    if (!lack.columns.empty()) {
      report_.findings.push_back(
          {.code = "lease_table",
           .severity = severity::failing,
           .problem = "the table " + need.table + " is not a table of leases, it lacks " +
                      sql::enumerated(lack.columns) + effect,
           .advice = "choose another prefix, or drop it and create it again"});
      return;
    }
    const std::string grant = sql::grant_statement(connection_, server_.dialect, need);
    report_.findings.push_back(
        {.code = "lease_privilege",
         .severity = severity::failing,
         .problem =
             "the user lacks " + sql::enumerated(lack.privileges) + " on " + need.table + effect,
         .sql = grant.empty() ? std::vector<std::string>() : std::vector{grant},
         .advice = grant.empty() ? "grant these privileges to the user" : ""});
  }

  [[nodiscard]] bool server_read_only() const {
    return std::ranges::find(report_.findings, "read_only", &probe_finding::code) !=
           report_.findings.end();
  }

  /// Reads the facts of the table and adds findings. Returns whether the store's statements can be
  /// tried.
  bool examine_table(table_facts& table, const std::string& prefix) {
    try {
      table = query_table(connection_, server_.dialect, table.name);
    } catch (const error& e) {
      if (e.code() != errc::permission) throw;
      add_missing_privilege(e, table, prefix);
      if (const auto dot = table.name.rfind('.'); dot != std::string::npos) {
        auto& sql = report_.findings.back().sql;
        sql.insert(sql.begin(),
                   "GRANT USAGE ON SCHEMA " + table.name.substr(0, dot) + " TO " + server_.user);
      }
      return false;
    }
    if (!table.exists && report_if_hidden(table, prefix)) return false;
    auto findings = find_table_problems(table, server_, prefix, options_);
    const bool usable = std::ranges::none_of(
        findings, [](const auto& finding) { return finding.severity >= severity::failing; });
    add(std::move(findings));
    return usable;
  }

  /// The catalog of MySQL hides tables that the user may not access; a SELECT then fails with
  /// errc::permission. Adds that finding and returns true.
  bool report_if_hidden(const table_facts& table, const std::string& prefix) {
    try {
      (void)connection_.execute({.text = "SELECT FAILOVER_KEY FROM " + table.name + " WHERE 1 = 0",
                                 .results = {type::text}},
                                {});
    } catch (const error& e) {
      if (e.code() != errc::permission) return false;
      add_missing_privilege(e, table, prefix);
      return true;
    }
    return false;
  }

  void add_missing_privilege(const error& reason, const table_facts& table,
                             const std::string& prefix) {
    report_.findings.push_back(
        {.code = "privilege",
         .severity = severity::failing,
         .problem = "the user lacks privileges on " + table.name + " (" + reason.message() + ")",
         .sql = repair_statements(table, server_, prefix, options_).grant()});
  }

  void add_statement_failure(const error& reason, const table_facts& table,
                             const std::string& prefix) {
    const std::string problem =
        "the store's statements do not run on " + table.name + ": " + reason.message();
    if (!has_catalog_queries(server_.dialect)) {
      report_.findings.push_back(
          {.code = "statement",
           .severity = severity::failing,
           .problem = problem,
           .advice = "compare the table with: holdfast store schema --published"});
    } else if (detail::sql::is_read_only_server(reason)) {
      if (server_read_only()) return;
      report_.findings.push_back({.code = "read_only",
                                  .severity = severity::failing,
                                  .problem = reason.message(),
                                  .advice = "connect to the primary"});
    } else if (reason.code() == errc::permission && server_.dialect == dialect_id::sqlite) {
      report_.findings.push_back(
          {.code = "read_only",
           .severity = severity::failing,
           .problem = "the file " + server_.database + " cannot be written",
           .advice = "make this user the owner of the file and its directory: chown $USER " +
                     server_.database + " and its directory"});
    } else if (reason.code() == errc::permission) {
      add_missing_privilege(reason, table, prefix);
    } else {
      report_.findings.push_back(
          {.code = "statement",
           .severity = reason.transient() ? severity::warning : severity::failing,
           .problem = problem,
           .advice =
               reason.transient() ? "try again" : "compare the table with: holdfast store schema"});
    }
  }

  /// The worst first; findings of equal severity keep their order.
  void sort_findings() {
    std::vector<probe_finding> sorted;
    sorted.reserve(report_.findings.size());
    for (const auto level :
         {severity::wrong, severity::failing, severity::warning, severity::note}) {
      for (auto& finding : report_.findings) {
        if (finding.severity == level) sorted.push_back(std::move(finding));
      }
    }
    report_.findings = std::move(sorted);
  }

  sql::connection& connection_;
  const holdfast::clock& clock_;
  const store_options& options_;
  bool try_writing_;
  server_facts server_;
  probe_report report_;
};

/// Formats a finding as one line of a log.
std::string log_line(const probe_finding& finding) {
  std::string repair;
  for (const auto& statement : finding.sql)
    repair.append(repair.empty() ? "" : "; ").append(statement);
  if (repair.empty()) repair = finding.advice;
  for (auto i = repair.find("\n  "); i != std::string::npos; i = repair.find("\n  "))
    repair.erase(i, 2).replace(i, 1, i > 0 && repair[i - 1] == '(' ? "" : " ");
  std::replace(repair.begin(), repair.end(), '\n', ' ');
  return finding.problem + "; to repair it: " + repair;
}

}  // namespace

void probe_at_start(sql::context& database, const store_options& options) {
  const bool strict = options.probe == start_probe::strict;
  // Replaced statements may use a different table.
  if (options.probe == start_probe::off || (options.replace_query && !strict)) return;
  probe_report report;
  try {
    const auto dialect = database.dialect();
    if (!has_catalog_queries(dialect) && dialect != dialect_id::h2) return;
    const auto connection = database.pool.acquire_reader("store.probe");
    report = database_probe(*connection, dialect, *database.options.clock, options, false)
                 .run(max_tables_at_start);
  } catch (const std::exception& e) {
    if (strict) throw;
    database.warn(std::string("the store could not be probed: ") + e.what());
    return;
  }
  const auto refused = strict ? severity::warning : severity::wrong;
  for (const auto& finding : report.findings) {
    if (finding.severity >= refused) {
      const bool missing = finding.code == "column" || finding.code == "table" ||
                           finding.code == "primary_key" || finding.code == "expire_index";
      throw error(missing ? errc::missing_object : errc::unsupported_type, log_line(finding));
    }
    if (finding.severity != severity::note)
      database.warn("the store's database: " + log_line(finding));
  }
}

probe_report probe_database(sql::context& database, const store_options& options) {
  const auto dialect = database.dialect();
  const auto connection = database.pool.acquire_writer("store.probe");
  return database_probe(*connection, dialect, *database.options.clock, options, true).run(SIZE_MAX);
}

probe_report probe_server(sql::context& database) {
  const auto dialect = database.dialect();
  const auto connection = database.pool.acquire_writer("store.probe");
  const store_options options;
  return database_probe(*connection, dialect, *database.options.clock, options, true).run(0);
}

}  // namespace detail::store

}  // namespace HOLDFAST_NAMESPACE
