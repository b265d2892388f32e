#pragma once

/// \file
/// A response that is passed on while it arrives. A client that reads slowly slows the upstream
/// down; the slowest transfer is 1 KiB a second, after the first ten seconds.

#include <holdfast/version.hpp>

#include "net/event_loop.hpp"
#include "serve/answer_stream.hpp"
#include "serve/http_server.hpp"
#include "serve/upstream.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Thread-safety: used on the thread of its loop only.
class client_transfer {
 public:
  /// The response comes from `source`, which must outlive the transfer.
  client_transfer(net::event_loop& loop, upstream_call& source) noexcept
      : loop_(loop), source_(source) {}

  /// The response is larger than what is held: from now on its time limit is that of a transfer.
  /// `arrived` bytes of it are here. `unlimited`: its pieces come when they happen.
  void start(std::uint64_t arrived, bool unlimited);
  /// Sends the head, and the first piece in its body. `on_progress` is called when the client has
  /// taken what waited. Returns false if the client is gone.
  [[nodiscard]] bool open(responder client, server_response response,
                          std::optional<std::uint64_t> length, std::function<void()> on_progress);
  /// Passes a piece on. Without a client it only extends the time limit. Returns false if the
  /// client is gone.
  [[nodiscard]] bool write(std::string_view piece);
  /// For on_progress: reads from the upstream again. Returns false if the client is gone.
  [[nodiscard]] bool resume();
  /// The response is complete.
  void complete();
  /// The client must not take a part of the content for all of it.
  void cut() noexcept { stream_.reset(); }

 private:
  void extend_time_limit();

  net::event_loop& loop_;
  upstream_call& source_;
  std::optional<answer_stream> stream_{};
  bool unlimited_ = false;
  bool is_paused_ = false;
  bool is_writing_ = false;  // a call of the stream is on the stack
  std::uint64_t arrived_ = 0;
  std::size_t unsent_ = 0;  // bytes that the connection of the client has not taken
  net::steady::time_point started_{};
  net::steady::time_point paused_since_{};
  net::steady::duration paused_time_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
