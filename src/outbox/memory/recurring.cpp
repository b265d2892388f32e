// Recurring events of an outbox in memory.

#include <holdfast/error.hpp>

#include "outbox/memory/backend.hpp"

#include <algorithm>
#include <tuple>

namespace HOLDFAST_NAMESPACE::detail::outbox {

recurrence_page memory_backend::read_recurrences(std::size_t lane_number,
                                                 const recurrence_query& query) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  recurrence_page page{.now = timestamp_at(now_ms())};
  std::vector<const stored_recurrence*> selected;
  for (const auto& [name, stored] : lane.recurring) {
    const auto wait = std::max(std::chrono::ceil<std::chrono::milliseconds>(stored.due - page.now),
                               std::chrono::milliseconds(0));
    page.next = std::min(wait, page.next.value_or(wait));
    bool matches = false;
    switch (query.selection) {
      case recurrence_query::kind::name:
        matches = name == query.name;
        break;
      case recurrence_query::kind::due:
        matches = stored.due <= page.now || stored.due > page.now + query.horizon;
        break;
      case recurrence_query::kind::all:
        matches = name > query.name;
        break;
    }
    if (matches) selected.push_back(&stored);
  }
  if (query.selection == recurrence_query::kind::due)
    std::ranges::sort(selected, {}, [](const stored_recurrence* stored) {
      return std::tie(stored->due, stored->name);
    });
  if (selected.size() > query.most) selected.resize(query.most);
  for (const auto* stored : selected) page.recurrences.push_back(*stored);
  return page;
}

update_status memory_backend::update_recurrence(std::size_t lane_number,
                                                const recurrence_update& update,
                                                const publish_terms& terms) {
  require(terms.durability);
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto stored = lane.recurring.find(update.name);
  const bool exists = stored != lane.recurring.end();
  const auto text = exists ? std::optional(stored->second.text) : std::nullopt;
  if (text != update.expected) {
    const auto replacement =
        update.replacement ? std::optional(update.replacement->text) : std::nullopt;
    return text == replacement ? update_status::done : update_status::conflict;
  }
  if (!exists && update.replacement && lane.recurring.size() >= max_recurrences) {
    throw error(errc::too_large,
                "the lane of this recurring event has 1000 recurring events; cancel some, or use "
                "more lanes");
  }
  if (update.replacement) lane.recurring[update.name] = *update.replacement;
  else if (exists) lane.recurring.erase(stored);
  const auto now = now_ms();
  const auto first_before = lane.pending.first_score();
  for (const auto& event : update.events) lane.add(event, now, terms, now);
  wake_if_earlier(lane, first_before);
  return update_status::done;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
