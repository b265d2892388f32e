#pragma once

/// \file
/// Divides the rows of a batch into multi-row statements. Does not need the client library.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// The rows [first, last) of one statement.
struct row_range {
  std::size_t first;
  std::size_t last;

  [[nodiscard]] std::size_t size() const noexcept { return last - first; }
};

/// The limits of one statement.
struct batch_limits {
  /// More rows gain little and cost the server memory as long as the statement is prepared.
  std::size_t rows = 256;
  /// The limit of the protocol.
  std::size_t parameters = 65'535;
  /// In bytes: max_allowed_packet of the server.
  std::size_t packet = 0;
};

/// An upper bound of the bytes that the whole batch needs in a packet.
[[nodiscard]] std::size_t wire_size(std::span<const std::vector<parameter>> columns,
                                    std::span<const parameter> common);

/// Divides the rows into as few statements as the limits allow. The last statement has exactly the
/// remaining rows: to prepare one more statement costs one round trip, and less than to divide the
/// rest into sizes that are prepared already. Throws errc::too_large if a single row exceeds a
/// limit.
[[nodiscard]] std::vector<row_range> divide_rows(std::span<const std::vector<parameter>> columns,
                                                 std::span<const parameter> common,
                                                 const batch_limits& limits);

/// `text row,row,... tail`
[[nodiscard]] std::string multi_row_text(const batch_statement& s, std::size_t rows);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
