#pragma once

/// \file
/// A lease kept as a row of a table, so that only one of many processes cleans a store.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// A right that one process at a time holds for a limited time. Its fence grows with every holder,
/// so that a late holder can be refused.
/// Thread-safety: every function may be called from any thread. All throw what the database throws.
class table_lease {
 public:
  virtual ~table_lease() = default;

  struct attempt {
    /// Empty if another owner holds the lease.
    std::optional<std::uint64_t> fence{};
    /// The current holder.
    std::string holder{};
  };
  /// Acquires the lease if it is free, has expired, or belongs to the same owner, whose first
  /// attempt may have succeeded without an answer.
  [[nodiscard]] virtual attempt acquire(std::string_view owner,
                                        std::chrono::microseconds duration) = 0;
  /// Extends the lease to `duration` from now. Returns false if another owner has acquired it.
  [[nodiscard]] virtual bool renew(std::string_view owner, std::uint64_t fence,
                                   std::chrono::microseconds duration) = 0;
  /// Frees the lease if it is still held.
  virtual void release(std::string_view owner, std::uint64_t fence) = 0;
};

/// Returns the lease `name` in the table {prefix}HOLDFAST_LEASE. It uses the server's clock, so the
/// clocks of the machines do not matter; on SQLite it uses the clock of this machine. Connects at
/// the first use, which throws errc::invalid_argument for an unknown dialect. Throws
/// errc::invalid_argument for an invalid prefix.
[[nodiscard]] HOLDFAST_API std::unique_ptr<table_lease> make_table_lease(
    std::shared_ptr<sql::context> database, const std::string& prefix, std::string name);

/// Returns the statement that creates the lease table if it does not exist.
[[nodiscard]] std::string lease_schema(sql::dialect_id dialect, const std::string& prefix);

}  // namespace HOLDFAST_NAMESPACE::detail::store
