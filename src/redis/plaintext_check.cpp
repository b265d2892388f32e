#include "redis/plaintext_check.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// Silence of a handshake before the check begins.
constexpr auto handshake_silence = std::chrono::milliseconds(250);
constexpr std::string_view plain_ping = "PING\r\n";

}  // namespace

plaintext_check::plaintext_check(std::string address, steady::time_point deadline)
    : address_(std::move(address)), deadline_(deadline) {
  const auto now = steady::now();
  start_at_ = now + std::clamp<steady::duration>((deadline - now) / 4, steady::duration::zero(),
                                                 handshake_silence);
}

void plaintext_check::advance() {
  if (ended_ || steady::now() < start_at_) return;
  try {
    if (!stream_) stream_.emplace(address_, net::stream_options{.service = "Redis"}, deadline_);
    if (!sent_) {
      if (!stream_->set_up()) return;
      // So few bytes fit into the buffer of a new socket.
      static_cast<void>(stream_->write(plain_ping));
      sent_ = true;
      return;
    }
  } catch (const error&) {
    ended_ = true;  // the handshake reports what is wrong
    return;
  }
  read_answer();
}

void plaintext_check::read_answer() {
  std::array<char, 16> buffer{};
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it was made before it was written to
  const auto result = stream_->read(buffer);
  if (result.status == net::io_status::wait_read || result.status == net::io_status::wait_write)
    return;
  ended_ = true;
  const std::string_view answer(buffer.data(), result.bytes);
  // +PONG, or an error such as -NOAUTH.
  if (result.status != net::io_status::done ||
      (!answer.starts_with("+PONG") && !answer.starts_with('-')))
    return;
  throw error(errc::unavailable,
              "cannot connect to Redis at " + address_ +
                  " with TLS: the server answers without TLS; write redis:// instead of rediss://, "
                  "or enable TLS on the server");
}

void plaintext_check::add_polls(std::vector<pollfd>& polls) const {
  if (!stream_ || ended_) return;
  if (sent_) polls.push_back({stream_->descriptor(), POLLIN, 0});
  else stream_->add_polls(polls);
}

steady::time_point plaintext_check::wake_at() const noexcept {
  if (ended_) return steady::time_point::max();
  if (!stream_) return start_at_;
  return sent_ ? deadline_ : stream_->wake_at();
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
