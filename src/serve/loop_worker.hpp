#pragma once

/// \file
/// One thread of the server: its loop, its listeners and its connections.

#include "net/event_loop.hpp"
#include "net/listener.hpp"
#include "serve/http_server.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

class server_connection;
class stream_queue;
struct connection_buffers;

/// What the threads of a server share.
struct server_shared {
  server_options options{};
  http_server::handler handle{};
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> overloaded = 0;
  std::atomic<std::uint64_t> late = 0;
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> waiting = 0;
  std::atomic<std::uint64_t> streams = 0;
  std::atomic<std::uint64_t> slow_streams = 0;
  /// Connections that were closed at the end of the server before their answer was sent.
  std::atomic<std::uint64_t> cut = 0;
  /// Every answer is the last of its connection.
  std::atomic<bool> draining = false;
  std::mutex mutex{};
  std::size_t accepting = 0;         // loops that accept connections
  std::condition_variable closed{};  // connections or `accepting` became 0

  void set_tls(std::shared_ptr<const net::tls_server_context> context);
  [[nodiscard]] std::shared_ptr<const net::tls_server_context> tls();
  /// Counts a connection of an address. Returns false if the address has too many.
  [[nodiscard]] bool admit(const std::string& peer);
  void release(const std::string& peer) noexcept;

 private:
  std::mutex tls_mutex_{};
  std::shared_ptr<const net::tls_server_context> tls_{};
  std::mutex peers_mutex_{};
  std::unordered_map<std::string, std::size_t> peers_{};  // without loopback
};

/// Thread-safety: used on its own thread, apart from `answer`, the functions for streams, and
/// `loop().post`.
class loop_worker : public std::enable_shared_from_this<loop_worker> {
 public:
  explicit loop_worker(std::shared_ptr<server_shared> shared);
  ~loop_worker();
  loop_worker(const loop_worker&) = delete;
  loop_worker& operator=(const loop_worker&) = delete;

  /// Before the thread starts.
  void listen(const net::listening_socket& socket, bool tls);
  /// Runs until the loop is stopped, then closes all connections.
  void run();
  [[nodiscard]] net::event_loop& loop() noexcept { return loop_; }
  [[nodiscard]] server_shared& shared() noexcept { return *shared_; }
  /// From any thread.
  void answer(std::uint64_t connection, std::uint64_t number, server_response response);
  /// As responder::watch_client. From any thread.
  void watch_client(std::uint64_t connection, std::uint64_t number, std::function<void()> gone);
  /// From any thread.
  void begin_stream(std::uint64_t connection, std::uint64_t number, server_response head,
                    std::shared_ptr<stream_queue> queue);
  /// From any thread: the stream of a connection has content. Returns false if the loop has ended.
  bool continue_stream(std::uint64_t connection);
  /// Closes the listeners and the idle connections.
  void begin_stop();
  /// Closes the connections with TLS when their requests are answered, and those whose handshake
  /// has not ended now.
  void finish_tls_connections();
  /// Closes all connections.
  void close_all();
  /// From any thread; see http_server::hung_loops.
  [[nodiscard]] bool is_hung(std::chrono::milliseconds limit);

  // For connections.
  void remove(server_connection& connection);
  [[nodiscard]] loop_context* context() const noexcept { return context_.get(); }
  [[nodiscard]] std::unique_ptr<connection_buffers> take_buffers();
  /// Keeps them for another connection. They are empty.
  void keep_buffers(std::unique_ptr<connection_buffers> buffers) noexcept;
  [[nodiscard]] const connection_buffers& empty_buffers() const noexcept { return *empty_buffers_; }
  /// A buffer for one read.
  [[nodiscard]] std::span<char> scratch() noexcept { return *scratch_; }
  /// `Date: ...` with its line end, at most a second old.
  [[nodiscard]] const std::string& date_line();

 private:
  struct connection_slot {
    std::shared_ptr<server_connection> connection{};
    std::uint32_t generation = 0;
  };
  void open_connection(int socket, bool tls);
  [[nodiscard]] bool close_longest_idle();
  [[nodiscard]] server_connection* find(std::uint64_t id) noexcept;

  static constexpr std::size_t scratch_size = std::size_t{64} << 10U;
  static constexpr std::size_t max_kept_buffers = 64;
  std::shared_ptr<server_shared> shared_;
  // Connections return theirs when they are destroyed, so these outlive the loop.
  std::unique_ptr<const connection_buffers> empty_buffers_;
  std::vector<std::unique_ptr<connection_buffers>> kept_buffers_{};
  net::event_loop loop_{};
  std::vector<std::unique_ptr<net::acceptor>> acceptors_{};
  std::vector<connection_slot> slots_{};
  std::vector<std::uint32_t> free_slots_{};
  std::unique_ptr<std::array<char, scratch_size>> scratch_;
  std::unique_ptr<loop_context> context_{};
  std::atomic<net::steady::rep> called_{0};  // since when a reaction is due; 0: none is
  std::string date_line_{};
  net::steady::time_point date_until_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
