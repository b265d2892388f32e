#pragma once

/// \file
/// The state that the copies of a database share. Only this folder knows stores, sequences,
/// outboxes and engines at the same time.

#include <holdfast/database.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE {

class outbox_backend;
namespace detail::outbox {
class sql_backend;
}

struct HOLDFAST_API database::state {
  explicit state(database_options settings);

  /// Makes it a database on SQL. Does not connect. `expected_dialect`: see sql::context_options.
  void use_sql(holdfast::sql::connection_factory connect,
               std::optional<holdfast::sql::dialect_id> expected_dialect);

  database_options options;
  std::shared_ptr<const logger> log;
  std::shared_ptr<isolated_metrics> metrics;  // never null
  // Null if the database is in memory or on Redis.
  std::shared_ptr<sql::context> sql{};
  // Null unless the database is Redis. Its sequences and outboxes share it.
  std::shared_ptr<const redis::client> redis{};

  // Protects all members below. The keys of the maps are prefixes.
  std::mutex mutex{};
  std::shared_ptr<holdfast::executor> own_executor{};
  // Of a database in memory.
  std::map<std::string, std::shared_ptr<holdfast::store>> memory_stores{};
  std::map<std::string, std::shared_ptr<outbox_backend>> memory_outboxes{};
  std::map<std::string, std::shared_ptr<holdfast::block_store>> memory_counters{};
  // Backends that are in use. Outboxes share them, so that a publisher wakes waiting workers.
  std::map<std::string, std::weak_ptr<detail::outbox::sql_backend>> sql_outboxes{};
  // Sources that are in use, with their refillers.
  std::map<std::string, std::vector<std::weak_ptr<detail::sequence::source>>> sequences{};

  /// The executor of the options, or a pool that is created on first use.
  [[nodiscard]] std::shared_ptr<holdfast::executor> executor();
  [[nodiscard]] bool in_memory() const noexcept { return !sql && !redis; }
  /// Throws errc::invalid_argument if the database is Redis. `feature` ("the store") needs SQL.
  void refuse_redis(std::string_view feature) const;
};

}  // namespace HOLDFAST_NAMESPACE
