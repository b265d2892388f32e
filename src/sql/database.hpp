#pragma once

#include <holdfast/database.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include "sql/pool.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE {

class outbox_backend;

/// What the copies of a database share.
struct HOLDFAST_API database::state {
  explicit state(database_options how);

  database_options options;
  std::shared_ptr<const logger> log;
  std::shared_ptr<isolated_metrics> metrics;                              // never null
  std::unique_ptr<sql::pool> pool{};                                      // null for memory: and Redis
  std::function<std::shared_ptr<const redis::client>()> connect_redis{};  // another one, for a process that was forked off
  std::shared_ptr<const redis::client> redis{};  // null unless the URL is one of Redis; shared by its sequences and outboxes

  std::mutex mutex{};
  std::shared_ptr<holdfast::executor> own_executor{};
  std::optional<sql::dialect_id> dialect{};
  std::map<std::string, std::shared_ptr<holdfast::store>> memory_stores{};   // memory: one for each prefix
  std::map<std::string, std::shared_ptr<outbox_backend>> memory_outboxes{};  // the same
  std::map<std::string, std::weak_ptr<outbox_backend>> sql_outboxes{};  // those in use, one for each prefix: who publishes wakes who waits
  std::map<std::string, std::shared_ptr<holdfast::block_store>> memory_counters{};  // memory: those of sequences
  std::map<std::string, std::vector<std::weak_ptr<detail::source_root>>>
      sequences{};  // by prefix, with their refillers; they keep us, not we them

  [[nodiscard]] sql::dialect_id ask_dialect();
  /// Where work in the background runs: the one that was given, or a pool of our own, made now.
  [[nodiscard]] std::shared_ptr<holdfast::executor> executor();
  /// Whether everything lives in this process.
  [[nodiscard]] bool in_memory() const noexcept { return !pool && !redis; }
  /// Throws errc::invalid_argument when this is a Redis: `what` ("the store") needs SQL.
  void refuse_redis(std::string_view what) const;
  /// A warning.
  void say(std::string_view line) const noexcept;
};

}  // namespace HOLDFAST_NAMESPACE
