#include "commands/outbox/record_text.hpp"

#include "base/base64.hpp"
#include "base/utf8.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

std::string column(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text + " ";
}

/// Counters by name. The names are the same in JSON and in text.
using named_numbers = std::vector<std::pair<std::string_view, std::int64_t>>;

std::string numbers_json(const named_numbers& numbers) {
  std::string out;
  for (const auto& [name, value] : numbers)
    out.append(out.empty() ? "" : ",")
        .append(json_string(name))
        .append(":")
        .append(std::to_string(value));
  return out;
}

std::string numbers_text(const named_numbers& numbers) {
  std::string out;
  for (const auto& [name, value] : numbers) {
    std::string label(name);
    std::ranges::replace(label, '_', ' ');
    out.append(column(std::move(label), 15)).append(value < 0 ? "-" : "");
    out.append(grouped(static_cast<std::uint64_t>(value < 0 ? -value : value))).append("\n");
  }
  return out;
}

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

named_numbers numbers_of_stats(const outbox_stats& stats) {
  return {{"events", number(stats.events)},         {"pending", number(stats.pending)},
          {"following", number(stats.following)},   {"parked", number(stats.parked)},
          {"stuck", number(stats.stuck)},           {"tickets", number(stats.tickets)},
          {"remembered", number(stats.remembered)}, {"bytes", number(stats.bytes)},
          {"overdue_ms", stats.overdue.count()},    {"published", number(stats.published)},
          {"duplicates", number(stats.duplicates)}, {"claims", number(stats.claims)},
          {"acked", number(stats.acked)},           {"retried", number(stats.retried)},
          {"parkings", number(stats.parkings)},     {"stale", number(stats.stale)},
          {"fired", number(stats.fired)},           {"orphans", number(stats.orphans)}};
}

named_numbers numbers_of_worker(const worker_report& report) {
  const auto& counters = report.did;
  return {
      {"deliveries", number(counters.deliveries)}, {"done", number(counters.done)},
      {"retried", number(counters.retried)},       {"throttled", number(counters.throttled)},
      {"parked", number(counters.parked)},         {"released", number(counters.released)},
      {"fenced", number(counters.fenced)},         {"in_doubt", number(counters.in_doubt)},
      {"timed_out", number(counters.timed_out)},   {"unhandled", number(counters.unhandled)},
      {"tickets", number(counters.tickets)},       {"wakes", number(counters.wakes)},
      {"errors", number(counters.errors)},         {"still_running", number(report.still_running)}};
}

named_numbers numbers_of_check(const check_report& report) {
  return {{"events", number(report.events)},
          {"without_entry", number(report.without_entry)},
          {"without_place", number(report.without_place)},
          {"without_head", number(report.without_head)},
          {"bytes_off", report.bytes_off},
          {"bad_fields", number(report.bad_fields)}};
}

/// Appends a member to a JSON object, unless the value is empty.
void append_text(std::string& json, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  json.append(",").append(json_string(name)).append(":").append(json_string(value));
}

void append_payload(std::string& json, const event& source) {
  if (!source.payload_ref.empty()) return append_text(json, "payload_ref", source.payload_ref);
  if (detail::is_utf8(source.payload)) {
    json.append(",\"payload\":").append(json_string(source.payload));
    return;
  }
  std::string encoded(detail::base64_size(source.payload.size()), '\0');
  detail::encode_base64(std::as_bytes(std::span(source.payload)), encoded.data());
  append_text(json, "payload_base64", encoded);
}

}  // namespace

std::string record_json(const outbox_record& record, std::string_view kind) {
  const auto& details = record.details;
  const bool ticket = kind == "ticket";
  std::string out = "{" + json_string(ticket ? "ticket" : "id") + ":" +
                    json_string(details.event.id) + ",\"type\":" + json_string(details.event.type);
  append_text(out, "key", details.event.key);
  if (!ticket) {
    out.append(",\"state\":").append(json_string(to_string(record.state)));
    out.append(",\"lane\":")
        .append(std::to_string(details.lane))
        .append(",\"sequence\":")
        .append(std::to_string(details.sequence));
    out.append(",\"deliveries\":")
        .append(std::to_string(details.deliveries))
        .append(",\"attempts\":")
        .append(std::to_string(details.attempts));
    out.append(",\"replays\":")
        .append(std::to_string(details.replays))
        .append(",\"fence\":")
        .append(std::to_string(record.fence));
    append_text(out, "created_at", iso_time(details.created_at));
    append_text(out, "behind", record.behind);
    append_text(out, "last_error", details.last_error);
  }
  if (record.until) append_text(out, ticket ? "expires_at" : "until", iso_time(*record.until));
  append_text(out, "content_type", details.event.content_type);
  if (!details.event.headers.empty()) {
    out.append(",\"headers\":{");
    bool first = true;
    for (const auto& [name, value] : details.event.headers) {
      out.append(std::exchange(first, false) ? "" : ",")
          .append(json_string(name))
          .append(":")
          .append(json_string(value));
    }
    out.append("}");
  }
  append_payload(out, details.event);
  return out + "}";
}

std::vector<std::string> record_header() {
  return {"id", "state", "age", "due", "tries", "type", "key"};
}

