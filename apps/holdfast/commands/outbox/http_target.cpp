// Posts events with cpp-httplib, within limits that its own client does not have:
//
//   deadline    A thread shuts the socket down at the deadline, which ends connecting, the TLS
//               handshake, writing and reading.
//   header      The stream below the client counts bytes: at most 64 KiB before the body, and 8 KiB
//               per line. The client matches the status line with std::regex, which recurses.
//   body        At most 64 KiB are read, and nothing is decompressed. Only the status and Retry-After
//               are used.
//
// It also does what the client does not:
//
//   1xx         Skips 102 and 103 before the answer, like 100.
//   keep-alive  Does not use an idle connection again on which the server sent something or which
//               it closed. If nothing of a request could be sent on an idle connection, sends it on
//               a new one.

#include "commands/outbox/http_target.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>

#include "base/url.hpp"

#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t max_header_bytes = std::size_t{64} << 10U;
constexpr std::size_t max_header_line = std::size_t{8} << 10U;
constexpr std::size_t max_body_bytes = std::size_t{64} << 10U;
// Chunk headers and trailers.
constexpr std::size_t max_framing_bytes = std::size_t{64} << 10U;

/// A socket whose request must end at a deadline. Guarded by the mutex of deadline_watch.
struct watched_socket {
  /// A duplicate: the client may close its own descriptor, and its number may be reused.
  int descriptor = -1;
  clock::time_point deadline{};
  bool expired = false;
};

/// Shuts sockets down at the deadline of their request.
/// Thread-safety: may be called from any thread.
class deadline_watch {
 public:
  deadline_watch() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  /// Watches another socket that the client has opened for the connection.
  void replace(watched_socket& socket, int descriptor) {
    const std::scoped_lock lock(mutex_);
    close(socket);
    socket.descriptor = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  }
  void begin(watched_socket& socket, clock::time_point deadline) {
    {
      const std::scoped_lock lock(mutex_);
      socket.deadline = deadline;
      socket.expired = false;
      running_.push_back(&socket);
    }
    changed_.notify_one();
  }
  /// Returns whether the deadline has passed.
  bool end(watched_socket& socket) {
    const std::scoped_lock lock(mutex_);
    std::erase(running_, &socket);
    return socket.expired;
  }
  void forget(watched_socket& socket) {
    const std::scoped_lock lock(mutex_);
    close(socket);
  }
  /// Returns whether the server neither sent bytes nor closed the connection.
  [[nodiscard]] bool is_quiet(const watched_socket& socket) {
    const std::scoped_lock lock(mutex_);
    pollfd request{socket.descriptor, POLLIN, 0};
    return socket.descriptor >= 0 && ::poll(&request, 1, 0) == 0;
  }

 private:
  static void close(watched_socket& socket) {
    if (socket.descriptor >= 0) ::close(std::exchange(socket.descriptor, -1));
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      const auto now = clock::now();
      auto wake = clock::time_point::max();
      for (auto* socket : running_) {
        if (socket->deadline <= now) {
          socket->expired = true;
          // Repeated until the request ends: the client may open a socket for the next address of
          // the host.
          if (socket->descriptor >= 0) (void)::shutdown(socket->descriptor, SHUT_RDWR);
          wake = std::min(wake, now + repeat_after);
        } else {
          wake = std::min(wake, socket->deadline);
        }
      }
      if (wake == clock::time_point::max())
        changed_.wait(lock, stop, [this] { return !running_.empty(); });
      else (void)changed_.wait_until(lock, stop, wake, [] { return false; });
    }
  }

  static constexpr std::chrono::milliseconds repeat_after{20};
  std::mutex mutex_{};
  std::condition_variable_any changed_{};
  std::vector<watched_socket*> running_{};
  std::jthread thread_;  // last: it uses the others
};

