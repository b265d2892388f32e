#include "sql/mysql/connection.hpp"

#include "base/duration_limit.hpp"
#include "sql/driver_support.hpp"
#include "sql/mysql/batch.hpp"
#include "sql/mysql/errors.hpp"
#include "sql/mysql/login.hpp"
#include "sql/mysql/session.hpp"
#include "sql/mysql/statements.hpp"
#include "sql/mysql/values.hpp"

#include <mysql.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

/// Every server in use accepts packets of this size, so its limit is asked only for larger ones.
constexpr std::size_t small_packet = std::size_t{16} * 1024;

constexpr const char* savepoint = "holdfast_batch";

mysql_options checked(mysql_options options) {
  if (options.socket.empty() && options.host.empty()) options.host = "127.0.0.1";
  options.connect_timeout = positive_duration("connect_timeout", options.connect_timeout);
  options.statement_timeout = positive_duration("statement_timeout", options.statement_timeout);
  return options;
}

/// All settings of a session in one statement.
std::string session_settings(const session& session, std::chrono::milliseconds statement_timeout) {
  // MySQL 8 removed the old name of the variable; MariaDB has the new one since 11.1.
  const bool new_name =
      session.is_mariadb() ? session.version() >= 110101 : session.version() >= 50720;
  // Lock waits end before our own limit: then the failure is an answer, and the connection stays
  // usable.
  const auto seconds = std::chrono::floor<std::chrono::seconds>(
      std::min(statement_timeout, std::chrono::milliseconds(std::chrono::hours(1))));
  const auto lock_timeout = std::to_string(std::max<std::int64_t>(1, seconds.count() - 1));
  return "SET autocommit=1, time_zone='+00:00', "
         "sql_mode=CONCAT(@@sql_mode,',STRICT_ALL_TABLES'), " +
         std::string(new_name ? "transaction_isolation" : "tx_isolation") +
         "='READ-COMMITTED', innodb_lock_wait_timeout=LEAST(@@innodb_lock_wait_timeout," +
         lock_timeout + "), lock_wait_timeout=LEAST(@@lock_wait_timeout," + lock_timeout + ")";
}

/// Throws if the server refuses writes. An administrator could write to a replica, so the settings
/// count, not an attempt.
void require_writable(session& session, const std::string& address, const call_deadline& deadline) {
  const auto refuse = [&](const char* reason, const char* number) {
    throw error(errc::unavailable, "the server at " + address + " " + reason,
                {.backend_code = number, .transient = true});
  };
  // A node that has left its cluster refuses this query, too, with error 1047.
  // MySQL names a state 0, MariaDB OFF.
  const auto states = session.query_value(
      "SELECT CONCAT(@@global.read_only, '/', @@global.innodb_read_only)", deadline);
  const auto is_off = [](std::string_view state) { return state == "0" || state == "OFF"; };
  const std::string_view text = states;
  const auto slash = std::min(text.find('/'), text.size());
  if (!is_off(text.substr(0, slash)) || !is_off(text.substr(std::min(slash + 1, text.size()))))
    refuse("is read-only", "1290");
  if (!session.is_mariadb()) return;
  const auto is_on = session.query_value(
      "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = "
      "'WSREP_ON'",
      deadline);
  if (is_on != "ON") return;
  const auto is_ready = session.query_value(
      "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = "
      "'WSREP_READY'",
      deadline);
  if (is_ready != "ON") refuse("is not part of its Galera cluster", "1047");
}

