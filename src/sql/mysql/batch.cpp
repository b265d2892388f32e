#include "sql/mysql/batch.hpp"

#include <holdfast/error.hpp>

#include "sql/mysql/values.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

/// More than the header and the flags of a packet need.
constexpr std::size_t overhead = 1024;

std::size_t total_wire_size(std::span<const parameter> values) {
  std::size_t sum = 0;
  for (const auto& value : values) sum += wire_size(value);
  return sum;
}

}  // namespace

std::size_t wire_size(std::span<const std::vector<parameter>> columns,
                      std::span<const parameter> common) {
  std::size_t sum = overhead + total_wire_size(common);
  for (const auto& column : columns) sum += total_wire_size(column);
  return sum;
}

std::vector<row_range> divide_rows(std::span<const std::vector<parameter>> columns,
                                   std::span<const parameter> common, const batch_limits& limits) {
  const auto fixed_size = overhead + total_wire_size(common);
  const auto row_parameters =
      limits.parameters > common.size() ? limits.parameters - common.size() : 0;
  const auto row_limit = std::min(limits.rows, row_parameters / columns.size());
  if (row_limit == 0)
    throw error(errc::too_large,
                "one row of the batch has more parameters than a statement may have");

  std::vector<row_range> parts;
  const auto rows = columns.front().size();
  std::size_t first = 0;
  std::size_t bytes = fixed_size;
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t row_size = 0;
    for (const auto& column : columns) row_size += wire_size(column[row]);
    if (fixed_size + row_size > limits.packet) {
      throw error(errc::too_large, "row " + std::to_string(row) + " of the batch needs " +
                                       std::to_string(fixed_size + row_size) +
                                       " bytes, the server takes " + std::to_string(limits.packet) +
                                       "; raise its max_allowed_packet");
    }
    if (row - first == row_limit || bytes + row_size > limits.packet) {
      parts.push_back({first, row});
      first = row;
      bytes = fixed_size;
    }
    bytes += row_size;
  }
  if (first < rows) parts.push_back({first, rows});
  return parts;
}

std::string multi_row_text(const batch_statement& s, std::size_t rows) {
  std::string text;
  text.reserve(s.text.size() + 1 + rows * (s.row.size() + 1) + s.tail.size() + 1);
  text.append(s.text).append(" ");
  for (std::size_t i = 0; i < rows; ++i) text.append(i == 0 ? "" : ",").append(s.row);
  return text.append(" ").append(s.tail);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
