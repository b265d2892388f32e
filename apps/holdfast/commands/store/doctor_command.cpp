// holdfast store doctor.

#include <holdfast/store/probe.hpp>

#include "commands/finding_text.hpp"
#include "commands/groups.hpp"
#include "commands/store/location.hpp"
#include "terminal/text.hpp"

#include <chrono>
#include <string>

namespace holdfast::cli {

namespace {

std::string milliseconds_of(std::chrono::microseconds span) {
  return json_number(static_cast<double>(span.count()) / 1000) + " ms";
}

void print_text(output& out, const probe_report& report) {
  out << "server   " << printable(report.server) << "\n";
  for (const auto& table : report.tables) out << "table    " << printable(table) << "\n";
  if (report.skew) {
    out << "clock    " << milliseconds_of(std::chrono::abs(*report.skew))
        << (report.skew->count() < 0 ? " behind" : " ahead of") << " ours, within "
        << milliseconds_of(report.skew_within) << "\n";
  }
  for (const auto& finding : report.findings) {
    out << "\n";
    print_finding(out, finding);
  }
  if (report.findings.empty()) out << "all is well\n";
  else out << "\n" << (report.usable() ? "usable\n" : "not usable\n");
}

void print_json(output& out, const probe_report& report) {
  out << "{\"dialect\":" << json_string(to_string(report.dialect))
      << ",\"server\":" << json_string(report.server) << ",\"tables\":" << json_list(report.tables);
  out << ",\"skew_us\":" << (report.skew ? std::to_string(report.skew->count()) : "null")
      << ",\"skew_within_us\":"
      << (report.skew ? std::to_string(report.skew_within.count()) : "null")
      << ",\"usable\":" << (report.usable() ? "true" : "false")
      << ",\"findings\":" << findings_json(report.findings) << "}\n";
}

}  // namespace

void add_store_doctor(command group) {
  command cmd = group.add(
      "doctor", "Check the table and the server of a store, and print the SQL that repairs them");
  cmd.about(
      "Checks the table with its columns, keys and indexes, the table of leases, the settings for "
      "durable writes, the clocks, encryption, and permissions.\n"
      "Changes nothing. Exit code 0 if the store is usable, even with warnings; 1 if it is not; 3 "
      "if the database cannot be reached.");
  cmd.examples(
      "holdfast store doctor --store postgresql://localhost/app --prefix MYAPP_\n"
      "holdfast store doctor --store sqlite:answers.db --json");
  const database_location location(cmd);
  const option zone = cmd.value(
      "--zone", "Z", "Time zone of columns that store none: UTC; on PostgreSQL also Europe/Paris");
  const payload_column_option column(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto report =
        probe(location.open_database(io),
              {.prefix = location.prefix.text(), .payload = column.value(), .zone = zone.text()});
    if (json.is_set()) print_json(io.out, report);
    else print_text(io.out, report);
    return report.usable() ? exit_ok : exit_negative;
  });
}

}  // namespace holdfast::cli
