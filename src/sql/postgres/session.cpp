#include "sql/postgres/session.hpp"

#include "sql/answer_limits.hpp"
#include "sql/driver_support.hpp"
#include "sql/postgres/login.hpp"
#include "sql/read_only_server.hpp"

#include <fcntl.h>
#include <libpq-fe.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

namespace {

/// Under TLS, OpenSSL may hold decrypted bytes while the socket has none. poll() does not see them,
/// so it must not wait longer than this.
constexpr int tls_poll_timeout = 50;

/// How soon, in milliseconds, a call notices that it was interrupted.
constexpr int interrupt_poll_timeout = 200;

std::string_view field(const PGresult* result, int code) {
  const char* const text = PQresultErrorField(result, code);
  return text == nullptr ? std::string_view{} : std::string_view{text};
}

bool ends_session(const PGresult* failure) {
  const auto severity = field(failure, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == "FATAL" || severity == "PANIC";
}

}  // namespace

void clear_result::operator()(pg_result* result) const noexcept { PQclear(result); }

session::session(const postgres_options& options, server_kind kind, const target& server)
    : kind_(kind), owner_(getpid()) {
  try {
    connect(options, server);
  } catch (...) {
    abandon();
    throw;
  }
}

session::~session() {
  if (handle_ != nullptr && getpid() != owner_) {
    // In a forked child: PQfinish sends a Terminate message, which would end the parent's session.
    // Redirect it to /dev/null.
    const int null_device = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_device >= 0) {
      ::dup2(null_device, PQsocket(handle_));
      ::close(null_device);
    }
  }
  PQfinish(handle_);  // does not block: the socket is non-blocking
}

