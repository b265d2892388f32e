#include "serve/gateway/client_transfer.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

/// A transfer may take so long, and a millisecond more for each byte.
constexpr std::chrono::seconds transfer_reserve{10};
/// The connection of a client has at most so much of an answer before the upstream has to wait.
constexpr std::size_t most_unsent = std::size_t{256} << 10U;
constexpr std::size_t most_queued = std::size_t{16} << 20U;

}  // namespace

void client_transfer::start(std::uint64_t arrived, bool unlimited) {
  started_ = loop_.now();
  arrived_ = arrived;
  unlimited_ = unlimited;
  extend_time_limit();
}

bool client_transfer::open(responder client, server_response response,
                           std::optional<std::uint64_t> length, std::function<void()> on_progress) {
  unsent_ = response.body.size();
  is_writing_ = true;
  stream_ = client.begin_stream(std::move(response), {.max_queued = most_queued,
                                                      .completes = true,
                                                      .content_length = length,
                                                      .until_close = true,
                                                      .on_progress = std::move(on_progress)});
  is_writing_ = false;
  return stream_->is_open();
}

bool client_transfer::write(std::string_view piece) {
  arrived_ += piece.size();
  if (stream_) {
    is_writing_ = true;
    const bool is_open = stream_->write(piece);
    is_writing_ = false;
    if (!is_open) return false;
    unsent_ += piece.size();
    if (unsent_ > most_unsent && !std::exchange(is_paused_, true)) {
      paused_since_ = loop_.now();
      source_.set_deadline(net::steady::time_point::max());
      source_.pause();
      return true;
    }
  }
  if (!is_paused_) extend_time_limit();
  return true;
}

bool client_transfer::resume() {
  unsent_ = 0;
  if (is_writing_) return true;
  if (stream_ && !stream_->is_open()) return false;
  if (!std::exchange(is_paused_, false)) return true;
  paused_time_ += loop_.now() - paused_since_;
  extend_time_limit();
  source_.resume();
  return true;
}

void client_transfer::complete() {
  if (stream_) stream_->close();
}

void client_transfer::extend_time_limit() {
  source_.set_deadline(unlimited_ ? net::steady::time_point::max()
                                  : started_ + paused_time_ + transfer_reserve +
                                        std::chrono::milliseconds(arrived_));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
