#pragma once

/// \file
/// The options of everything that a configuration file describes.

#include <holdfast/failover/options.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store/cleanup.hpp>
#include <holdfast/store/compose.hpp>
#include <holdfast/store/memory.hpp>

#include "failover/config/point_settings.hpp"
#include "sql/connect.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover::config {

/// The options of the connections to the database. src/database converts them to database_options.
struct database_settings : sql::connect_options {
  pool_options pool{};
};

/// The parts of an engine, from a file and the options that it overrides.
struct plan {
  engine_options engine{};
  std::string url{};  ///< of the database; empty: the store is in memory
  database_settings database{};
  store_options store{};
  memory_store_options memory{};
  store_layers layers{};                    ///< without tenants, which are those of the engine
  std::optional<tenant_options> tenants{};  ///< of the engine
  std::optional<cleanup_options> cleanup{};
  std::shared_ptr<point_settings> points{};
  std::vector<std::string> warnings{};  ///< for the log
};

/// Makes the plan from the text of a file. Throws errc::invalid_argument with all problems; `file`
/// is the path in the error. `store_url` stands for failover.store.url if the database is named
/// elsewhere.
[[nodiscard]] HOLDFAST_API plan make_plan(const std::string& file, std::string_view text,
                                          engine_options base,
                                          const environment& lookup = process_environment(),
                                          std::string_view store_url = {});

/// The scattered calls on one database, as far as its connection pool is concerned.
struct scatter_figures {
  std::chrono::milliseconds deadline{};  ///< shortest scatter_options::timeout; 0: none
  std::size_t widest = 0;                ///< largest scatter_options::parallel; 0: none
};

/// Warnings about problems under load with this pool and these scattered calls, for the log at
/// start-up.
[[nodiscard]] HOLDFAST_API std::vector<std::string> advise(const pool_options& pool,
                                                           const scatter_figures& scatter);

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
