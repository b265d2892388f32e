#include "base/log_text.hpp"

#include "base/line_text.hpp"

namespace HOLDFAST_NAMESPACE::detail {

std::string log_message(const log_record& record) {
  std::string line(record.message);
  std::string details;
  for (const auto& [name, value] : record.fields) {
    if (value.empty()) continue;
    if (name == "problem" || name == "reason" || name == "why") line.append(": ").append(value);
    else details.append(details.empty() ? "" : ", ").append(name).append(" ").append(value);
  }
  if (!details.empty()) line.append(" (").append(details).append(")");
  return printable(line);
}

std::string log_json(const log_record& record, timestamp time) {
  std::string line = R"({"time":")" + iso_time(time) + R"(","level":")";
  line.append(to_string(record.level)).append(R"(","message":)").append(json_text(record.message));
  if (!record.fields.empty()) {
    line += R"(,"fields":{)";
    bool first = true;
    for (const auto& [name, value] : record.fields) {
      line.append(first ? "" : ",").append(json_text(name)).append(":").append(json_text(value));
      first = false;
    }
    line += '}';
  }
  return line + '}';
}

}  // namespace HOLDFAST_NAMESPACE::detail
