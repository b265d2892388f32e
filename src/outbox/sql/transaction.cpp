#include "outbox/sql/transaction.hpp"

#include "outbox/default_prefix.hpp"
#include "sql/read_only_server.hpp"

#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

bool can_retry(const error& problem) {
  // MariaDB's code for a deadlock on the AUTO_INCREMENT counter of a table.
  if (problem.backend_code() == "1467") return true;
  return sql::is_retryable(problem) && problem.code() != errc::too_large;
}

bool is_missing_privilege(const error& problem) {
  const auto& code = problem.backend_code();
  // PostgreSQL, and MySQL for tables and columns; a failed login has other codes.
  return code == "42501" || code == "1142" || code == "1143";
}

}  // namespace

void wait_for_other_nodes(sql::connection& connection) {
  // Not a setting of the session, which the store uses, too: it reads without this wait.
  connection.run("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1");
}

transaction_runner::transaction_runner(std::shared_ptr<sql::context> context,
                                       const statement_builder& builder, std::string prefix)
    : context_(std::move(context)),
      dialect_(builder.dialect()),
      locks_(builder.locks()),
      events_table_(builder.tables().events),
      prefix_(std::move(prefix)) {}

void transaction_runner::run_and_commit(std::size_t lane,
                                        const std::function<void(const lane_session&)>& work,
                                        when_in_doubt policy) const {
  retry(
      [&] {
        // SQLite has one writer; on other databases each connection of the pool may write.
        const auto connection = dialect_ == sql::dialect_id::sqlite
                                    ? context_->pool.acquire_writer("outbox.transaction")
                                    : context_->pool.acquire_reader("outbox.transaction");
        if (locks_ == lock_scope::node) wait_for_other_nodes(*connection);
        own_transaction transaction(*connection);
        work({transaction, lane});
        transaction.commit();
      },
      policy);
}

void transaction_runner::retry(const std::function<void()>& work, when_in_doubt policy) const {
  using std::chrono::microseconds;
  const sql::retry_limits limits{.attempts = 8,
                                 .time = context_->options.statement_timeout,
                                 .shortest_pause = microseconds(200),
                                 .first_pause = microseconds(4'000),
                                 .longest_pause = microseconds(128'000)};
  try {
    sql::with_retries(limits, work, [&](const error& problem) {
      const bool doubtful = problem.in_doubt() && policy == when_in_doubt::give_up;
      return can_retry(problem) && !doubtful;
    });
  } catch (const error& problem) {
    throw explain(problem);
  }
}

error transaction_runner::explain(const error& problem) const {
  const auto& message = problem.message();
  const std::string outbox_name = "the outbox '" + prefix_ + "'";
  const std::string tables = events_table_ + " and the tables whose names begin with it";
  const error::details details{.backend_code = problem.backend_code(),
                               .in_doubt = problem.in_doubt()};
  std::string schema_command =
      "holdfast outbox schema --dialect " + std::string(to_string(dialect_));
  if (prefix_ != default_prefix) schema_command += " --prefix '" + prefix_ + "'";
  if (is_missing_privilege(problem)) {
    return {errc::permission,
            message + ": " + outbox_name + " needs SELECT, INSERT, UPDATE and DELETE on " + tables +
                ", and CREATE only to create them",
            details};
  }
  if (problem.code() != errc::missing_object || problem.not_null_column()) return problem;
  if (message.find("column") != std::string::npos) {
    return {errc::missing_object,
            outbox_name + " was created by another version: a column is missing in " + tables +
                "; compare them with: " + schema_command,
            details};
  }
  if (message.find("table") == std::string::npos) return problem;
  return {errc::missing_object,
          outbox_name + " does not exist: " + events_table_ +
              " or a table whose name begins with it is missing; correct the URL or the prefix, or "
              "create the tables with --create-schema (in C++: .create_schema), or see: " +
              schema_command,
          details};
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
