#pragma once

#include <holdfast/version.hpp>

#include "sql/answer_limits.hpp"
#include "sql/mysql_answer_size.hpp"
#include "sql/mysql_connection.hpp"
#include "sql/mysql_greeting.hpp"
#include "sql/mysql_library.hpp"
#include "sql/mysql_watchdog.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct st_mysql;
struct st_mysql_res;
struct st_mysql_stmt;

namespace HOLDFAST_NAMESPACE::sql::mysql {

/// Frees a prepared statement; tells the server only as long as the connection lives.
struct statement_closer {
  void operator()(st_mysql_stmt* statement) const noexcept;
};
using statement_handle = std::unique_ptr<st_mysql_stmt, statement_closer>;

/// Whether the server is on this machine.
[[nodiscard]] bool is_local(const mysql_options& options) noexcept;

/// When one call has to be over, and how long it had: all round trips of a call share it.
struct time_limit {
  std::chrono::steady_clock::time_point until;
  std::chrono::milliseconds whole;

  [[nodiscard]] std::chrono::steady_clock::time_point start() const { return until - whole; }
  [[nodiscard]] static time_limit in(std::chrono::milliseconds from_now);
};

/// The wire: every function is one round trip that ends at its limit, whatever the server does. The client library counts in seconds and
/// starts anew with each packet, so we use its non-blocking calls and wait ourselves. With TLS those calls block all the same, and a
/// watchdog ends them. The calls do not wait while the server sends without a pause, so limits are checked as the bytes arrive, too.
///
/// An answer that needs too much memory breaks the connection: largest_result for rows, largest_answer for anything else.
///
/// `sent_change` says that what is sent may change data outside a transaction: a loss is then in doubt.
class link final : private receiver {
 public:
  /// Connects and logs in; the session has the server's settings.
  explicit link(const mysql_options& options, time_limit limit);
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  ~link();

  /// Text without parameters; rows are thrown away.
  void query(std::string_view text, time_limit limit, bool sent_change);
  /// The one value of the one row, empty when there is none.
  [[nodiscard]] std::string ask(std::string_view text, time_limit limit);

  [[nodiscard]] statement_handle prepare(std::string_view text, time_limit limit);
  void execute(st_mysql_stmt& statement, time_limit limit, bool sent_change);
  /// Fetches the rows of an executed statement into memory; reading them costs no round trip any more.
  void store(st_mysql_stmt& statement, time_limit limit, bool sent_change);
  /// Throws away whatever an executed statement still has to say (procedures have more than one result).
  void finish(st_mysql_stmt& statement, time_limit limit, bool sent_change);
  /// Never throws, waits for no answer.
  void close(statement_handle statement, time_limit limit) noexcept;

  [[nodiscard]] bool broken() const noexcept { return broken_; }
  /// From now on it is. Wakes nobody, sends nothing.
  void break_off() noexcept;

  [[nodiscard]] bool is_mariadb() const;
  /// 10.11.19 is 101119.
  [[nodiscard]] unsigned long version() const;
  /// The number of the last failure, 0 after a success.
  [[nodiscard]] unsigned last_failure() const noexcept { return last_failure_; }

 private:
  template <class Start, class Continue>
  void drive(time_limit limit, Start start, Continue go_on, std::size_t most = largest_answer);
  void on_received(std::span<const std::byte> bytes) noexcept override;
  [[nodiscard]] int wait(int wanted, time_limit limit);
  /// Whether the client library may read the server's first packet: it logs in without TLS where the server offers none, and does not
  /// survive each packet that is not a greeting.
  [[nodiscard]] bool may_answer_greeting(int socket, time_limit limit);
  [[nodiscard]] bool accepts(greeting kind) noexcept;
  void shut_down() noexcept;
  void check_alive(time_limit limit);
  void drop_rows(time_limit limit, bool sent_change);
  /// The next row of a result, null after the last. Rows that came before are gone: they never need memory all at once.
  [[nodiscard]] char** fetch(st_mysql_res& rows, time_limit limit, bool sent_change);
  [[noreturn]] void fail(time_limit limit, bool sent_change);
  [[noreturn]] void fail(st_mysql_stmt& statement, time_limit limit, bool sent_change);
  [[noreturn]] void fail(unsigned number, const char* state, const char* text, time_limit limit, bool sent_change);

  st_mysql* handle_ = nullptr;
  std::string secret_;
  std::unique_ptr<watchdog> watchdog_{};  ///< only with TLS
  bool needs_tls_;
  bool greeted_ = false;         ///< the server's first packet was looked at
  bool offers_no_tls_ = false;   ///< TLS is needed, and the packet says that the server cannot encrypt
  bool not_a_greeting_ = false;  ///< the packet is not for the client library
  bool connected_ = false;
  answer_size answer_{};
  std::size_t largest_answer_ = 0;               ///< of the call that runs
  std::chrono::steady_clock::time_point end_{};  ///< when the call that runs must be over
  bool answer_too_large_ = false;
  bool broken_ = false;
  bool timed_out_ = false;
  unsigned last_failure_ = 0;
  std::chrono::steady_clock::time_point last_call_{};
};

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
