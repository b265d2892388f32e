#include "sql/mysql_batch.hpp"

#include <holdfast/error.hpp>

#include "sql/mysql_values.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::sql::mysql {

namespace {

/// Header, flags and the like of a packet.
constexpr std::size_t overhead = 1024;

std::size_t wire_size_of_all(std::span<const parameter> values) {
  std::size_t sum = 0;
  for (const auto& value : values) sum += wire_size(value);
  return sum;
}

}  // namespace

std::size_t count_rows(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common) {
  if (s.columns.empty() || columns.size() != s.columns.size()) {
    throw error(errc::invalid_argument, "the batch declares " + std::to_string(s.columns.size()) + " columns, " +
                                            std::to_string(columns.size()) + " were given; it needs at least one");
  }
  if (common.size() != s.common.size()) {
    throw error(errc::invalid_argument, "the batch declares " + std::to_string(s.common.size()) + " common parameters, " +
                                            std::to_string(common.size()) + " were given");
  }
  const auto rows = columns.front().size();
  if (std::ranges::any_of(columns, [rows](const auto& column) { return column.size() != rows; })) {
    throw error(errc::invalid_argument, "the columns of the batch are not equally long");
  }
  return rows;
}

std::size_t wire_size(std::span<const std::vector<parameter>> columns, std::span<const parameter> common) {
  std::size_t sum = overhead + wire_size_of_all(common);
  for (const auto& column : columns) sum += wire_size_of_all(column);
  return sum;
}

std::vector<row_range> cut(std::span<const std::vector<parameter>> columns, std::span<const parameter> common, const batch_limits& limits) {
  const auto rows = columns.front().size();
  const auto fixed = overhead + wire_size_of_all(common);
  const auto for_rows = limits.parameters > common.size() ? limits.parameters - common.size() : 0;
  const auto most_rows = std::min(limits.rows, for_rows / columns.size());
  if (most_rows == 0) throw error(errc::too_large, "one row of the batch has more parameters than a statement may have");

  std::vector<row_range> made;
  std::size_t first = 0;
  std::size_t bytes = fixed;
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t here = 0;
    for (const auto& column : columns) here += wire_size(column[row]);
    if (fixed + here > limits.packet) {
      throw error(errc::too_large, "row " + std::to_string(row) + " of the batch needs " + std::to_string(fixed + here) +
                                       " bytes, the server takes " + std::to_string(limits.packet) + "; raise its max_allowed_packet");
    }
    if (row - first == most_rows || bytes + here > limits.packet) {
      made.push_back({first, row});
      first = row;
      bytes = fixed;
    }
    bytes += here;
  }
  if (first < rows) made.push_back({first, rows});
  return made;
}

std::string text_for(const batch_statement& s, std::size_t rows) {
  std::string made;
  made.reserve(s.text.size() + 1 + rows * (s.row.size() + 1) + s.tail.size() + 1);
  made += s.text;
  made += ' ';
  for (std::size_t i = 0; i < rows; ++i) {
    if (i != 0) made += ',';
    made += s.row;
  }
  made += ' ';
  made += s.tail;
  return made;
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
