// holdfast doctor, and holdfast outbox doctor.

#include <holdfast/store/probe.hpp>

#include "commands/database_location.hpp"
#include "commands/finding_text.hpp"
#include "commands/groups.hpp"
#include "commands/outbox/location.hpp"
#include "commands/store/location.hpp"
#include "database/database.hpp"
#include "database/doctor/examine.hpp"
#include "terminal/text.hpp"
#if HOLDFAST_HAS_REDIS
#include "commands/redis/findings.hpp"
#endif

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

using detail::doctor::part_report;

#if HOLDFAST_HAS_REDIS
/// One part for each server, with the findings of `holdfast redis doctor`.
std::vector<part_report> examine_redis(const redis::client& client) {
  std::vector<part_report> parts;
  for (const auto& [report, findings] : examine_servers(client)) {
    part_report part{.part = "server",
                     .facts = {{"server", "Redis " + report.version},
                               {"address", report.address},
                               {"role", report.role}}};
    for (const auto& [level, message, remedy] : findings) {
      if (level == severity::ok) continue;
      part.findings.push_back({.code = "redis",
                               .severity = level == severity::bad ? holdfast::severity::failing
                                                                  : holdfast::severity::warning,
                               .problem = message,
                               .advice = remedy});
    }
    detail::doctor::sort_by_severity(part.findings);
    parts.push_back(std::move(part));
  }
  return parts;
}
#endif

void print_parts(output& out, std::span<const part_report> parts) {
  for (const auto& part : parts) {
    std::string name = part.part;
    name.resize(11, ' ');
    out << name;
    if (!part.exists) {
      out << "absent\n";
      continue;
    }
    for (std::size_t i = 0; i < part.facts.size(); ++i) {
      const auto& [fact, value] = part.facts[i];
      out << (i == 0 ? "" : ", ");
      if (i != 0) out << printable(fact) << " ";
      out << printable(value);
    }
    out << "\n";
    for (const auto& finding : part.findings) print_finding(out, finding);
  }
}

std::string part_json(const part_report& part) {
  std::string json = "{\"part\":" + json_string(part.part) +
                     ",\"exists\":" + (part.exists ? "true" : "false") +
                     ",\"usable\":" + (part.usable() ? "true" : "false") + ",\"facts\":{";
  for (std::size_t i = 0; i < part.facts.size(); ++i) {
    if (i != 0) json += ",";
    json += json_string(part.facts[i].first) + ":" + json_string(part.facts[i].second);
  }
  return json + "},\"findings\":" + findings_json(part.findings) + "}";
}

/// Prints the parts and the verdict.
exit_code report_parts(console& io, const std::vector<part_report>& parts, bool json) {
  const bool usable = std::ranges::all_of(parts, &part_report::usable);
  if (json) {
    io.out << "{\"usable\":" << (usable ? "true" : "false") << ",\"parts\":[";
    for (std::size_t i = 0; i < parts.size(); ++i)
      io.out << (i == 0 ? "" : ",") << part_json(parts[i]);
    io.out << "]}\n";
  } else {
    print_parts(io.out, parts);
    const bool clean =
        std::ranges::all_of(parts, [](const part_report& part) { return part.findings.empty(); });
    io.out << "\n" << (clean ? "all is well\n" : usable ? "usable\n" : "not usable\n");
  }
  return usable ? exit_ok : exit_negative;
}

}  // namespace

void add_doctor_command(command root) {
  command cmd = root.add("doctor", "Examine everything that Holdfast has on a database");
  cmd.about(
      "Examines the server (versions, durability, clock, TLS), and the store, the sequences, the "
      "outbox and the instances that exist: schema versions, tables, columns, privileges, "
      "settings. "
      "Prints the statements that repair what is wrong. 'holdfast store doctor', 'seq doctor', "
      "'outbox doctor' and 'redis doctor' examine one part.\n"
      "Changes nothing. Exit code 0 if all that exists is usable, even with warnings; 1 if "
      "something would not work, or nothing exists; 3 if the database cannot be reached.");
  cmd.examples(
      "holdfast doctor postgresql://localhost/app --prefix MYAPP_ --outbox-prefix '{shop}'\n"
      "holdfast doctor redis://127.0.0.1:6379 --json");
  const option url =
      cmd.positional("URL",
                     "The database: sqlite:app.db, postgresql://host/name, mysql://host/name, "
                     "h2://host/name, odbc:DSN=name, redis://host:6379")
          .required();
  const option prefix =
      cmd.value("--prefix", "P", "Prefix of the tables of store and sequences: MYAPP_");
  const option outbox_prefix =
      cmd.value("--outbox-prefix", "P", "Name of the outbox (default {holdfast})");
  const payload_column_option column(cmd);
  const option zone = cmd.value(
      "--zone", "Z", "Time zone of columns that store none: UTC; on PostgreSQL also Europe/Paris");
  const password_option password(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    // The log would repeat the findings.
    const auto db = holdfast::open(url_to_open(url.text(), false), {.password = password.read(io)});
    const auto parts = detail::doctor::examine(
        db, {.names = {.prefix = prefix.text(), .outbox_prefix = outbox_prefix.text()},
             .payload = column.value(),
             .zone = zone.text()});
    std::vector<part_report> all;
#if HOLDFAST_HAS_REDIS
    if (const auto& client = db.shared()->redis) all = examine_redis(*client);
#endif
    all.insert(all.end(), parts.begin(), parts.end());
    const auto code = report_parts(io, all, json.is_set());
    const bool absent = std::ranges::none_of(
        parts, [](const part_report& part) { return part.exists && part.part != "server"; });
    if (!absent) return code;
    io.warn("the database has no tables with these names; check --prefix and --outbox-prefix");
    return exit_negative;
  });
}

void add_outbox_doctor(command group) {
  command cmd = group.add("doctor", "Check the tables or keys of an outbox, and its server");
  cmd.about(
      "Opens the outbox as a worker does, and checks its schema version, tables, privileges and "
      "load. Changes nothing. Exit code 0 if the outbox is usable, even with warnings; 1 if it is "
      "not; 3 if the database cannot be reached.");
  cmd.examples(
      "holdfast outbox doctor --outbox sqlite:app.db\n"
      "holdfast outbox doctor --outbox redis://127.0.0.1 --prefix '{shop}' --json");
  const option url =
      cmd.value("--outbox", "URL",
                "The database: redis://host:6379, sqlite:app.db, postgresql://host/name")
          .required()
          .variable("HOLDFAST_OUTBOX");
  const option prefix = cmd.value(
      "--prefix", "P", "Name of the outbox, with a hash tag in braces (default {holdfast})");
  const password_option password(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto db = holdfast::open(url_to_open(url.text(), false), {.password = password.read(io)});
    std::vector<part_report> parts;
#if HOLDFAST_HAS_REDIS
    if (const auto& client = db.shared()->redis) parts = examine_redis(*client);
#endif
    parts.push_back(
        detail::doctor::examine_outbox(db, {.names = {.outbox_prefix = prefix.text()}}));
    return report_parts(io, parts, json.is_set());
  });
}

}  // namespace holdfast::cli
