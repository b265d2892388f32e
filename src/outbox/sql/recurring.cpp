#include "outbox/sql/recurring.hpp"

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

constexpr const char* select_recurrences =
    "SELECT o.TICKET, o.EXPIRES, o.BODY FROM {tickets} o WHERE o.LANE = :row_lane ";

std::vector<sql::type> recurrence_types() {
  return {sql::type::text, sql::type::integer, sql::type::text};
}

timestamp timestamp_of_row(std::int64_t ms) {
  return timestamp(std::chrono::milliseconds(std::clamp<std::int64_t>(ms, 0, max_time_ms)));
}

}  // namespace

sql_recurring::sql_recurring(const statement_builder& builder, const outbox_tables& tables,
                             const sql_publisher& publisher, const sql_wake& wake)
    : tables_(tables),
      publisher_(publisher),
      wake_(wake),
      find_(builder.statement(std::string(select_recurrences) + "AND o.TICKET = :name/text",
                              recurrence_types())),
      due_(builder.statement(std::string(select_recurrences) +
                                 "AND (o.EXPIRES <= :now OR o.EXPIRES > :latest) "
                                 "ORDER BY o.EXPIRES, o.TICKET LIMIT :limit",
                             recurrence_types())),
      scan_(builder.statement(std::string(select_recurrences) +
                                  "AND o.TICKET > :name/text ORDER BY o.TICKET LIMIT :limit",
                              recurrence_types())),
      first_(builder.statement("SELECT MIN(o.EXPIRES) FROM {tickets} o WHERE o.LANE = :row_lane",
                               {sql::type::integer})),
      count_(builder.statement("SELECT COUNT(*) FROM {tickets} o WHERE o.LANE = :row_lane",
                               {sql::type::integer})),
      lock_(builder.statement("SELECT o.BODY FROM {tickets} o WHERE o.LANE = :row_lane AND "
                              "o.TICKET = :name/text {for_update}",
                              {sql::type::text})),
      insert_(builder.statement("INSERT INTO {tickets} (LANE, TICKET, EXPIRES, EVENT_KEY, BODY) "
                                "VALUES (:row_lane, :name/text, :expires, '', :body/text)" +
                                builder.keep_existing("LANE"))),
      change_(builder.statement("UPDATE {tickets} SET EXPIRES = :expires, BODY = :body/text "
                                "WHERE LANE = :row_lane AND TICKET = :name/text")),
      erase_(builder.statement(
          "DELETE FROM {tickets} WHERE LANE = :row_lane AND TICKET = :name/text")) {}

recurrence_page sql_recurring::read(const lane_session& session,
                                    const recurrence_query& query) const {
  const auto now_ms = tables_.lanes.now_ms(session);
  const auto row_lane = recurring_lane(session.lane);
  const std::string_view name = query.name;
  recurrence_page page{.now = timestamp_of_row(now_ms)};
  const auto select = [&] {
    switch (query.selection) {
      case recurrence_query::kind::name:
        return find_.query(session, {{"row_lane", row_lane}, {"name", name}});
      case recurrence_query::kind::due:
        return due_.query(session, {{"row_lane", row_lane},
                                    {"now", now_ms},
                                    {"latest", now_ms + query.horizon.count()},
                                    {"limit", query.most}});
      case recurrence_query::kind::all:
        break;
    }
    return scan_.query(session, {{"row_lane", row_lane}, {"name", name}, {"limit", query.most}});
  };
  const auto first = first_integer(first_.query(session, {{"row_lane", row_lane}}));
  if (!first) return page;
  const auto rows = select();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    auto& stored = page.recurrences.emplace_back();
    stored.name = reader.text();
    stored.due = timestamp_of_row(reader.integer());
    stored.text = reader.text();
  }
  page.next =
      std::chrono::milliseconds(std::max<std::int64_t>(std::min(*first, max_time_ms) - now_ms, 0));
  return page;
}

std::optional<std::string> sql_recurring::lock_text(const lane_session& session,
                                                    std::string_view name) const {
  const auto rows =
      lock_.query(session, {{"row_lane", recurring_lane(session.lane)}, {"name", name}});
  if (rows.empty()) return std::nullopt;
  return row_reader(rows).text();
}

update_status sql_recurring::update(const lane_session& session, const recurrence_update& update,
                                    const publish_terms& terms) const {
  const auto text = lock_text(session, update.name);
  if (text != update.expected) {
    const auto replacement =
        update.replacement ? std::optional(update.replacement->text) : std::nullopt;
    return text == replacement ? update_status::done : update_status::conflict;
  }
  // A caller may have published for the key in a transaction that is still open. To wait for it
  // would stop the whole lane.
  stripe_set stripes;
  for (const auto& event : update.events) {
    if (!event.key.empty()) stripes.insert(stripe_of(event.key));
  }
  if (tables_.locks.try_lock(session, stripes).size() < stripes.size()) return update_status::busy;
  if (!write(session, update)) return update_status::conflict;
  if (!update.events.empty()) publish(session, update.events, terms);
  wake_.notify(session);
  return update_status::done;
}

bool sql_recurring::write(const lane_session& session, const recurrence_update& update) const {
  const auto row_lane = recurring_lane(session.lane);
  const std::string_view name = update.name;
  if (!update.replacement) {
    if (update.expected) erase_.execute(session, {{"row_lane", row_lane}, {"name", name}});
    return true;
  }
  const auto expires = std::chrono::floor<std::chrono::milliseconds>(update.replacement->due)
                           .time_since_epoch()
                           .count();
  const std::string_view body = update.replacement->text;
  const argument arguments[]{
      {"row_lane", row_lane}, {"name", name}, {"expires", expires}, {"body", body}};
  if (update.expected) {
    change_.execute(session, arguments);
    return true;
  }
  const auto count = first_integer(count_.query(session, {{"row_lane", row_lane}})).value_or(0);
  if (count >= static_cast<std::int64_t>(outbox_backend::max_recurrences)) {
    throw error(errc::too_large,
                "the lane of this recurring event has 1000 recurring events; cancel some, or use "
                "more lanes");
  }
  insert_.execute(session, arguments);
  return lock_text(session, update.name) == update.replacement->text;
}

void sql_recurring::publish(const lane_session& session, std::span<const event> events,
                            const publish_terms& terms) const {
  std::vector<stored_event> entries;
  entries.reserve(events.size());
  for (const auto& event : events) {
    entries.push_back(
        {.id = event.id, .key = event.key, .entry = stored_entry(event.id, entry_body(event))});
  }
  auto without_quota = terms;
  without_quota.quota = {};
  lane_counters changes;
  (void)publisher_.insert(session, entries, without_quota, changes);
  tables_.counters.add(session, changes);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
