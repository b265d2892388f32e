#pragma once

/// \file
/// Everything on one SQL database shares this: connections, dialect, clock and log.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/pool.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::sql {

struct context_options {
  pool_options pool{};
  std::chrono::milliseconds statement_timeout{};
  /// Asks the server for its dialect. Empty: connection::dialect.
  std::function<dialect_id(connection&)> resolve_dialect{};
  /// The dialect that the URL implies; `mysql` also for MariaDB. Empty: only the server knows it.
  std::optional<dialect_id> expected_dialect{};
  std::shared_ptr<const holdfast::clock> clock{};  ///< never null
  std::shared_ptr<const logger> log{};             ///< never null
};

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API context {
 public:
  /// Does not connect.
  context(connection_factory connect, context_options settings);

  const context_options options;
  detail::sql::pool pool;

  /// The dialect of the server. Asks it at the first call.
  [[nodiscard]] dialect_id dialect();

  /// Whether the database is a file, which is opened without waiting for a server.
  [[nodiscard]] bool is_file() const noexcept {
    return options.expected_dialect == dialect_id::sqlite;
  }

  /// Logs a warning.
  void warn(std::string_view line) const noexcept;

 private:
  std::mutex mutex_{};
  std::optional<dialect_id> dialect_{};
};

}  // namespace HOLDFAST_NAMESPACE::sql
