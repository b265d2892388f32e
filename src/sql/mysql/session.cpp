#include "sql/mysql/session.hpp"

#include "sql/mysql/errors.hpp"
#include "sql/mysql/login.hpp"
#include "sql/read_only_server.hpp"
#include "sql/tcp_keepalive.hpp"

#include <errmsg.h>
#include <fcntl.h>
#include <mysql.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

/// Only a connection that was idle for longer is checked before sending, because the check is a
/// system call. If the server closed it within this time, the error is in doubt, which is safe.
constexpr auto idle_before_check = std::chrono::milliseconds(10);

/// How long an answer may go on arriving after the deadline: an answer that has arrived is read
/// even if this thread is a little late.
constexpr auto late_answer_grace = std::chrono::milliseconds(100);

struct free_result {
  void operator()(MYSQL_RES* result) const noexcept { mysql_free_result(result); }
};
using result_handle = std::unique_ptr<MYSQL_RES, free_result>;

/// libmariadb opens its sockets without this flag: programs that the application starts would
/// inherit a connection that is logged in.
void close_on_exec(int socket) noexcept { (void)::fcntl(socket, F_SETFD, FD_CLOEXEC); }

bool has_bytes(int socket) noexcept {
  int count = 0;
  return ::ioctl(socket, FIONREAD, &count) == 0 && count > 0;
}

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

void close_statement::operator()(st_mysql_stmt* statement) const noexcept {
  mysql_stmt_close(statement);
}

session::session(const mysql_options& options, const call_deadline& deadline)
    : secret_(options.password), needs_tls_(options.tls) {
  use_library();
  if (options.tls) watchdog_ = std::make_unique<watchdog>();
  handle_ = mysql_init(nullptr);
  if (handle_ == nullptr) throw std::bad_alloc();
  try {
    connect(options, deadline);
  } catch (...) {
    const sigpipe_guard guard(watchdog_ != nullptr);
    mysql_close(handle_);
    throw;
  }
}

void session::connect(const mysql_options& options, const call_deadline& deadline) {
  configure(handle_, options);
  // The library ignores the socket if there is a host.
  const char* const host = options.socket.empty() ? options.host.c_str() : nullptr;
  MYSQL* result = nullptr;
  drive(
      deadline,
      [&] {
        return mysql_real_connect_start(&result, handle_, host, text_or_null(options.user),
                                        options.password.c_str(), text_or_null(options.database),
                                        options.port, text_or_null(options.socket), 0);
      },
      [&](int ready) { return mysql_real_connect_cont(&result, handle_, ready); });
  if (offers_no_tls_) throw without_tls(address_of(options));
  if (not_a_greeting_) throw not_a_server(address_of(options));
  if (answer_too_large_) throw answer_too_large(answer_limit_, loss::harmless);
  if (timed_out_) throw could_not_connect_in_time(address_of(options), deadline.limit);
  if (result == nullptr) {
    throw could_not_connect(address_of(options),
                            {mysql_errno(handle_), mysql_sqlstate(handle_), mysql_error(handle_)},
                            secret_);
  }
  connected_ = true;
  close_on_exec(mysql_get_socket(handle_));
  if (needs_tls_ && mysql_get_ssl_cipher(handle_) == nullptr)
    throw without_tls(address_of(options));
  if (watchdog_) watchdog_->watch(mysql_get_socket(handle_));
  if (options.keepalive.count() > 0)
    enable_keepalive(mysql_get_socket(handle_), tcp_keepalive(options.keepalive));
}

session::~session() {
  const sigpipe_guard guard(watchdog_ != nullptr);
  // mysql_close sends a packet, which must not wait for a server that hangs: with the socket shut
  // down it fails immediately.
  if (broken_) shut_down();
  mysql_close(handle_);
}

/// Runs a non-blocking call of the library until it ends, or until the deadline.
template <class Start, class Continue>
void session::drive(const call_deadline& deadline, Start start, Continue resume,
                    std::size_t answer_limit) {
  const sigpipe_guard guard(watchdog_ != nullptr);
  const receive_observation observation(*this);
  timed_out_ = false;
  answer_.restart();
  answer_limit_ = answer_limit;
  expires_ = deadline.expires;
  if (watchdog_) watchdog_->arm(deadline.expires);
  int events = start();
  while (events != 0) events = resume(wait_for_socket(events, deadline));
  if (watchdog_ && watchdog_->disarm()) timed_out_ = true;
  if (timed_out_ || answer_too_large_) broken_ = true;
}

/// Checks what the library has received. After the socket is shut down, the library finds the end
/// of the connection, sends nothing and ends the call.
void session::on_received(std::span<const std::byte> bytes) noexcept {
  answer_.add(bytes);
  // A Unix socket connects without a wait, so the first packet may arrive before wait_for_socket()
  // saw it.
  const bool refused =
      !std::exchange(greeting_read_, true) && !accept_greeting(read_greeting(bytes));
  if (refused) return shut_down();
  if (answer_.cost() > answer_limit_) answer_too_large_ = true;
  else if (call_deadline::clock::now() > expires_ + late_answer_grace) timed_out_ = true;
  if (answer_too_large_ || timed_out_) shut_down();
}

