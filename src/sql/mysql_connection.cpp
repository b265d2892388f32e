#include "sql/mysql_connection.hpp"

#include "sql/checked_limit.hpp"
#include "sql/mysql_batch.hpp"
#include "sql/mysql_errors.hpp"
#include "sql/mysql_link.hpp"
#include "sql/mysql_statements.hpp"
#include "sql/mysql_values.hpp"
#include "sql/mysql_words.hpp"

#include <mysql.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

namespace {

using mysql::time_limit;

/// Below this the server's limit is not asked for: no server in use takes less.
constexpr std::size_t small_packet = std::size_t{16} * 1024;

constexpr const char* savepoint = "holdfast_batch";

/// All of the session in one round trip.
std::string settings(const mysql::link& on, std::chrono::milliseconds statement_timeout) {
  // One variable, two names: the old one is gone from MySQL 8, the new one came to MariaDB with 11.1.
  const bool new_name = on.is_mariadb() ? on.version() >= 110101 : on.version() >= 50720;
  // Waits for locks end before we give up: then it is an answer, and the connection lives.
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(std::min(statement_timeout, std::chrono::milliseconds(std::chrono::hours(1))));
  const auto patience = std::to_string(std::max<std::int64_t>(1, seconds.count() - 1));
  return "SET autocommit=1, time_zone='+00:00', sql_mode=CONCAT(@@sql_mode,',STRICT_ALL_TABLES'), " +
         std::string(new_name ? "transaction_isolation" : "tx_isolation") +
         "='READ-COMMITTED', innodb_lock_wait_timeout=LEAST(@@innodb_lock_wait_timeout," + patience +
         "), lock_wait_timeout=LEAST(@@lock_wait_timeout," + patience + ")";
}

mysql_options completed(mysql_options options) {
  if (options.socket.empty() && options.host.empty()) options.host = "127.0.0.1";
  (void)checked_limit(options.statement_timeout);
  return options;
}

/// The link refuses to connect with less than the options ask for.
transport_kind transport_of(const mysql_options& options) {
  if (mysql::is_local(options)) return transport_kind::local;
  if (!options.tls) return transport_kind::plaintext;
  return options.tls_verify ? transport_kind::verified : transport_kind::encrypted;
}

class mysql_connection final : public connection {
 public:
  explicit mysql_connection(const mysql_options& options, time_limit connecting)
      : limit_(options.statement_timeout), transport_(transport_of(options)), link_(options, connecting) {
    link_.query(settings(link_, options.statement_timeout), connecting, false);
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_; }
  [[nodiscard]] transport_kind transport() const noexcept override { return transport_; }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    const auto limit = start_call();
    if (parameters.size() != s.parameters.size()) {
      throw error(errc::invalid_argument, "the statement declares " + std::to_string(s.parameters.size()) + " parameters, " +
                                              std::to_string(parameters.size()) + " were given");
    }
    outcome made{rows(s.results.size()), 0};
    parameters_.start(parameters.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters_.add(s.parameters[i], parameters[i]);
      bytes += mysql::wire_size(parameters[i]);
    }
    if (bytes > small_packet && bytes >= largest_packet(limit)) {
      throw error(errc::too_large, "the statement needs " + std::to_string(bytes) + " bytes, the server takes " +
                                       std::to_string(largest_packet(limit)) + "; raise its max_allowed_packet");
    }
    run_prepared(s.text, s.results, limit, made);
    return made;
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common) override {
    const auto limit = start_call();
    outcome made{rows(s.results.size()), 0};
    const auto count = mysql::count_rows(s, columns, common);
    if (count == 0) return made;
    mysql::batch_limits limits;
    const bool small = mysql::wire_size(columns, common) <= small_packet;
    limits.packet = small ? std::numeric_limits<std::size_t>::max() : largest_packet(limit);
    const auto parts = mysql::cut(columns, common, limits);
    if (parts.size() == 1) {
      run_part(s, columns, common, parts.front(), limit, made);
      return made;
    }
    all_or_nothing(limit, [&] {
      for (const auto& part : parts) run_part(s, columns, common, part, limit, made);
    });
    return made;
  }

  void run(const std::string& text) override {
    const auto limit = start_call();
    guard([&] { link_.query(text, limit, sends_change(mysql::effect_of(text))); });
  }

  void begin() override {
    const auto limit = start_call();
    if (open_) throw error(errc::invalid_argument, "a transaction is open already");
    link_.query("START TRANSACTION", limit, false);
    open_ = true;
  }

  void commit() override {
    if (!open_) throw error(errc::invalid_argument, "no transaction is open");
    const auto limit = start_call();
    commit_within(limit);
  }

  void rollback() noexcept override {
    if (!open_) return;
    open_ = false;
    doomed_ = false;
    if (link_.broken()) return;
    try {
      link_.query("ROLLBACK", time_limit::in(limit_), false);
    } catch (...) {
      link_.break_off();
    }
  }

  void limit(std::chrono::milliseconds longest) override { limit_ = checked_limit(longest); }

  [[nodiscard]] bool broken() const noexcept override { return link_.broken(); }

