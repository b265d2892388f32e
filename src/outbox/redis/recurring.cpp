// Recurring events of an outbox on Redis: a hash and a sorted set beside the keys of each lane.

#include <holdfast/error.hpp>

#include "outbox/redis/backend.hpp"
#include "outbox/redis/wire.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

std::string_view selection_name(recurrence_query::kind selection) {
  switch (selection) {
    case recurrence_query::kind::name:
      return "name";
    case recurrence_query::kind::due:
      return "due";
    case recurrence_query::kind::all:
      return "all";
  }
  return "all";
}

}  // namespace

redis::command redis_backend::recurring_command(std::size_t lane,
                                                const redis::script& script) const {
  auto command = command_for(lane, script);
  command.key(lane_at(lane).prefix + ":recurring").key(lane_at(lane).prefix + ":recurring-due");
  return command;
}

recurrence_page redis_backend::read_recurrences(std::size_t lane, const recurrence_query& query) {
  auto command = recurring_command(lane, scripts_.read_recurrences);
  command.arg(selection_name(query.selection)).arg(query.name);
  command.arg(query.horizon.count()).arg(query.most).idempotent();
  const auto reply = client().call(command);
  const auto& parts = reply.elements();
  recurrence_page page{.now = read_timestamp(parts.at(0).text()),
                       .next = read_duration(parts.at(1))};
  for (std::size_t i = 2; i + 2 < parts.size(); i += 3) {
    page.recurrences.push_back({.name = parts[i].text(),
                                .due = read_timestamp(parts[i + 1].text()),
                                .text = parts[i + 2].text()});
  }
  return page;
}

update_status redis_backend::update_recurrence(std::size_t lane, const recurrence_update& update,
                                               const publish_terms& terms) {
  auto command = recurring_command(lane, scripts_.update_recurrence);
  command.arg(terms.dedup_window.count()).arg(max_recurrences).arg(update.name);
  command.arg(update.expected ? 1 : 0).arg(update.expected.value_or(std::string()));
  const auto& replacement = update.replacement;
  command.arg(replacement ? 1 : 0).arg(replacement ? replacement->text : std::string());
  const auto due = replacement ? replacement->due : timestamp();
  command.arg(std::chrono::floor<std::chrono::milliseconds>(due).time_since_epoch().count());
  for (const auto& event : update.events) add_event(command, event);
  command.idempotent();
  const auto reply = run_durably(std::move(command), terms.durability);
  const auto& status = reply.text();
  if (status == "full") {
    throw error(errc::too_large,
                "the lane of this recurring event has 1000 recurring events; cancel some, or use "
                "more lanes");
  }
  return status == "done" ? update_status::done : update_status::conflict;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