/// Limits for the rest of an answer.
struct read_limits {
  std::size_t remaining = max_header_bytes;
  /// Length of the current line.
  std::size_t line = 0;
  bool in_header = true;
  /// Bytes were received after the answer.
  bool unread = false;

  [[nodiscard]] bool exceeded() const {
    return remaining == 0 || (in_header && line > max_header_line);
  }
  void count(std::string_view bytes) {
    remaining -= bytes.size();
    const auto end = bytes.rfind('\n');
    line = end == std::string_view::npos ? line + bytes.size() : bytes.size() - end - 1;
  }
};

/// `HTTP/1.1 103 Early Hints`. 101 is an answer: nothing follows it.
bool is_informational(std::string_view status_line) {
  constexpr std::string_view version = "HTTP/1.x ";
  const auto status = status_line.substr(std::min(version.size(), status_line.size()), 3);
  return status_line.starts_with("HTTP/1.") && status.size() == 3 && status.front() == '1' &&
         status != "101";
}

/// Reads within limits. Calls block; deadline_watch ends them.
class limited_stream : public httplib::Stream {
 public:
  /// Sets `sent` unless it is certain that the kernel accepted no part of the request.
  limited_stream(int socket, SSL* tls, read_limits& limits, bool& sent)
      : socket_(socket), tls_(tls), limits_(limits), sent_(sent) {}
  limited_stream(const limited_stream&) = delete;
  limited_stream& operator=(const limited_stream&) = delete;
  ~limited_stream() override { limits_.unread = begin_ != end_; }

