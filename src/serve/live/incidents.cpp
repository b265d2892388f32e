#include "serve/live/incidents.hpp"

#include <holdfast/error.hpp>

#include "base/utf8.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using std::chrono::microseconds;

constexpr std::size_t max_line = 1'000;

/// The number of bytes of the next line of a text. A line ends between two characters.
std::size_t line_size(std::string_view text) {
  if (text.size() <= max_line) return text.size();
  std::size_t size = max_line;
  while (size > 1 && continues_code_point(text[size])) --size;
  return size;
}

sql::schema_set incident_tables() {
  return {.name = "incidents",
          .tables = {"HOLDFAST_SERVE_INCIDENT"},
          .create = [](sql::dialect_id dialect, int) {
            const auto types = state_columns(dialect);
            return std::vector<std::string>{create_state_table(
                dialect, "HOLDFAST_SERVE_INCIDENT",
                "INCIDENT_ID " + types.text(32) + " NOT NULL, LINE_NUMBER " + types.integer +
                    " NOT NULL, OPENED_ON " + types.integer + " NOT NULL, BODY " +
                    types.text(max_line) + ", PRIMARY KEY (INCIDENT_ID, LINE_NUMBER)")};
          }};
}

std::string day_text(timestamp time) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(time));
  std::array<char, 32> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(day.year()),
                    static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  return {text.data(), static_cast<std::size_t>(size)};
}

timestamp required_time(json_object& object, std::string_view name) {
  const auto time = object.time(name);
  if (!time) throw error(errc::malformed, "an incident has no " + std::string(name));
  return *time;
}

incident read_incident(std::string_view json) {
  auto object = json_object::parse(json);
  incident value{.id = object.required_text("id"),
                 .opened = required_time(object, "opened"),
                 .closed = object.time("closed"),
                 .subjects = object.texts("subjects").value_or(std::vector<std::string>{}),
                 .left_out = static_cast<std::uint64_t>(object.integer("leftOut").value_or(0))};
  if (auto entries = object.objects("timeline")) {
    for (auto& entry : *entries)
      value.timeline.push_back({.moment = required_time(entry, "at"),
                                .kind = entry.required_text("kind"),
                                .subject = entry.text("subject").value_or(""),
                                .text = entry.text("text").value_or("")});
  }
  return value;
}

/// Escapes what Markdown would interpret, such as `<` and `|`, and replaces line breaks by spaces.
std::string markdown_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n' || c == '\r') escaped += ' ';
    else if (std::string_view("\\`*_{}[]<>()#+!|&").find(c) != std::string_view::npos)
      escaped.append(1, '\\').append(1, c);
    else escaped += c;
  }
  return escaped;
}

/// The number in an id of this day. 0 if the id is of another day or was changed in the database.
std::uint64_t incident_number(std::string_view id, std::string_view day) {
  if (!id.starts_with(day) || id.size() <= day.size() || id[day.size()] != '-') return 0;
  const auto digits = id.substr(day.size() + 1);
  std::uint32_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return status == std::errc{} && end == digits.data() + digits.size() ? number : 0;
}

}  // namespace

std::string to_json(const incident& value) {
  json_writer out;
  out.begin_object().member("id", value.id).member("opened", value.opened).key("closed");
  if (value.closed) out.time(*value.closed);
  else out.null();
  out.key("subjects").begin_array();
  for (const auto& subject : value.subjects) out.text(subject);
  out.end_array().key("timeline").begin_array();
  for (const auto& entry : value.timeline)
    out.begin_object()
        .member("at", entry.moment)
        .member("kind", entry.kind)
        .member("subject", entry.subject)
        .member("text", entry.text)
        .end_object();
  out.end_array().member("leftOut", value.left_out).end_object();
  return out.take();
}

std::string to_markdown(const incident& value) {
  std::string text =
      "# Incident " + markdown_text(value.id) + "\n\nFrom " + time_text(value.opened) + " to " +
      (value.closed ? time_text(*value.closed) : std::string("now, still open")) + ".\n\n";
  for (const auto& subject : value.subjects) text += "- " + markdown_text(subject) + "\n";
  text += "\n| time | kind | subject | text |\n| --- | --- | --- | --- |\n";
  for (const auto& entry : value.timeline)
    text += "| " + time_text(entry.moment) + " | " + markdown_text(entry.kind) + " | " +
            markdown_text(entry.subject) + " | " + markdown_text(entry.text) + " |\n";
  if (value.left_out > 0)
    text += "\n" + std::to_string(value.left_out) + " more entries were left out.\n";
  return text;
}

