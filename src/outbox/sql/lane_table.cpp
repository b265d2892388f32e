#include "outbox/sql/lane_table.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

named_statement select_lane(const statement_builder& builder, std::string_view lock) {
  using enum sql::type;
  return builder.statement(
      "SELECT {now_us}, o.PAUSED, o.OWNER, o.UNTIL, o.FENCE, o.TOKEN FROM {lanes} o "
      "WHERE o.LANE = :lane " +
          std::string(lock),
      {integer, integer, text, integer, integer, integer});
}

}  // namespace

named_statement count_lanes_statement(const statement_builder& builder) {
  // Smaller numbers are not lanes: open.cpp stores the prefix in such a row.
  return builder.statement("SELECT COUNT(*) FROM {lanes} WHERE LANE >= 0", {sql::type::integer});
}

lane_table::lane_table(const statement_builder& builder, std::shared_ptr<const clock> local_clock)
    : local_clock_(builder.sqlite() ? std::move(local_clock) : nullptr),
      read_shared_(select_lane(builder, "{for_share}")),
      read_exclusive_(select_lane(builder, "{for_update}")),
      write_(builder.statement(
          "UPDATE {lanes} SET PAUSED = :paused, OWNER = :owner/text, UNTIL = :until, "
          "FENCE = :fence, TOKEN = :token WHERE LANE = :lane")),
      read_clock_(builder.statement("SELECT {now_ms}", {sql::type::integer})) {}

lane_row lane_table::read(const lane_session& session, lane_access access) const {
  const auto& statement = access == lane_access::shared ? read_shared_ : read_exclusive_;
  const auto rows = statement.query(session);
  if (rows.empty())
    throw error(errc::invalid_argument, "the outbox has no lane " + std::to_string(session.lane));
  row_reader reader(rows);
  lane_row row;
  row.now_us = reader.integer();
  row.paused = reader.integer() != 0;
  row.lock_owner = reader.text();
  row.locked_until = reader.integer();
  row.lock_fence = reader.integer();
  row.last_token = reader.integer();
  if (local_clock_) row.now_us = local_clock_->now().time_since_epoch().count();
  row.now_ms = row.now_us / 1000;
  return row;
}

void lane_table::write(const lane_session& session, const lane_row& row) const {
  write_.execute(session, {{"paused", row.paused},
                           {"owner", row.lock_owner},
                           {"until", row.locked_until},
                           {"fence", row.lock_fence},
                           {"token", row.last_token}});
}

fence lane_table::new_token(const lane_session& session, lane_row& row, fence last) const {
  const fence token = std::max({row.last_token + 1, row.now_us, last + 1});
  if (local_clock_) {
    row.last_token = token;
    write(session, row);
  }
  return token;
}

std::int64_t lane_table::now_ms(const lane_session& session) const {
  return local_clock_ ? now_ms(0) : first_integer(read_clock_.query(session)).value_or(0);
}

std::int64_t lane_table::now_ms(std::int64_t selected) const {
  if (!local_clock_) return selected;
  return std::chrono::floor<std::chrono::milliseconds>(local_clock_->now())
      .time_since_epoch()
      .count();
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
