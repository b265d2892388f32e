#include <holdfast/store/probe.hpp>

#include "sql/database.hpp"
#include "sql/read_only_server.hpp"
#include "store/checks.hpp"
#include "store/probe_cures.hpp"
#include "store/probe_facts.hpp"
#include "store/probe_start.hpp"
#include "store/realm_statements.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(severity s) noexcept {
  static constexpr std::array<std::string_view, 4> names{"note", "warning", "failing", "wrong"};
  return names[static_cast<std::size_t>(s)];
}

namespace probing {

namespace {

using namespace std::chrono;
using sql::dialect_id;
using sql::type;

/// A store with a thousand tenants must start, too; the doctor looks at all of them.
constexpr std::size_t most_tables_at_start = 16;

std::string title_of(const server& of) {
  switch (of.dialect) {
    case dialect_id::postgresql:
      return "PostgreSQL " + of.version;
    case dialect_id::mysql:
      return "MySQL " + of.version;
    case dialect_id::mariadb:
      return "MariaDB " + of.version;
    case dialect_id::sqlite:
      return "SQLite " + of.version;
    case dialect_id::h2:
      return "H2 " + of.version;
    case dialect_id::sqlserver:
      return "SQL Server";
    case dialect_id::oracle:
      return "Oracle";
    default:
      return std::string(to_string(of.dialect));
  }
}

std::string_view clock_question(dialect_id dialect) {
  if (dialect == dialect_id::postgresql) return "SELECT clock_timestamp()";
  if (dialect == dialect_id::mysql || dialect == dialect_id::mariadb) return "SELECT UTC_TIMESTAMP(6)";
  if (dialect == dialect_id::h2) return "SELECT CURRENT_TIMESTAMP(6)";
  if (dialect == dialect_id::sqlserver) return "SELECT SYSUTCDATETIME()";
  return {};  // SQLite has our own clock
}

/// Its tables are not looked into: that the store's statements run on them is tried. Whether it keeps what it acknowledges can be asked.
void look_at_h2(sql::connection& from, server& on, std::vector<probe_finding>& found) {
  const auto told = from.execute({.text = "SELECT H2VERSION(), (SELECT MAX(SETTING_VALUE) FROM INFORMATION_SCHEMA.SETTINGS WHERE "
                                          "UPPER(SETTING_NAME) = 'WRITE_DELAY')",
                                  .results = {type::text, type::text}},
                                 {});
  if (const auto* version = std::get_if<std::string>(&told.rows.at(0, 0))) on.version = *version;
  const auto* delay = std::get_if<std::string>(&told.rows.at(0, 1));
  if (delay != nullptr && *delay == "0") return;
  found.push_back(
      {.code = "write_delay",
       .severity = severity::warning,
       .problem = "write_delay is " + (delay != nullptr ? *delay : std::string("500")) + " ms: a crash loses writes that were acknowledged",
       .sql = {"SET WRITE_DELAY 0"},
       .advice = "only an administrator of the database may set it, and again after each start of H2"});
}

/// The answer was made somewhere between question and arrival: take the middle, of the quickest of some tries.
void compare_clocks(sql::connection& from, const holdfast::clock& ours, int tries, probe_report& into) {
  const auto question = clock_question(into.dialect);
  if (question.empty()) return;
  for (int i = 0; i < tries; ++i) {
    const auto asked = ours.now();
    const auto begin = ours.steady();
    const auto told = from.execute({.text = std::string(question), .results = {type::time}}, {});
    const auto half = duration_cast<microseconds>(ours.steady() - begin) / 2;
    const auto* theirs = std::get_if<timestamp>(&told.rows.at(0, 0));
    if (theirs == nullptr || (into.skew && half >= into.skew_within)) continue;
    into.skew = *theirs - (asked + half);
    into.skew_within = half;
  }
}

probe_finding no_privilege(const cures& cure, const std::string& table, const error& why) {
  return {.code = "privilege",
          .severity = severity::failing,
          .problem = "the store may not do its work on " + table + " (" + why.message() + ")",
          .sql = cure.grant()};
}

/// What a failed statement of the store tells.
void blame(const error& why, const server& on, const table& of, const cures& cure, std::vector<probe_finding>& found) {
  const bool known = std::any_of(found.begin(), found.end(), [](const probe_finding& each) { return each.code == "read_only"; });
  if (sql::is_read_only_server(why)) {
    if (!known)
      found.push_back({.code = "read_only", .severity = severity::failing, .problem = why.message(), .advice = "connect to the primary"});
  } else if (why.code() == errc::permission && on.dialect == dialect_id::sqlite) {
    found.push_back({.code = "read_only",
                     .severity = severity::failing,
                     .problem = "the file " + on.database + " cannot be written",
                     .advice = "give this user the file and its directory: chown $USER " + on.database + " and its directory"});
  } else if (why.code() == errc::permission) {
    found.push_back(no_privilege(cure, of.name, why));
  } else {
    found.push_back({.code = "statement",
                     .severity = why.transient() ? severity::warning : severity::failing,
                     .problem = "the store's statements do not run on " + of.name + ": " + why.message(),
                     .advice = why.transient() ? "try again" : "compare the table with: holdfast store schema"});
  }
}

/// The store's own statements, on a row that nobody else has; nothing of it stays.
void try_statements(sql::connection& from, const store_statements& say, const store_options& options, timestamp now) {
  std::random_device random;
  const std::string name = "holdfast";
  const std::string key = "probe-" + std::to_string(random()) + "-" + std::to_string(random());
  const std::string payload = "{}";
  const sql::parameter carried = options.payload == payload_column::bytes ? sql::parameter(std::as_bytes(std::span(payload)))
                                                                          : sql::parameter(std::string_view(payload));
  const timestamp later = now + hours(1);
  from.begin();
  try {
    if (say.native) {
      const std::vector<std::vector<sql::parameter>> columns{{std::string_view(name)},   {std::string_view(key)}, {now}, {later}, {carried},
                                                             {std::string_view("probe")}};
      const std::vector<sql::parameter> common(say.upsert.common.size(), later);
      (void)from.batch(say.upsert, columns, common);
    } else {
      const sql::parameter row[]{std::string_view(name), std::string_view(key), now, later, carried, std::string_view("probe")};
      (void)from.execute(say.insert, row);
    }
    const sql::parameter which[]{std::string_view(name), std::string_view(key)};
    (void)from.execute(say.find, which);
    const sql::parameter version[]{std::string_view(name), std::string_view(key), now, now + microseconds(1)};
    (void)from.execute(say.erase, version);
  } catch (...) {
    from.rollback();
    throw;
  }
  from.rollback();
}

void look_at_table(sql::connection& from, const server& on, const std::string& realm, const std::string& prefix,
                   const holdfast::clock& ours, const store_options& options, bool try_writing, std::vector<probe_finding>& found) {
  const std::string name = prefix + "FAILOVER_STORE";
  table facts{.name = name};
  const bool known = can_ask(on.dialect);
  if (known) {
    try {
      facts = ask_table(from, on.dialect, name);
    } catch (const error& e) {
      if (e.code() != errc::permission) throw;
      const auto dot = name.rfind('.');
      found.push_back(no_privilege(cures(facts, on, prefix, options), name, e));
      if (dot != std::string::npos)
        found.back().sql.insert(found.back().sql.begin(), "GRANT USAGE ON SCHEMA " + name.substr(0, dot) + " TO " + on.user);
      return;
    }
    // MySQL shows nobody a table that he may not touch; it tells the difference when it is asked for a row.
    if (!facts.there) {
      try {
        (void)from.execute({.text = "SELECT FAILOVER_KEY FROM " + name + " WHERE 1 = 0", .results = {type::text}}, {});
      } catch (const error& e) {
        if (e.code() == errc::permission) {
          found.push_back(no_privilege(cures(facts, on, prefix, options), name, e));
          return;
        }
      }
    }
    const auto about_table = judge_table(facts, on, prefix, options);
    const bool sound =
        std::none_of(about_table.begin(), about_table.end(), [](const auto& each) { return each.severity >= severity::failing; });
    found.insert(found.end(), about_table.begin(), about_table.end());
    if (!sound) return;
  }
  if (!try_writing) return;
  try {
    realm_statements all(on.dialect, options, [&from](const auto& s, auto parameters) { return from.execute(s, parameters); });
    try_statements(from, all.in(realm), options, ours.now());
  } catch (const error& e) {
    if (from.broken()) throw;
    if (known) blame(e, on, facts, cures(facts, on, prefix, options), found);
    else
      found.push_back({.code = "statement",
                       .severity = severity::failing,
                       .problem = "the store's statements do not run on " + name + ": " + e.message(),
                       .advice = "compare the table with: holdfast store schema --published"});
  }
}

/// A finding as one line of a log.
std::string line_of(const probe_finding& f) {
  std::string line = f.problem;
  std::string cure;
  for (const auto& each : f.sql) cure.append(cure.empty() ? "" : "; ").append(each);
  if (cure.empty()) cure = f.advice;
  for (auto at = cure.find("\n  "); at != std::string::npos; at = cure.find("\n  "))
    cure.erase(at, 2).replace(at, 1, at > 0 && cure[at - 1] == '(' ? "" : " ");
  std::replace(cure.begin(), cure.end(), '\n', ' ');
  return line + "; type: " + cure;
}

}  // namespace

probe_report look(sql::connection& from, sql::dialect_id dialect, const holdfast::clock& ours, const store_options& options,
                  bool try_writing, std::size_t most_tables) {
  probe_report report{.dialect = dialect};
  server on{.dialect = dialect};
  if (can_ask(dialect)) {
    on = ask_server(from, dialect);
    report.findings = judge_server(on);
  }
  if (dialect == dialect_id::h2) look_at_h2(from, on, report.findings);
  auto about_transport = judge_transport(from.transport(), dialect);
  std::move(about_transport.begin(), about_transport.end(), std::back_inserter(report.findings));
  report.server = title_of(on);
  compare_clocks(from, ours, try_writing ? 3 : 1, report);
  if (report.skew) {
    auto about_clocks = judge_skew(*report.skew, report.skew_within, options.max_skew);
    std::move(about_clocks.begin(), about_clocks.end(), std::back_inserter(report.findings));
  }
  for (const auto& [realm, prefix] : prefixes_of_realms(options)) {
    if (report.tables.size() == most_tables) break;
    report.tables.push_back(prefix + "FAILOVER_STORE");
    look_at_table(from, on, realm, prefix, ours, options, try_writing, report.findings);
  }
  // Not std::stable_sort: it wants memory that it then warns about. The order of equals is that of the facts, kept by their places.
  std::vector<std::pair<probe_finding, std::size_t>> placed;
  placed.reserve(report.findings.size());
  for (auto& each : report.findings) placed.emplace_back(std::move(each), placed.size());
  std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
    return a.first.severity != b.first.severity ? a.first.severity > b.first.severity : a.second < b.second;
  });
  report.findings.clear();
  for (auto& each : placed) report.findings.push_back(std::move(each.first));
  return report;
}

