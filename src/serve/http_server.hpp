#pragma once

/// \file
/// An HTTP/1.1 server on event loops.
///
///   loop thread     accepts, reads and writes. It owns its connections, and never waits.
///   handler         called on a loop thread with a complete request. It answers at once, or gives
///                   the `responder` to another thread and returns.
///   responder       refers to its connection by a handle, not by a pointer: an answer to a
///                   connection that was closed meanwhile is dropped.
///
/// An answer may continue in pieces: answer_stream.hpp.
///
/// Requests of one connection are answered in their order, also if they were answered in another.
/// Deadlines are absolute: a client that sends a byte now and then does not extend them.

#include <holdfast/version.hpp>

#include "http/fields.hpp"
#include "http/limits.hpp"
#include "http/target.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::net {
class event_loop;
class tls_server_context;
struct peer_certificate;
}  // namespace HOLDFAST_NAMESPACE::detail::net

namespace HOLDFAST_NAMESPACE::detail::serve {

/// What a handler keeps for each loop, for example connections of its own.
class loop_context {
 public:
  loop_context() = default;
  loop_context(const loop_context&) = delete;
  loop_context& operator=(const loop_context&) = delete;
  virtual ~loop_context() = default;
};

/// A complete request. Valid until the handler returns.
struct server_request {
  std::string_view method{};
  /// Normalised; `/` for OPTIONS *.
  const http::target& target;
  std::string_view host{};
  const http::fields& fields;
  /// The handler may move it.
  std::string& body;
  /// Address of the client without its port, or `unix`.
  std::string_view peer{};
  /// The target was sent in absolute form: `http://host/path`.
  bool absolute_target = false;
  /// The connection has TLS.
  bool secure = false;
  /// Of the client, if the server requires one. Its issuer was checked; its end may have passed
  /// since.
  const net::peer_certificate* certificate = nullptr;
  /// Of the loop that calls the handler; null without server_options::make_context.
  loop_context* context = nullptr;
};

struct server_response {
  int status = 200;
  /// Content-Length, Date and Connection are added by the server.
  http::field_block fields{};
  std::string body{};
  /// Close the connection after this answer.
  bool close = false;
  /// `fields` has a Date, so the server adds none.
  bool has_date = false;
  /// Content-Length of an answer to HEAD, if it is not the size of `body`.
  std::optional<std::uint64_t> head_length{};
  /// An answer to HEAD has no Content-Length.
  bool unknown_length = false;
};

/// An answer in `application/problem+json`.
[[nodiscard]] server_response problem_response(int status, std::string_view detail);

class answer_stream;
class loop_worker;
struct answer_stream_options;

/// Answers one request, from any thread, once. If it is destroyed before, it answers 500.
/// Thread-safety: one thread at a time.
class responder {
 public:
  responder(std::shared_ptr<loop_worker> worker, std::uint64_t connection,
            std::uint64_t number) noexcept;
  responder(responder&&) noexcept = default;
  responder& operator=(responder&&) = delete;
  ~responder();

  /// Does nothing if the client is gone. Never throws because of the client.
  void answer(server_response response);
  /// `gone` is called once, on a loop thread, if the client closes its connection, or its side of
  /// it, before it was answered, or if the connection breaks before the answer was handed to the
  /// system in full. Must not wait or throw. Without the call the client may still be gone: what
  /// the system has taken may never arrive.
  void watch_client(std::function<void()> gone);
  /// Answers with content that follows in pieces; include answer_stream.hpp. The body of `head` is
  /// the first piece. A client of HTTP/1.0 gets 505, and the stream is closed. A client that shuts
  /// down its sending direction counts as gone. Throws errc::invalid_argument for a status without
  /// content, and errc::internal if the request was answered already.
  [[nodiscard]] answer_stream begin_stream(server_response head, answer_stream_options options);
  /// `complete` is called with the answer before it is sent, on the thread that answers: it adds
  /// fields, and counts. Must not throw.
  void set_completion(std::function<void(server_response&)> complete) {
    complete_ = std::move(complete);
  }