class mysql_connection final : public connection {
 public:
  mysql_connection(const mysql_options& options, const call_deadline& deadline)
      : limit_(options.statement_timeout),
        transport_(transport_of(options)),
        session_(options, deadline),
        dialect_(session_.is_mariadb() ? dialect_id::mariadb : dialect_id::mysql) {
    session_.query(session_settings(session_, options.statement_timeout), deadline, loss::harmless);
    if (options.must_accept_writes) require_writable(session_, address_of(options), deadline);
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_; }
  [[nodiscard]] transport_kind transport() const noexcept override { return transport_; }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    const auto deadline = start_call();
    check_parameter_count(s, parameters);
    bindings_.start(parameters.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      bindings_.add(s.parameters[i], parameters[i]);
      bytes += wire_size(parameters[i]);
    }
    if (bytes > small_packet && bytes >= packet_limit(deadline)) {
      throw error(errc::too_large,
                  "the statement needs " + std::to_string(bytes) + " bytes, the server takes " +
                      std::to_string(packet_limit(deadline)) + "; raise its max_allowed_packet");
    }
    outcome result{.rows = rows(s.results.size())};
    run_prepared(s.text, s.results, deadline, result);
    return result;
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                std::span<const parameter> common) override {
    const auto deadline = start_call();
    outcome result{.rows = rows(s.results.size())};
    if (check_batch(s, columns, common) == 0) return result;
    batch_limits limits;
    limits.packet = wire_size(columns, common) <= small_packet
                        ? std::numeric_limits<std::size_t>::max()
                        : packet_limit(deadline);
    const auto parts = divide_rows(columns, common, limits);
    if (parts.size() == 1) {
      run_part(s, columns, common, parts.front(), deadline, result);
      return result;
    }
    run_atomically(deadline, [&] {
      for (const auto& part : parts) run_part(s, columns, common, part, deadline, result);
    });
    return result;
  }

  void run(const std::string& text) override {
    const auto deadline = start_call();
    watch_transaction([&] { session_.query(text, deadline, loss_of(effect_of(text))); });
  }

  void begin() override {
    const auto deadline = start_call();
    if (in_transaction_) throw error(errc::invalid_argument, "a transaction is open already");
    begin_until(deadline);
  }

  void commit() override {
    if (!in_transaction_) throw error(errc::invalid_argument, "no transaction is open");
    commit_until(start_call());
  }

  void rollback() noexcept override {
    if (!in_transaction_) return;
    in_transaction_ = false;
    rolled_back_ = false;
    if (session_.broken()) return;
    try {
      session_.query("ROLLBACK", call_deadline(limit_), loss::harmless);
    } catch (...) {
      session_.abandon();
    }
  }

  void limit(std::chrono::milliseconds longest) override {
    limit_ = positive_duration("the time limit", longest);
  }

  [[nodiscard]] bool broken() const noexcept override { return session_.broken(); }
  [[nodiscard]] bool read_only() const noexcept override { return session_.read_only(); }
  [[nodiscard]] bool responds(std::chrono::milliseconds longest) noexcept override {
    try {
      session_.ping(call_deadline(longest));
    } catch (...) {
      session_.abandon();
    }
    return !session_.broken();
  }

 private:
  call_deadline start_call() {
    if (rolled_back_) {
      throw error(errc::unavailable,
                  "the transaction was rolled back by the server; roll back and start again",
                  {.transient = true});
    }
    return call_deadline(limit_);
  }

  /// The server rolls back the rows of an open transaction if the connection is lost.
  [[nodiscard]] loss loss_of(effect changes) const {
    const bool in_doubt =
        changes == effect::anything || (changes == effect::rows && !in_transaction_);
    return in_doubt ? loss::in_doubt : loss::harmless;
  }

  /// Runs `call` and notices an error with which the server rolled back the transaction.
  template <class Call>
  void watch_transaction(Call call) {
    try {
      call();
    } catch (const error&) {
      if (in_transaction_ && ends_transaction(session_.last_failure())) rolled_back_ = true;
      throw;
    }
  }

  void begin_until(const call_deadline& deadline) {
    session_.query("START TRANSACTION", deadline, loss::harmless);
    in_transaction_ = true;
  }

  void commit_until(const call_deadline& deadline) {
    try {
      session_.query("COMMIT", deadline, loss::in_doubt);
    } catch (...) {
      rollback();
      throw;
    }
    in_transaction_ = false;
  }

  /// Runs `work` in a transaction of its own, or after a savepoint in the caller's.
  void run_atomically(const call_deadline& deadline, const std::function<void()>& work) {
    if (in_transaction_) {
      session_.query(std::string("SAVEPOINT ") + savepoint, deadline, loss::harmless);
      try {
        work();
      } catch (...) {
        rollback_to_savepoint();
        throw;
      }
      return;
    }
    begin_until(deadline);
    try {
      work();
    } catch (...) {
      rollback();
      throw;
    }
    commit_until(deadline);
  }

  void rollback_to_savepoint() noexcept {
    if (session_.broken() || rolled_back_) return;
    try {
      session_.query(std::string("ROLLBACK TO SAVEPOINT ") + savepoint, call_deadline(limit_),
                     loss::harmless);
    } catch (...) {
      rolled_back_ = true;
    }
  }

  void run_part(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                std::span<const parameter> common, row_range part, const call_deadline& deadline,
                outcome& result) {
    bindings_.start(part.size() * columns.size() + common.size());
    for (std::size_t row = part.first; row < part.last; ++row) {
      for (std::size_t column = 0; column < columns.size(); ++column)
        bindings_.add(s.columns[column], columns[column][row]);
    }
    for (std::size_t i = 0; i < common.size(); ++i) bindings_.add(s.common[i], common[i]);
    run_prepared(multi_row_text(s, part.size()), s.results, deadline, result);
  }

  void run_prepared(const std::string& text, std::span<const type> results,
                    const call_deadline& deadline, outcome& result) {
    watch_transaction([&] {
      const auto& prepared = statements_.get(text, session_, deadline);
      const auto on_loss = loss_of(prepared.effect);
      bindings_.bind_to(*prepared.handle);
      try {
        session_.execute(*prepared.handle, deadline, on_loss);
      } catch (const error&) {
        if (ends_statement(session_.last_failure())) statements_.forget(text, session_, deadline);
        throw;
      }
      read_result(*prepared.handle, results, deadline, on_loss, result);
    });
  }

  void read_result(st_mysql_stmt& executed, std::span<const type> results,
                   const call_deadline& deadline, loss on_loss, outcome& result) {
    if (mysql_stmt_field_count(&executed) > 0) {
      session_.store_rows(executed, deadline, on_loss);
      try {
        read_rows(executed, results, result.rows);
      } catch (...) {
        discard_rest(executed, deadline);
        throw;
      }
    } else {
      result.affected += mysql_stmt_affected_rows(&executed);
      result.insert_id = mysql_stmt_insert_id(&executed);
    }
    session_.finish(executed, deadline, on_loss);
  }

  /// A row that cannot be read must not break the connection.
  void discard_rest(st_mysql_stmt& executed, const call_deadline& deadline) noexcept {
    try {
      session_.finish(executed, deadline, loss::harmless);
    } catch (...) {
      session_.abandon();
    }
  }

  /// max_allowed_packet of the server, asked once.
  std::size_t packet_limit(const call_deadline& deadline) {
    if (!packet_limit_) {
      const auto text = session_.query_value("SELECT @@max_allowed_packet", deadline);
      std::size_t bytes = 0;
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), bytes);
      if (problem != std::errc())
        throw error(errc::malformed, "the server does not tell its max_allowed_packet");
      packet_limit_ = bytes;
    }
    return *packet_limit_;
  }

  std::chrono::milliseconds limit_;
  transport_kind transport_;
  bool in_transaction_ = false;
  bool rolled_back_ = false;  // by the server; the caller has not called rollback() yet
  std::optional<std::size_t> packet_limit_{};
  bindings bindings_{};
  // Before session_: destroyed after the connection is closed, so that freeing sends no packets.
  prepared_statements statements_{};
  session session_;
  dialect_id dialect_;
};

}  // namespace

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql

namespace HOLDFAST_NAMESPACE::detail::sql {

std::unique_ptr<connection> connect_mysql(const mysql_options& options) {
  const auto complete = mysql::checked(options);
  return std::make_unique<mysql::mysql_connection>(complete,
                                                   call_deadline(complete.connect_timeout));
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
