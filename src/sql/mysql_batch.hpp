#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// How many rows become multi-row statements. Needs no server.
namespace HOLDFAST_NAMESPACE::sql::mysql {

/// Rows [first, last) in one statement.
struct row_range {
  std::size_t first;
  std::size_t last;

  [[nodiscard]] std::size_t size() const noexcept { return last - first; }
};

/// What a statement may have at most.
struct batch_limits {
  std::size_t rows = 256;           ///< more gains little, and costs the server memory for as long as the statement is kept
  std::size_t parameters = 65'535;  ///< the protocol's
  std::size_t packet = 0;           ///< bytes; the server's max_allowed_packet
};

/// Checks that all columns are as long as the first and as many as declared; the number of rows.
/// Throws errc::invalid_argument.
[[nodiscard]] std::size_t count_rows(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                                     std::span<const parameter> common);

/// At most so many bytes on the wire for all of it.
[[nodiscard]] std::size_t wire_size(std::span<const std::vector<parameter>> columns, std::span<const parameter> common);

/// As few statements as the limits allow. The last has exactly the rows that are left: preparing one more statement costs one round trip,
/// cutting the rest into sizes that are prepared already costs more. Throws errc::too_large when a single row is over the limit.
[[nodiscard]] std::vector<row_range> cut(std::span<const std::vector<parameter>> columns, std::span<const parameter> common,
                                         const batch_limits& limits);

/// `text` `row`, `row`, ... `tail`
[[nodiscard]] std::string text_for(const batch_statement& s, std::size_t rows);

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
