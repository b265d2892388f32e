#pragma once

#include <holdfast/version.hpp>

#include "sql/answer_limits.hpp"
#include "sql/call_deadline.hpp"
#include "sql/mysql/answer_size.hpp"
#include "sql/mysql/connection.hpp"
#include "sql/mysql/greeting.hpp"
#include "sql/mysql/library.hpp"
#include "sql/mysql/watchdog.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct st_mysql;
struct st_mysql_res;
struct st_mysql_stmt;

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// Frees a prepared statement. Tells the server only while the connection is open.
struct close_statement {
  void operator()(st_mysql_stmt* statement) const noexcept;
};
using statement_handle = std::unique_ptr<st_mysql_stmt, close_statement>;

/// A session over libmariadb. No call takes longer than its deadline, whatever the server does. The
/// timeouts of the library have whole seconds and start again with each packet, so this class uses
/// its non-blocking calls and waits itself. With TLS these calls block nevertheless, and a watchdog
/// interrupts them. The calls do not wait while a server sends without a pause, so the limits are
/// also checked when bytes arrive.
///
/// An answer that needs too much memory breaks the session: more than largest_result for the rows
/// of a statement, more than largest_answer for anything else.
class session final : private receive_observer {
 public:
  /// Connects and logs in. Does not change the settings of the session.
  explicit session(const mysql_options& options, const call_deadline& deadline);
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  /// Runs text without parameters and discards the rows.
  void query(std::string_view text, const call_deadline& deadline, loss on_loss);
  /// Runs a query and returns the first value of the first row, or an empty text.
  [[nodiscard]] std::string query_value(std::string_view text, const call_deadline& deadline);

  [[nodiscard]] statement_handle prepare(std::string_view text, const call_deadline& deadline);
  void execute(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss);
  /// Receives all rows of an executed statement. To read them costs no round trip then.
  void store_rows(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss);
  /// Discards the remaining results of an executed statement. (Procedures return several.)
  void finish(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss);
  /// Closes a statement. Does not wait for an answer.
  void close(statement_handle statement, const call_deadline& deadline) noexcept;

  /// Asks the server for a sign of life.
  void ping(const call_deadline& deadline);

  [[nodiscard]] bool broken() const noexcept { return broken_; }
  /// Whether the server refused a write because it is read-only.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  /// Marks the session as broken.
  void abandon() noexcept { broken_ = true; }

  [[nodiscard]] bool is_mariadb() const;
  /// 10.11.19 is 101119.
  [[nodiscard]] unsigned long version() const;
  /// The error number of the last call; 0 after a success.
  [[nodiscard]] unsigned last_failure() const noexcept { return last_failure_; }

 private:
  void connect(const mysql_options& options, const call_deadline& deadline);
  template <class Start, class Continue>
  void drive(const call_deadline& deadline, Start start, Continue resume,
             std::size_t answer_limit = largest_answer);
  void on_received(std::span<const std::byte> bytes) noexcept override;
  [[nodiscard]] int wait_for_socket(int events, const call_deadline& deadline);
  [[nodiscard]] bool may_answer_greeting(int socket, const call_deadline& deadline);
  [[nodiscard]] bool accept_greeting(greeting kind) noexcept;
  void shut_down() noexcept;
  void check_alive(const call_deadline& deadline);
  void send_query(std::string_view text, const call_deadline& deadline, loss on_loss);
  [[nodiscard]] char** fetch_row(st_mysql_res& result, const call_deadline& deadline, loss on_loss);
  void discard_results(const call_deadline& deadline, loss on_loss);
  [[noreturn]] void fail(const call_deadline& deadline, loss on_loss);
  [[noreturn]] void fail(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss);
  [[noreturn]] void fail(unsigned number, const char* state, const char* text,
                         const call_deadline& deadline, loss on_loss);

  st_mysql* handle_ = nullptr;
  std::string secret_;
  std::unique_ptr<watchdog> watchdog_{};  // only with TLS
  bool needs_tls_;
  bool greeting_read_ = false;
  bool offers_no_tls_ = false;   // TLS is required, but the greeting does not offer it
  bool not_a_greeting_ = false;  // the library must not read the first packet
  bool connected_ = false;
  answer_size answer_{};
  std::size_t answer_limit_ = 0;                     // of the current call
  std::chrono::steady_clock::time_point expires_{};  // when the current call must be over
  bool answer_too_large_ = false;
  bool broken_ = false;
  bool read_only_ = false;
  bool timed_out_ = false;
  unsigned last_failure_ = 0;
  std::chrono::steady_clock::time_point last_call_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