void session::connect(const postgres_options& options, const target& server) {
  const auto conninfo = start_parameters(options, server);
  const call_deadline deadline(options.connect_timeout);
  handle_ = PQconnectStartParams(conninfo.keywords(), conninfo.values(), 1);
  if (handle_ == nullptr) throw std::bad_alloc();
  PQsetNoticeReceiver(handle_, &session::keep_close_reason, this);
  // A server that requests the password again and again without reading the answers would otherwise
  // keep libpq reading inside one call, without end.
  if (PQstatus(handle_) != CONNECTION_BAD && PQsetnonblocking(handle_, 1) != 0)
    throw connection_lost(loss::harmless, {}, kind_.name);
  // Verbose messages contain the SQLSTATE, which libpq does not report otherwise while connecting.
  PQsetErrorVerbosity(handle_, PQERRORS_VERBOSE);

  auto next = PQstatus(handle_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  auto last_status = CONNECTION_STARTED;
  while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
    last_status = PQstatus(handle_);
    // libpq may change to another socket at any step.
    pollfd socket{PQsocket(handle_),
                  static_cast<short>(next == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    const int ready = poll(&socket, 1, deadline.poll_timeout());
    if (ready < 0 && errno != EINTR) next = PGRES_POLLING_FAILED;
    else if (ready > 0) next = PQconnectPoll(handle_);
    // libpq keeps all settings that a server reports, and a server can report without an end.
    if (next == PGRES_POLLING_READING && received_bytes() > largest_answer)
      throw answer_too_large(largest_answer, loss::harmless, kind_.name);
    if (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED && deadline.expired())
      throw error(errc::timeout,
                  std::string(kind_.name) + " at " + address() + " did not answer within " +
                      std::to_string(deadline.limit.count()) + " ms of connecting",
                  {.transient = true});
  }
  if (next == PGRES_POLLING_FAILED)
    fail_connect(conninfo.tls_by_default(), last_status == CONNECTION_SSL_STARTUP);
  transport_ = transport_of(handle_);
  PQsetErrorVerbosity(handle_, PQERRORS_DEFAULT);
}

void session::fail_connect(bool tls_by_default, bool in_tls_handshake) {
  const std::string server = std::string(kind_.name) + " at " + address();
  if (PQconnectionNeedsPassword(handle_) != 0)
    throw error(
        errc::permission,
        server +
            " asks for a password, and none was given; put it in the URL or in a password file");
  const std::string_view report = PQerrorMessage(handle_);
  const auto failure = could_not_connect(address(), report, PQpass(handle_), kind_.name);
  const bool answered = !failure.backend_code().empty();
  if (!kind_.closed_at_login.empty() && !answered &&
      report.find("closed") != std::string_view::npos)
    throw error(errc::unavailable, server + " " + std::string(kind_.closed_at_login),
                {.transient = true});
  std::string message = failure.message();
  if (tls_by_default && in_tls_handshake) {
    message +=
        "; connections to other machines are encrypted by default: set up TLS on the server, or "
        "write sslmode=disable in the URL to connect without encryption (docs/tls.md)";
  }
  throw error(failure.code(), message,
              {.backend_code = failure.backend_code(), .transient = failure.transient()});
}

std::string session::address() const {
  return std::string(PQhost(handle_)) + ":" + PQport(handle_);
}

// Receives the notices that libpq would write to the standard error of the application. One of them
// tells why the server closed an idle connection.
void session::keep_close_reason(void* self, const pg_result* notice) noexcept {
  try {
    if (ends_session(notice))
      static_cast<session*>(self)->close_reason_ = field(notice, PG_DIAG_SQLSTATE);
  } catch (...) {  // out of memory: the reason stays unknown
    static_cast<session*>(self)->close_reason_.clear();
  }
}

void session::abandon() noexcept {
  if (handle_ == nullptr) return;
  // PQfinish would try to send the data that it holds. The caller may have been told that the
  // statement was not sent, so the socket is shut down first.
  if (PQsocket(handle_) >= 0) shutdown(PQsocket(handle_), SHUT_RDWR);
  PQfinish(handle_);
  handle_ = nullptr;
}

void session::lose(loss on_loss) {
  abandon();
  throw connection_lost(on_loss, close_reason_, kind_.name);
}

// PQTRANS_ACTIVE: a call was left early, because there was no memory for its result.
bool session::broken() const noexcept {
  return handle_ == nullptr || PQstatus(handle_) == CONNECTION_BAD ||
         PQtransactionStatus(handle_) == PQTRANS_ACTIVE;
}

int session::server_process() const noexcept {
  return handle_ == nullptr ? 0 : PQbackendPID(handle_);
}

std::string session::port() const {
  return handle_ == nullptr ? std::string() : std::string(PQport(handle_));
}

bool session::in_transaction() const noexcept {
  return handle_ != nullptr && (PQtransactionStatus(handle_) == PQTRANS_INTRANS ||
                                PQtransactionStatus(handle_) == PQTRANS_INERROR);
}

bool session::in_failed_transaction() const noexcept {
  return handle_ != nullptr && PQtransactionStatus(handle_) == PQTRANS_INERROR;
}

std::string session::server_setting(const char* name) const {
  const char* const setting = handle_ == nullptr ? nullptr : PQparameterStatus(handle_, name);
  return setting == nullptr ? std::string{} : std::string{setting};
}

/// The bytes that arrived since the connection was opened. 0 on a Unix socket, whose server is on
/// this machine.
std::uint64_t session::received_bytes() const noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool available = getsockopt(PQsocket(handle_), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  return available ? info.tcpi_bytes_received : 0;
}

void session::wait_for_socket(short events, const call_deadline& deadline, loss on_loss) {
  const auto fail_late = [&] {
    abandon();
    throw timed_out(deadline.limit, on_loss, kind_.name);
  };
  // An answer that has arrived is read even if this thread is a little late. An answer without an
  // end is not.
  if (call_deadline::clock::now() >= deadline.expires + std::chrono::milliseconds(100)) fail_late();
  if (received_bytes() - received_before_ > largest_result) {
    abandon();
    throw answer_too_large(largest_result, on_loss, kind_.name);
  }
  for (;;) {
    int timeout = std::min(deadline.poll_timeout(), interrupt_poll_timeout);
    if (PQsslInUse(handle_) != 0) timeout = std::min(timeout, tls_poll_timeout);
    if (kind_.acknowledge_at_once) {  // the kernel resets the option after each acknowledgement
      const int enabled = 1;
      setsockopt(PQsocket(handle_), IPPROTO_TCP, TCP_QUICKACK, &enabled, sizeof enabled);
    }
    pollfd socket{PQsocket(handle_), events, 0};
    const int ready = poll(&socket, 1, timeout);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) lose(on_loss);
    if (interrupted_) {
      abandon();
      throw server_replaced(on_loss, kind_.name);
    }
    if (deadline.expired()) fail_late();
    if (ready == 0) return;
  }
}

// Notices that the server closed the idle connection (a restart, an administrator) before anything
// is sent. Such a loss is harmless.
void session::prepare_to_send() {
  if (broken()) lose(loss::harmless);
  check_process(owner_);
  received_before_ = received_bytes();
  for (int reads = 0; reads < 64; ++reads) {  // bounded: a server may send notices all the time
    pollfd socket{PQsocket(handle_), POLLIN, 0};
    if (poll(&socket, 1, 0) <= 0) return;
    const bool received = PQconsumeInput(handle_) != 0;
    PQfreemem(PQnotifies(handle_));  // for its side effect: it parses what was received
    if (!received || PQstatus(handle_) == CONNECTION_BAD) lose(loss::harmless);
  }
}

// A loss is harmless until the last byte was sent: the server cannot have run the statement.
void session::send(int accepted, const call_deadline& deadline) {
  if (accepted == 0) {
    if (PQstatus(handle_) == CONNECTION_BAD) lose(loss::harmless);
    throw error(errc::internal, "libpq refused a statement");
  }
  for (int unsent = PQflush(handle_); unsent != 0; unsent = PQflush(handle_)) {
    if (unsent < 0) lose(loss::harmless);
    // A server whose own output is blocked does not read. Read meanwhile, or both sides wait
    // without an end.
    wait_for_socket(POLLIN | POLLOUT, deadline, loss::harmless);
    if (PQconsumeInput(handle_) == 0) lose(loss::harmless);
  }
}

result_handle session::receive(loss on_loss, const call_deadline& deadline) {
  result_handle last;
  result_handle failure;
  bool has_result = false;
  // An error is an answer: the statement did not take effect. The exception is an error that ends
  // the session after a result, because the commit comes after the result.
  const auto current_loss = [&] {
    const bool refused = failure && !(has_result && ends_session(failure.get()));
    return refused ? loss::harmless : on_loss;
  };
  for (;;) {
    bool closed = false;
    while (!closed && PQisBusy(handle_) != 0) {
      wait_for_socket(POLLIN, deadline, current_loss());
      closed = PQconsumeInput(handle_) == 0;
    }
    // An error counts even if the server closed the connection right after it.
    if (closed && failure) break;
    if (closed) lose(current_loss());
    result_handle next(PQgetResult(handle_));
    if (!next) break;
    switch (PQresultStatus(next.get())) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
      case PGRES_EMPTY_QUERY:
        last = std::move(next);
        has_result = true;
        break;
      case PGRES_COPY_IN:
      case PGRES_COPY_OUT:
      case PGRES_COPY_BOTH:
        abandon();
        throw error(errc::grammar, "COPY does not work on this connection");
      default:
        // It may follow a result: the server sends the result before it commits.
        if (!failure) failure = std::move(next);
    }
  }
  if (failure) {
    const auto state = field(failure.get(), PG_DIAG_SQLSTATE);
    const bool in_doubt = current_loss() == loss::in_doubt;
    if (in_doubt) close_reason_ = state;
    if (state.empty() || in_doubt) lose(on_loss);
    if (ends_session(failure.get())) abandon();
    const auto problem = kind_.to_error({.sqlstate = state,
                                         .text = field(failure.get(), PG_DIAG_MESSAGE_PRIMARY),
                                         .function = field(failure.get(), PG_DIAG_SOURCE_FUNCTION),
                                         .column = field(failure.get(), PG_DIAG_COLUMN_NAME)});
    if (is_read_only_server(problem)) read_only_ = true;
    throw error(problem);
  }
  if (PQstatus(handle_) == CONNECTION_BAD || !last) lose(current_loss());
  return last;
}

