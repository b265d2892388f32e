#pragma once

#include "store/statements.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// What is said to the table of each realm. On PostgreSQL it depends on the types of the table's own columns, which are asked for at the
/// first use: a time without a zone means another moment to each reader, so the zone must be stated, or the table is refused.
/// Thread-safety: every function may be called from any thread.
class realm_statements {
 public:
  using ask = std::function<sql::outcome(const sql::statement&, std::span<const sql::parameter>)>;

  /// Throws errc::invalid_argument for a prefix, a realm or a zone that cannot be. Asks nobody yet.
  realm_statements(sql::dialect_id dialect, store_options options, ask how);

  /// Throws errc::invalid_argument for a realm that the store is not configured with, and for a table whose times cannot be told; and
  /// whatever asking throws.
  [[nodiscard]] const store_statements& in(std::string_view realm);

  /// The statements of any realm: they differ in the names of their tables only.
  [[nodiscard]] const store_statements& shape() const noexcept { return tables_.begin()->second->standard; }
  /// The realms that there are, in order.
  [[nodiscard]] std::vector<std::string> realms() const;

 private:
  struct table {
    std::string prefix;
    store_statements standard;
    std::unique_ptr<const store_statements> in_a_zone{};
    std::atomic<const store_statements*> said{nullptr};  // nothing: not asked yet
  };

  void look_at(table& one);

  sql::dialect_id dialect_;
  store_options options_;
  ask ask_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<table>, std::less<>> tables_{};  // never empty
};

}  // namespace HOLDFAST_NAMESPACE
