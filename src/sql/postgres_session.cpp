#include "sql/postgres_session.hpp"

#include "sql/answer_limits.hpp"
#include "sql/postgres_conninfo.hpp"
#include "sql/postgres_errors.hpp"

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
#include <charconv>
#include <string_view>

namespace HOLDFAST_NAMESPACE::sql::postgres {

namespace {

std::string_view field(const PGresult* from, int code) {
  const char* const text = PQresultErrorField(from, code);
  return text == nullptr ? std::string_view{} : std::string_view{text};
}

bool ends_session(const PGresult* failure) {
  const auto severity = field(failure, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == "FATAL" || severity == "PANIC";
}

int milliseconds_until(std::chrono::steady_clock::time_point when) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

}  // namespace

void clear_result::operator()(pg_result* r) const noexcept { PQclear(r); }

std::uint64_t affected_rows(const pg_result* r) noexcept {
  const std::string_view digits = PQcmdTuples(const_cast<pg_result*>(r));  // it only reads, but its declaration is older than const
  std::uint64_t count = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return count;
}

session::session(const postgres_options& options, server_kind kind) : kind_(kind), owner_(getpid()) {
  try {
    connect(options);
  } catch (...) {
    abandon();
    throw;
  }
}

session::~session() {
  if (handle_ != nullptr && getpid() != owner_) {
    // In a child process: libpq would say goodbye on the socket that the parent still uses. Let it speak to nobody.
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere >= 0) {
      ::dup2(nowhere, PQsocket(handle_));
      ::close(nowhere);
    }
  }
  PQfinish(handle_);  // does not block: so was the socket told
}

void session::connect(const postgres_options& options) {
  const auto conninfo = start_parameters(options);
  const deadline until(options.connect_timeout);
  handle_ = PQconnectStartParams(conninfo.keywords(), conninfo.values(), 1);
  if (handle_ == nullptr) throw std::bad_alloc();
  PQsetNoticeReceiver(handle_, &session::keep_last_words, this);
  // Or libpq would wait, and read without end, while a server that does not read asks for the password again and again.
  if (PQstatus(handle_) != CONNECTION_BAD && PQsetnonblocking(handle_, 1) != 0) throw connection_lost(false, {}, kind_.name);
  PQsetErrorVerbosity(handle_, PQERRORS_VERBOSE);  // with SQLSTATEs: a failed connection gives them in no other way

  const auto where = [this] { return std::string(PQhost(handle_)) + ":" + PQport(handle_); };
  auto next = PQstatus(handle_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  auto reached = CONNECTION_STARTED;  // how far the last attempt came
  while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
    reached = PQstatus(handle_);
    // libpq may go on to another socket at any step, so it is asked for each time.
    pollfd socket{PQsocket(handle_), static_cast<short>(next == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    const int ready = poll(&socket, 1, milliseconds_until(until.when));
    if (ready < 0 && errno != EINTR) next = PGRES_POLLING_FAILED;
    else if (ready > 0) next = PQconnectPoll(handle_);
    // libpq keeps all settings that a server reports, and a server can report without end.
    if (next == PGRES_POLLING_READING && received() > largest_answer) throw answer_too_large(largest_answer, false, kind_.name);
    if (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED && std::chrono::steady_clock::now() >= until.when)
      throw error(errc::timeout,
                  std::string(kind_.name) + " at " + where() + " did not answer within " + std::to_string(until.limit.count()) +
                      " ms of connecting",
                  {.transient = true});
  }
  if (next == PGRES_POLLING_FAILED) {
    if (PQconnectionNeedsPassword(handle_) != 0)
      throw error(errc::permission, std::string(kind_.name) + " at " + where() +
                                        " asks for a password, and none was given; put it in the URL or in a password file");
    const auto problem = could_not_connect(where(), PQerrorMessage(handle_), PQpass(handle_), kind_.name);
    std::string message = problem.message();
    if (conninfo.tls_by_default() && reached == CONNECTION_SSL_STARTUP) {
      message +=
          "; connections to other machines are encrypted by default: set up TLS on the server, or write sslmode=disable in the URL to "
          "connect without encryption (docs/tls.md)";
    }
    throw error(problem.code(), message, {.backend_code = problem.backend_code(), .transient = problem.transient()});
  }
  transport_ = transport_of(handle_);
  PQsetErrorVerbosity(handle_, PQERRORS_DEFAULT);
}

// Notices would go to the standard error of the application. Of interest is only why a server hung up while nobody was asking.
void session::keep_last_words(void* self, const pg_result* notice) noexcept {
  try {
    if (ends_session(notice)) static_cast<session*>(self)->last_words_ = field(notice, PG_DIAG_SQLSTATE);
  } catch (...) {  // no memory for five characters: then the reason stays unknown
    static_cast<session*>(self)->last_words_.clear();
  }
}

void session::abandon() noexcept {
  if (handle_ == nullptr) return;
  // First of all the socket: libpq would still try to send what it holds, and a statement of which the caller was told that it did not
  // leave must not leave now.
  if (PQsocket(handle_) >= 0) shutdown(PQsocket(handle_), SHUT_RDWR);
  PQfinish(handle_);
  handle_ = nullptr;
}

void session::lose(bool in_doubt) {
  abandon();
  throw connection_lost(in_doubt, last_words_, kind_.name);
}

// Between calls a statement is under way only if one of them was left early: there was no memory for its result.
bool session::broken() const noexcept {
  return handle_ == nullptr || PQstatus(handle_) == CONNECTION_BAD || PQtransactionStatus(handle_) == PQTRANS_ACTIVE;
}

bool session::in_transaction() const noexcept {
  return handle_ != nullptr && (PQtransactionStatus(handle_) == PQTRANS_INTRANS || PQtransactionStatus(handle_) == PQTRANS_INERROR);
}

bool session::in_failed_transaction() const noexcept { return handle_ != nullptr && PQtransactionStatus(handle_) == PQTRANS_INERROR; }

std::string session::server_setting(const char* name) const {
  const char* const found = handle_ == nullptr ? nullptr : PQparameterStatus(handle_, name);
  return found == nullptr ? std::string{} : std::string{found};
}

std::uint64_t session::received() const noexcept {
  tcp_info facts{};
  socklen_t size = sizeof facts;
  const bool known = getsockopt(PQsocket(handle_), IPPROTO_TCP, TCP_INFO, &facts, &size) == 0;
  return known ? facts.tcpi_bytes_received : 0;
}

void session::wait(short events, const deadline& until, bool in_doubt) {
  const auto end = [&] {
    abandon();
    throw out_of_time(until.limit, in_doubt, kind_.name);
  };
  // An answer that is there already is taken even if this thread came late to read it, but one that does not end is not.
  if (std::chrono::steady_clock::now() >= until.when + std::chrono::milliseconds(100)) end();
  if (received() - received_before_ > largest_result) {
    abandon();
    throw answer_too_large(largest_result, in_doubt, kind_.name);
  }
  for (;;) {
    int longest = milliseconds_until(until.when);
    // Under TLS, bytes can wait in the library when the socket has none, so look again now and then.
    if (PQsslInUse(handle_) != 0) longest = std::min(longest, 50);
    if (kind_.acknowledge_at_once) {  // the kernel forgets it after each acknowledgement
      const int on = 1;
      setsockopt(PQsocket(handle_), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
    }
    pollfd socket{PQsocket(handle_), events, 0};
    const int ready = poll(&socket, 1, longest);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) lose(in_doubt);
    if (std::chrono::steady_clock::now() >= until.when) end();
    if (ready == 0) return;
  }
}

// A server that hung up while the connection lay idle (a restart, an administrator) is noticed here, before anything is sent: then
// nothing is in doubt.
void session::prepare_to_send() {
  if (broken()) {
    abandon();
    throw connection_lost(false, last_words_, kind_.name);
  }
  if (getpid() != owner_) throw error(errc::invalid_argument, "the connection was opened by the parent process; open one in this process");
  received_before_ = received();
  for (int looks = 0; looks < 64; ++looks) {  // a talkative server must not keep us here
    pollfd socket{PQsocket(handle_), POLLIN, 0};
    if (poll(&socket, 1, 0) <= 0) return;
    const bool read = PQconsumeInput(handle_) != 0;
    PQfreemem(PQnotifies(handle_));  // for its side effect: it looks at what was read
    if (!read || PQstatus(handle_) == CONNECTION_BAD) lose(false);
  }
}

// As long as the last byte has not left, the server cannot have run the statement to its end: nothing is in doubt.
void session::send(int accepted, const deadline& until) {
  if (accepted == 0) {
    if (PQstatus(handle_) == CONNECTION_BAD) lose(false);
    throw error(errc::internal, "libpq refused a statement");
  }
  for (int left = PQflush(handle_); left != 0; left = PQflush(handle_)) {
    if (left < 0) lose(false);
    // The server may have much to say before it listens again, so read as well, or both wait for ever.
    wait(POLLIN | POLLOUT, until, false);
    if (PQconsumeInput(handle_) == 0) lose(false);
  }
}

result session::receive(effect e, const deadline& until) {
  result last;
  result failure;
  bool answered = false;
  // An error is an answer: what it refused did not happen. It is none when it ends the session after a statement was carried out.
  const auto in_doubt = [&] { return e == effect::commits && (!failure || (answered && ends_session(failure.get()))); };
  for (;;) {
    bool closed = false;
    while (!closed && PQisBusy(handle_) != 0) {
      wait(POLLIN, until, in_doubt());
      closed = PQconsumeInput(handle_) == 0;
    }
    // An error can be the last that is heard of a server, and counts even so.
    if (closed && failure) break;
    if (closed) lose(in_doubt());
    result next(PQgetResult(handle_));
    if (!next) break;
    switch (PQresultStatus(next.get())) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
      case PGRES_EMPTY_QUERY:
        last = std::move(next);
        answered = true;
        break;
      case PGRES_COPY_IN:
      case PGRES_COPY_OUT:
      case PGRES_COPY_BOTH:
        abandon();
        throw error(errc::grammar, "COPY does not work on this connection");
      default:
        // A statement has been carried out when its result comes, but it is committed after that: an error can still follow.
        if (!failure) failure = std::move(next);
    }
  }
  if (failure) {
    const auto state = field(failure.get(), PG_DIAG_SQLSTATE);
    if (in_doubt()) last_words_ = state;
    if (state.empty() || in_doubt()) lose(e == effect::commits);
    if (ends_session(failure.get())) abandon();
    throw kind_.explain({.sqlstate = state,
                         .text = field(failure.get(), PG_DIAG_MESSAGE_PRIMARY),
                         .function = field(failure.get(), PG_DIAG_SOURCE_FUNCTION)});
  }
  if (PQstatus(handle_) == CONNECTION_BAD || !last) lose(in_doubt());
  return last;
}

std::optional<std::string> session::notification(const deadline& until) {
  if (broken()) lose(false);
  for (;;) {
    if (PGnotify* heard = PQnotifies(handle_)) {
      std::string said = heard->extra;
      PQfreemem(heard);
      return said;
    }
    pollfd socket{PQsocket(handle_), POLLIN, 0};
    // Under TLS, bytes can wait in the library when the socket has none.
    const int ready =
        poll(&socket, 1, PQsslInUse(handle_) != 0 ? std::min(milliseconds_until(until.when), 50) : milliseconds_until(until.when));
    if (ready < 0 && errno != EINTR) lose(false);
    if (ready > 0 || PQsslInUse(handle_) != 0) {
      if (PQconsumeInput(handle_) == 0) lose(false);
      if (ready > 0) continue;
    }
    if (std::chrono::steady_clock::now() >= until.when) return std::nullopt;
  }
}

result session::query(const std::string& text, effect e, const deadline& until) {
  prepare_to_send();
  send(PQsendQuery(handle_, text.c_str()), until);
  return receive(e, until);
}

void session::prepare(const std::string& name, const std::string& text, const wire_parameters& parameters, const deadline& until) {
  prepare_to_send();
  send(PQsendPrepare(handle_, name.c_str(), text.c_str(), parameters.count, parameters.types), until);
  receive(effect::none, until);
}

result session::execute(const std::string& name, const wire_parameters& parameters, effect e, const deadline& until) {
  prepare_to_send();
  send(PQsendQueryPrepared(handle_, name.c_str(), parameters.count, parameters.values, parameters.lengths, parameters.formats,
                           parameters.result_format),
       until);
  return receive(e, until);
}

result session::execute_text(const std::string& text, const wire_parameters& parameters, effect e, const deadline& until) {
  prepare_to_send();
  send(PQsendQueryParams(handle_, text.c_str(), parameters.count, parameters.types, parameters.values, parameters.lengths,
                         parameters.formats, parameters.result_format),
       until);
  return receive(e, until);
}

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