void at_start(database::state& on, const store_options& options) {
  // Statements of the application's own may speak of a table of its own.
  if (options.probe == start_probe::off || (options.replace_query && options.probe != start_probe::strict)) return;
  probe_report report;
  try {
    const auto dialect = on.ask_dialect();
    if (!can_ask(dialect) && dialect != dialect_id::h2) return;
    const auto lease = on.pool->reader();
    report = look(*lease, dialect, *on.options.clock, options, false, most_tables_at_start);
  } catch (const std::exception& e) {
    if (options.probe == start_probe::strict) throw;
    on.say(std::string("the store was not probed: ") + e.what());
    return;
  }
  const auto least = options.probe == start_probe::strict ? severity::warning : severity::wrong;
  for (const auto& each : report.findings) {
    if (each.severity >= least) {
      const bool missing = each.code == "column" || each.code == "table" || each.code == "primary_key" || each.code == "expire_index";
      throw error(missing ? errc::missing_object : errc::unsupported_type, line_of(each));
    }
    if (each.severity != severity::note) on.say("the store's database: " + line_of(each));
  }
}

}  // namespace probing

probe_report probe(const database& on, const store_options& options) {
  check_skew(options.max_skew);
  const auto& state = *on.shared();
  state.refuse_redis("the store of entries");
  if (state.in_memory()) return {.server = "memory"};
  const auto dialect = on.dialect();
  const auto lease = state.pool->writer();
  return probing::look(*lease, dialect, *state.options.clock, options, true);
}

}  // namespace HOLDFAST_NAMESPACE