incident_log::incident_log(state_database* database, event_sink* events, incident_options options)
    : database_(database), events_(events), options_(options) {
  if (database_ == nullptr) return;
  database_->add_tables(incident_tables());
  try {
    load();
  } catch (const error&) {
    ++failures_;
  }
}

void incident_log::load() {
  using sql::type;
  // The lines of an incident, the newest incident first.
  auto session = database_->read("incidents.load");
  const auto rows = session.query(
      "SELECT INCIDENT_ID, BODY FROM HOLDFAST_SERVE_INCIDENT ORDER BY OPENED_ON DESC, INCIDENT_ID "
      "DESC, LINE_NUMBER",
      {}, {type::text, type::text});
  for (std::size_t i = 0; i < rows.size() && incidents_.size() < options_.kept;) {
    const auto id = text_of(rows, i, 0);
    std::string body;
    for (; i < rows.size() && text_of(rows, i, 0) == id; ++i) body += text_of(rows, i, 1);
    try {
      incidents_.push_front(read_incident(body));
    } catch (const error&) {
      ++failures_;  // the row was changed
    }
  }
  // An incident that was open stays open until nothing was bad for `close_after`.
  const auto* const current = find_open();
  if (current == nullptr) return;
  last_bad_ = current->timeline.empty() ? current->opened : current->timeline.back().moment;
  for (const auto& entry : current->timeline) {
    if (entry.kind == "end") subjects_.erase(entry.subject);
    else if (entry.kind == "begin")
      subjects_[entry.subject] = {
          .bad_since = entry.moment, .text = entry.text, .reported = true, .restored = true};
  }
}

void incident_log::begin_observing(timestamp now) {
  if (first_observed_ != timestamp{}) return;
  first_observed_ = now;
  // What was bad when the server stopped may have been bad until now.
  if (!subjects_.empty()) last_bad_ = std::max(last_bad_, now);
}

incident* incident_log::find_open() {
  return incidents_.empty() || incidents_.back().closed ? nullptr : &incidents_.back();
}

void incident_log::observe(timestamp now, const std::vector<incident_condition>& conditions) {
  const std::scoped_lock lock(mutex_);
  begin_observing(now);
  for (const auto& condition : conditions) {
    auto& subject = subjects_[condition.kind + " " + condition.subject];
    subject.restored = false;
    if (subject.bad_since == timestamp{}) subject.bad_since = now;
    subject.last_bad = now;
    subject.text = condition.text;
    last_bad_ = now;
  }
  bool changed = false;
  for (auto it = subjects_.begin(); it != subjects_.end();) {
    auto& [name, subject] = *it;
    auto* current = find_open();
    // After a start the databases are not asked yet, and the rates are 0.
    if (subject.restored && now - first_observed_ < options_.open_after) {
      ++it;
      continue;
    }
    if (subject.last_bad != now) {  // no condition names it any more
      if (subject.reported && current != nullptr) {
        add_entry(*current, {.moment = now, .kind = "end", .subject = name});
        changed = true;
      }
      it = subjects_.erase(it);
      continue;
    }
    if (!subject.reported && now - subject.bad_since >= options_.open_after) {
      if (current == nullptr) open_incident(subject.bad_since);
      current = find_open();
      subject.reported = true;
      if (std::ranges::find(current->subjects, name) == current->subjects.end() &&
          current->subjects.size() < options_.max_entries)
        current->subjects.push_back(name);
      add_entry(
          *current,
          {.moment = subject.bad_since, .kind = "begin", .subject = name, .text = subject.text});
      changed = true;
    }
    ++it;
  }
  auto* const current = find_open();
  if (current == nullptr) return;
  if (now - last_bad_ >= options_.close_after && now - current->opened >= options_.close_after) {
    current->closed = now;
    changed = true;
  }
  if (changed) save(*current);
}

void incident_log::open_incident(timestamp moment) {
  const auto day = day_text(moment);
  std::uint64_t number = 1;
  for (const auto& each : incidents_) number = std::max(number, incident_number(each.id, day) + 1);
  const auto text = std::to_string(number);
  incidents_.push_back({.id = day + (text.size() < 2 ? "-0" : "-") + text, .opened = moment});
  while (incidents_.size() > options_.kept) incidents_.pop_front();
}

