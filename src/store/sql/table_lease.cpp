#include "store/sql/table_lease.hpp"

#include "base/first_use.hpp"
#include "sql/dialect.hpp"
#include "sql/placeholders.hpp"
#include "sql/schema_set.hpp"
#include "sql/server_time.hpp"
#include "store/sql/dialect_expressions.hpp"
#include "store/sql/statements.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;
using sql::type;

/// The clause that makes an INSERT ignore an existing row, in dialects that have one.
std::string ignore_existing_row(dialect_id dialect) {
  return dialect == dialect_id::postgresql || dialect == dialect_id::sqlite
             ? " ON CONFLICT (LEASE_NAME) DO NOTHING"
             : "";
}

/// The statements of a lease table in one dialect.
struct lease_statements {
  sql::statement insert{};
  sql::statement acquire{};
  sql::statement select{};
  sql::statement renew{};
  sql::statement release{};
};

lease_statements make_lease_statements(dialect_id dialect, const std::string& table) {
  if (dialect == dialect_id::unknown)
    throw error(errc::invalid_argument,
                "a lease requires a database of known dialect; set lease to 0 and clean on one "
                "machine only");
  const std::string now = sql::server_microseconds(dialect);
  const auto parameter = [dialect](unsigned number) { return sql::placeholder(dialect, number); };
  return {.insert = {.text = (sql::is_mysql(dialect) ? "INSERT IGNORE INTO " : "INSERT INTO ") +
                             table + " (LEASE_NAME, OWNER, HELD_UNTIL, FENCE) VALUES (" +
                             parameter(1) + ", '-', 0, 0)" + ignore_existing_row(dialect),
                     .parameters = {type::text}},
          .acquire = {.text = "UPDATE " + table + " SET OWNER = " + parameter(1) +
                              ", HELD_UNTIL = " + now + " + " + parameter(2) +
                              ", FENCE = FENCE + 1 WHERE LEASE_NAME = " + parameter(3) +
                              " AND (HELD_UNTIL <= " + now + " OR OWNER = " + parameter(4) + ")",
                      .parameters = {type::text, type::integer, type::text, type::text}},
          .select = {.text = "SELECT OWNER, FENCE FROM " + table +
                             " WHERE LEASE_NAME = " + parameter(1),
                     .parameters = {type::text},
                     .results = {type::text, type::integer}},
          .renew = {.text = "UPDATE " + table + " SET HELD_UNTIL = " + now + " + " + parameter(1) +
                            " WHERE LEASE_NAME = " + parameter(2) + " AND OWNER = " + parameter(3) +
                            " AND FENCE = " + parameter(4),
                    .parameters = {type::integer, type::text, type::text, type::integer}},
          .release = {.text = "UPDATE " + table +
                              " SET HELD_UNTIL = 0 WHERE LEASE_NAME = " + parameter(1) +
                              " AND OWNER = " + parameter(2) + " AND FENCE = " + parameter(3),
                      .parameters = {type::text, type::text, type::integer}}};
}

class sql_table_lease final : public table_lease {
 public:
  sql_table_lease(std::shared_ptr<sql::context> database, const std::string& prefix,
                  std::string name)
      : database_(std::move(database)), table_(prefix + "HOLDFAST_LEASE"), name_(std::move(name)) {
    (void)prefixes_of_realms({.prefix = prefix});  // checks the prefix
  }

  attempt acquire(std::string_view owner, std::chrono::microseconds duration) override {
    const auto& statements = opened();
    const auto connection = database_->pool.acquire_writer("lease.acquire");
    const sql::parameter parameters[]{owner, std::int64_t{duration.count()},
                                      std::string_view(name_), owner};
    if (connection->execute(statements.acquire, parameters).affected == 0) {
      if (auto row = read_row(*connection)) return {.holder = std::move(row->owner)};
      insert_row(*connection);
      connection->execute(statements.acquire, parameters);
    }
    // The row decides who holds the lease, not the count of affected rows, which drivers define
    // differently.
    auto row = read_row(*connection);
    if (!row)
      throw error(errc::unavailable, "the row of the lease was deleted while it was acquired",
                  {.transient = true});
    if (row->owner != owner) return {.holder = std::move(row->owner)};
    return {.fence = row->fence, .holder = std::move(row->owner)};
  }

