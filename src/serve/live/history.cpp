#include "serve/live/history.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using std::chrono::seconds;

/// Hours are counted since 1970. NUMBERS has 60 numbers of at most 15 characters.
sql::schema_set history_tables() {
  return {.name = "history",
          .tables = {"HOLDFAST_SERVE_HISTORY"},
          .create = [](sql::dialect_id dialect, int) {
            const auto types = state_columns(dialect);
            return std::vector<std::string>{create_state_table(
                dialect, "HOLDFAST_SERVE_HISTORY",
                "HOUR_NUMBER " + types.integer + " NOT NULL, SERIES " + types.text(64) +
                    " NOT NULL, SUBJECT " + types.text(128) + " NOT NULL, NUMBERS " +
                    types.text(1'000) + ", PRIMARY KEY (HOUR_NUMBER, SERIES, SUBJECT)")};
          }};
}

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

std::int64_t seconds_of(timestamp time) {
  return std::chrono::floor<seconds>(time).time_since_epoch().count();
}

std::string hour_text(const std::array<float, 60>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    if (!std::isfinite(values[i])) continue;
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), values[i]).ptr;
    text.append(digits.data(), end);
  }
  return text;
}

/// Ignores what is not a number: the file may have been changed.
std::array<float, 60> read_hour(std::string_view text) {
  std::array<float, 60> values{};
  values.fill(no_number);
  for (auto& value : values) {
    const auto part = text.substr(0, text.find(','));
    float number = no_number;
    const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (status == std::errc{} && end == part.data() + part.size()) value = number;
    if (part.size() == text.size()) break;
    text.remove_prefix(part.size() + 1);
  }
  return values;
}

bool is_selected(const series_id& id, const std::vector<std::string>& selection) {
  return std::ranges::any_of(selection, [&](const std::string& text) {
    if (!text.starts_with(id.name)) return false;
    if (text.size() == id.name.size()) return true;
    return text[id.name.size()] == ':' &&
           text.compare(id.name.size() + 1, text.npos, id.subject) == 0;
  });
}

[[noreturn]] void refuse_request(const std::string& message, const char* parameter) {
  throw error(errc::invalid_argument, message, {.path = parameter});
}

void check_request(const history_request& request) {
  if (request.series.empty() || request.series.size() > 100)
    refuse_request("give 1 to 100 names of series", "series");
  if (request.begin_time < timestamp{})
    refuse_request("the history does not begin before 1970", "from");
  if (request.end_time < request.begin_time) refuse_request("the end is before the begin", "to");
  if (request.end_time - request.begin_time > history::kept_time)
    refuse_request("the history has 30 days; ask for a shorter time", "from");
  if (request.step < history::fine_step || request.step > std::chrono::hours(24))
    refuse_request("the step is between 10 s and 24 h", "step");
}

/// An answer without a series has its moments, too.
void check_size(std::size_t series, std::size_t steps) {
  if (std::max<std::size_t>(series, 1) * steps > history::max_numbers)
    refuse_request(
        "the answer would have more than 20,000 numbers; ask for fewer series or a longer step",
        "step");
}

}  // namespace

/// The mean of numbers, weighted by the seconds that they stand for.
struct history::mean_value {
  double sum = 0;
  std::int64_t weight = 0;
  void add(double value, seconds duration) {
    if (!std::isfinite(value)) return;
    sum += value * static_cast<double>(duration.count());
    weight += duration.count();
  }
  [[nodiscard]] double get() const {
    return weight == 0 ? std::numeric_limits<double>::quiet_NaN()
                       : sum / static_cast<double>(weight);
  }
};

history::history(state_database* database) : database_(database) {
  if (database_ != nullptr) database_->add_tables(history_tables());
}

history::series_data* history::find_or_add(const series_id& id, bool is_wanted) {
  const auto it = series_.find(id);
  if (it != series_.end()) return &it->second;
  if (!is_wanted || series_.size() >= max_series || id.name.size() > 64 || id.subject.size() > 128)
    return nullptr;
  auto& data = series_[id];
  data.fine.assign(fine_slots, no_number);
  data.hour.fill(no_number);
  return &data;
}

