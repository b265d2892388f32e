#include <holdfast/store/probe.hpp>

#include "groups.hpp"
#include "store_place.hpp"
#include "text.hpp"

#include <chrono>
#include <string>

namespace holdfast::cli {

namespace {

std::string milliseconds_of(std::chrono::microseconds span) { return json_number(static_cast<double>(span.count()) / 1000) + " ms"; }

/// Under its finding, so that it can be copied: every line begins in the same column.
void print_indented(output& to, std::string_view text) {
  constexpr std::string_view margin = "         ";
  while (!text.empty()) {
    const auto end = text.find('\n');
    to << margin << printable(text.substr(0, end)) << "\n";
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

void print_text(output& to, const probe_report& report) {
  to << "server   " << printable(report.server) << "\n";
  for (const auto& table : report.tables) to << "table    " << printable(table) << "\n";
  if (report.skew) {
    to << "clock    " << milliseconds_of(std::chrono::abs(*report.skew)) << (report.skew->count() < 0 ? " behind" : " ahead of")
       << " ours, within " << milliseconds_of(report.skew_within) << "\n";
  }
  for (const auto& each : report.findings) {
    to << "\n" << to_string(each.severity) << std::string(9 - to_string(each.severity).size(), ' ') << printable(each.problem) << "\n";
    for (const auto& sql : each.sql) print_indented(to, sql + ";");
    if (!each.advice.empty()) print_indented(to, each.advice);
  }
  if (report.findings.empty()) to << "all is well\n";
  else to << "\n" << (report.usable() ? "usable\n" : "not usable as it is\n");
}

void print_json(output& to, const probe_report& report) {
  to << "{\"dialect\":" << json_string(to_string(report.dialect)) << ",\"server\":" << json_string(report.server)
     << ",\"tables\":" << json_list(report.tables);
  to << ",\"skew_us\":" << (report.skew ? std::to_string(report.skew->count()) : "null")
     << ",\"skew_within_us\":" << (report.skew ? std::to_string(report.skew_within.count()) : "null")
     << ",\"usable\":" << (report.usable() ? "true" : "false") << ",\"findings\":[";
  bool first = true;
  for (const auto& each : report.findings) {
    to << (first ? "" : ",") << "{\"severity\":" << json_string(to_string(each.severity)) << ",\"code\":" << json_string(each.code)
       << ",\"problem\":" << json_string(each.problem) << ",\"sql\":" << json_list(each.sql) << ",\"advice\":" << json_string(each.advice)
       << "}";
    first = false;
  }
  to << "]}\n";
}

}  // namespace

void add_doctor_command(command group) {
  command at = group.add("doctor", "Say what is wrong with a store's table and server, and what to type");
  at.about(
      "Looks at the table, its columns, keys and indexes, at the settings that decide whether a write survives a power failure, at the\n"
      "clocks, at encryption, and at whether the store's statements may be run. Changes nothing. Exit code 0 when the store is usable, "
      "also with "
      "warnings;\n"
      "1 when something is wrong; 3 when the database cannot be reached.");
  at.examples(
      "holdfast store doctor --store postgresql://localhost/app --prefix MYAPP_\nholdfast store doctor --store sqlite:answers.db --json");
  const database_place place(at);
  const option zone = at.value("--zone", "Z", "The zone of time columns without one: UTC; on PostgreSQL also Europe/Paris");
  const option column = payload_column_of(at);
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto report =
        probe(place.open_database(io), {.prefix = place.prefix.text(), .payload = chosen_column(column), .zone = zone.text()});
    if (json.given()) print_json(io.out, report);
    else print_text(io.out, report);
    return report.usable() ? exit_fine : exit_no;
  });
}

}  // namespace holdfast::cli
