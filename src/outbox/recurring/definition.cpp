#include "outbox/recurring/definition.hpp"

#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"

#include <simdjson.h>

#include <array>
#include <cstdio>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr std::int64_t recurrence_version = 1;
constexpr std::size_t largest_recurrence_header = std::size_t{64} << 10U;
constexpr std::size_t most_catch_up = 1000;
/// The year 9970; as for tickets.
constexpr std::int64_t latest_recurrence_ms = std::int64_t{8000} * 365 * 24 * 3600 * 1000;

constexpr const char* name_header = "Holdfast-Recurrence";
constexpr const char* due_header = "Holdfast-Due";

[[noreturn]] void refuse_recurrence(const std::string& problem) {
  throw error(errc::invalid_argument, problem);
}

[[noreturn]] void refuse_text(const std::string& problem) {
  throw error(errc::malformed, "the stored definition cannot be read: " + problem +
                                   "; define the recurring event again");
}

// ---- write ----

void append_number_field(std::string& out, std::string_view name, std::int64_t number) {
  out.append(",\"").append(name).append("\":").append(std::to_string(number));
}

void append_time_field(std::string& out, std::string_view name,
                       const std::optional<sys_seconds>& time) {
  if (time) append_number_field(out, name, milliseconds(time->time_since_epoch()).count());
}

void append_text_field(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out.append(",\"").append(name).append("\":");
  append_json_text(out, text);
}

// ---- read ----

using json_element = simdjson::dom::element;

std::optional<std::int64_t> find_number(const json_element& root, std::string_view name) {
  json_element value;
  if (root[name].get(value) != simdjson::SUCCESS) return std::nullopt;
  std::int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS || number < 0) refuse_text("a number is wrong");
  return number;
}

std::string find_text(const json_element& root, std::string_view name) {
  json_element value;
  if (root[name].get(value) != simdjson::SUCCESS) return {};
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) refuse_text("a text is wrong");
  return std::string(text);
}

std::optional<sys_seconds> find_time(const json_element& root, std::string_view name) {
  const auto number = find_number(root, name);
  if (!number) return std::nullopt;
  if (*number > latest_recurrence_ms) refuse_text("a time is wrong");
  return sys_seconds(std::chrono::floor<seconds>(milliseconds(*number)));
}

template <class Policy, std::size_t size>
Policy find_policy(const json_element& root, std::string_view name,
                   const std::array<Policy, size>& policies) {
  const auto text = find_text(root, name);
  for (const auto policy : policies) {
    if (text == to_string(policy)) return policy;
  }
  refuse_text("its " + std::string(name) + " is wrong");
}

recurrence_options read_options(const json_element& root) {
  recurrence_options options;
  options.zone = find_text(root, "zone");
  options.overlap =
      find_policy(root, "overlap", std::array{overlap_policy::queue, overlap_policy::skip});
  options.catch_up =
      find_policy(root, "catchUp",
                  std::array{catch_up_policy::none, catch_up_policy::last, catch_up_policy::all});
  options.catch_up_limit = static_cast<std::size_t>(find_number(root, "limit").value_or(0));
  options.tolerance = milliseconds(find_number(root, "tolerance").value_or(0));
  return options;
}

std::string due_text(sys_seconds due) {
  const auto day = std::chrono::floor<std::chrono::days>(due);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(due - day);
  std::array<char, 48> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
      static_cast<int>(time.seconds().count()));
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace

void check_recurrence(std::string_view name, const recurrence_definition& definition,
                      std::size_t inline_limit) {
  check_name("name of a recurring event", name, false);
  const auto& options = definition.options;
  if (options.catch_up_limit == 0 || options.catch_up_limit > most_catch_up)
    refuse_recurrence("catch_up_limit is " + std::to_string(options.catch_up_limit) +
                      "; it must be from 1 to 1000");
  check_duration("tolerance of a recurring event", options.tolerance, milliseconds(0));
  const auto& event = definition.event;
  if (!event.id.empty())
    refuse_recurrence(
        "the id of a recurring event is made from its name and the due time: leave it empty");
  if (event.delay.count() != 0)
    refuse_recurrence("a recurring event is due when its time comes: leave its delay empty");
  if (event.headers.size() + 2 > 64)
    refuse_recurrence("a recurring event has more than 62 headers; the outbox adds two");
  if (event.payload.size() > inline_limit) {
    throw error(errc::too_large,
                "the payload of a recurring event is larger than inline_limit, and recurring "
                "events cannot use a claim check");
  }
}

std::string recurrence_text(const recurrence_record& record) {
  const auto& [definition, progress] = record;
  const auto& options = definition.options;
  std::string text = R"({"v":)" + std::to_string(recurrence_version);
  append_text_field(text, "cron", definition.cron);
  append_text_field(text, "zone", options.zone);
  append_text_field(text, "overlap", to_string(options.overlap));
  append_text_field(text, "catchUp", to_string(options.catch_up));
  append_number_field(text, "limit", static_cast<std::int64_t>(options.catch_up_limit));
  append_number_field(text, "tolerance", options.tolerance.count());
  append_time_field(text, "after", progress.after);
  append_time_field(text, "next", progress.next);
  append_time_field(text, "last", progress.last);
  append_text_field(text, "lastId", progress.last_id);
  append_number_field(text, "published", static_cast<std::int64_t>(progress.published));
  append_number_field(text, "skipped", static_cast<std::int64_t>(progress.skipped));
  append_text_field(text, "step", progress.step);
  const auto body = entry_body(definition.event);
  append_number_field(text, "bodySize", static_cast<std::int64_t>(body.size()));
  text += "}\n";
  text += body;
  return text;
}

recurrence_record read_recurrence(std::string_view text) {
  const auto line_end = text.find('\n');
  // Also if there is no line end.
  if (line_end > largest_recurrence_header) refuse_text("it is not complete");
  simdjson::dom::parser parser;
  json_element root;
  if (parser.parse(std::string(text.substr(0, line_end))).get(root) != simdjson::SUCCESS ||
      !root.is_object())
    refuse_text("it is not JSON");
  if (find_number(root, "v") != recurrence_version) {
    throw error(errc::unsupported_type,
                "the stored definition has another version than 1; use a newer Holdfast");
  }
  recurrence_record record;
  record.definition.cron = find_text(root, "cron");
  record.definition.options = read_options(root);
  const auto body = text.substr(line_end + 1);
  // A body that was cut may still be a valid one.
  if (find_number(root, "bodySize") != static_cast<std::int64_t>(body.size()))
    refuse_text("it is not complete");
  auto content = read_ticket(body, {});
  if (!content.problem.empty()) refuse_text(content.problem);
  record.definition.event = std::move(content.event);
  record.definition.event.id.clear();
  auto& progress = record.progress;
  progress.after = find_time(root, "after").value_or(sys_seconds());
  progress.next = find_time(root, "next");
  progress.last = find_time(root, "last");
  progress.last_id = find_text(root, "lastId");
  progress.step = find_text(root, "step");
  progress.published = static_cast<std::uint64_t>(find_number(root, "published").value_or(0));
  progress.skipped = static_cast<std::uint64_t>(find_number(root, "skipped").value_or(0));
  return record;
}

event event_of(std::string_view name, const event& definition, sys_seconds due) {
  event result = definition;
  result.id = expiry_event_id("recurring event " + std::string(name), due);
  result.headers[name_header] = name;
  result.headers[due_header] = due_text(due);
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