/// Waits for the events (MYSQL_WAIT_...) that a call of the library needs. Returns what happened.
int session::wait_for_socket(int events, const call_deadline& deadline) {
  const int socket = mysql_get_socket(handle_);
  // While it connects, the library may try several addresses, each with another socket.
  if (!connected_) close_on_exec(socket);
  if (watchdog_ && !connected_) watchdog_->watch(socket);
  pollfd polled{.fd = socket, .events = 0, .revents = 0};
  if ((events & MYSQL_WAIT_READ) != 0) polled.events |= POLLIN;
  if ((events & MYSQL_WAIT_WRITE) != 0) polled.events |= POLLOUT;
  if ((events & MYSQL_WAIT_EXCEPT) != 0) polled.events |= POLLPRI;
  while (!timed_out_ && !answer_too_large_ && !deadline.expired()) {
    const int ready = ::poll(&polled, 1, deadline.poll_timeout());
    // The library itself has to notice an error or a closed connection. But a server can send its
    // first packet before it closes the connection.
    const bool failed = (polled.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    if (ready > 0 && !greeting_read_ && (!failed || has_bytes(socket)) &&
        !may_answer_greeting(socket, deadline))
      break;
    if (ready > 0) return events & ~MYSQL_WAIT_TIMEOUT;
    if (ready < 0 && errno != EINTR) break;
  }
  // The call must be resumed, or it would leak its memory. It gets a timeout and ends. The socket
  // is shut down first, so that nothing it still does can block.
  if (!answer_too_large_) timed_out_ = true;
  shut_down();
  return MYSQL_WAIT_TIMEOUT;
}

/// Whether the library may read the first packet of the server. It must not if the server does not
/// offer TLS: the library would then log in without. Nor if the packet is not a greeting: some of
/// those crash the library.
bool session::may_answer_greeting(int socket, const call_deadline& deadline) {
  while (!deadline.expired()) {
    pollfd polled{.fd = socket, .events = POLLIN | POLLRDHUP, .revents = 0};
    const int ready = ::poll(&polled, 1, deadline.poll_timeout());
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    std::array<std::byte, longest_greeting> bytes{};
    const auto count =
        ready < 0 ? -1 : ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    // The library explains a lost connection.
    const auto kind = count <= 0
                          ? greeting::failure
                          : read_greeting(std::span(bytes).first(static_cast<std::size_t>(count)));
    const bool closed = (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    if (kind == greeting::incomplete && !closed) {
      // poll() would return immediately, because a part of the greeting is there.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    greeting_read_ = true;
    return accept_greeting(kind);
  }
  return false;
}

/// Returns whether the library may read the greeting, and records why not.
bool session::accept_greeting(greeting kind) noexcept {
  not_a_greeting_ = kind == greeting::not_a_greeting;
  offers_no_tls_ = needs_tls_ && kind == greeting::without_tls;
  return !not_a_greeting_ && !offers_no_tls_;
}

void session::shut_down() noexcept {
  const int socket = mysql_get_socket(handle_);
  if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

/// Servers close idle connections. If that is noticed before anything is sent, the failure is not
/// in doubt.
void session::check_alive(const call_deadline& deadline) {
  use_library();
  const auto idle = deadline.started() - std::exchange(last_call_, deadline.started());
  if (broken_) throw already_broken();
  if (idle < idle_before_check) return;
  pollfd polled{.fd = mysql_get_socket(handle_), .events = POLLRDHUP, .revents = 0};
  if (::poll(&polled, 1, 0) <= 0) return;
  if ((polled.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0) return;
  broken_ = true;
  last_failure_ = CR_SERVER_GONE_ERROR;
  throw closed_while_idle();
}

void session::query(std::string_view text, const call_deadline& deadline, loss on_loss) {
  send_query(text, deadline, on_loss);
  discard_results(deadline, on_loss);
  last_failure_ = 0;
}

std::string session::query_value(std::string_view text, const call_deadline& deadline) {
  send_query(text, deadline, loss::harmless);
  const result_handle result(mysql_use_result(handle_));
  if (!result) fail(deadline, loss::harmless);
  std::string first_value;
  char** row = fetch_row(*result, deadline, loss::harmless);
  if (row != nullptr && row[0] != nullptr) first_value = row[0];
  while (row != nullptr) row = fetch_row(*result, deadline, loss::harmless);
  last_failure_ = 0;
  return first_value;
}

void session::send_query(std::string_view text, const call_deadline& deadline, loss on_loss) {
  check_alive(deadline);
  int failed = 0;
  drive(
      deadline, [&] { return mysql_real_query_start(&failed, handle_, text.data(), text.size()); },
      [&](int ready) { return mysql_real_query_cont(&failed, handle_, ready); });
  if (failed != 0) fail(deadline, on_loss);
}

/// Returns the next row of a result, or null after the last. Frees the row before, so that the rows
/// never need memory all at once.
char** session::fetch_row(st_mysql_res& result, const call_deadline& deadline, loss on_loss) {
  char** row = nullptr;
  drive(
      deadline, [&] { return mysql_fetch_row_start(&row, &result); },
      [&](int ready) { return mysql_fetch_row_cont(&row, &result, ready); });
  const bool failed = row == nullptr ? mysql_errno(handle_) != 0 : broken_;
  if (failed) {
    result.handle = nullptr;  // otherwise mysql_free_result would read on, without a limit
    fail(deadline, on_loss);
  }
  return row;
}

void session::discard_results(const call_deadline& deadline, loss on_loss) {
  for (;;) {
    if (mysql_field_count(handle_) > 0) {
      const result_handle result(mysql_use_result(handle_));
      if (!result) fail(deadline, on_loss);
      while (fetch_row(*result, deadline, on_loss) != nullptr) {
      }
    }
    if (mysql_more_results(handle_) == 0) return;
    int failed = 0;
    drive(
        deadline, [&] { return mysql_next_result_start(&failed, handle_); },
        [&](int ready) { return mysql_next_result_cont(&failed, handle_, ready); });
    if (failed > 0) fail(deadline, on_loss);
  }
}

statement_handle session::prepare(std::string_view text, const call_deadline& deadline) {
  check_alive(deadline);
  statement_handle statement(mysql_stmt_init(handle_));
  if (!statement) throw std::bad_alloc();
  int failed = 0;
  drive(
      deadline,
      [&] { return mysql_stmt_prepare_start(&failed, statement.get(), text.data(), text.size()); },
      [&](int ready) { return mysql_stmt_prepare_cont(&failed, statement.get(), ready); });
  if (failed != 0) fail(*statement, deadline, loss::harmless);
  last_failure_ = 0;
  return statement;
}

void session::execute(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss) {
  check_alive(deadline);
  int failed = 0;
  drive(
      deadline, [&] { return mysql_stmt_execute_start(&failed, &statement); },
      [&](int ready) { return mysql_stmt_execute_cont(&failed, &statement, ready); });
  if (failed != 0) fail(statement, deadline, on_loss);
  last_failure_ = 0;
}

void session::store_rows(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss) {
  int failed = 0;
  drive(
      deadline, [&] { return mysql_stmt_store_result_start(&failed, &statement); },
      [&](int ready) { return mysql_stmt_store_result_cont(&failed, &statement, ready); },
      largest_result);
  if (failed != 0) fail(statement, deadline, on_loss);
}

void session::finish(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss) {
  mysql_stmt_free_result(&statement);
  while (mysql_stmt_more_results(&statement) != 0) {
    int failed = 0;
    drive(
        deadline, [&] { return mysql_stmt_next_result_start(&failed, &statement); },
        [&](int ready) { return mysql_stmt_next_result_cont(&failed, &statement, ready); });
    if (failed > 0) fail(statement, deadline, on_loss);
    if (mysql_stmt_field_count(&statement) == 0) continue;
    store_rows(statement, deadline, on_loss);
    mysql_stmt_free_result(&statement);
  }
}

void session::close(statement_handle statement, const call_deadline& deadline) noexcept {
  if (broken_) {
    const sigpipe_guard guard(watchdog_ != nullptr);
    shut_down();  // freeing the statement writes to the socket; now that fails immediately
    statement.reset();
    return;
  }
  my_bool failed = 0;
  auto* const raw = statement.release();
  drive(
      deadline, [&] { return mysql_stmt_close_start(&failed, raw); },
      [&](int ready) { return mysql_stmt_close_cont(&failed, raw, ready); });
}

void session::ping(const call_deadline& deadline) {
  check_alive(deadline);
  int failed = 0;
  drive(
      deadline, [&] { return mysql_ping_start(&failed, handle_); },
      [&](int ready) { return mysql_ping_cont(&failed, handle_, ready); });
  if (failed != 0) fail(deadline, loss::harmless);
  last_failure_ = 0;
}

bool session::is_mariadb() const {
  return std::string_view(mysql_get_server_info(handle_)).find("MariaDB") != std::string_view::npos;
}

unsigned long session::version() const { return mysql_get_server_version(handle_); }

void session::fail(const call_deadline& deadline, loss on_loss) {
  fail(mysql_errno(handle_), mysql_sqlstate(handle_), mysql_error(handle_), deadline, on_loss);
}

void session::fail(st_mysql_stmt& statement, const call_deadline& deadline, loss on_loss) {
  fail(mysql_stmt_errno(&statement), mysql_stmt_sqlstate(&statement), mysql_stmt_error(&statement),
       deadline, on_loss);
}

void session::fail(unsigned number, const char* state, const char* text,
                   const call_deadline& deadline, loss on_loss) {
  last_failure_ = number;
  if (answer_too_large_) throw answer_too_large(answer_limit_, on_loss);
  if (timed_out_) throw timed_out(deadline.limit, on_loss);
  if (number == 0) {
    // A failure without a number: the state of the connection is unknown.
    number = CR_UNKNOWN_ERROR;
    broken_ = true;
  }
  if (ends_connection(number)) broken_ = true;
  const auto problem = to_error({number, state, text}, on_loss, secret_);
  if (is_unusable_server(problem)) read_only_ = true;
  throw error(problem);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
