#include "outbox/sql/lane_table.hpp"

#include <holdfast/error.hpp>

#include "outbox/sql/remembered_ids.hpp"

#include <algorithm>
#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// `effect_marks` is an expression for lane_row::has_effect_marks.
named_statement select_lane(const statement_builder& builder, std::string_view lock,
                            const std::string& effect_marks = "0") {
  using enum sql::type;
  return builder.statement("SELECT {now_us}, o.PAUSED, o.OWNER, o.UNTIL, o.FENCE, o.TOKEN, " +
                               effect_marks + " FROM {lanes} o WHERE o.LANE = :lane " +
                               std::string(lock),
                           {integer, integer, text, integer, integer, integer, integer});
}

/// One lookup in the index of times.
std::string count_effect_marks() {
  return "(SELECT COUNT(*) FROM (SELECT e.SEQ FROM {events} e WHERE e.LANE = :lane AND "
         "e.PLACE = {remembered} AND e.PLACE <> {queued} AND e.AT = " +
         std::to_string(with_event) + " LIMIT 1) a)";
}

}  // namespace

named_statement count_lanes_statement(const statement_builder& builder) {
  // Smaller numbers are not lanes: open.cpp stores the prefix in such a row.
  return builder.statement("SELECT COUNT(*) FROM {lanes} WHERE LANE >= 0", {sql::type::integer});
}

lane_table::lane_table(const statement_builder& builder, std::size_t lanes,
                       std::shared_ptr<const clock> local_clock)
    : clock_histories_(lanes),
      local_clock_(builder.sqlite() ? std::move(local_clock) : nullptr),
      read_shared_(select_lane(builder, "{for_share}")),
      read_settling_(select_lane(builder, "{for_share}", count_effect_marks())),
      read_exclusive_(select_lane(builder, "{for_update}")),
      write_(builder.statement(
          "UPDATE {lanes} SET PAUSED = :paused, OWNER = :owner/text, UNTIL = :until, "
          "FENCE = :fence, TOKEN = :token WHERE LANE = :lane")),
      read_clock_(builder.statement("SELECT {now_ms}", {sql::type::integer})) {}

lane_row lane_table::read(const lane_session& session, lane_access access) const {
  const auto& statement = access == lane_access::shared     ? read_shared_
                          : access == lane_access::settling ? read_settling_
                                                            : read_exclusive_;
  const auto rows = statement.query(session);
  if (rows.empty())
    throw error(errc::invalid_argument, "the outbox has no lane " + std::to_string(session.lane));
  row_reader reader(rows);
  lane_row row;
  row.now_us = reader.integer();
  // A damaged number is read as 0: it must not stop the lane for good.
  const auto checked = [&](std::int64_t most) {
    const auto number = reader.optional_integer();
    if (number && *number >= 0 && *number <= most) return *number;
    row.has_bad_number = true;
    return std::int64_t{0};
  };
  row.paused = checked(1) != 0;
  row.lock_owner = reader.text();
  row.locked_until = checked(max_time_ms);
  row.lock_fence = checked(max_token);
  row.last_token = checked(max_token);
  row.has_effect_marks = reader.integer() != 0;
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

bool lane_table::clock_was_ahead(std::size_t lane, std::int64_t now_ms) const {
  constexpr std::int64_t watch_time = 60'000;
  constexpr std::int64_t watch_interval = 1000;
  // Operations of several threads may read the clock in another order than they get here.
  constexpr std::int64_t tolerance = 100;
  auto& history = clock_histories_.at(lane);
  const std::scoped_lock lock(history.mutex);
  const bool is_first = history.latest == 0;
  if (now_ms + tolerance < history.latest) {
    history.watch_until = now_ms + watch_time;
    history.next_watch = history.latest = now_ms;
  }
  history.latest = std::max(history.latest, now_ms);
  const bool is_time = now_ms < history.watch_until && now_ms >= history.next_watch;
  if (is_time) history.next_watch = now_ms + watch_interval;
  return is_first || is_time;
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