  [[nodiscard]] bool is_readable() const override { return true; }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* destination, std::size_t size) override {
    if (!answer_began_) {
      if (const auto problem = begin_answer(); problem <= 0) return problem;
      answer_began_ = true;
    }
    if (status_line_.empty()) return read_counted(destination, size);
    const auto count = std::min(size, status_line_.size());
    std::copy_n(status_line_.data(), count, destination);
    status_line_.erase(0, count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* data, std::size_t size) override {
    const auto count = send(data, size);
    // A failed write with TLS may have sent some records.
    sent_ = sent_ || count > 0 || tls_ != nullptr;
    return count;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { unknown(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { unknown(ip, port); }
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  /// Skips informational answers and reads the status line of the answer. Returns 1, or the result
  /// of a failed read.
  ssize_t begin_answer() {
    bool in_informational = false;
    while (true) {
      status_line_.clear();
      while (!status_line_.ends_with('\n')) {
        char byte = 0;
        if (const auto count = read_counted(&byte, 1); count <= 0) return count;
        status_line_ += byte;
      }
      if (in_informational) in_informational = status_line_ != "\r\n" && status_line_ != "\n";
      else if (is_informational(status_line_)) in_informational = true;
      else return 1;
    }
  }
  ssize_t read_counted(char* destination, std::size_t size) {
    if (limits_.exceeded()) return -1;
    // The client reads the header byte by byte.
    if (begin_ == end_) {
      const auto received = receive(buffer_.data(), buffer_.size());
      if (received <= 0) return received;
      begin_ = 0;
      end_ = static_cast<std::size_t>(received);
    }
    const auto count = std::min({size, end_ - begin_, limits_.remaining});
    std::copy_n(buffer_.data() + begin_, count, destination);
    begin_ += count;
    limits_.count({destination, count});
    return static_cast<ssize_t>(count);
  }
  ssize_t send(const char* data, std::size_t size) {
    if (tls_ != nullptr)
      return ::SSL_write(tls_, data, static_cast<int>(std::min(size, max_write)));
    ssize_t sent = 0;
    do sent = ::send(socket_, data, size, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
  }
  ssize_t receive(char* destination, std::size_t size) {
    if (tls_ != nullptr) return ::SSL_read(tls_, destination, static_cast<int>(size));
    ssize_t received = 0;
    do received = ::recv(socket_, destination, size, 0);
    while (received < 0 && errno == EINTR);
    return received;
  }
  static void unknown(std::string& ip, int& port) {
    ip.clear();
    port = 0;
  }

  static constexpr std::size_t max_write = std::size_t{1} << 20U;
  int socket_;
  SSL* tls_;
  read_limits& limits_;
  bool& sent_;
  bool answer_began_ = false;
  std::string status_line_{};  ///< the part that the client has not read yet
  std::array<char, 4096> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// The result of a request.
struct exchange_result {
  /// The whole answer was read.
  bool complete = false;
  /// 0 if the header is incomplete.
  int status = 0;
  std::string retry_after{};
  httplib::Error error = httplib::Error::Success;
  /// The deadline has passed.
  bool expired = false;
  /// The header is too long.
  bool header_limit = false;
  /// The body is too long; its rest was not read.
  bool body_limit = false;
  /// The connection can be used for another request.
  bool reusable = false;
  /// A part of the request may have reached the server.
  bool sent = false;
};

/// One connection to the server, plain or with TLS.
class connection {
 public:
  connection() = default;
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  virtual ~connection() = default;
  [[nodiscard]] virtual exchange_result post(httplib::Request request,
                                             clock::time_point deadline) = 0;
  /// Returns whether the server neither sent bytes nor closed it since the last answer.
  [[nodiscard]] virtual bool is_quiet() const = 0;
};

template <class Client>
class client_connection final : public connection, private Client {
 public:
  client_connection(const std::string& host, int port, std::chrono::milliseconds timeout,
                    deadline_watch& watch)
      : Client(host, port), watch_(watch) {
    this->set_keep_alive(true);
    this->set_connection_timeout(timeout);
    this->set_decompress(false);
    this->set_socket_options([this](int descriptor) { watch_.replace(watched_, descriptor); });
  }
  client_connection(const client_connection&) = delete;
  client_connection& operator=(const client_connection&) = delete;
  ~client_connection() override { watch_.forget(watched_); }

  [[nodiscard]] exchange_result post(httplib::Request request,
                                     clock::time_point deadline) override {
    exchange_result result;
    httplib::Response response;
    std::size_t body_bytes = 0;
    limits_ = {};
    sent_ = false;
    const auto read_header = [&](const httplib::Response& header) {
      result.status = header.status;
      result.retry_after = header.get_header_value("Retry-After");
      limits_.in_header = false;
      limits_.remaining = max_body_bytes + max_framing_bytes;
      return true;
    };
    request.response_handler = read_header;
    request.content_receiver = [&](const char*, std::size_t size, std::uint64_t, std::uint64_t) {
      body_bytes += size;
      return body_bytes <= max_body_bytes;
    };
    watch_.begin(watched_, deadline);
    try {
      result.complete = this->send(request, response, result.error);
    } catch (...) {
      (void)watch_.end(watched_);
      throw;
    }
    result.expired = watch_.end(watched_);
    // The client does not call the handler for a 204. A body without a length ends with the
    // connection, even if the deadline has ended it.
    if (result.complete && result.status == 0) (void)read_header(response);
    result.complete = result.complete && !result.expired;
    result.header_limit = result.status == 0 && limits_.exceeded();
    result.body_limit = result.status != 0 && (body_bytes > max_body_bytes || limits_.exceeded());
    result.reusable = result.complete && !limits_.unread;
    result.sent = sent_;
    return result;
  }
  [[nodiscard]] bool is_quiet() const override { return watch_.is_quiet(watched_); }

 private:
  bool process_socket(const typename Client::Socket& socket,
                      std::function<bool(httplib::Stream&)> callback) override {
    limited_stream stream(socket.sock, socket.ssl, limits_, sent_);
    return callback(stream);
  }

  deadline_watch& watch_;
  watched_socket watched_{};
  read_limits limits_{};
  bool sent_ = false;
};

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

}  // namespace

struct http_target::state {
  /// https://host:443
  std::string server{};
  /// With its parameters.
  std::string path{};
  std::string host{};
  int port = 0;
  bool tls = false;
  std::chrono::milliseconds timeout{};
  deadline_watch watch{};
  std::mutex mutex{};
  std::vector<std::unique_ptr<connection>> idle{};

  /// Returns an idle connection that can have another request, or null.
  std::unique_ptr<connection> take_idle() {
    const std::scoped_lock lock(mutex);
    while (!idle.empty()) {
      auto candidate = std::move(idle.back());
      idle.pop_back();
      if (candidate->is_quiet()) return candidate;
    }
    return nullptr;
  }
  std::unique_ptr<connection> connect() {
    if (tls)
      return std::make_unique<client_connection<httplib::SSLClient>>(host, port, timeout, watch);
    return std::make_unique<client_connection<httplib::ClientImpl>>(host, port, timeout, watch);
  }
  void release(std::unique_ptr<connection> unused) {
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(unused));
  }
};

http_target::http_target(const std::string& text, std::chrono::milliseconds timeout)
    : state_(std::make_unique<state>()) {
  const detail::url parsed = detail::parse_url(text);
  if ((parsed.scheme != "http" && parsed.scheme != "https") || parsed.host.empty())
    throw error(errc::invalid_argument, "--http is " + detail::without_password(text) +
                                            "; use http://host/path or https://host/path");
  if (parsed.user)
    throw error(errc::invalid_argument,
                "credentials in the URL are not sent; remove them, and let a proxy add them");
  const auto authority = text.find("//") + 2;
  const auto path = text.find_first_of("/?", authority);
  state_->server = text.substr(0, path);
  state_->path = path == std::string::npos ? "/" : text.substr(path);
  if (state_->path.front() == '?') state_->path.insert(0, "/");
  state_->host = parsed.host;
  state_->tls = parsed.scheme == "https";
  state_->port = static_cast<int>(parsed.port.value_or(state_->tls ? 443 : 80));
  state_->timeout = timeout;
}

http_target::~http_target() = default;

outcome http_target::post(const std::map<std::string, std::string>& headers,
                          const std::string& body, const std::string& content_type) {
  if (has_control_character(content_type))
    return outcome::permanent(
        "the content type has a control character, which could inject a header");
  httplib::Request request;
  request.method = "POST";
  request.path = state_->path;
  for (const auto& [name, value] : headers) request.headers.emplace(name, value);
  // Answers are not decompressed.
  request.headers.erase("Accept-Encoding");
  request.headers.emplace("Accept-Encoding", "identity");
  if (!content_type.empty()) request.headers.emplace("Content-Type", content_type);
  request.body = body;

  const auto deadline = clock::now() + state_->timeout;
  auto link = state_->take_idle();
  exchange_result result;
  if (link) result = link->post(request, deadline);
  // The server may close an idle connection at any time. The request is sent again only if nothing
  // of it was sent.
  if (!link || (!result.complete && !result.sent && !result.expired)) {
    link = state_->connect();
    result = link->post(std::move(request), deadline);
  }
  // Another connection is opened after an incomplete answer.
  if (result.reusable) state_->release(std::move(link));
  if (result.complete || result.body_limit)
    return relay::outcome_of_status(result.status, result.retry_after);

  const auto& server = state_->server;
  if (result.header_limit)
    return outcome::ambiguous("the header of the answer from " + server + " is too long");
  const std::string reason =
      result.expired ? "not complete within " + std::to_string(state_->timeout.count()) + " ms"
                     : httplib::to_string(result.error);
  if (!result.sent) return outcome::retry("cannot reach " + server + ": " + reason);
  switch (result.error) {
    case httplib::Error::Read:
    case httplib::Error::Write:
    case httplib::Error::Canceled:
    case httplib::Error::Unknown:
      return outcome::ambiguous("no answer from " + server + ": " + reason);
    default:
      return outcome::retry("cannot reach " + server + ": " + reason);
  }
}

}  // namespace holdfast::cli
