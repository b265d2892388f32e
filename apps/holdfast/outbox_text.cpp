#include "outbox_text.hpp"

#include "base/base64.hpp"
#include "base/utf8.hpp"
#include "entry_text.hpp"
#include "text.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

/// `12s`, `3m`, `2h`, `5d`.
std::string short_time(std::chrono::microseconds time) {
  using namespace std::chrono;
  const auto count = [](auto part, const char* unit) { return std::to_string(part.count()) + unit; };
  if (time < microseconds(0)) time = -time;
  if (time < seconds(10)) return count(duration_cast<milliseconds>(time), "ms");
  if (time < minutes(10)) return count(duration_cast<seconds>(time), "s");
  if (time < hours(10)) return count(duration_cast<minutes>(time), "m");
  if (time < days(10)) return count(duration_cast<hours>(time), "h");
  return count(duration_cast<days>(time), "d");
}

std::string column(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text + " ";
}

/// Numbers by name, for JSON and for people: the same names in both.
using numbers = std::vector<std::pair<std::string_view, std::int64_t>>;

std::string numbers_json(const numbers& all) {
  std::string out;
  for (const auto& [name, value] : all)
    out.append(out.empty() ? "" : ",").append(json_string(name)).append(":").append(std::to_string(value));
  return out;
}

std::string numbers_text(const numbers& all) {
  std::string out;
  for (const auto& [name, value] : all) {
    std::string label(name);
    std::ranges::replace(label, '_', ' ');
    out.append(column(std::move(label), 15)).append(value < 0 ? "-" : "");
    out.append(grouped(static_cast<std::uint64_t>(value < 0 ? -value : value))).append("\n");
  }
  return out;
}

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

numbers of_stats(const outbox_stats& s) {
  return {{"events", number(s.events)},         {"pending", number(s.pending)},    {"following", number(s.following)},
          {"parked", number(s.parked)},         {"tickets", number(s.tickets)},    {"remembered", number(s.remembered)},
          {"bytes", number(s.bytes)},           {"overdue_ms", s.overdue.count()}, {"published", number(s.published)},
          {"duplicates", number(s.duplicates)}, {"claims", number(s.claims)},      {"acked", number(s.acked)},
          {"retried", number(s.retried)},       {"parkings", number(s.parkings)},  {"stale", number(s.stale)},
          {"fired", number(s.fired)},           {"orphans", number(s.orphans)}};
}

numbers of_work(const worker_report& report) {
  const auto& d = report.did;
  return {{"deliveries", number(d.deliveries)}, {"done", number(d.done)},         {"retried", number(d.retried)},
          {"throttled", number(d.throttled)},   {"parked", number(d.parked)},     {"released", number(d.released)},
          {"fenced", number(d.fenced)},         {"in_doubt", number(d.in_doubt)}, {"tickets", number(d.tickets)},
          {"wakes", number(d.wakes)},           {"errors", number(d.errors)},     {"still_running", number(report.still_running)}};
}

numbers of_check(const check_report& report) {
  return {{"events", number(report.events)},
          {"without_entry", number(report.without_entry)},
          {"without_place", number(report.without_place)},
          {"without_head", number(report.without_head)},
          {"bytes_off", report.bytes_off},
          {"bad_fields", number(report.bad_fields)}};
}

void add_text(std::string& to, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  to.append(",").append(json_string(name)).append(":").append(json_string(value));
}

void add_payload(std::string& to, const event& what) {
  if (!what.payload_ref.empty()) return add_text(to, "payload_ref", what.payload_ref);
  if (is_utf8(what.payload)) {
    to.append(",\"payload\":").append(json_string(what.payload));
    return;
  }
  std::string coded(base64_size(what.payload.size()), '\0');
  encode_base64(std::as_bytes(std::span(what.payload)), coded.data());
  add_text(to, "payload_base64", coded);
}

}  // namespace

