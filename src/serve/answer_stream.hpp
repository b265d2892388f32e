#pragma once

/// \file
/// An answer whose content follows in pieces, from any thread. It is sent in chunked coding, unless
/// its length is known.
///
///   writer        appends pieces to the queue of the stream, and wakes the loop of the connection
///   loop thread   takes the whole queue as one chunk when everything before it was sent
///
/// So a client has at most two queues in memory. If the queue exceeds its limit, because the client
/// reads too slowly, the connection is cut.

#include <holdfast/version.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

class loop_worker;

struct answer_stream_options {
  /// Bytes that may wait for a client.
  std::size_t max_queued = std::size_t{256} << 10U;
  /// Sent whenever nothing was sent for `heartbeat_interval`. Empty: nothing.
  std::string heartbeat{};
  std::chrono::milliseconds heartbeat_interval{15'000};
  /// The last piece if the server stops before the stream is closed.
  std::string last_piece{};
  /// The server that stops waits for the end of the stream, instead of ending it.
  bool completes = false;
  /// Bytes of all pieces together. The writer must cut the stream if it has fewer.
  std::optional<std::uint64_t> content_length{};
  /// A client of HTTP/1.0 gets the content until the connection is closed, instead of 505.
  bool until_close = false;
  /// Called on the loop thread when the connection took the pieces that waited, and when the stream
  /// is closed. Must not wait, throw, or use the stream. A writer that pauses sets it.
  std::function<void()> on_progress{};
};

/// What the writer and the connection of a stream share.
/// Thread-safety: may be called from any thread.
class stream_queue {
 public:
  explicit stream_queue(answer_stream_options settings) : options(std::move(settings)) {}

  const answer_stream_options options;

  enum class status : std::uint8_t {
    open,
    ended,  ///< this was the last piece
    cut     ///< the client is too slow, or the writer gave up
  };
  struct content {
    std::string text{};
    stream_queue::status status = status::open;
  };

  // For the writer.
  enum class append_result : std::uint8_t { refused, appended, wake_loop, cut_and_wake_loop };
  [[nodiscard]] append_result append(std::string_view piece);
  // These return whether the loop must be woken.
  [[nodiscard]] bool end(std::string_view last_piece);
  [[nodiscard]] bool cut() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return !closed_; }

  // For the connection.
  /// Takes everything that waits.
  [[nodiscard]] content take_content();
  [[nodiscard]] bool has_content() const;
  [[nodiscard]] bool is_cut() const;
  /// The server stops: appends the last piece of the options, unless the stream has ended.
  void end_by_server();
  /// The client is gone, or has everything.
  void mark_closed() noexcept {
    if (!closed_.exchange(true) && options.on_progress) options.on_progress();
  }
  [[nodiscard]] bool was_too_slow() const noexcept { return too_slow_; }

 private:
  mutable std::mutex mutex_{};
  std::string text_{};            // under mutex_
  status status_ = status::open;  // under mutex_
  bool woken_ = false;            // under mutex_: the loop will call take
  std::atomic<bool> closed_ = false;
  std::atomic<bool> too_slow_ = false;
};

/// Writes the pieces. If it is destroyed before `close`, the connection is cut, so that the client
/// does not take a part of the content for all of it.
/// Thread-safety: one thread at a time; different threads may write after each other.
class answer_stream {
 public:
  answer_stream(std::shared_ptr<loop_worker> worker, std::uint64_t connection,
                std::shared_ptr<stream_queue> queue) noexcept;
  answer_stream(answer_stream&&) noexcept = default;
  answer_stream& operator=(answer_stream&& other) noexcept;
  ~answer_stream();

  /// Never waits. Returns false if the client is gone or too slow: the piece is lost then.
  bool write(std::string_view piece);
  /// Ends the content after a last piece. A second call does nothing.
  void close(std::string_view last_piece = {});
  /// False after the client has gone or was too slow, and after `close` when everything was sent.
  [[nodiscard]] bool is_open() const noexcept { return queue_ && queue_->is_open(); }

 private:
  void wake();
  void abandon() noexcept;

  std::shared_ptr<loop_worker> worker_;
  std::uint64_t connection_;
  std::shared_ptr<stream_queue> queue_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
