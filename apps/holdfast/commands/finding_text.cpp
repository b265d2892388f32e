#include "commands/finding_text.hpp"

#include "terminal/text.hpp"

namespace holdfast::cli {

namespace {

/// Prints SQL or advice below a finding. All lines start in the same column, so that they can be
/// copied.
void print_indented(output& out, std::string_view text) {
  constexpr std::string_view margin = "         ";
  while (!text.empty()) {
    const auto end = text.find('\n');
    out << margin << printable(text.substr(0, end)) << "\n";
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

}  // namespace

void print_finding(output& out, const probe_finding& finding) {
  std::string level(to_string(finding.severity));
  level.resize(9, ' ');
  out << level << printable(finding.problem) << "\n";
  for (const auto& sql : finding.sql) print_indented(out, sql + ";");
  if (!finding.advice.empty()) print_indented(out, finding.advice);
}

std::string findings_json(std::span<const probe_finding> findings) {
  std::string json = "[";
  for (const auto& finding : findings) {
    if (json.size() > 1) json += ",";
    json.append("{\"severity\":")
        .append(json_string(to_string(finding.severity)))
        .append(",\"code\":")
        .append(json_string(finding.code))
        .append(",\"problem\":")
        .append(json_string(finding.problem))
        .append(",\"sql\":")
        .append(json_list(finding.sql))
        .append(",\"advice\":")
        .append(json_string(finding.advice))
        .append("}");
  }
  return json + "]";
}

}  // namespace holdfast::cli
