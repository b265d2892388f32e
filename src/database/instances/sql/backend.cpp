// The reports of instances in two tables.

#include "database/instances/backend.hpp"

#include "base/first_use.hpp"
#include "database/instances/sql/schema.hpp"
#include "sql/context.hpp"
#include "sql/placeholders.hpp"
#include "sql/schema_version.hpp"
#include "sql/server_time.hpp"

#include <array>
#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE::detail::instances {

namespace {

using sql::dialect_id;
using sql::type;
using std::chrono::microseconds;

struct instance_statements {
  sql::statement update{};
  sql::statement insert{};
  sql::statement commands{};
  sql::statement remove{};
  sql::statement remove_old{};
  sql::statement remove_commands{};
  sql::statement erase_command{};
  sql::statement send{};
};

/// Statements in one dialect.
class instance_statement_writer {
 public:
  instance_statement_writer(dialect_id dialect, const sql::schema_set& set)
      : dialect_(dialect),
        now_(sql::server_microseconds(dialect)),
        instances_(set.tables.at(0)),
        commands_(set.tables.at(1)) {}

  [[nodiscard]] instance_statements write() const {
    instance_statements all{
        .update =
            with_types("UPDATE " + instances_ + " SET KIND = ?, INTERVAL_MS = ?, STATE = ?, " +
                           "SEEN = " + now_ + " WHERE INSTANCE = ?",
                       {type::text, type::integer, type::text, type::text}),
        .insert = with_types(
            "INSERT INTO " + instances_ +
                " (INSTANCE, KIND, INTERVAL_MS, STATE, STARTED, SEEN) VALUES (?, ?, ?, ?, " + now_ +
                ", " + now_ + ")",
            {type::text, type::text, type::integer, type::text}),
        .commands = limited("SELECT COMMAND_ID, INSTANCE, KIND, BODY FROM " + commands_ +
                                " WHERE VALID_UNTIL > " + now_ +
                                " AND (INSTANCE = ? OR INSTANCE = '*') ORDER BY COMMAND_ID",
                            max_commands),
        .remove = with_types("DELETE FROM " + instances_ + " WHERE INSTANCE = ?", {type::text}),
        .remove_old = with_types("DELETE FROM " + instances_ + " WHERE SEEN < " + now_ + " - " +
                                     std::to_string(microseconds(report_lifetime).count()),
                                 {}),
        .remove_commands =
            with_types("DELETE FROM " + commands_ + " WHERE VALID_UNTIL <= " + now_, {}),
        .erase_command =
            with_types("DELETE FROM " + commands_ + " WHERE COMMAND_ID = ?", {type::text}),
        .send = with_types("INSERT INTO " + commands_ +
                               " (COMMAND_ID, INSTANCE, KIND, BODY, VALID_UNTIL) VALUES (?, ?, ?, "
                               "?, " +
                               now_ + " + ?)",
                           {type::text, type::text, type::text, type::text, type::integer})};
    all.commands.parameters = {type::text};
    all.commands.results = {type::text, type::text, type::text, type::text};
    return all;
  }
  [[nodiscard]] sql::statement read(std::size_t limit) const {
    auto statement = limited("SELECT INSTANCE, KIND, STARTED, SEEN, INTERVAL_MS, STATE, " + now_ +
                                 " FROM " + instances_ + " ORDER BY SEEN DESC, INSTANCE",
                             limit);
    statement.results = {type::text,    type::text, type::integer, type::integer,
                         type::integer, type::text, type::integer};
    return statement;
  }

 private:
  [[nodiscard]] sql::statement with_types(const std::string& text,
                                          std::vector<type> parameters) const {
    const bool numbered = dialect_ == dialect_id::postgresql;
    return {.text = numbered ? sql::number_placeholders(text) : text,
            .parameters = std::move(parameters)};
  }
  [[nodiscard]] sql::statement limited(const std::string& text, std::size_t limit) const {
    const auto count = std::to_string(limit);
    auto statement = with_types(text, {});
    if (dialect_ == dialect_id::sqlserver)
      statement.text += " OFFSET 0 ROWS FETCH NEXT " + count + " ROWS ONLY";
    else if (dialect_ == dialect_id::oracle)
      statement.text += " FETCH FIRST " + count + " ROWS ONLY";
    else statement.text += " LIMIT " + count;
    return statement;
  }