std::string record_json(const outbox_record& record, std::string_view kind) {
  const auto& what = record.what;
  const bool ticket = kind == "ticket";
  std::string out =
      "{" + json_string(ticket ? "ticket" : "id") + ":" + json_string(what.event.id) + ",\"type\":" + json_string(what.event.type);
  add_text(out, "key", what.event.key);
  if (!ticket) {
    out.append(",\"state\":").append(json_string(to_string(record.state)));
    out.append(",\"lane\":").append(std::to_string(what.lane)).append(",\"sequence\":").append(std::to_string(what.sequence));
    out.append(",\"deliveries\":").append(std::to_string(what.deliveries)).append(",\"attempts\":").append(std::to_string(what.attempts));
    out.append(",\"replays\":").append(std::to_string(what.replays)).append(",\"fence\":").append(std::to_string(record.fence));
    add_text(out, "created_at", iso(what.created_at));
    add_text(out, "behind", record.behind);
    add_text(out, "last_error", what.last_error);
  }
  if (record.until) add_text(out, ticket ? "expires_at" : "until", iso(*record.until));
  add_text(out, "content_type", what.event.content_type);
  if (!what.event.headers.empty()) {
    out.append(",\"headers\":{");
    bool first = true;
    for (const auto& [name, value] : what.event.headers) {
      out.append(std::exchange(first, false) ? "" : ",").append(json_string(name)).append(":").append(json_string(value));
    }
    out.append("}");
  }
  add_payload(out, what.event);
  return out + "}";
}

std::string_view records_head() { return "id                                   state     age    due    tries type                 key"; }

std::string record_line(const outbox_record& record, timestamp now) {
  const auto& what = record.what;
  std::string due = "-";
  if (record.until) due = (*record.until > now ? "in " : "") + short_time(*record.until - now);
  std::string line = column(printable(what.event.id), 36) + column(std::string(to_string(record.state)), 9) +
                     column(what.created_at == timestamp() ? "-" : short_time(now - what.created_at), 6) + column(std::move(due), 6) +
                     column(std::to_string(what.attempts) + "/" + std::to_string(what.deliveries), 5) +
                     column(printable(what.event.type), 20) + printable(what.event.key);
  if (!what.last_error.empty()) line += "\n    " + printable(what.last_error);
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string stats_json(const outbox_stats& stats) {
  return "{" + numbers_json(of_stats(stats)) + ",\"paused\":" + (stats.paused ? "true" : "false") +
         ",\"at_least\":" + (stats.at_least ? "true" : "false") + "}\n";
}

std::string stats_text(const outbox_stats& stats) {
  return numbers_text(of_stats(stats)) + column("paused", 15) + (stats.paused ? "yes" : "no") + "\n" +
         (stats.at_least ? "parked and pending are at least these, following is the rest: not all were counted\n" : "");
}

std::string check_json(const check_report& report, bool repaired) {
  return "{\"well\":" + std::string(report.well() ? "true" : "false") + ",\"repaired\":" + (repaired ? "true" : "false") + "," +
         numbers_json(of_check(report)) + "}\n";
}

std::string check_text(const check_report& report, bool repaired) {
  return numbers_text(of_check(report)) + (report.well() ? "well\n"
                                           : repaired    ? "repaired\n"
                                                         : "not well; repair it with: holdfast outbox fsck --repair\n");
}

std::string work_text(const worker_report& report) {
  std::string out;
  for (const auto& [name, value] : of_work(report)) {
    // How often it slept is nobody's result.
    if ((value == 0 && name != "done") || name == "wakes") continue;
    std::string label(name);
    std::ranges::replace(label, '_', ' ');
    out.append(out.empty() ? "" : ", ").append(label).append(" ").append(grouped(static_cast<std::uint64_t>(value)));
  }
  return out + "\n";
}

std::string work_json(const worker_report& report) { return "{" + numbers_json(of_work(report)) + "}\n"; }

}  // namespace holdfast::cli
