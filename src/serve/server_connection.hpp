#pragma once

/// \file
/// One connection of the server. States:
///
///   handshake   TLS is not done yet
///   reading     requests are read, dispatched and answered
///   closing     no more requests are read; answers that are due are sent
///   draining    everything is sent, the client was told so; what it still sends is discarded for a
///               moment, because closing at once would reset the connection and destroy the answer
///   closed      removed from its worker; destroyed at the end of the turn

#include "http/request_reader.hpp"
#include "net/event_loop.hpp"
#include "net/socket_stream.hpp"
#include "serve/answer_stream.hpp"
#include "serve/http_server.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A request that is not answered in full.
struct pending_request {
  bool head_only = false;
  bool safe = false;  // changes nothing, by its method
  bool close = false;
  bool old_version = false;                     // HTTP/1.0
  bool counted = false;                         // in server_counts::waiting
  std::function<void()> gone{};                 // see server_connection::watch_client
  bool head_sent = false;                       // of a stream
  bool raw_content = false;                     // of a stream: without chunks
  std::unique_ptr<server_response> response{};  // of a stream, or if it must wait for an earlier
  std::shared_ptr<stream_queue> stream{};       // the content that follows the response
};

/// What a connection needs from the first byte of a request to the last byte of its answer. A
/// connection that waits for a request has none: its worker keeps them for others.
struct connection_buffers {
  explicit connection_buffers(const http::limits& limits) : reader(limits) {}

  http::request_reader reader;
  std::string input{};      // bytes that are not processed yet
  std::string head_text{};  // of a request whose content is incomplete
  std::string content{};
  std::string output{};
  std::size_t output_sent = 0;
  std::vector<std::function<void()>> unsent{};  // `gone` of the answers in output
  std::vector<pending_request> pending{};       // the first has the number next_number_ - size
  net::steady::time_point content_deadline{};
  net::steady::time_point output_deadline{};
  net::steady::time_point heartbeat_due{};  // of a stream
};

/// Thread-safety: used on the thread of its loop only.
class server_connection final : public net::event_handler {
 public:
  server_connection(loop_worker& worker, std::uint64_t id,
                    std::unique_ptr<net::socket_stream> stream, std::string peer);
  ~server_connection();

  /// Begins to read. Throws errc::unavailable.
  void start();
  void on_events(std::uint32_t events) override;
  /// Takes the answer to a request. Ignores a request that was answered already.
  void answer(std::uint64_t number, server_response response);
  /// As responder::watch_client.
  void watch_client(std::uint64_t number, std::function<void()> gone);
  /// Takes the head of an answer whose content follows.
  void begin_stream(std::uint64_t number, server_response head,
                    std::shared_ptr<stream_queue> queue);
  /// Sends what the stream has now.
  void continue_stream();
  /// Closes the connection when its requests are answered; at once if it has none. Ends a stream. A
  /// client that has not sent its first request may still send one.
  void finish();
  /// Closes the connection now.
  void close();

  [[nodiscard]] bool is_idle() const noexcept;
  [[nodiscard]] bool is_handshaking() const noexcept { return state_ == state::handshake; }
  [[nodiscard]] bool has_tls() const noexcept { return stream_->has_tls(); }
  /// A request has begun, and its answer is not sent in full.
  [[nodiscard]] bool is_unanswered() const noexcept {
    return !buffers().pending.empty() || !buffers().output.empty() || head_started_ || in_content_;
  }
  [[nodiscard]] net::steady::time_point idle_since() const noexcept { return idle_since_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

 private:
  enum class state : std::uint8_t { handshake, reading, closing, draining, closed };

  void receive();
  void take_bytes(std::string_view bytes);
  [[nodiscard]] std::size_t process(std::string_view bytes);
  /// Returns false if the request was refused.
  [[nodiscard]] bool begin_request();
  /// Whether the request whose head was read begins after those before it were answered.
  [[nodiscard]] bool must_wait() noexcept;
  [[nodiscard]] bool read_content(std::string_view bytes, std::size_t& offset);
  void dispatch();
  void refuse(int status, std::string_view detail);
  void send_due_answers();
  void append_answer(pending_request& request, const server_response& response);
  /// Tells those who wait for answers that the client is gone.
  void report_gone();
  [[nodiscard]] bool is_watched() const noexcept;
  /// Returns whether the stream has ended. May close the connection.
  [[nodiscard]] bool append_stream(pending_request& request);
  void append_stream_head(pending_request& request);
  void append_fields(const server_response& response);
  void append_piece(const pending_request& request, std::string_view piece);
  /// Counts the bytes of an answer that begin at `before`.
  void extend_output_deadline(std::size_t before);
  /// The first request is answered by a stream that has begun.
  [[nodiscard]] bool is_streaming() const noexcept {
    return !buffers().pending.empty() && buffers().pending.front().head_sent;
  }
  void flush();
  void settle();
  void advance();
  /// Empty ones that must not change, if the connection waits for a request.
  [[nodiscard]] const connection_buffers& buffers() const noexcept;
  [[nodiscard]] connection_buffers& own_buffers();
  void release_buffers() noexcept;
  void on_deadline();
  [[nodiscard]] net::steady::time_point deadline() const noexcept;
  [[nodiscard]] bool wants_input() const noexcept;

  loop_worker& worker_;
  std::uint64_t id_;
  std::string peer_;  // host of the client, or `unix`
  std::unique_ptr<net::socket_stream> stream_;
  std::unique_ptr<const net::peer_certificate> certificate_{};  // of the client, if it showed one
  net::registration registration_{};
  net::timer timer_;
  state state_ = state::handshake;
  bool processing_ = false;    // process() is on the stack
  bool in_content_ = false;    // the head of the request is complete
  bool head_started_ = false;  // a part of the next head has arrived, and the rest is awaited
  bool held_ = false;          // the next request must wait for those before it
  bool input_ended_ = false;
  bool half_closed_ = false;   // the client sends no more, but what it has sent may be unread
  bool continue_due_ = false;  // 100 must be sent when it is this request's turn
  bool finishing_ = false;     // the next answer is the last one
  std::unique_ptr<connection_buffers> buffers_{};  // null: it waits for a request
  std::uint64_t next_number_ = 0;                  // of the next request
  net::steady::time_point head_deadline_{};
  net::steady::time_point drain_deadline_{};
  net::steady::time_point idle_since_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
