#include "sql/mysql_link.hpp"

#include "base/local_host.hpp"
#include "sql/mysql_errors.hpp"

#include <errmsg.h>
#include <fcntl.h>
#include <mysql.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql::mysql {

namespace {

using steady = std::chrono::steady_clock;

/// The library runs its calls on a small stack of its own and does name lookups and TLS there. Its default of 60 kB is tight for both;
/// only the pages that are touched cost memory.
constexpr std::size_t call_stack = std::size_t{256} * 1024;

/// Within that time a server that hangs up is not noticed before sending: the failure is then in doubt, which is safe.
constexpr auto long_idle = std::chrono::milliseconds(10);

std::string where(const mysql_options& options) {
  return options.socket.empty() ? options.host + ":" + std::to_string(options.port) : options.socket;
}

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

/// The library's own timeouts: whole seconds, rounded up. They only matter where it blocks in spite of us.
unsigned whole_seconds(std::chrono::milliseconds limit) {
  return static_cast<unsigned>(
      std::chrono::ceil<std::chrono::seconds>(std::min(limit, std::chrono::milliseconds(std::chrono::hours(1)))).count());
}

void set(MYSQL* handle, mysql_option option, const void* value) {
  if (::mysql_options(handle, option, value) != 0) throw error(errc::internal, "libmariadb does not know an option");
}

void set(MYSQL* handle, mysql_option option, const std::string& path) {
  if (!path.empty()) set(handle, option, path.c_str());
}

/// How long an answer may go on arriving after the limit: one that is there already is taken even if this thread came late to read it.
constexpr auto grace = std::chrono::milliseconds(100);

// Login methods that a server which was not verified may ask for. The client library searches the text for the name.
/// They answer a challenge with a hash or a signature.
constexpr const char* methods_without_password = "mysql_native_password,client_ed25519,parsec";
/// The SHA-2 methods send the password, in TLS or encrypted for a key that the server sends: to whoever listens on this machine.
constexpr const char* methods_on_this_machine =
    "mysql_native_password,client_ed25519,parsec,caching_sha2_password,sha256_password,auth_gssapi_client";

/// A server decides how the client logs in. One that was not verified could ask for the password itself.
void limit_logins(MYSQL* handle, const mysql_options& options) {
  if ((options.tls && options.tls_verify) || options.allow_cleartext_password) return;
  if (is_local(options)) {
    set(handle, MARIADB_OPT_RESTRICTED_AUTH, methods_on_this_machine);
    return;
  }
  set(handle, MARIADB_OPT_RESTRICTED_AUTH, methods_without_password);
  // The greeting names the server's usual method, which is caching_sha2_password on MySQL 8. The account may have another: the server then
  // asks for it.
  set(handle, MYSQL_DEFAULT_AUTH, "mysql_native_password");
}

struct result_closer {
  void operator()(MYSQL_RES* result) const noexcept { mysql_free_result(result); }
};
using result_handle = std::unique_ptr<MYSQL_RES, result_closer>;

/// libmariadb opens its sockets without: programs that the application starts would inherit a connection that is logged in.
void close_on_exec(int socket) noexcept { (void)::fcntl(socket, F_SETFD, FD_CLOEXEC); }

bool has_bytes(int socket) noexcept {
  int count = 0;
  return ::ioctl(socket, FIONREAD, &count) == 0 && count > 0;
}

void configure(MYSQL* handle, const mysql_options& options) {
  set(handle, MYSQL_OPT_NONBLOCK, &call_stack);
  set(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  // A server may ask the client for any file it can read. Ours has none for it.
  constexpr unsigned none = 0;
  set(handle, MYSQL_OPT_LOCAL_INFILE, &none);
  // Or `localhost` would silently mean a Unix socket, and another server than its port says.
  const unsigned protocol = options.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  set(handle, MYSQL_OPT_PROTOCOL, &protocol);
  mysql_options4(handle, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "holdfast");
  limit_logins(handle, options);

  const my_bool encrypted = options.tls ? 1 : 0;
  set(handle, MYSQL_OPT_SSL_ENFORCE, &encrypted);
  if (!options.tls) return;
  const my_bool verified = options.tls_verify ? 1 : 0;
  set(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
  set(handle, MYSQL_OPT_SSL_CA, options.tls_ca);
  set(handle, MYSQL_OPT_SSL_CERT, options.tls_cert);
  set(handle, MYSQL_OPT_SSL_KEY, options.tls_key);
  const unsigned connecting = whole_seconds(options.connect_timeout);
  const unsigned running = whole_seconds(options.statement_timeout);
  set(handle, MYSQL_OPT_CONNECT_TIMEOUT, &connecting);
  set(handle, MYSQL_OPT_READ_TIMEOUT, &running);
  set(handle, MYSQL_OPT_WRITE_TIMEOUT, &running);
}

}  // namespace

void statement_closer::operator()(st_mysql_stmt* statement) const noexcept { mysql_stmt_close(statement); }

bool is_local(const mysql_options& options) noexcept { return !options.socket.empty() || is_local_host(options.host); }

time_limit time_limit::in(std::chrono::milliseconds from_now) {
  // Beyond that the arithmetic of clocks overflows, and nobody waits so long.
  const auto whole = std::min(from_now, std::chrono::milliseconds(std::chrono::hours(24 * 365)));
  return {steady::now() + whole, whole};
}

link::link(const mysql_options& options, time_limit limit) : secret_(options.password), needs_tls_(options.tls) {
  use_library();
  if (options.tls) watchdog_ = std::make_unique<watchdog>();
  handle_ = mysql_init(nullptr);
  if (handle_ == nullptr) throw std::bad_alloc();
  try {
    configure(handle_, options);
    MYSQL* made = nullptr;
    drive(
        limit,
        [&] {
          // With a host it would not look at the socket.
          const char* const host = options.socket.empty() ? options.host.c_str() : nullptr;
          return mysql_real_connect_start(&made, handle_, host, text_or_null(options.user), options.password.c_str(),
                                          text_or_null(options.database), options.port, text_or_null(options.socket), 0);
        },
        [&](int ready) { return mysql_real_connect_cont(&made, handle_, ready); });
    if (offers_no_tls_) throw without_tls(where(options));
    if (not_a_greeting_) throw not_a_server(where(options));
    if (answer_too_large_) throw answer_too_large(largest_answer_, false);
    if (timed_out_) throw could_not_connect_in_time(where(options), limit.whole);
    if (made == nullptr) {
      throw could_not_connect(where(options), {mysql_errno(handle_), mysql_sqlstate(handle_), mysql_error(handle_)}, secret_);
    }
    connected_ = true;
    close_on_exec(mysql_get_socket(handle_));
    if (needs_tls_ && mysql_get_ssl_cipher(handle_) == nullptr) throw without_tls(where(options));
    if (watchdog_) watchdog_->watch(mysql_get_socket(handle_));
  } catch (...) {
    const quiet_pipe quiet(watchdog_ != nullptr);
    mysql_close(handle_);
    throw;
  }
}

link::~link() {
  const quiet_pipe quiet(watchdog_ != nullptr);
  // The farewell must not wait for a server that hangs: with the socket shut down it fails at once.
  if (broken_) shut_down();
  mysql_close(handle_);
}

/// Runs one call of the library to its end, or to the limit.
template <class Start, class Continue>
void link::drive(time_limit limit, Start start, Continue go_on, std::size_t most) {
  const quiet_pipe quiet(watchdog_ != nullptr);
  const shown_bytes shown(*this);
  timed_out_ = false;
  answer_.restart();
  largest_answer_ = most;
  end_ = limit.until;
  if (watchdog_) watchdog_->arm(limit.until);
  int wanted = start();
  while (wanted != 0) wanted = go_on(wait(wanted, limit));
  if (watchdog_ && watchdog_->disarm()) timed_out_ = true;
  if (timed_out_ || answer_too_large_) broken_ = true;
}

/// With its socket shut down the library finds the end of the connection, sends nothing, and unwinds.
void link::on_received(std::span<const std::byte> bytes) noexcept {
  answer_.add(bytes);
  // A Unix socket connects without a wait: its first packet can be here before wait() saw it.
  const bool refused = !std::exchange(greeted_, true) && !accepts(read_greeting(bytes));
  if (refused) return shut_down();
  if (answer_.cost() > largest_answer_) answer_too_large_ = true;
  else if (steady::now() > end_ + grace) timed_out_ = true;
  else return;
  shut_down();
}

int link::wait(int wanted, time_limit limit) {
  const int socket = mysql_get_socket(handle_);
  // While it connects the library tries one address after the other, each with a socket of its own.
  if (!connected_) close_on_exec(socket);
  if (watchdog_ && !connected_) watchdog_->watch(socket);
  pollfd polled{.fd = socket, .events = 0, .revents = 0};
  if ((wanted & MYSQL_WAIT_READ) != 0) polled.events |= POLLIN;
  if ((wanted & MYSQL_WAIT_WRITE) != 0) polled.events |= POLLOUT;
  if ((wanted & MYSQL_WAIT_EXCEPT) != 0) polled.events |= POLLPRI;
  while (!timed_out_ && !answer_too_large_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit.until - steady::now()).count();
    if (left <= 0) break;
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min<std::int64_t>(left, INT_MAX)));
    // An error or a hang-up is for the library to find: it gets what it waited for. A server can send its first packet before it.
    const bool failed = (polled.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    if (ready > 0 && !greeted_ && (!failed || has_bytes(socket)) && !may_answer_greeting(socket, limit)) break;
    if (ready > 0) return wanted & ~MYSQL_WAIT_TIMEOUT;
    if (ready < 0 && errno != EINTR) break;
  }
  // The call is not abandoned half-way, which would leak what it holds: it is told of the timeout and unwinds. The socket goes first, so that
  // nothing it still tries can wait.
  if (!answer_too_large_) timed_out_ = true;
  shut_down();
  return MYSQL_WAIT_TIMEOUT;
}