std::vector<std::string> record_row(const outbox_record& record, timestamp now) {
  const auto& details = record.details;
  std::string due = "-";
  if (record.until) due = (*record.until > now ? "in " : "") + human_duration(*record.until - now);
  return {printable(details.event.id),
          std::string(to_string(record.state)),
          details.created_at == timestamp() ? "-" : human_duration(now - details.created_at),
          std::move(due),
          std::to_string(details.attempts) + "/" + std::to_string(details.deliveries),
          printable(details.event.type),
          printable(details.event.key)};
}

std::string record_line(const outbox_record& record, timestamp now) {
  constexpr std::array<std::size_t, 7> widths{36, 9, 8, 8, 5, 20, 0};
  const auto cells = record_row(record, now);
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += column(cells[i], widths.at(i));
  while (line.ends_with(' ')) line.pop_back();
  if (!record.details.last_error.empty()) line += "\n    " + printable(record.details.last_error);
  return line;
}

std::string recurrence_json(const recurrence& recurring) {
  const auto& options = recurring.options;
  std::string out = "{" + json_string("name") + ":" + json_string(recurring.name);
  append_text(out, "cron", recurring.cron);
  append_text(out, "zone", options.zone);
  append_text(out, "overlap", to_string(options.overlap));
  append_text(out, "catch_up", to_string(options.catch_up));
  out.append(",\"catch_up_limit\":").append(std::to_string(options.catch_up_limit));
  out.append(",\"tolerance_ms\":").append(std::to_string(options.tolerance.count()));
  append_text(out, "type", recurring.event.type);
  append_text(out, "key", recurring.event.key);
  append_text(out, "next", recurring.next ? iso_time(*recurring.next) : std::string());
  append_text(out, "last", recurring.last ? iso_time(*recurring.last) : std::string());
  append_text(out, "last_id", recurring.last_id);
  out.append(",\"published\":").append(std::to_string(recurring.published));
  out.append(",\"skipped\":").append(std::to_string(recurring.skipped));
  append_text(out, "problem", recurring.problem);
  return out + "}";
}

void print_recurrences(output& out, const std::vector<recurrence>& recurring) {
  if (recurring.empty()) return;
  table rows({"name", "cron", "zone", "next (UTC)", "published", "type"});
  for (const auto& one : recurring)
    rows.add({printable(one.name), printable(one.cron),
              printable(one.options.zone.empty() ? "UTC" : one.options.zone),
              one.next ? iso_time(*one.next).substr(0, 19) : std::string("-"),
              std::to_string(one.published), printable(one.event.type)},
             printable(one.problem));
  rows.print(out);
}

std::string stats_json(const outbox_stats& stats, const std::vector<recurrence>& recurring) {
  std::string list;
  for (const auto& one : recurring)
    list.append(list.empty() ? "" : ",").append(recurrence_json(one));
  return "{" + numbers_json(numbers_of_stats(stats)) +
         ",\"paused\":" + (stats.paused ? "true" : "false") +
         ",\"at_least\":" + (stats.at_least ? "true" : "false") + ",\"recurring\":[" + list +
         "]}\n";
}

void print_stats(output& out, const outbox_stats& stats, const std::vector<recurrence>& recurring) {
  auto numbers = numbers_of_stats(stats);
  std::erase_if(numbers, [](const auto& number) { return number.first == "overdue_ms"; });
  out << numbers_text(numbers) << column("overdue", 15) << human_duration(stats.overdue) << "\n"
      << column("paused", 15) << (stats.paused ? "yes" : "no") << "\n"
      << (stats.stuck != 0 ? "keys are stuck; repair them with: holdfast outbox fsck --repair\n"
                           : "")
      << (stats.at_least ? "not all events were counted: parked and pending are lower bounds, "
                           "following is an upper bound\n"
                         : "")
      << (recurring.empty() ? "" : "recurring events:\n");
  print_recurrences(out, recurring);
}

std::string check_report_json(const check_report& report, bool repaired) {
  return "{\"well\":" + std::string(report.well() ? "true" : "false") +
         ",\"repaired\":" + (repaired ? "true" : "false") + "," +
         numbers_json(numbers_of_check(report)) + "}\n";
}

std::string check_report_text(const check_report& report, bool repaired) {
  return numbers_text(numbers_of_check(report)) +
         (report.well() ? "well\n"
          : repaired    ? "repaired\n"
                        : "not well; repair it with: holdfast outbox fsck --repair\n");
}

std::string worker_report_text(const worker_report& report) {
  std::string out;
  for (const auto& [name, value] : numbers_of_worker(report)) {
    // The number of wake-ups is not a result.
    if ((value == 0 && name != "done") || name == "wakes") continue;
    std::string label(name);
    std::ranges::replace(label, '_', ' ');
    out.append(out.empty() ? "" : ", ")
        .append(label)
        .append(" ")
        .append(grouped(static_cast<std::uint64_t>(value)));
  }
  return out + "\n";
}

std::string worker_report_json(const worker_report& report) {
  return "{" + numbers_json(numbers_of_worker(report)) + "}\n";
}

}  // namespace holdfast::cli
