#pragma once

#include <holdfast/database.hpp>
#include <holdfast/version.hpp>

#include "sql/pool.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// What the copies of a database share.
struct HOLDFAST_API database::state {
  database_options options;
  std::unique_ptr<sql::pool> pool{};  // null for memory:

  std::mutex mutex{};
  std::optional<sql::dialect_id> dialect{};
  std::map<std::string, std::shared_ptr<holdfast::store>> memory_stores{};  // memory: one for each prefix

  [[nodiscard]] sql::dialect_id ask_dialect();
  void say(std::string_view line) const noexcept;
};

}  // namespace HOLDFAST_NAMESPACE
