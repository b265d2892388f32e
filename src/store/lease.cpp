#include "store/lease.hpp"

#include "sql/dialect.hpp"
#include "store/merge_text.hpp"
#include "store/statements.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {
namespace {

using sql::dialect_id;
using sql::type;

/// The server's own time, in microseconds since 1970: one form that every dialect can compare and add to.
std::string now_text(dialect_id dialect) {
  if (dialect == dialect_id::postgresql) return "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint";
  if (is_mysql(dialect)) return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
  if (dialect == dialect_id::h2) return "CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP(6)) * 1000000 AS BIGINT)";
  if (dialect == dialect_id::sqlserver) return "DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())";
  if (dialect == dialect_id::oracle) return "(ROUND((CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE) - DATE '1970-01-01') * 86400) * 1000000)";
  return "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)";
}

/// Where the insert can say by itself that a row that is there may stay.
std::string unless_there(dialect_id dialect) {
  return dialect == dialect_id::postgresql || dialect == dialect_id::sqlite ? " ON CONFLICT (LEASE_NAME) DO NOTHING" : "";
}

class sql_lease final : public lease {
 public:
  sql_lease(std::shared_ptr<database::state> on, const std::string& prefix, std::string name) : on_(std::move(on)), name_(std::move(name)) {
    const auto dialect = on_->ask_dialect();
    if (dialect == dialect_id::unknown)
      throw error(errc::invalid_argument,
                  "a lease needs a database whose dialect is known; clean without one (lease 0), on one machine only");
    (void)prefixes_of_realms({.prefix = prefix});  // refuses what is no prefix
    const std::string table = prefix + "HOLDFAST_LEASE";
    const std::string now = now_text(dialect);
    // The n-th parameter.
    const auto p = [dialect](int n) { return dialect == dialect_id::postgresql ? "$" + std::to_string(n) : std::string("?"); };
    make_ = {.text = (is_mysql(dialect) ? "INSERT IGNORE INTO " : "INSERT INTO ") + table +
                     " (LEASE_NAME, OWNER, HELD_UNTIL, FENCE) VALUES (" + p(1) + ", '-', 0, 0)" + unless_there(dialect),
             .parameters = {type::text}};
    take_ = {.text = "UPDATE " + table + " SET OWNER = " + p(1) + ", HELD_UNTIL = " + now + " + " + p(2) +
                     ", FENCE = FENCE + 1 WHERE LEASE_NAME = " + p(3) + " AND (HELD_UNTIL <= " + now + " OR OWNER = " + p(4) + ")",
             .parameters = {type::text, type::integer, type::text, type::text}};
    look_ = {.text = "SELECT OWNER, FENCE FROM " + table + " WHERE LEASE_NAME = " + p(1),
             .parameters = {type::text},
             .results = {type::text, type::integer}};
    renew_ = {.text = "UPDATE " + table + " SET HELD_UNTIL = " + now + " + " + p(1) + " WHERE LEASE_NAME = " + p(2) +
                      " AND OWNER = " + p(3) + " AND FENCE = " + p(4),
              .parameters = {type::integer, type::text, type::text, type::integer}};
    release_ = {
        .text = "UPDATE " + table + " SET HELD_UNTIL = 0 WHERE LEASE_NAME = " + p(1) + " AND OWNER = " + p(2) + " AND FENCE = " + p(3),
        .parameters = {type::text, type::text, type::integer}};
  }

  attempt acquire(std::string_view owner, std::chrono::microseconds length) override {
    const std::string_view name = name_;
    const auto at = on_->pool->writer();
    const sql::parameter taken[]{owner, std::int64_t{length.count()}, name, owner};
    if (at->execute(take_, taken).affected == 0) {
      if (auto found = look(*at); found) return {.holder = std::move(found->owner)};
      make(*at);
      at->execute(take_, taken);
    }
    // Who holds it is what the row says, not what a count of rows means to a driver.
    auto found = look(*at);
    if (!found) throw error(errc::unavailable, "the row of the lease was deleted while it was taken", {.transient = true});
    if (found->owner != owner) return {.holder = std::move(found->owner)};
    return {.fence = found->fence, .holder = std::move(found->owner)};
  }

  bool renew(std::string_view owner, std::uint64_t fence, std::chrono::microseconds length) override {
    const sql::parameter parameters[]{std::int64_t{length.count()}, std::string_view(name_), owner, static_cast<std::int64_t>(fence)};
    return on_->pool->writer()->execute(renew_, parameters).affected > 0;
  }

  void release(std::string_view owner, std::uint64_t fence) override {
    const sql::parameter parameters[]{std::string_view(name_), owner, static_cast<std::int64_t>(fence)};
    on_->pool->writer()->execute(release_, parameters);
  }

 private:
  struct held {
    std::string owner;
    std::uint64_t fence;
  };
  /// Two may be about to make it.
  void make(sql::connection& at) const {
    const sql::parameter named[]{std::string_view(name_)};
    try {
      at.execute(make_, named);
    } catch (const error& e) {
      if (e.code() != errc::duplicate) throw;
    }
  }
  [[nodiscard]] std::optional<held> look(sql::connection& at) const {
    const sql::parameter named[]{std::string_view(name_)};
    const auto rows = at.execute(look_, named).rows;
    if (rows.empty()) return std::nullopt;
    const auto* owner = std::get_if<std::string>(&rows.at(0, 0));
    const auto* fence = std::get_if<std::int64_t>(&rows.at(0, 1));
    if (owner == nullptr || fence == nullptr) throw error(errc::malformed, "the row of the lease cannot be read; delete it");
    return held{.owner = *owner, .fence = static_cast<std::uint64_t>(*fence)};
  }

  const std::shared_ptr<database::state> on_;
  const std::string name_;
  sql::statement make_{};
  sql::statement take_{};
  sql::statement look_{};
  sql::statement renew_{};
  sql::statement release_{};
};

}  // namespace

std::unique_ptr<lease> make_sql_lease(std::shared_ptr<database::state> on, const std::string& prefix, std::string name) {
  return std::make_unique<sql_lease>(std::move(on), prefix, std::move(name));
}

std::string lease_schema(sql::dialect_id dialect, const std::string& prefix) {
  const std::string table = prefix + "HOLDFAST_LEASE";
  const auto columns = [](const std::string& name, const std::string& owner, const std::string& number) {
    return " (\n  LEASE_NAME " + name + " NOT NULL,\n  OWNER " + owner + " NOT NULL,\n  HELD_UNTIL " + number + " NOT NULL,\n  FENCE " +
           number + " NOT NULL,\n  PRIMARY KEY (LEASE_NAME)\n)";
  };
  switch (dialect) {
    case dialect_id::sqlite:
      return "CREATE TABLE IF NOT EXISTS " + table + columns("TEXT", "TEXT", "INTEGER");
    case dialect_id::sqlserver:
      return "IF OBJECT_ID('" + table + "') IS NULL CREATE TABLE " + table + columns("NVARCHAR(50)", "NVARCHAR(200)", "BIGINT");
    case dialect_id::oracle:
      return oracle_unless_there("CREATE TABLE " + table + columns("VARCHAR2(50 CHAR)", "VARCHAR2(200 CHAR)", "NUMBER(19)"));
    default:
      return "CREATE TABLE IF NOT EXISTS " + table + columns("VARCHAR(50)", "VARCHAR(200)", "BIGINT") +
             (is_mysql(dialect) ? " ENGINE=InnoDB" : "");
  }
}

}  // namespace HOLDFAST_NAMESPACE