 private:
  std::shared_ptr<loop_worker> worker_;
  std::uint64_t connection_;
  std::uint64_t number_;
  std::function<void(server_response&)> complete_{};
};

struct server_options {
  /// `host:port` or the path of a Unix socket.
  std::vector<std::string> listen{};
  /// Accept on the sockets that a service manager passed on, too.
  bool use_inherited = false;
  /// Null: no TLS. Must outlive the server. Unix sockets have none.
  const net::tls_server_context* tls = nullptr;
  http::limits limits{};
  /// Number of threads.
  std::size_t loops = 1;
  /// From the first byte of a request, or from the connection, to the end of its header.
  std::chrono::milliseconds head_timeout{10'000};
  /// For the content of a request, and for sending answers: so long, and 1 ms more for each byte.
  std::chrono::milliseconds transfer_timeout{10'000};
  /// Between requests.
  std::chrono::milliseconds idle_timeout{60'000};
  /// In all loops together. Beyond it the connection that was idle for longest is closed, or the
  /// new one gets 503.
  std::size_t max_connections = 4'096;
  /// Of one address that is not loopback. Beyond it a new connection gets 503.
  std::size_t max_connections_per_address = 4'096;
  std::size_t max_requests_per_connection = 10'000;
  /// Requests of a connection that wait for their answer. It is not read further beyond it.
  std::size_t max_pipelined = 16;
  /// Requests of all connections that wait for their answer. Beyond it they get 503.
  std::size_t max_waiting = 1'024;
  /// Largest content of a request, called on a loop thread with its method and its target as it was
  /// sent. Empty: limits.body for all.
  std::function<std::uint64_t(std::string_view method, std::string_view target)> max_body{};
  /// Called on each loop thread when it starts. The result is destroyed on that thread when the
  /// loop has ended, after its connections were closed. Empty: no contexts.
  std::function<std::unique_ptr<loop_context>(std::shared_ptr<net::event_loop>)> make_context{};
  /// Called with the message of an exception that the handler threw, on a loop thread.
  std::function<void(std::string_view)> on_failure{};
};

/// Counts since the start.
struct server_counts {
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  /// Answered with 400, 408, 413, 414, 417, 431 or 505 by the server itself.
  std::uint64_t refused = 0;
  /// Answered with 503 by the server itself.
  std::uint64_t overloaded = 0;
  /// Closed because a deadline had passed.
  std::uint64_t late = 0;
  /// Open now.
  std::uint64_t connections = 0;
  /// Requests that wait for their answer now.
  std::uint64_t waiting = 0;
  /// Answers that are sent in pieces now.
  std::uint64_t streams = 0;
  /// Streams that were cut because their client read too slowly.
  std::uint64_t slow_streams = 0;
};

/// Thread-safety: may be called from any thread.
class http_server {
 public:
  /// Called on a loop thread: must not wait. An exception is answered with 500.
  using handler = std::function<void(const server_request&, responder)>;

  /// Listens and starts the threads. Throws errc::invalid_argument or errc::unavailable.
  http_server(server_options options, handler handle);
  /// As `stop` without waiting.
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// The addresses it listens on, with the ports that the system chose.
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept;
  [[nodiscard]] server_counts counts() const noexcept;
  /// Number of loops that have not reacted to the last call for this time. Does not wait: it looks
  /// at the reactions to earlier calls, and calls again.
  [[nodiscard]] std::size_t hung_loops(std::chrono::milliseconds limit) const;
  /// Replaces the certificate for connections that come later. Only if the server had one. If one
  /// of the two requires certificates of clients, connections that exist end after their requests:
  /// their certificates were compared with the issuers of before.
  void set_tls(std::shared_ptr<const net::tls_server_context> context);
  /// Calls a function on each loop thread, later, with the context of the loop.
  void call_contexts(const std::function<void(loop_context&)>& function);
  /// Every answer says from now on that its connection is closed, so that no client sends a request
  /// to a connection that `stop` closes.
  void begin_drain() noexcept;
  /// Stops accepting, closes idle connections, and waits until the others have their answers, at
  /// most for `grace`. Then it closes them. Returns how many were closed that way. A second call
  /// does nothing.
  std::size_t stop(std::chrono::milliseconds grace);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