void incident_log::add_entry(incident& target, incident_entry entry) const {
  if (target.timeline.size() >= options_.max_entries) {
    ++target.left_out;
    return;
  }
  // A subject is reported after `open_after`, with the time at which it became bad.
  const auto later = [](const incident_entry& a, const incident_entry& b) {
    return a.moment < b.moment;
  };
  const auto position =
      std::upper_bound(target.timeline.begin(), target.timeline.end(), entry, later);
  target.timeline.insert(position, std::move(entry));
}

void incident_log::record_action(const audit_entry& action) {
  const std::scoped_lock lock(mutex_);
  auto* const current = find_open();
  if (current == nullptr) return;
  add_entry(*current, {.moment = action.time,
                       .kind = "action",
                       .subject = action.caller,
                       .text = action.action + " " + action.subject + " (" +
                               std::to_string(action.count) + "): " + action.result});
  save(*current);
}

incident incident_log::add_note(std::string_view id, std::string_view author, std::string_view text,
                                timestamp now) {
  if (text.empty() || text.size() > options_.max_note || !is_utf8(text))
    throw error(errc::invalid_argument,
                "a note must be UTF-8 text of 1 to " + std::to_string(options_.max_note) + " bytes",
                {.path = "text"});
  const std::scoped_lock lock(mutex_);
  const auto match = std::ranges::find(incidents_, id, &incident::id);
  if (match == incidents_.end())
    throw error(errc::not_found, "there is no incident with this id; see GET /v1/incidents");
  if (match->timeline.size() >= options_.max_entries)
    throw error(errc::too_large, "the incident has " + std::to_string(options_.max_entries) +
                                     " entries, which is the limit; write the note elsewhere");
  add_entry(
      *match,
      {.moment = now, .kind = "note", .subject = std::string(author), .text = std::string(text)});
  save(*match);
  return *match;
}

void incident_log::save(const incident& changed) {
  auto json = to_json(changed);
  if (database_ != nullptr) {
    try {
      store(changed, json);
    } catch (const error&) {
      ++failures_;
    }
  }
  if (events_ != nullptr) events_->publish("incident", std::move(json));
}

/// Divides the JSON into rows, because a text column has a maximum length.
void incident_log::store(const incident& changed, std::string_view json) {
  auto session = database_->write("incidents.store");
  session.transact([&] {
    session.execute("DELETE FROM HOLDFAST_SERVE_INCIDENT WHERE INCIDENT_ID = ?",
                    {std::string_view(changed.id)});
    const auto opened = to_integer(changed.opened);
    for (std::int64_t line = 0; !json.empty(); ++line) {
      const auto part = json.substr(0, line_size(json));
      json.remove_prefix(part.size());
      session.execute(
          "INSERT INTO HOLDFAST_SERVE_INCIDENT (INCIDENT_ID, LINE_NUMBER, OPENED_ON, "
          "BODY) VALUES (?, ?, ?, ?)",
          {std::string_view(changed.id), line, opened, part});
    }
    if (incidents_.size() >= options_.kept)
      session.execute("DELETE FROM HOLDFAST_SERVE_INCIDENT WHERE OPENED_ON < ?",
                      {to_integer(incidents_.front().opened)});
  });
}

std::vector<incident> incident_log::list(std::size_t limit, std::string_view before) const {
  const std::scoped_lock lock(mutex_);
  std::vector<incident> page;
  bool begun = before.empty();
  for (auto it = incidents_.rbegin(); it != incidents_.rend() && page.size() < limit; ++it) {
    if (begun) page.push_back(*it);
    else begun = it->id == before;
  }
  return page;
}

std::optional<incident> incident_log::find(std::string_view id) const {
  const std::scoped_lock lock(mutex_);
  const auto match = std::ranges::find(incidents_, id, &incident::id);
  if (match == incidents_.end()) return std::nullopt;
  return *match;
}

std::vector<std::string> incident_log::open() const {
  const std::scoped_lock lock(mutex_);
  if (incidents_.empty() || incidents_.back().closed) return {};
  return {incidents_.back().id};
}

std::uint64_t incident_log::failures() const {
  const std::scoped_lock lock(mutex_);
  return failures_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
