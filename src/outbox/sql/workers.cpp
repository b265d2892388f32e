#include "outbox/sql/workers.hpp"

#include <algorithm>
#include <functional>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// Number of the row of a worker. -1 is the row of the prefix; see open.cpp.
std::int64_t row_of_worker(std::string_view worker) {
  const auto hash = static_cast<std::uint64_t>(std::hash<std::string_view>{}(worker));
  return -2 - static_cast<std::int64_t>(hash >> 2U);
}

}  // namespace

sql_workers::sql_workers(const statement_builder& builder, const lane_table& lanes)
    : lanes_(lanes),
      insert_(builder.statement("INSERT INTO {lanes} (LANE, OWNER, UNTIL) "
                                "VALUES (:row, :worker/text, :until)" +
                                builder.keep_existing("LANE"))),
      update_(builder.statement("UPDATE {lanes} SET UNTIL = :until "
                                "WHERE LANE = :row AND OWNER = :worker/text")),
      erase_(builder.statement("DELETE FROM {lanes} WHERE LANE = :row AND UNTIL <= :now")),
      read_(builder.statement("SELECT o.LANE, o.OWNER, o.UNTIL FROM {lanes} o WHERE o.LANE < -1 "
                              "ORDER BY o.LANE",
                              {sql::type::integer, sql::type::text, sql::type::integer})) {}

std::vector<std::string> sql_workers::announce(const lane_session& session, std::string_view worker,
                                               std::chrono::milliseconds ttl) const {
  const auto now = lanes_.now_ms(session);
  const auto own_row = row_of_worker(worker);
  const auto until = now + ttl.count();
  std::vector<std::string> names;
  bool is_recorded = false;
  std::vector<std::int64_t> ended;
  const auto rows = read_.query(session);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_reader reader(rows, i);
    const auto row = reader.integer();
    auto name = reader.text();
    const bool is_own = row == own_row && name == worker;
    is_recorded = is_recorded || is_own;
    if (!is_own && reader.integer() <= now) ended.push_back(row);
    else if (!is_own) names.push_back(std::move(name));
  }
  if (ttl.count() > 0) {
    names.emplace_back(worker);
    const auto& statement = is_recorded ? update_ : insert_;
    statement.execute(session, {{"row", own_row}, {"worker", worker}, {"until", until}});
  } else if (is_recorded) {
    update_.execute(session, {{"row", own_row}, {"worker", worker}, {"until", now}});
    ended.push_back(own_row);
  }
  // One row at a time and in order: a range of rows would lock those of other workers.
  std::ranges::sort(ended);
  for (const auto row : ended) erase_.execute(session, {{"row", row}, {"now", now}});
  std::ranges::sort(names);
  return names;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