void history::add(timestamp moment, const std::vector<series_value>& values) {
  const auto slot = seconds_of(moment) / fine_step.count();
  const auto minute = seconds_of(moment) / 60;
  std::vector<stored_hour> rows;
  // Rows of a minute are written before those of the next, by whichever thread comes first.
  const std::scoped_lock in_order(store_mutex_);
  {
    const std::scoped_lock lock(mutex_);
    if (slot < slot_ || (slot_ != 0 && slot == slot_)) return;
    if (slot_ == 0) {
      first_slot_ = slot;
      minute_ = minute;
      load_hour(minute / 60);
    }
    if (minute != minute_) {
      finish_minute();
      rows = rows_of_hour();
      minute_ = minute;
      if (minute / 60 != hour_) {
        hour_ = minute / 60;
        for (auto& [id, data] : series_) data.hour.fill(no_number);
        forget_empty_series();
      }
    }
    // Slots that were passed over have no numbers.
    const auto passed = std::min<std::int64_t>(slot - slot_, fine_slots);
    for (auto& [id, data] : series_)
      for (std::int64_t i = 0; i < passed; ++i)
        data.fine[static_cast<std::size_t>((slot - i) % std::int64_t{fine_slots})] = no_number;
    slot_ = slot;
    for (const auto& [id, value, starts_at_zero] : values) {
      auto* const data = find_or_add(id, value != 0 || starts_at_zero);
      if (data == nullptr || !std::isfinite(value)) continue;
      data->fine[static_cast<std::size_t>(slot % std::int64_t{fine_slots})] =
          static_cast<float>(value);
      data->minute_sum += value;
      ++data->minute_count;
    }
  }
  if (!rows.empty()) store(rows, minute / 60 - std::chrono::hours(kept_time).count());
}

/// Leaves room for others when a point or an outbox has gone. Its older numbers are in the
/// database.
void history::forget_empty_series() {
  std::erase_if(series_, [](const auto& entry) {
    return std::ranges::none_of(entry.second.fine,
                                [](float value) { return std::isfinite(value); });
  });
}

/// The first minutes of the hour may be in the database, from before a restart.
void history::load_hour(std::int64_t hour) {
  hour_ = hour;
  if (database_ == nullptr) return;
  try {
    for (const auto& row : load(hour, hour, {})) {
      if (auto* const data = find_or_add(row.id)) data->hour = read_hour(row.values);
    }
  } catch (const error&) {
    ++failures_;
  }
}

void history::finish_minute() {
  for (auto& [id, data] : series_) {
    if (data.minute_count > 0)
      data.hour[static_cast<std::size_t>(minute_ % 60)] =
          static_cast<float>(data.minute_sum / data.minute_count);
    data.minute_sum = 0;
    data.minute_count = 0;
  }
}

std::vector<history::stored_hour> history::rows_of_hour() const {
  std::vector<stored_hour> rows;
  for (const auto& [id, data] : series_) {
    if (std::ranges::any_of(data.hour, [](float value) { return std::isfinite(value); }))
      rows.push_back({.hour = hour_, .id = id, .values = hour_text(data.hour)});
  }
  return rows;
}

void history::store(const std::vector<stored_hour>& rows, std::int64_t oldest_hour) {
  if (database_ == nullptr) return;
  try {
    auto session = database_->write("history.store");
    session.transact([&] {
      for (const auto& row : rows) {
        session.execute(
            "DELETE FROM HOLDFAST_SERVE_HISTORY WHERE HOUR_NUMBER = ? AND SERIES = ? "
            "AND SUBJECT = ?",
            {row.hour, std::string_view(row.id.name), std::string_view(row.id.subject)});
        session.execute(
            "INSERT INTO HOLDFAST_SERVE_HISTORY (NUMBERS, HOUR_NUMBER, SERIES, "
            "SUBJECT) VALUES (?, ?, ?, ?)",
            {std::string_view(row.values), row.hour, std::string_view(row.id.name),
             std::string_view(row.id.subject)});
      }
      session.execute("DELETE FROM HOLDFAST_SERVE_HISTORY WHERE HOUR_NUMBER < ?", {oldest_hour});
    });
  } catch (const error&) {
    const std::scoped_lock lock(mutex_);
    ++failures_;
  }
}

void history::flush() {
  std::vector<stored_hour> rows;
  const std::scoped_lock in_order(store_mutex_);
  {
    const std::scoped_lock lock(mutex_);
    if (slot_ == 0) return;
    finish_minute();
    rows = rows_of_hour();
  }
  store(rows, minute_ / 60 - std::chrono::hours(kept_time).count());
}