 private:
  time_limit start_call() {
    if (doomed_) {
      throw error(errc::unavailable, "the transaction was rolled back by the server; roll back and start again",
                  {.path = {}, .backend_code = {}, .transient = true, .in_doubt = false});
    }
    return time_limit::in(limit_);
  }

  /// Would a loss leave the caller in doubt? A transaction that is not committed is rolled back, so rows changed inside one do not count.
  [[nodiscard]] bool sends_change(mysql::effect of) const { return of == mysql::effect::anything || (of == mysql::effect::rows && !open_); }

  /// Runs something that the server may refuse in a way that takes the transaction with it.
  template <class Call>
  void guard(Call call) {
    try {
      call();
    } catch (const error&) {
      if (open_ && mysql::ends_transaction(link_.last_failure())) doomed_ = true;
      throw;
    }
  }

  void commit_within(time_limit limit) {
    try {
      link_.query("COMMIT", limit, true);
    } catch (...) {
      rollback();
      throw;
    }
    open_ = false;
  }

  /// In a transaction of its own, or behind a savepoint of the caller's.
  void all_or_nothing(time_limit limit, const std::function<void()>& work) {
    if (open_) {
      link_.query(std::string("SAVEPOINT ") + savepoint, limit, false);
      try {
        work();
      } catch (...) {
        undo_to_savepoint();
        throw;
      }
      return;
    }
    link_.query("START TRANSACTION", limit, false);
    open_ = true;
    try {
      work();
    } catch (...) {
      rollback();
      throw;
    }
    commit_within(limit);
  }

  void undo_to_savepoint() noexcept {
    if (link_.broken() || doomed_) return;
    try {
      link_.query(std::string("ROLLBACK TO SAVEPOINT ") + savepoint, time_limit::in(limit_), false);
    } catch (...) {
      doomed_ = true;
    }
  }

  void run_part(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common,
                mysql::row_range part, time_limit limit, outcome& into) {
    parameters_.start(part.size() * columns.size() + common.size());
    for (std::size_t row = part.first; row < part.last; ++row) {
      for (std::size_t column = 0; column < columns.size(); ++column) parameters_.add(s.columns[column], columns[column][row]);
    }
    for (std::size_t i = 0; i < common.size(); ++i) parameters_.add(s.common[i], common[i]);
    run_prepared(mysql::text_for(s, part.size()), s.results, limit, into);
  }

  void run_prepared(const std::string& text, std::span<const type> results, time_limit limit, outcome& into) {
    guard([&] {
      const auto& prepared = statements_.get(text, link_, limit);
      const bool sent_change = sends_change(prepared.does);
      parameters_.bind_to(*prepared.handle);
      try {
        link_.execute(*prepared.handle, limit, sent_change);
      } catch (const error&) {
        if (mysql::ends_statement(link_.last_failure())) statements_.forget(text, link_, limit);
        throw;
      }
      collect(*prepared.handle, results, limit, sent_change, into);
    });
  }

  /// What the server answered. The id it gave to the first new row (mysql_stmt_insert_id) is to be had here, and nowhere later.
  void collect(st_mysql_stmt& executed, std::span<const type> results, time_limit limit, bool sent_change, outcome& into) {
    if (mysql_stmt_field_count(&executed) > 0) {
      link_.store(executed, limit, sent_change);
      try {
        mysql::read_rows(executed, results, into.rows);
      } catch (...) {
        skip_the_rest(executed, limit);
        throw;
      }
    } else {
      into.affected += mysql_stmt_affected_rows(&executed);
      into.insert_id = mysql_stmt_insert_id(&executed);
    }
    link_.finish(executed, limit, sent_change);
  }

  /// A row that cannot be read is no reason to lose the connection.
  void skip_the_rest(st_mysql_stmt& executed, time_limit limit) noexcept {
    try {
      link_.finish(executed, limit, false);
    } catch (...) {
      link_.break_off();
    }
  }

  /// Asked once, and only by those who send much.
  std::size_t largest_packet(time_limit limit) {
    if (!largest_packet_) {
      const auto answer = link_.ask("SELECT @@max_allowed_packet", limit);
      std::size_t bytes = 0;
      const auto [end, problem] = std::from_chars(answer.data(), answer.data() + answer.size(), bytes);
      if (problem != std::errc()) throw error(errc::malformed, "the server does not say what its max_allowed_packet is");
      largest_packet_ = bytes;
    }
    return *largest_packet_;
  }

  std::chrono::milliseconds limit_;
  transport_kind transport_;
  bool open_ = false;
  bool doomed_ = false;  ///< the server ended the transaction, the caller has not yet
  std::optional<std::size_t> largest_packet_{};
  mysql::bound_parameters parameters_{};
  mysql::prepared_statements statements_{};  ///< before the link: freed after it is closed, which then costs no packets
  mysql::link link_;
  dialect_id dialect_ = link_.is_mariadb() ? dialect_id::mariadb : dialect_id::mysql;
};

}  // namespace

std::unique_ptr<connection> connect_mysql(const mysql_options& options) {
  const auto whole = completed(options);
  return std::make_unique<mysql_connection>(whole, time_limit::in(checked_limit(whole.connect_timeout)));
}

}  // namespace HOLDFAST_NAMESPACE::sql
