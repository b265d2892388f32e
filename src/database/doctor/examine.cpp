#include "database/doctor/examine.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/sequence/block_store.hpp>

#include "database/database.hpp"
#include "database/schema.hpp"
#include "outbox/sql/open.hpp"
#include "outbox/sql/schema.hpp"
#include "sequence/definition.hpp"
#include "sql/table_access.hpp"
#include "store/doctor/probe.hpp"
#if HOLDFAST_HAS_REDIS
#include "outbox/redis/schema.hpp"
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::doctor {

namespace {

constexpr std::chrono::minutes overdue_limit{5};

/// A part with its schema version, which is a finding unless it is the current one.
part_report begin_part(const schema_status& status) {
  part_report report{.part = status.set,
                     .exists = status.verdict != schema_verdict::absent,
                     .facts = {{"tables", sql::enumerated(status.tables)}}};
  if (!status.version) return report;
  report.facts.emplace_back("version", std::to_string(*status.version));
  const auto add = [&](severity level, const std::string& problem, const std::string& advice) {
    report.findings.push_back(
        {.code = "version", .severity = level, .problem = problem, .advice = advice});
  };
  const std::string version = "schema version " + std::to_string(*status.version);
  switch (status.verdict) {
    case schema_verdict::older:
      add(severity::warning, version + " is older than that of this program, but works",
          "run: holdfast schema upgrade");
      break;
    case schema_verdict::too_old:
      add(severity::failing, version + " is too old for this program",
          "run: holdfast schema upgrade");
      break;
    case schema_verdict::newer:
      add(severity::failing, version + " is newer than this program knows", "update the program");
      break;
    default:
      break;
  }
  return report;
}

/// Adds an error as a finding.
void add_failure(part_report& report, const error& problem) {
  report.findings.push_back(
      {.code = std::string(to_string(problem.code())),
       .severity = problem.transient() ? severity::warning : severity::failing,
       .problem = problem.what()});
}

// ---- the server and the store ----

part_report server_part(const probe_report& probe) {
  part_report report{.part = "server", .facts = {{"server", probe.server}}};
  if (probe.skew) {
    const auto milliseconds =
        std::chrono::round<std::chrono::milliseconds>(std::chrono::abs(*probe.skew));
    report.facts.emplace_back(
        "clock", std::to_string(milliseconds.count()) +
                     (probe.skew->count() < 0 ? " ms behind ours" : " ms ahead of ours"));
  }
  report.findings = probe.findings;
  return report;
}

/// `server_findings` are shown with the server, not again with the store.
void examine_store(sql::context& context, const examination_options& options,
                   const std::vector<probe_finding>& server_findings, part_report& report) {
  const auto probe = store::probe_database(
      context, {.prefix = options.names.prefix, .payload = options.payload, .zone = options.zone});
  for (const auto& finding : probe.findings) {
    const bool of_server = std::ranges::any_of(server_findings, [&](const auto& other) {
      return other.code == finding.code && other.problem == finding.problem;
    });
    if (!of_server) report.findings.push_back(finding);
  }
}

// ---- sequences ----

void examine_sequences(const database& db, const examination_options& options,
                       part_report& report) {
  // A settings problem is a finding here, not an exception.
  const auto blocks =
      db.block_store({.prefix = options.names.prefix, .allow_unsafe = true, .fence = no_fence{}});
  for (const auto& reason : blocks->missing_objects())
    report.findings.push_back(
        {.code = "sequences", .severity = severity::failing, .problem = reason});
  if (!report.findings.empty()) return;
  for (const auto& reason : blocks->unsafe_settings())
    report.findings.push_back(
        {.code = "unsafe_setting", .severity = severity::failing, .problem = reason});
}

#if HOLDFAST_HAS_REDIS
/// Each counter has its fence in its definition. A setting is a problem only for some fences.
void examine_redis_sequences(const database& db, const examination_options& options,
                             part_report& report) {
  const auto store_options = [&](sequence_fence fence) {
    return sequence_store_options{
        .prefix = options.names.prefix, .allow_unsafe = true, .fence = std::move(fence)};
  };
  const auto blocks = db.block_store(store_options(no_fence{}));
  constexpr std::size_t page_size = 500;
  std::set<std::string> fences;
  std::string after;
  for (;;) {
    const auto page = blocks->list(page_size, after);
    for (const auto& counter : page) {
      const auto definition = blocks->definition(counter.name);
      fences.insert(definition ? sequence::definition_field(*definition, "fence").value_or("none")
                               : "none");
    }
    if (page.size() < page_size) break;
    after = page.back().name;
  }
  report.facts.emplace_back("fences", sql::enumerated({fences.begin(), fences.end()}));
  const auto add_reasons = [&](const std::string& name, const sequence_fence& fence) {
    for (const auto& reason : db.block_store(store_options(fence))->unsafe_settings())
      report.findings.push_back(
          {.code = "unsafe_setting",
           .severity = severity::failing,
           .problem =
               std::string(reason).append(" (sequences with fence ").append(name).append(")")});
  };
  if (fences.contains("none")) add_reasons("none", no_fence{});
  if (fences.contains("wait")) add_reasons("wait", wait_fence{});
  if (fences.contains("clock")) add_reasons("clock", clock_fence{});
  if (fences.contains("super"))
    report.findings.push_back({.code = "super_store",
                               .severity = severity::note,
                               .problem = "some sequences get their blocks from an SQL database",
                               .advice = "examine that database as well"});
}
#endif

// ---- outbox ----

void add_load(const holdfast::outbox& events, part_report& report) {
  const auto stats = events.admin().stats();
  report.facts.emplace_back("events", std::to_string(stats.events));
  const auto warn = [&](std::string code, std::string problem, std::string advice) {
    report.findings.push_back({.code = std::move(code),
                               .severity = severity::warning,
                               .problem = std::move(problem),
                               .advice = std::move(advice)});
  };
  if (stats.paused)
    warn("paused", "the outbox is paused: events are not delivered", "see: holdfast outbox resume");
  if (stats.overdue > overdue_limit)
    warn("overdue",
         "an event has been due for " +
             std::to_string(std::chrono::round<std::chrono::minutes>(stats.overdue).count()) +
             " minutes",
         "check that a worker runs: holdfast outbox work");
  if (stats.parked > 0)
    warn("parked", std::to_string(stats.parked) + " events are parked, and wait for a decision",
         "see: holdfast outbox parked");
  if (stats.stuck > 0)
    warn("stuck", std::to_string(stats.stuck) + " keys are stuck", "run: holdfast outbox fsck");
}

/// Opens the outbox and adds why it cannot be used.
void open_outbox(const database& db, const std::string& prefix, std::size_t lanes,
                 part_report& report) {
  report.facts.emplace_back("lanes", std::to_string(lanes));
  const auto events = db.outbox({.prefix = prefix, .lanes = lanes});
  try {
    if (const auto problem = events.admin().health()) add_failure(report, *problem);
    else add_load(events, report);
  } catch (const error& problem) {
    add_failure(report, problem);
  }
}

void examine_sql_outbox(const database& db, sql::context& context, const std::string& prefix,
                        part_report& report) {
  std::size_t lanes = 1;
  {
    const auto dialect = context.dialect();
    const auto connection = context.pool.acquire_writer("doctor.outbox");
    for (const auto& need : outbox::table_needs(dialect, prefix)) {
      const auto lack = sql::examine_table(*connection, need);
      if (!lack.exists)
        report.findings.push_back({.code = "table",
                                   .severity = severity::failing,
                                   .problem = "the table " + need.table + " does not exist",
                                   .sql = outbox::outbox_tables_schema(prefix).create(dialect, 1)});
      else if (!lack.columns.empty())
        report.findings.push_back({.code = "column",
                                   .severity = severity::failing,
                                   .problem = need.table +
                                              " is not a table of an outbox, it lacks " +
                                              sql::enumerated(lack.columns),
                                   .advice = "choose another name of the outbox"});
      if (lack.privileges.empty()) continue;
      const auto grant = sql::grant_statement(*connection, dialect, need);
      report.findings.push_back(
          {.code = "privilege",
           .severity = severity::failing,
           .problem = "the user lacks " + sql::enumerated(lack.privileges) + " on " + need.table,
           .sql = grant.empty() ? std::vector<std::string>() : std::vector{grant}});
    }
    if (!report.findings.empty() && report.findings.back().severity >= severity::failing) return;
    lanes = outbox::count_lanes(*connection, prefix);
  }
  open_outbox(db, prefix, lanes, report);
}

void examine_one_outbox(const database& db, const std::string& prefix, part_report& report) {
  const auto& state = *db.shared();
  if (state.sql) return examine_sql_outbox(db, *state.sql, prefix, report);
#if HOLDFAST_HAS_REDIS
  if (state.redis) open_outbox(db, prefix, outbox::read_lane_count(*state.redis, prefix), report);
#endif
}

/// The options with the name of the outbox, which may be a default of the database.
examination_options completed(const database& db, examination_options options) {
  options.names = schema::complete_options(*db.shared(), std::move(options.names));
  return options;
}

}  // namespace

void sort_by_severity(std::vector<probe_finding>& findings) {
  std::vector<probe_finding> sorted;
  sorted.reserve(findings.size());
  for (const auto level : {severity::wrong, severity::failing, severity::warning, severity::note}) {
    for (auto& finding : findings) {
      if (finding.severity == level) sorted.push_back(std::move(finding));
    }
  }
  findings = std::move(sorted);
}

std::vector<part_report> examine(const database& db, const examination_options& requested) {
  const auto& state = *db.shared();
  const auto options = completed(db, requested);
  std::vector<part_report> parts;
  if (state.sql) parts.push_back(server_part(store::probe_server(*state.sql)));
  for (const auto& status : read_schema_status(db, options.names)) {
    auto report = begin_part(status);
    // A version that this code does not know cannot be examined further.
    if (report.exists && report.usable()) {
      if (status.set == "store") examine_store(*state.sql, options, parts.front().findings, report);
      else if (status.set == "outbox") examine_one_outbox(db, options.names.outbox_prefix, report);
      else if (status.set == "sequences" && state.sql) examine_sequences(db, options, report);
#if HOLDFAST_HAS_REDIS
      else if (status.set == "sequences") examine_redis_sequences(db, options, report);
#endif
    }
    sort_by_severity(report.findings);
    parts.push_back(std::move(report));
  }
  return parts;
}

std::size_t lane_count(const database& db, const schema_options& names) {
  const auto& state = *db.shared();
  const auto prefix = schema::complete_options(state, names).outbox_prefix;
  if (state.sql)
    return outbox::count_lanes(*state.sql->pool.acquire_reader("doctor.lanes"), prefix);
#if HOLDFAST_HAS_REDIS
  if (state.redis) return outbox::read_lane_count(*state.redis, prefix);
#endif
  return 1;
}

part_report examine_outbox(const database& db, const examination_options& requested) {
  const auto options = completed(db, requested);
  for (const auto& status : read_schema_status(db, options.names)) {
    if (status.set != "outbox") continue;
    auto report = begin_part(status);
    if (!report.exists)
      report.findings.push_back(
          {.code = "table",
           .severity = severity::failing,
           .problem = "there is no outbox '" + options.names.outbox_prefix + "'",
           .advice = "check its name, or create it: holdfast outbox schema, or "
                     "publish with --create-schema"});
    else if (report.usable()) examine_one_outbox(db, options.names.outbox_prefix, report);
    sort_by_severity(report.findings);
    return report;
  }
  throw error(errc::unsupported_type,
              "this database cannot hold an outbox; use SQLite, PostgreSQL, MariaDB, MySQL or "
              "Redis");
}

}  // namespace HOLDFAST_NAMESPACE::detail::doctor
