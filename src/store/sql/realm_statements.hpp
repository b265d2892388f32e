#pragma once

/// \file
/// The statements for the table of each realm.
///
/// On PostgreSQL they depend on the types of AS_OF and EXPIRE_ON, which are queried at the first
/// use:
///
///     TIMESTAMPTZ                     the standard statements
///     TIMESTAMP, store_options::zone  statements that convert to and from that zone
///     TIMESTAMP, no zone              refused: the values are ambiguous
///     no such table                   the standard statements for now; queried again next time

#include "store/sql/statements.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Throws errc::invalid_argument for a store_options::zone that a database of this dialect cannot
/// use. If the dialect is not known yet: for a text that is not a zone.
void check_zone(std::optional<sql::dialect_id> dialect, std::string_view zone);

/// Thread-safety: every function may be called from any thread.
class realm_statements {
 public:
  using execute_function =
      std::function<sql::outcome(const sql::statement&, std::span<const sql::parameter>)>;

  /// Sends nothing yet. Throws errc::invalid_argument for an invalid prefix, realm or zone.
  realm_statements(sql::dialect_id dialect, store_options options, execute_function execute);

  /// Throws errc::invalid_argument for a realm that is not configured, errc::missing_object for a
  /// table with ambiguous times, and what `execute` throws.
  [[nodiscard]] const store_statements& for_realm(std::string_view realm);

  /// The statements of an arbitrary realm. Realms differ only in their table names.
  [[nodiscard]] const store_statements& any_realm() const noexcept {
    return tables_.begin()->second->standard;
  }
  /// The configured realms, sorted.
  [[nodiscard]] std::vector<std::string> realms() const;

 private:
  struct table {
    std::string prefix;
    store_statements standard;
    std::unique_ptr<const store_statements> zoned{};
    std::atomic<const store_statements*> selected{nullptr};  // null: column types not known yet
  };

  void select_statements(table& t);
  void check_zone_exists() const;

  sql::dialect_id dialect_;
  store_options options_;
  execute_function execute_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<table>, std::less<>> tables_{};  // by realm; never empty
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
