#pragma once

/// \file
/// The statements that a store sends to one table.

#include <holdfast/sql.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The numbers of keys for which there is a statement. Each is a prepared statement of its own, and
/// SQL Server allows 2100 parameters.
inline constexpr std::array<std::size_t, 3> find_many_sizes{16, 64, 256};

/// The comments list the parameters in order, then the result columns after an arrow.
struct store_statements {
  /// The table name with prefix and qualifiers.
  std::string table;
  /// See make_upsert.
  sql::batch_statement upsert{};
  /// name, key, as_of, expire_on, payload, class
  sql::statement insert{};
  /// as_of, expire_on, payload, class, name, key, as_of + 1 microsecond, horizon
  sql::statement update{};
  /// name, key -> as_of, expire_on, payload, class
  sql::statement find{};
  /// By the number of keys, see find_many_sizes: name, keys... -> key, as_of, expire_on, payload,
  /// class. Empty if `find` is replaced and this is not.
  std::map<std::size_t, sql::statement> find_many{};
  /// name, limit -> key, as_of, expire_on, payload, class
  sql::statement find_first{};
  /// name, key, limit -> key, as_of, expire_on, payload, class
  sql::statement find_after{};
  /// name, key, first as_of, end of as_of (exclusive)
  sql::statement erase{};
  /// before, limit. If `expired` has a text: name, key, before
  sql::statement expire{};
  /// before -> name, key. Only for a dialect without a known syntax for row limits.
  sql::statement expired{};
  /// name -> count
  sql::statement count{};
  /// times (store::max_expiry_times), name, limit -> count, count before each time. Empty for an
  /// unknown dialect, and if `find_all` is replaced and this is not.
  sql::statement expiring{};
  /// payload, name, key, first as_of, end of as_of (exclusive), previous payload
  sql::statement rewrite{};
  /// name -> the next name
  sql::statement name_after{};
  /// Whether the dialect has an upsert.
  bool native = true;
};

/// Returns the whole table prefix of each realm. Without tenants the only realm is the empty one.
/// Throws errc::invalid_argument for an invalid prefix and for two realms with the same table.
[[nodiscard]] HOLDFAST_API std::map<std::string, std::string> prefixes_of_realms(
    const store_options& options);

/// `zone`: see time_expressions.
[[nodiscard]] store_statements make_statements(sql::dialect_id dialect, const std::string& prefix,
                                               const store_options& options,
                                               const std::string& zone = {});

}  // namespace HOLDFAST_NAMESPACE::detail::store
