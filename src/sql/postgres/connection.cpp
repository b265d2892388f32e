#include "sql/postgres/connection.hpp"

#include "base/duration_limit.hpp"
#include "sql/driver_support.hpp"
#include "sql/keyword.hpp"
#include "sql/postgres/login.hpp"
#include "sql/postgres/result.hpp"
#include "sql/postgres/session.hpp"
#include "sql/postgres/statements.hpp"
#include "sql/postgres/values.hpp"
#include "sql/watched_session.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

namespace {

/// libpq and the server count milliseconds in an int.
constexpr auto longest_limit =
    std::chrono::milliseconds(std::numeric_limits<int>::max()) - server_margin;

postgres_options checked(postgres_options options) {
  options.connect_timeout =
      positive_duration("connect_timeout", options.connect_timeout, longest_limit);
  options.statement_timeout =
      positive_duration("statement_timeout", options.statement_timeout, longest_limit);
  return options;
}

/// Whether a statement may end the transaction that it runs in: COMMIT, END and PREPARE TRANSACTION
/// can be prepared like any statement. Comments are not parsed; a statement that begins with one
/// counts as one that may.
bool may_end_transaction(std::string_view text) {
  text = from_first_keyword(text, " \t\r\n");
  if (text.starts_with("--") || text.starts_with("/*")) return true;
  return starts_with_keyword(text, "COMMIT") || starts_with_keyword(text, "END") ||
         starts_with_keyword(text, "PREPARE");
}

class postgres_connection final : public connection, public watched_session {
 public:
  postgres_connection(const postgres_options& options, const target& server)
      : session_(options, {}, server),
        limit_(options.statement_timeout),
        server_limit_(limit_ + server_margin),
        server_process_(session_.server_process()) {
    refuse_h2();
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_id::postgresql; }
  [[nodiscard]] transport_kind transport() const noexcept override { return session_.transport(); }
  [[nodiscard]] bool broken() const noexcept override { return session_.broken(); }
  [[nodiscard]] bool read_only() const noexcept override { return session_.read_only(); }
  [[nodiscard]] bool responds(std::chrono::milliseconds longest) noexcept override {
    return session_.responds("", longest);
  }
  [[nodiscard]] std::string session_name() const override {
    return std::to_string(server_process_);
  }
  [[nodiscard]] std::optional<bool> has_session(const std::string& name) override {
    const auto result = session_.query(
        "SELECT pg_backend_pid(), pg_is_in_recovery(), count(*) FILTER (WHERE pid = "
        "pg_backend_pid()), count(*) FILTER (WHERE pid = " +
            name + ") FROM pg_stat_activity",
        loss::harmless, call_deadline(std::min(limit_, question_limit)));
    if (PQntuples(result.get()) != 1) return std::nullopt;
    const auto column = [&](int number) {
      return std::string_view(PQgetvalue(result.get(), 0, number));
    };
    // A pooler invents the process that its login tells. Some servers that only speak the protocol
    // list no sessions.
    if (column(0) != session_name() || column(1) != "f" || column(2) != "1") return std::nullopt;
    return column(3) != "0";
  }
  [[nodiscard]] std::string_view intermediary() override {
    const auto result = session_.query("SELECT pg_backend_pid(), inet_server_port()",
                                       loss::harmless, call_deadline(limit_));
    if (PQntuples(result.get()) != 1) return {};
    if (PQgetvalue(result.get(), 0, 0) != session_name()) return "a pooler";
    // There is no port on a Unix socket.
    const bool other_port =
        PQgetisnull(result.get(), 0, 1) == 0 && PQgetvalue(result.get(), 0, 1) != session_.port();
    return other_port ? "a proxy" : "";
  }
  void interrupt() noexcept override { session_.interrupt(); }
  void limit(std::chrono::milliseconds longest) override {
    limit_ = positive_duration("the time limit", longest, longest_limit);
  }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    check_parameter_count(s, parameters);
    bindings_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      bindings_.add(s.parameters[i], parameters[i]);
    return run_prepared(s.text, bindings_.finish(), s.results);
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                std::span<const parameter> common) override {
    if (check_batch(s, columns, common) == 0) return outcome{.rows = rows(s.results.size())};
    bindings_.clear();
    for (std::size_t i = 0; i < columns.size(); ++i) bindings_.add_array(s.columns[i], columns[i]);
    for (std::size_t i = 0; i < common.size(); ++i) bindings_.add(s.common[i], common[i]);
    return run_prepared(s.text, bindings_.finish(), s.results);
  }

  void run(const std::string& text) override {
    check_statement_text(text);
    const call_deadline deadline(limit_);
    raise_server_limit(deadline);
    // In doubt even inside a transaction: the text may contain a COMMIT.
    session_.query(text, loss::in_doubt, deadline);
  }