/// The hours from `first` to `last`. An empty selection means all series.
std::vector<history::stored_hour> history::load(std::int64_t first, std::int64_t last,
                                                const std::vector<std::string>& selection) const {
  using sql::type;
  // The database selects the series, so that the rows of all others are not read.
  std::vector<sql::parameter> parameters{first, last};
  std::string names;
  for (const std::string_view text : selection) {
    const auto colon = text.find(':');
    names += names.empty() ? " AND (" : " OR ";
    names += colon == text.npos ? "SERIES = ?" : "(SERIES = ? AND SUBJECT = ?)";
    parameters.emplace_back(text.substr(0, colon));
    if (colon != text.npos) parameters.emplace_back(text.substr(colon + 1));
  }
  if (!names.empty()) names += ")";
  auto session = database_->read("history.load");
  const auto rows = session.query(
      "SELECT HOUR_NUMBER, SERIES, SUBJECT, NUMBERS FROM HOLDFAST_SERVE_HISTORY WHERE HOUR_NUMBER "
      ">= ? AND HOUR_NUMBER <= ?" +
          names + " ORDER BY HOUR_NUMBER, SERIES, SUBJECT",
      parameters, {type::integer, type::text, type::text, type::text});
  std::vector<stored_hour> hours;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    stored_hour row{.hour = integer_of(rows, i, 0),
                    .id = {.name = text_of(rows, i, 1), .subject = text_of(rows, i, 2)}};
    if (!selection.empty() && !is_selected(row.id, selection)) continue;
    row.values = text_of(rows, i, 3);
    hours.push_back(std::move(row));
  }
  return hours;
}

/// Adds the numbers in memory from the second `first` until before the second `end`.
void history::add_fine_values(const series_data& data, std::int64_t first, std::int64_t end,
                              mean_value& mean) const {
  const auto last_slot = std::min(slot_, (end - 1) / fine_step.count());
  const auto oldest = std::max(first_slot_, slot_ - std::int64_t{fine_slots} + 1);
  for (auto slot = std::max(oldest, first / fine_step.count()); slot <= last_slot; ++slot)
    mean.add(double{data.fine[static_cast<std::size_t>(slot % std::int64_t{fine_slots})]},
             fine_step);
}

history_answer history::read(const history_request& request) const {
  check_request(request);
  const auto step = request.step.count();
  const auto begin = seconds_of(request.begin_time) / step * step;
  const auto steps = static_cast<std::size_t>((seconds_of(request.end_time) - begin) / step) + 1;
  std::int64_t fine_begin = 0;  // seconds; earlier numbers are in the database
  std::set<series_id> ids;
  {
    const std::scoped_lock lock(mutex_);
    fine_begin = slot_ == 0 ? std::numeric_limits<std::int64_t>::max()
                            : std::max(first_slot_, slot_ - std::int64_t{fine_slots} + 1) *
                                  fine_step.count();
    for (const auto& [id, data] : series_)
      if (is_selected(id, request.series)) ids.insert(id);
  }
  check_size(ids.size(), steps);
  std::map<series_id, std::map<std::int64_t, std::array<float, 60>>> stored;
  if (database_ != nullptr && begin < fine_begin) {
    const auto end = begin + static_cast<std::int64_t>(steps) * step;
    for (const auto& row : load(begin / 3'600, std::min(end, fine_begin) / 3'600, request.series)) {
      ids.insert(row.id);
      stored[row.id][row.hour] = read_hour(row.values);
    }
  }
  check_size(ids.size(), steps);
  history_answer answer;
  for (std::size_t i = 0; i < steps; ++i)
    answer.moment.emplace_back(seconds(begin + static_cast<std::int64_t>(i) * step));
  const std::scoped_lock lock(mutex_);
  for (const auto& id : ids) {
    auto& series = answer.all.emplace_back();
    series.id = id;
    const auto data = series_.find(id);
    const auto hours = stored.find(id);
    for (std::size_t i = 0; i < steps; ++i) {
      const auto first = begin + static_cast<std::int64_t>(i) * step;
      mean_value mean;
      if (hours != stored.end() && first < fine_begin) {
        for (auto minute = first / 60; minute * 60 < std::min(first + step, fine_begin); ++minute) {
          const auto hour = hours->second.find(minute / 60);
          if (hour != hours->second.end())
            mean.add(double{hour->second[static_cast<std::size_t>(minute % 60)]},
                     std::chrono::minutes(1));
        }
      }
      if (data != series_.end()) add_fine_values(data->second, first, first + step, mean);
      series.values.push_back(mean.get());
    }
  }
  return answer;
}

std::uint64_t history::failures() const {
  const std::scoped_lock lock(mutex_);
  return failures_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
