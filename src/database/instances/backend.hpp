#pragma once

/// \file
/// Where the reports of instances are kept: in two tables (sql/), or in keys of Redis (redis/).

#include <holdfast/reporter.hpp>
#include <holdfast/version.hpp>

#include "database/database.hpp"
#include "sql/public_names.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::instances {

/// Reports of instances that were silent for so long are removed.
inline constexpr std::chrono::hours report_lifetime{24};
/// Commands that one instance reads at once.
inline constexpr std::size_t max_commands = 100;

struct report_row {
  std::string_view instance{};
  std::string_view kind{};
  std::chrono::milliseconds every{};
  std::string_view state{};
};

/// Thread-safety: every function may be called from any thread. All throw errors of the database.
class instance_backend {
 public:
  instance_backend() = default;
  instance_backend(const instance_backend&) = delete;
  instance_backend& operator=(const instance_backend&) = delete;
  virtual ~instance_backend() = default;

  virtual void create_schema() = 0;
  /// Writes the report, and returns the valid commands for the instance if they are requested.
  [[nodiscard]] virtual std::vector<instance_command> report(const report_row& row,
                                                             bool with_commands) = 0;
  virtual void remove(std::string_view instance) = 0;
  virtual void remove_old() = 0;
  [[nodiscard]] virtual std::vector<instance_report> read(std::size_t limit) = 0;
  virtual void send(const instance_command& command, std::chrono::milliseconds valid_for) = 0;
};

/// Throws errc::invalid_argument for an invalid prefix, and for a database in memory.
[[nodiscard]] std::unique_ptr<instance_backend> make_instance_backend(const database& db,
                                                                      std::string_view prefix);

[[nodiscard]] std::unique_ptr<instance_backend> make_sql_instances(
    std::shared_ptr<sql::context> context, const std::string& prefix);
#if HOLDFAST_HAS_REDIS
[[nodiscard]] std::unique_ptr<instance_backend> make_redis_instances(
    std::shared_ptr<const redis::client> client, std::string_view prefix);
#endif

}  // namespace HOLDFAST_NAMESPACE::detail::instances
