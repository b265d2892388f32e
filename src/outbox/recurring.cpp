// Recurring events of class outbox and its administration: define, cancel, list.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "outbox/checks.hpp"
#include "outbox/recurring/plan.hpp"
#include "outbox/state.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using detail::outbox::calendar;
using detail::outbox::outbox_state;
using detail::outbox::recurrence_definition;
using detail::outbox::recurrence_progress;
using detail::outbox::recurrence_record;

/// Another process may define or publish at the same time. Each conflict is progress of another.
constexpr int most_attempts = 100;

/// A recurring event as it is stored, and the time of the store.
struct current_recurrence {
  std::optional<stored_recurrence> stored{};
  std::chrono::sys_seconds now{};
};

current_recurrence find_recurrence(const outbox_state& state, std::size_t lane,
                                   std::string_view name) {
  auto page = state.backend().read_recurrences(
      lane, {.selection = recurrence_query::kind::name, .name = std::string(name), .most = 1});
  current_recurrence current{.now = std::chrono::floor<std::chrono::seconds>(page.now)};
  if (!page.recurrences.empty()) current.stored = std::move(page.recurrences.front());
  return current;
}

/// Returns the text that was removed, if there was one.
std::optional<std::string> remove_recurrence(const outbox_state& state, std::size_t lane,
                                             std::string_view name) {
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto current = find_recurrence(state, lane, name);
    if (!current.stored) return std::nullopt;
    const recurrence_update update{.name = std::string(name), .expected = current.stored->text};
    if (state.backend().update_recurrence(lane, update, state.terms()) == update_status::done)
      return std::move(current.stored->text);
  }
  throw error(errc::unavailable, "the recurring event changes all the time; try again",
              {.transient = true});
}

/// What a stored text says, or nothing if it is damaged. Throws errc::unsupported_type for a text
/// of a later version, which must not be overwritten.
std::optional<recurrence_record> read_unless_damaged(const std::string& text) {
  try {
    return detail::outbox::read_recurrence(text);
  } catch (const error& problem) {
    if (problem.code() != errc::malformed) throw;
    return std::nullopt;
  }
}

/// Writes the definition of one recurring event.
class recurrence_definer {
 public:
  recurrence_definer(const outbox_state& state, std::string_view name,
                     const recurrence_definition& definition, const calendar& times)
      : state_(state),
        name_(name),
        definition_(definition),
        times_(times),
        lane_(state.lane_of(
            definition.event.key.empty() ? name : std::string_view(definition.event.key))) {}

  [[nodiscard]] std::size_t lane() const noexcept { return lane_; }
  /// Returns nothing if another process was faster.
  std::optional<recur_status> try_define() {
    const auto current = find_recurrence(state_, lane_, name_);
    if (!current.stored) return add(current.now);
    const auto record = read_unless_damaged(current.stored->text);
    if (record && record->definition == definition_)
      return refresh(current.stored->text, *record, current.now);
    auto progress = record ? record->progress : recurrence_progress();
    const bool same_times = record && record->definition.cron == definition_.cron &&
                            record->definition.options.zone == definition_.options.zone;
    if (!same_times) progress = detail::outbox::restart_progress(progress, current.now);
    if (!write(current.stored->text, std::move(progress), current.now)) return std::nullopt;
    report_change(record);
    return recur_status::changed;
  }

 private:
  /// Its event may have had another key before, whose lane is another one. It is removed there
  /// first: two would publish each event twice.
  std::optional<recur_status> add(std::chrono::sys_seconds now) {
    for (std::size_t lane = 0; lane < state_.lanes(); ++lane) {
      if (lane == lane_) continue;
      if (const auto text = remove_recurrence(state_, lane, name_))
        before_ = read_unless_damaged(*text);
    }
    const auto before = before_ ? before_->progress : recurrence_progress();
    if (!write(std::nullopt, detail::outbox::restart_progress(before, now), now))
      return std::nullopt;
    if (!before_) return recur_status::added;
    report_change(before_);
    return recur_status::changed;
  }

