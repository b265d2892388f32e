#include "support/proxy_connection.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

constexpr std::size_t most_queued = 1U << 20U;

bool only_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// A reset throws away what the kernel has not delivered yet; what we counted as forwarded has to
// arrive first.
void wait_until_delivered(int socket) {
  for (int i = 0; i < 1'000; ++i) {
    int unsent = 0;
    if (::ioctl(socket, SIOCOUTQ, &unsent) != 0 || unsent == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

proxy_socket::proxy_socket(proxy_socket&& other) noexcept
    : number_(std::exchange(other.number_, -1)) {}

proxy_socket& proxy_socket::operator=(proxy_socket&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

void proxy_socket::close(bool with_reset) {
  if (number_ < 0) return;
  if (with_reset) {
    wait_until_delivered(number_);
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(number_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  ::close(std::exchange(number_, -1));
}

bool proxy_stream::wants_to_read(const proxy_rules& rules) const {
  return from->open() && !ended && !rules.hold && queued < most_queued;
}

bool proxy_stream::wants_to_write(const proxy_rules& rules, clock::time_point now) const {
  if (!to->open() || rules.hold) return false;
  if (!queue.empty()) return queue.front().due <= now;
  return ended && !end_sent && !lost;
}

std::optional<proxy_stream::clock::time_point> proxy_stream::next_due(
    const proxy_rules& rules) const {
  if (rules.hold || queue.empty() || !to->open()) return std::nullopt;
  return queue.front().due;
}

bool proxy_stream::read(const proxy_rules& rules, clock::time_point now) {
  std::string data(65'536, '\0');
  const auto count = ::recv(from->get(), data.data(), data.size(), 0);
  if (count < 0) return only_later();
  lost = lost || rules.drop || !to->open();
  if (count == 0) {
    ended = true;
    return true;
  }
  if (lost) return true;
  data.resize(static_cast<std::size_t>(count));
  queued += data.size();
  queue.push_back({.due = now + rules.delay, .data = std::move(data)});
  return true;
}

bool proxy_stream::write(proxy_rules& rules, clock::time_point now) {
  if (rules.drop && !queue.empty()) {
    lost = true;
    queue.clear();
    queued = 0;
  }
  while (!queue.empty() && queue.front().due <= now) {
    auto& data = queue.front().data;
    const auto allowed =
        rules.budget ? std::min<std::uint64_t>(data.size(), *rules.budget) : data.size();
    if (allowed == 0) return true;  // the proxy cuts
    const auto count = ::send(to->get(), data.data(), allowed, MSG_NOSIGNAL);
    if (count < 0) return only_later();
    const auto sent = static_cast<std::size_t>(count);
    queued -= sent;
    rules.bytes += sent;
    if (rules.budget) *rules.budget -= sent;
    data.erase(0, sent);
    if (!data.empty()) return true;
    queue.pop_front();
  }
  if (queue.empty() && ended && !end_sent && !lost) {
    end_sent = true;
    ::shutdown(to->get(), SHUT_WR);
  }
  return true;
}

proxy_connection::proxy_connection(proxy_socket from_client, proxy_socket to_server)
    : client(std::move(from_client)), server(std::move(to_server)) {
  streams[0].from = &client;
  streams[0].to = &server;
  streams[1].from = &server;
  streams[1].to = &client;
}

bool proxy_connection::over() const {
  if (!client.open() && !server.open()) return true;
  // Half-open: the side that was told nothing is served until it gives up.
  if (!client.open()) return streams[1].ended;
  if (!server.open()) return streams[0].ended;
  return std::all_of(streams.begin(), streams.end(),
                     [](const auto& one) { return one.end_sent || (one.ended && one.lost); });
}

}  // namespace holdfast::test
