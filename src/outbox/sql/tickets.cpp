#include "outbox/sql/tickets.hpp"

#include "outbox/sql/event_table.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {

ticket_statements make_ticket_statements(const statement_builder& builder) {
  using enum sql::type;
  const std::string select =
      "SELECT o.TICKET, o.EXPIRES, o.EVENT_KEY, o.BODY FROM {tickets} o WHERE o.LANE = :lane ";
  const std::vector<sql::type> ticket_types{text, integer, text, text};
  const auto list = builder.rows({"tickets", {{"ticket", row_list::type::name}, {"lane"}}});
  return {
      .find = builder.statement(
          "SELECT o.EXPIRES FROM {tickets} o WHERE o.LANE = :lane AND o.TICKET = :ticket/text "
          "{for_update}",
          {integer}),
      .insert = builder.statement("INSERT INTO {tickets} (LANE, TICKET, EXPIRES, EVENT_KEY, BODY) "
                                  "VALUES (:lane, :ticket/text, :expires, :key/text, :body/text)"),
      .update = builder.statement(
          "UPDATE {tickets} SET EXPIRES = :expires, EVENT_KEY = :key/text, BODY = :body/text "
          "WHERE LANE = :lane AND TICKET = :ticket/text"),
      .erase =
          builder.statement("DELETE FROM {tickets} WHERE LANE = :lane AND TICKET = :ticket/text"),
      .lock_expired = builder.statement(
          select + "AND o.EXPIRES <= :now ORDER BY o.EXPIRES, o.TICKET LIMIT :limit {skip_locked}",
          ticket_types),
      .erase_list = builder.statement(
          builder.mysql()
              ? "DELETE o FROM " + list +
                    " STRAIGHT_JOIN {tickets} o FORCE INDEX (PRIMARY) "
                    "ON o.LANE = g.lane AND o.TICKET = g.ticket"
              : "DELETE FROM {tickets} WHERE (LANE, TICKET) IN (SELECT g.lane, g.ticket FROM " +
                    list + ")"),
      .first_expiry = builder.statement(
          "SELECT MIN(o.EXPIRES) FROM {tickets} o WHERE o.LANE = :lane", {integer}),
      .scan = builder.statement(
          select + "AND o.TICKET > :after/text ORDER BY o.TICKET LIMIT :limit", ticket_types),
  };
}

std::vector<ticket_row> read_ticket_rows(const sql::rows& rows) {
  std::vector<ticket_row> tickets;
  tickets.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    auto& ticket = tickets.emplace_back();
    ticket.name = reader.text();
    // A damaged time must not overflow.
    ticket.expires = std::clamp<std::int64_t>(reader.integer(), 0, max_time_ms + 1);
    ticket.key = reader.text();
    ticket.body = reader.text();
  }
  return tickets;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