  void listen(const std::string& channel) override {
    const bool valid = !channel.empty() && std::ranges::all_of(channel, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!valid)
      throw error(
          errc::invalid_argument,
          "the name of a channel may only contain lower-case letters, digits and underscores");
    const call_deadline deadline(limit_);
    const auto process = session_.query("SELECT pg_backend_pid()", loss::harmless, deadline);
    // A pooler invents the process that its login tells, and may give the next transaction to
    // another session. It does not pass on what comes between transactions.
    if (PQntuples(process.get()) != 1 || PQgetvalue(process.get(), 0, 0) != session_name())
      throw error(errc::unsupported_type,
                  "a pooler such as PgBouncer is in front of the server, and does not pass "
                  "notifications on");
    session_.query("LISTEN " + channel, loss::harmless, deadline);
  }
  [[nodiscard]] std::optional<std::string> notice(std::chrono::milliseconds longest) override {
    return session_.notification(call_deadline(longest));
  }

  void begin() override {
    if (session_.in_transaction())
      throw error(errc::invalid_argument, "a transaction is open already");
    const call_deadline deadline(limit_);
    raise_server_limit(deadline);
    server_limit_at_begin_ = server_limit_;
    begin_until(deadline);
  }

  void commit() override {
    if (!session_.broken()) {
      if (!session_.in_transaction()) throw error(errc::invalid_argument, "no transaction is open");
      // The server would answer COMMIT with a rollback and report success.
      if (session_.in_failed_transaction()) {
        rollback();
        throw error(errc::invalid_argument,
                    "a statement of the transaction had failed, so it was rolled back",
                    {.backend_code = "25P02"});
      }
    }
    session_.query("COMMIT", loss::in_doubt, call_deadline(limit_));
  }

  void rollback() noexcept override {
    if (session_.broken() || !session_.in_transaction()) return;
    try {
      session_.query("ROLLBACK", loss::harmless, call_deadline(limit_));
      server_limit_ = server_limit_at_begin_;
    } catch (...) {
      session_.abandon();
    }
  }

