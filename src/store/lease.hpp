#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/database.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// A right that one of many holds for some time. Its fence grows with every holder, so that a late one can be refused.
/// Thread-safety: every function may be called from any thread. All throw what the database throws.
class lease {
 public:
  virtual ~lease() = default;

  struct attempt {
    std::optional<std::uint64_t> fence{};  ///< nothing: somebody else holds it
    std::string holder{};                  ///< who holds it now
  };
  /// Takes it if it is free, has ended, or is the same owner's (who may not know that the first try arrived).
  [[nodiscard]] virtual attempt acquire(std::string_view owner, std::chrono::microseconds length) = 0;
  /// From now on for that long. False: somebody else has had it since.
  [[nodiscard]] virtual bool renew(std::string_view owner, std::uint64_t fence, std::chrono::microseconds length) = 0;
  /// Free for others at once, if it is still held.
  virtual void release(std::string_view owner, std::uint64_t fence) = 0;
};

/// A row of {prefix}HOLDFAST_LEASE. The clock is the server's, so the clocks of machines do not matter; on SQLite it is this machine's.
/// Throws errc::invalid_argument for an unknown dialect.
[[nodiscard]] HOLDFAST_API std::unique_ptr<lease> make_sql_lease(std::shared_ptr<database::state> on, const std::string& prefix,
                                                                 std::string name);

/// Creates the table where it is not there.
[[nodiscard]] std::string lease_schema(sql::dialect_id dialect, const std::string& prefix);

}  // namespace HOLDFAST_NAMESPACE
