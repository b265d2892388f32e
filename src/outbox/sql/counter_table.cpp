#include "outbox/sql/counter_table.hpp"

#include <iterator>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// Rows that one step of a compaction replaces.
constexpr std::size_t compaction_size = 2000;
/// Steps of one compaction: others may insert rows faster than a single step removes them.
constexpr int compaction_steps = 4;

/// Numbers of rows, column N.
row_list counter_rows() { return {"rows", {{"counter_row"}}}; }

named_statement insert_counters(const statement_builder& builder) {
  std::string columns;
  std::string values;
  for (const auto& column : counter_columns) {
    columns.append(", ").append(column.name);
    values.append(", :").append(column.name);
  }
  return builder.statement("INSERT INTO {counters} (LANE" + columns + ") VALUES (:lane" + values +
                           ")");
}

/// `COUNT(*)` and the sum of each counter.
named_statement select_sums(const statement_builder& builder, const std::string& source) {
  std::string sums;
  for (const auto& column : counter_columns)
    sums += ", " + builder.sum("o." + std::string(column.name));
  return builder.statement(
      "SELECT COUNT(*)" + sums + " " + source,
      std::vector<sql::type>(1 + std::size(counter_columns), sql::type::integer));
}

lane_counters read_sums(const sql::rows& rows) {
  lane_counters sums;
  if (rows.empty()) return sums;
  row_reader reader(rows);
  (void)reader.integer();  // COUNT(*)
  for (const auto& column : counter_columns) sums.*column.counter = reader.integer();
  return sums;
}

}  // namespace

counter_table::counter_table(const statement_builder& builder)
    : insert_(insert_counters(builder)),
      sum_lane_(select_sums(builder, "FROM {counters} o WHERE o.LANE = :lane")),
      select_oldest_(builder.statement(
          "SELECT o.N FROM {counters} o WHERE o.LANE = :lane ORDER BY o.N LIMIT :limit "
          "{skip_locked}",
          {sql::type::integer})),
      sum_rows_(select_sums(builder, builder.join("{counters}", "N", counter_rows()))),
      erase_rows_(builder.statement(builder.erase("{counters}", "N", counter_rows()))) {}

void counter_table::add(const lane_session& session, const lane_counters& changes) const {
  if (changes == lane_counters{}) return;
  std::vector<argument> arguments;
  for (const auto& column : counter_columns)
    arguments.emplace_back(column.name, changes.*column.counter);
  insert_.execute(session, arguments);
}

lane_counters counter_table::sum(const lane_session& session) const {
  return read_sums(sum_lane_.query(session));
}

void counter_table::compact(const lane_session& session) const {
  for (int step = 0; step < compaction_steps; ++step) {
    const auto rows = integers(select_oldest_.query(session, {{"limit", compaction_size}}));
    if (rows.size() < 2) return;
    const auto list = json_column(rows);
    const auto sums = read_sums(sum_rows_.query(session, {{"rows", list}}));
    erase_rows_.execute(session, {{"rows", list}});
    add(session, sums);
    if (rows.size() < compaction_size) return;
  }
}

void counter_table::rewrite(const lane_session& session) const {
  while (true) {
    const auto rows = integers(select_oldest_.query(session, {{"limit", compaction_size}}));
    if (rows.empty()) return;
    const auto list = json_column(rows);
    const auto sums = read_sums(sum_rows_.query(session, {{"rows", list}}));
    erase_rows_.execute(session, {{"rows", list}});
    add(session, sums);
    if (rows.size() < compaction_size) return;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