  dialect_id dialect_;
  std::string now_;
  std::string instances_;
  std::string commands_;
};

std::string text_at(const sql::rows& rows, std::size_t row, std::size_t column) {
  const auto* text = std::get_if<std::string>(&rows.at(row, column));
  return text == nullptr ? std::string() : *text;
}

std::int64_t number_at(const sql::rows& rows, std::size_t row, std::size_t column) {
  const auto* number = std::get_if<std::int64_t>(&rows.at(row, column));
  return number == nullptr ? 0 : *number;
}

class sql_instances final : public instance_backend {
 public:
  sql_instances(std::shared_ptr<sql::context> context, const std::string& prefix)
      : context_(std::move(context)), set_(instance_tables_schema(prefix)) {}

  void create_schema() override {
    const auto dialect = context_->dialect();
    const auto connection = context_->pool.acquire_writer("instances.create_schema");
    (void)sql::create_schema(*connection, dialect, set_);
  }

  std::vector<instance_command> report(const report_row& row, bool with_commands) override {
    const auto& statements = opened();
    const auto connection = context_->pool.acquire_writer("instances.report");
    const sql::parameter update[]{row.kind, std::int64_t{row.every.count()}, row.state,
                                  row.instance};
    if (connection->execute(statements.update, update).affected == 0) {
      const sql::parameter insert[]{row.instance, row.kind, std::int64_t{row.every.count()},
                                    row.state};
      (void)connection->execute(statements.insert, insert);
    }
    if (!with_commands) return {};
    const sql::parameter parameters[]{row.instance};
    const auto rows = connection->execute(statements.commands, parameters).rows;
    std::vector<instance_command> commands;
    commands.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      commands.push_back({.id = text_at(rows, i, 0),
                          .instance = text_at(rows, i, 1),
                          .kind = text_at(rows, i, 2),
                          .body = text_at(rows, i, 3)});
    return commands;
  }

  void remove(std::string_view instance) override {
    const sql::parameter parameters[]{instance};
    (void)context_->pool.acquire_writer("instances.remove")->execute(opened().remove, parameters);
  }

  void remove_old() override {
    const auto connection = context_->pool.acquire_writer("instances.remove_old");
    (void)connection->execute(opened().remove_old, {});
    (void)connection->execute(opened().remove_commands, {});
  }

  std::vector<instance_report> read(std::size_t limit) override {
    const auto statement = instance_statement_writer(context_->dialect(), set_).read(limit);
    const auto rows = context_->pool.acquire_reader("instances.read")->execute(statement, {}).rows;
    std::vector<instance_report> reports;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto age = microseconds(number_at(rows, i, 6) - number_at(rows, i, 3));
      if (age > report_lifetime) break;
      reports.push_back({.instance = text_at(rows, i, 0),
                         .kind = text_at(rows, i, 1),
                         .started = timestamp(microseconds(number_at(rows, i, 2))),
                         .seen = timestamp(microseconds(number_at(rows, i, 3))),
                         .age = age,
                         .every = std::chrono::milliseconds(number_at(rows, i, 4)),
                         .state = text_at(rows, i, 5)});
    }
    return reports;
  }

  void send(const instance_command& command, std::chrono::milliseconds valid_for) override {
    const auto& statements = opened();
    const auto connection = context_->pool.acquire_writer("instances.send");
    const sql::parameter id[]{std::string_view(command.id)};
    const sql::parameter values[]{std::string_view(command.id), std::string_view(command.instance),
                                  std::string_view(command.kind), std::string_view(command.body),
                                  std::int64_t{microseconds(valid_for).count()}};
    connection->begin();
    try {
      (void)connection->execute(statements.erase_command, id);
      (void)connection->execute(statements.send, values);
      connection->commit();
    } catch (...) {
      connection->rollback();
      throw;
    }
  }

 private:
  /// The statements depend on the dialect, which the database tells when it is first used.
  [[nodiscard]] const instance_statements& opened() {
    first_use_.run([this] {
      const auto dialect = context_->dialect();
      (void)sql::read_schema_version(*context_->pool.acquire_reader("instances.version"), dialect,
                                     set_);
      statements_ = instance_statement_writer(dialect, set_).write();
    });
    return statements_;
  }

  std::shared_ptr<sql::context> context_;
  sql::schema_set set_;
  first_use first_use_{};
  instance_statements statements_{};
};

}  // namespace

std::unique_ptr<instance_backend> make_sql_instances(std::shared_ptr<sql::context> context,
                                                     const std::string& prefix) {
  return std::make_unique<sql_instances>(std::move(context), prefix);
}

}  // namespace HOLDFAST_NAMESPACE::detail::instances