  /// The time zone data may have changed since the next due time was written.
  std::optional<recur_status> refresh(const std::string& text, const recurrence_record& record,
                                      std::chrono::sys_seconds now) {
    if (times_.next(record.progress.after) == record.progress.next) return recur_status::unchanged;
    if (!write(text, record.progress, now)) return std::nullopt;
    return recur_status::unchanged;
  }

  bool write(std::optional<std::string> expected, recurrence_progress progress,
             std::chrono::sys_seconds now) {
    progress.next = times_.next(progress.after);
    progress.step = new_event_id();
    const recurrence_update update{
        .name = name_,
        .expected = std::move(expected),
        .replacement = stored_recurrence{
            .name = name_,
            .due = detail::outbox::review_time(progress, now),
            .text = detail::outbox::recurrence_text({definition_, std::move(progress)})}};
    return state_.backend().update_recurrence(lane_, update, state_.terms()) == update_status::done;
  }

  void report_change(const std::optional<recurrence_record>& before) const {
    state_.log.write(
        log_level::warning,
        "a recurring event has a new definition, which replaces that of another "
        "program or version",
        {{"name", name_},
         {"before", before ? before->definition.cron + " " + before->definition.options.zone
                           : std::string("damaged")},
         {"now", definition_.cron + " " + definition_.options.zone}});
  }

  const outbox_state& state_;
  std::string name_;
  const recurrence_definition& definition_;
  const calendar& times_;
  std::size_t lane_;
  /// What was removed from another lane.
  std::optional<recurrence_record> before_{};
};

recurrence describe(const stored_recurrence& stored) {
  recurrence result{.name = stored.name};
  try {
    auto [definition, progress] = detail::outbox::read_recurrence(stored.text);
    result.cron = std::move(definition.cron);
    result.options = std::move(definition.options);
    result.event = std::move(definition.event);
    result.next = progress.next;
    result.last = progress.last;
    result.last_id = std::move(progress.last_id);
    result.published = progress.published;
    result.skipped = progress.skipped;
    (void)calendar(result.cron, detail::time_zone::load(result.options.zone));
  } catch (const error& problem) {
    result.problem = problem.what();
  }
  return result;
}

}  // namespace

recur_status outbox::recur(std::string_view name, std::string_view cron, recurrence_options options,
                           holdfast::event event) const {
  const recurrence_definition definition{
      .cron = std::string(cron), .options = std::move(options), .event = std::move(event)};
  detail::outbox::check_event(definition.event, state_->options);
  detail::outbox::check_recurrence(name, definition, state_->options.inline_limit);
  const calendar times(cron, detail::time_zone::load(definition.options.zone));
  recurrence_definer definer(*state_, name, definition, times);
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const auto status = definer.try_define();
    if (!status) continue;
    if (*status != recur_status::unchanged) wake(definer.lane());
    return *status;
  }
  throw error(errc::unavailable,
              "other programs define this recurring event all the time; let them agree on one "
              "definition",
              {.transient = true});
}

bool outbox::cancel_recurring(std::string_view name) const {
  detail::outbox::check_name("name of a recurring event", name, false);
  bool existed = false;
  for (std::size_t lane = 0; lane < lanes(); ++lane)
    existed |= remove_recurrence(*state_, lane, name).has_value();
  return existed;
}

std::vector<recurrence> outbox_admin::recurring() const {
  std::vector<recurrence> all;
  for (std::size_t lane = 0; lane < state_->lanes(); ++lane) {
    recurrence_query query{.selection = recurrence_query::kind::all};
    for (;;) {
      const auto page = state_->backend().read_recurrences(lane, query);
      for (const auto& stored : page.recurrences) all.push_back(describe(stored));
      if (page.recurrences.size() < query.most) break;
      query.name = page.recurrences.back().name;
    }
  }
  std::ranges::sort(all, {}, &recurrence::name);
  return all;
}

}  // namespace HOLDFAST_NAMESPACE