  bool renew(std::string_view owner, std::uint64_t fence,
             std::chrono::microseconds duration) override {
    const sql::parameter parameters[]{std::int64_t{duration.count()}, std::string_view(name_),
                                      owner, static_cast<std::int64_t>(fence)};
    return database_->pool.acquire_writer("lease.renew")
               ->execute(opened().renew, parameters)
               .affected > 0;
  }

  void release(std::string_view owner, std::uint64_t fence) override {
    const sql::parameter parameters[]{std::string_view(name_), owner,
                                      static_cast<std::int64_t>(fence)};
    database_->pool.acquire_writer("lease.release")->execute(opened().release, parameters);
  }

 private:
  struct lease_row {
    std::string owner;
    std::uint64_t fence;
  };

  /// The statements depend on the dialect, which the database tells when it is first used.
  [[nodiscard]] const lease_statements& opened() {
    first_use_.run([this] { statements_ = make_lease_statements(database_->dialect(), table_); });
    return statements_;
  }

  /// Another process may insert the row at the same time.
  void insert_row(sql::connection& connection) {
    const sql::parameter parameters[]{std::string_view(name_)};
    try {
      connection.execute(opened().insert, parameters);
    } catch (const error& e) {
      if (e.code() != errc::duplicate) throw;
    }
  }

  [[nodiscard]] std::optional<lease_row> read_row(sql::connection& connection) {
    const sql::parameter parameters[]{std::string_view(name_)};
    const auto rows = connection.execute(opened().select, parameters).rows;
    if (rows.empty()) return std::nullopt;
    const auto* owner = std::get_if<std::string>(&rows.at(0, 0));
    const auto* fence = std::get_if<std::int64_t>(&rows.at(0, 1));
    if (owner == nullptr || fence == nullptr)
      throw error(errc::malformed, "the row of the lease cannot be read; delete it");
    return lease_row{.owner = *owner, .fence = static_cast<std::uint64_t>(*fence)};
  }

  const std::shared_ptr<sql::context> database_;
  const std::string table_;
  const std::string name_;
  first_use first_use_{};
  lease_statements statements_{};
};

}  // namespace

std::unique_ptr<table_lease> make_table_lease(std::shared_ptr<sql::context> database,
                                              const std::string& prefix, std::string name) {
  return std::make_unique<sql_table_lease>(std::move(database), prefix, std::move(name));
}

std::string lease_schema(dialect_id dialect, const std::string& prefix) {
  const std::string table = prefix + "HOLDFAST_LEASE";
  const auto columns = [](const std::string& name, const std::string& owner,
                          const std::string& number) {
    return " (\n  LEASE_NAME " + name + " NOT NULL,\n  OWNER " + owner +
           " NOT NULL,\n  HELD_UNTIL " + number + " NOT NULL,\n  FENCE " + number +
           " NOT NULL,\n  PRIMARY KEY (LEASE_NAME)\n)";
  };
  const auto create = [&](const std::string& list) {
    return sql::create_table_if_missing(dialect, table, list);
  };
  switch (dialect) {
    case dialect_id::sqlite:
      return create(columns("TEXT", "TEXT", "INTEGER"));
    case dialect_id::sqlserver:
      return create(columns("NVARCHAR(50)", "NVARCHAR(200)", "BIGINT"));
    case dialect_id::oracle:
      return create(columns("VARCHAR2(50 CHAR)", "VARCHAR2(200 CHAR)", "NUMBER(19)"));
    default:
      return create(columns("VARCHAR(50)", "VARCHAR(200)", "BIGINT"));
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