bool link::may_answer_greeting(int socket, time_limit limit) {
  while (steady::now() < limit.until) {
    pollfd polled{.fd = socket, .events = POLLIN | POLLRDHUP, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit.until - steady::now()).count();
    const int ready = ::poll(&polled, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    std::array<std::byte, longest_greeting> bytes{};
    const auto count = ready < 0 ? -1 : ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    // A lost connection is for the library to explain.
    const auto kind = count <= 0 ? greeting::failure : read_greeting(std::span(bytes).first(static_cast<std::size_t>(count)));
    const bool hung_up = (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    if (kind == greeting::incomplete && !hung_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // poll would return at once for the part that is there
      continue;
    }
    greeted_ = true;
    return accepts(kind);
  }
  return false;
}

bool link::accepts(greeting kind) noexcept {
  not_a_greeting_ = kind == greeting::not_a_greeting;
  offers_no_tls_ = needs_tls_ && kind == greeting::without_tls;
  return !not_a_greeting_ && !offers_no_tls_;
}

void link::shut_down() noexcept {
  const int socket = mysql_get_socket(handle_);
  if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

void link::break_off() noexcept { broken_ = true; }

/// Servers close idle connections. Found out before anything is sent, that is no doubt, only a reason to try again on another connection.
void link::check_alive(time_limit limit) {
  use_library();
  // It is a system call of its own: not between statements in a row.
  const auto idle = limit.start() - std::exchange(last_call_, limit.start());
  if (broken_) throw already_broken();
  if (idle < long_idle) return;
  pollfd polled{.fd = mysql_get_socket(handle_), .events = POLLRDHUP, .revents = 0};
  if (::poll(&polled, 1, 0) <= 0) return;
  if ((polled.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0) return;
  broken_ = true;
  last_failure_ = CR_SERVER_GONE_ERROR;
  throw hung_up();
}

void link::query(std::string_view text, time_limit limit, bool sent_change) {
  check_alive(limit);
  int failed = 0;
  drive(
      limit, [&] { return mysql_real_query_start(&failed, handle_, text.data(), text.size()); },
      [&](int ready) { return mysql_real_query_cont(&failed, handle_, ready); });
  if (failed != 0) fail(limit, sent_change);
  drop_rows(limit, sent_change);
  last_failure_ = 0;
}

void link::drop_rows(time_limit limit, bool sent_change) {
  for (;;) {
    if (mysql_field_count(handle_) > 0) {
      const result_handle rows(mysql_use_result(handle_));
      if (!rows) fail(limit, sent_change);
      while (fetch(*rows, limit, sent_change) != nullptr) {
      }
    }
    if (mysql_more_results(handle_) == 0) return;
    int failed = 0;
    drive(
        limit, [&] { return mysql_next_result_start(&failed, handle_); },
        [&](int ready) { return mysql_next_result_cont(&failed, handle_, ready); });
    if (failed > 0) fail(limit, sent_change);
  }
}

std::string link::ask(std::string_view text, time_limit limit) {
  check_alive(limit);
  int failed = 0;
  drive(
      limit, [&] { return mysql_real_query_start(&failed, handle_, text.data(), text.size()); },
      [&](int ready) { return mysql_real_query_cont(&failed, handle_, ready); });
  if (failed != 0) fail(limit, false);
  const result_handle rows(mysql_use_result(handle_));
  if (!rows) fail(limit, false);
  std::string answer;
  char** row = fetch(*rows, limit, false);
  if (row != nullptr && row[0] != nullptr) answer = row[0];
  while (row != nullptr) row = fetch(*rows, limit, false);
  last_failure_ = 0;
  return answer;
}

char** link::fetch(st_mysql_res& rows, time_limit limit, bool sent_change) {
  char** row = nullptr;
  drive(limit, [&] { return mysql_fetch_row_start(&row, &rows); }, [&](int ready) { return mysql_fetch_row_cont(&row, &rows, ready); });
  const bool failed = row == nullptr ? mysql_errno(handle_) != 0 : broken_;
  if (failed) {
    rows.handle = nullptr;  // or freeing it would read on, without a limit
    fail(limit, sent_change);
  }
  return row;
}

statement_handle link::prepare(std::string_view text, time_limit limit) {
  check_alive(limit);
  statement_handle made(mysql_stmt_init(handle_));
  if (!made) throw std::bad_alloc();
  int failed = 0;
  drive(
      limit, [&] { return mysql_stmt_prepare_start(&failed, made.get(), text.data(), text.size()); },
      [&](int ready) { return mysql_stmt_prepare_cont(&failed, made.get(), ready); });
  if (failed != 0) fail(*made, limit, false);  // nothing ran: never in doubt
  last_failure_ = 0;
  return made;
}

void link::execute(st_mysql_stmt& statement, time_limit limit, bool sent_change) {
  check_alive(limit);
  int failed = 0;
  drive(
      limit, [&] { return mysql_stmt_execute_start(&failed, &statement); },
      [&](int ready) { return mysql_stmt_execute_cont(&failed, &statement, ready); });
  if (failed != 0) fail(statement, limit, sent_change);
  last_failure_ = 0;
}

void link::store(st_mysql_stmt& statement, time_limit limit, bool sent_change) {
  int failed = 0;
  drive(
      limit, [&] { return mysql_stmt_store_result_start(&failed, &statement); },
      [&](int ready) { return mysql_stmt_store_result_cont(&failed, &statement, ready); }, largest_result);
  if (failed != 0) fail(statement, limit, sent_change);
}

void link::finish(st_mysql_stmt& statement, time_limit limit, bool sent_change) {
  mysql_stmt_free_result(&statement);
  while (mysql_stmt_more_results(&statement) != 0) {
    int failed = 0;
    drive(
        limit, [&] { return mysql_stmt_next_result_start(&failed, &statement); },
        [&](int ready) { return mysql_stmt_next_result_cont(&failed, &statement, ready); });
    if (failed > 0) fail(statement, limit, sent_change);
    if (mysql_stmt_field_count(&statement) == 0) continue;
    store(statement, limit, sent_change);
    mysql_stmt_free_result(&statement);
  }
}

void link::close(statement_handle statement, time_limit limit) noexcept {
  if (broken_) {
    const quiet_pipe quiet(watchdog_ != nullptr);
    shut_down();  // freeing it still writes to the socket; like this it fails at once
    statement.reset();
    return;
  }
  my_bool failed = 0;
  auto* const raw = statement.release();
  drive(limit, [&] { return mysql_stmt_close_start(&failed, raw); }, [&](int ready) { return mysql_stmt_close_cont(&failed, raw, ready); });
}

bool link::is_mariadb() const { return std::string_view(mysql_get_server_info(handle_)).find("MariaDB") != std::string_view::npos; }

unsigned long link::version() const { return mysql_get_server_version(handle_); }

void link::fail(time_limit limit, bool sent_change) {
  fail(mysql_errno(handle_), mysql_sqlstate(handle_), mysql_error(handle_), limit, sent_change);
}

void link::fail(st_mysql_stmt& statement, time_limit limit, bool sent_change) {
  fail(mysql_stmt_errno(&statement), mysql_stmt_sqlstate(&statement), mysql_stmt_error(&statement), limit, sent_change);
}

void link::fail(unsigned number, const char* state, const char* text, time_limit limit, bool sent_change) {
  last_failure_ = number;
  if (answer_too_large_) throw answer_too_large(largest_answer_, sent_change);
  if (timed_out_) throw out_of_time(limit.whole, sent_change);
  if (number == 0) {
    // A failure without a number: the state of the connection is unknown.
    number = CR_UNKNOWN_ERROR;
    broken_ = true;
  }
  if (ends_connection(number)) broken_ = true;
  throw from_server({number, state, text}, sent_change, secret_);
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