 private:
  static constexpr std::chrono::milliseconds question_limit{1'000};
  static constexpr std::string_view unknown_statement = "26000";
  static constexpr std::string_view duplicate_statement = "42P05";
  static constexpr std::string_view changed_table = "0A000";
  static constexpr std::string_view unknown_setting = "42704";

  /// Begins at READ COMMITTED, whatever the default of the database is: a statement sees what other
  /// transactions committed while it waited for their locks. A transaction plans each statement for
  /// the tables as they are now: a plan that was kept from the time when a table was empty would
  /// read it from end to end.
  void begin_until(const call_deadline& deadline) {
    const std::string begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
    if (plans_each_time_) {
      try {
        session_.query(begin + "; SET LOCAL plan_cache_mode = force_custom_plan", loss::harmless,
                       deadline);
        return;
      } catch (const error& failure) {
        // PostgreSQL 11 and servers that only speak its protocol do not have the setting.
        if (failure.backend_code() != unknown_setting || session_.broken()) throw;
        plans_each_time_ = false;
        rollback();
      }
    }
    session_.query(begin, loss::harmless, deadline);
  }

  /// Runs a statement, prepared if possible. All round trips share one deadline.
  outcome run_prepared(const std::string& text, const wire_parameters& parameters,
                       const std::vector<type>& results) {
    const call_deadline deadline(limit_);
    raise_server_limit(deadline);
    for (;;) {
      if (pooled_) return run_unprepared(text, parameters, results, deadline);
      const std::string* name = statements_.find(text, parameters.type_oids());
      const bool just_prepared = name == nullptr;
      if (just_prepared) name = prepare(text, parameters, deadline);
      if (pooled_) continue;
      try {
        return run_named(*name, text, parameters, results, deadline);
      } catch (const error& failure) {
        forget_stale(failure, *name, just_prepared, deadline);
      }
    }
  }

  /// After a failed execution: forgets a prepared statement that has to be prepared again, or
  /// rethrows. There are two such failures, and both come before the statement ran:
  /// - the table was altered;
  /// - the server does not know the statement, because this is another session.
  void forget_stale(const error& failure, const std::string& name, bool just_prepared,
                    const call_deadline& deadline) {
    const bool unknown = failure.backend_code() == unknown_statement;
    if (!unknown && failure.backend_code() != changed_table) throw;
    if (session_.broken()) throw;
    // A copy: `name` belongs to statements_.
    const std::string stale = name;  // NOLINT(performance-unnecessary-copy-initialization)
    // Unknown right after it was prepared: a pooler uses another session for each statement.
    if (unknown && just_prepared) pooled_ = true;
    if (session_.in_transaction()) {
      // The transaction has failed, so only the caller can try again.
      if (!unknown) to_deallocate_.push_back(stale);
      statements_.remove(stale);
      throw;
    }
    if (!unknown && just_prepared) throw;
    if (unknown) statements_.remove(stale);
    else deallocate(stale, deadline);
  }

  outcome run_named(const std::string& name, std::string_view text,
                    const wire_parameters& parameters, const std::vector<type>& results,
                    const call_deadline& deadline) {
    const auto on_loss = loss_of(text);
    return read(session_.execute(name, parameters, on_loss, deadline), results, on_loss);
  }

  /// Prepares and runs in one message, which a pooler gives to one session.
  outcome run_unprepared(const std::string& text, const wire_parameters& parameters,
                         const std::vector<type>& results, const call_deadline& deadline) {
    check_statement_text(text);
    const auto on_loss = loss_of(text);
    return read(session_.execute_text(text, parameters, on_loss, deadline), results, on_loss);
  }

  [[nodiscard]] loss loss_of(std::string_view text) const {
    return session_.in_transaction() && !may_end_transaction(text) ? loss::harmless
                                                                   : loss::in_doubt;
  }

  static outcome read(const result_handle& result, const std::vector<type>& results, loss on_loss) {
    try {
      if (!results.empty())
        check_column_count(static_cast<std::size_t>(PQnfields(result.get())), results.size());
      std::vector<column_reader> readers;
      readers.reserve(results.size());
      for (std::size_t i = 0; i < results.size(); ++i)
        readers.emplace_back(results[i], PQftype(result.get(), static_cast<int>(i)),
                             PQfname(result.get(), static_cast<int>(i)));
      return read_result(result.get(), results.size(), [&](std::size_t column, auto bytes) {
        return readers[column].read(bytes);
      });
    } catch (const error& failure) {
      // The statement ran, but its result cannot be read.
      throw error(failure.code(), failure.message(), {.in_doubt = on_loss == loss::in_doubt});
    }
  }

  const std::string* prepare(const std::string& text, const wire_parameters& parameters,
                             const call_deadline& deadline) {
    check_statement_text(text);
    while (!to_deallocate_.empty() && !session_.in_failed_transaction()) {
      const auto name = std::move(to_deallocate_.back());
      to_deallocate_.pop_back();
      deallocate(name, deadline);
    }
    if (const auto* obstacle = statements_.obstacle_to(text))
      deallocate(std::string(*obstacle), deadline);
    auto name = prepared_statements::name_of(text, parameters.type_oids());
    try {
      session_.prepare(name, text, parameters, deadline);
    } catch (const error& failure) {
      // Another client has prepared the same statement (the name is its hash) on this connection,
      // so a pooler shares the session.
      if (failure.backend_code() != duplicate_statement) throw;
      pooled_ = true;
      if (session_.in_transaction())
        throw error(errc::unavailable, "a pooler shares the server's sessions; try again",
                    {.backend_code = std::string(duplicate_statement), .transient = true});
    }
    statements_.add(text, parameters.type_oids(), std::move(name));
    return statements_.find(text, parameters.type_oids());
  }

  void deallocate(const std::string& name, const call_deadline& deadline) {
    try {
      session_.query("DEALLOCATE " + name, loss::harmless, deadline);
    } catch (const error& failure) {
      if (failure.backend_code() != unknown_statement) throw;
      // The statement was gone already, but the failure has ended the transaction.
      statements_.remove(name);
      if (session_.in_transaction()) throw;
    }
    statements_.remove(name);
  }

  /// Raises the server's statement_timeout if ours is longer. It need not be lowered: our own limit
  /// ends the call.
  void raise_server_limit(const call_deadline& deadline) {
    const auto needed = limit_ + server_margin;
    if (needed <= server_limit_ || session_.in_failed_transaction()) return;
    session_.query("SET statement_timeout = " + std::to_string(needed.count()), loss::harmless,
                   deadline);
    server_limit_ = needed;
  }

  /// H2 speaks the same protocol, but needs its own driver. It calls itself PostgreSQL 8, so other
  /// servers do not cost a query.
  void refuse_h2() {
    if (!session_.server_setting("server_version").starts_with("8.")) return;
    const auto result = session_.query("SELECT version()", loss::harmless, call_deadline(limit_));
    const std::string_view version =
        PQntuples(result.get()) == 1 ? PQgetvalue(result.get(), 0, 0) : "";
    if (version.find(" H2 ") != std::string_view::npos)
      throw error(errc::invalid_argument,
                  "the server is H2, not PostgreSQL; write h2:// in the URL", {.path = "url"});
  }

  session session_;
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds server_limit_;             // statement_timeout on the server
  std::chrono::milliseconds server_limit_at_begin_{};  // restored by a rollback, which undoes SET
  const int server_process_;
  prepared_statements statements_{};
  std::vector<std::string> to_deallocate_{};  // stale statements of a failed transaction
  // A pooler uses another session for each transaction, so statements are not prepared.
  bool pooled_ = false;
  bool plans_each_time_ = true;  // the server has plan_cache_mode
  bindings bindings_{};
};

}  // namespace

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres

namespace HOLDFAST_NAMESPACE::detail::sql {

std::unique_ptr<connection> connect_postgres(const postgres_options& options) {
  auto complete = postgres::checked(options);
  if (!complete.silent) complete.silent = std::make_shared<silent_hosts>();
  const auto plan = postgres::plan_connect(complete.connection_string);
  const connect_limits limits{.all = complete.connect_timeout, .each = plan.timeout};
  return connect_to_first(
      plan.addresses, limits, *complete.silent, [&](std::size_t host, auto limit) {
        complete.connect_timeout = limit;
        return std::make_unique<postgres::postgres_connection>(complete, plan.targets[host]);
      });
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
