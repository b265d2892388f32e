#include "outbox/sql/row_inserts.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

row_inserts::row_inserts(const statement_builder& builder, std::string_view insert,
                         std::string_view row, std::string_view conflict,
                         std::vector<sql::type> columns) {
  for (const std::size_t rows : {64U, 16U, 4U, 1U}) {
    std::string text(insert);
    std::vector<sql::type> types;
    for (std::size_t i = 0; i < rows; ++i) {
      text.append(i == 0 ? " " : ", ").append(row);
      types.insert(types.end(), columns.begin(), columns.end());
    }
    text.append(conflict);
    auto statement = builder.statement(text).positional();
    statement.parameters = std::move(types);
    statements_.push_back({rows * columns.size(), std::move(statement)});
  }
}

std::uint64_t row_inserts::insert(const lane_session& session,
                                  std::span<const sql::parameter> values) const {
  std::uint64_t changed = 0;
  for (const auto& [size, statement] : statements_) {
    for (; values.size() >= size; values = values.subspan(size))
      changed += session.transaction.execute(statement, values.first(size)).affected;
  }
  return changed;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