bool session::responds(const std::string& text, std::chrono::milliseconds longest) noexcept {
  try {
    query(text, loss::harmless, call_deadline(longest));
  } catch (...) {
    abandon();
  }
  return !broken();
}

std::optional<std::string> session::notification(const call_deadline& deadline) {
  if (broken()) lose(loss::harmless);
  for (;;) {
    if (PGnotify* notification = PQnotifies(handle_)) {
      std::string payload = notification->extra;
      PQfreemem(notification);
      return payload;
    }
    const bool tls = PQsslInUse(handle_) != 0;
    const int timeout = deadline.poll_timeout();
    pollfd socket{PQsocket(handle_), POLLIN, 0};
    const int ready = poll(&socket, 1, tls ? std::min(timeout, tls_poll_timeout) : timeout);
    if (ready < 0 && errno != EINTR) lose(loss::harmless);
    if (ready > 0 || tls) {
      if (PQconsumeInput(handle_) == 0) lose(loss::harmless);
      if (ready > 0) continue;
    }
    if (deadline.expired()) return std::nullopt;
  }
}

result_handle session::query(const std::string& text, loss on_loss, const call_deadline& deadline) {
  prepare_to_send();
  send(PQsendQuery(handle_, text.c_str()), deadline);
  return receive(on_loss, deadline);
}

void session::prepare(const std::string& name, const std::string& text,
                      const wire_parameters& parameters, const call_deadline& deadline) {
  prepare_to_send();
  send(PQsendPrepare(handle_, name.c_str(), text.c_str(), parameters.count, parameters.types),
       deadline);
  receive(loss::harmless, deadline);
}

result_handle session::execute(const std::string& name, const wire_parameters& parameters,
                               loss on_loss, const call_deadline& deadline) {
  prepare_to_send();
  send(PQsendQueryPrepared(handle_, name.c_str(), parameters.count, parameters.values,
                           parameters.lengths, parameters.formats, parameters.result_format),
       deadline);
  return receive(on_loss, deadline);
}

result_handle session::execute_text(const std::string& text, const wire_parameters& parameters,
                                    loss on_loss, const call_deadline& deadline) {
  prepare_to_send();
  send(PQsendQueryParams(handle_, text.c_str(), parameters.count, parameters.types,
                         parameters.values, parameters.lengths, parameters.formats,
                         parameters.result_format),
       deadline);
  return receive(on_loss, deadline);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
