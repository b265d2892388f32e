#include "net/connector.hpp"

#include "net/tls.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::net {

connector::connector(event_loop& loop, const target& server, steady::time_point deadline,
                     callback done)
    : loop_(loop),
      address_(server.address),
      tls_(server.tls),
      deadline_(deadline),
      done_(std::move(done)),
      dialer_(
          std::make_unique<dialer>("the server at " + server.address, server.addresses, deadline)),
      timer_(loop) {
  timer_.set_callback([this] { advance(); });
  timer_.set(loop_.now());
}

connector::~connector() = default;

void connector::on_events(std::uint32_t /*events*/) { advance(); }

void connector::watch_dialer() {
  std::vector<pollfd> polls;
  dialer_->add_polls(polls);
  for (const auto& entry : polls)
    watches_.emplace_back(std::make_unique<registration>())->add(loop_, entry.fd, EPOLLOUT, *this);
  timer_.cancel();
  timer_.set(dialer_->wake_at());
}

std::unique_ptr<socket_stream> connector::try_connect() {
  if (dialer_) {
    // The dialer closes sockets, and their numbers may be used again.
    watches_.clear();
    const int socket = dialer_->advance();
    if (socket < 0) {
      watch_dialer();
      return nullptr;
    }
    dialer_.reset();
    const int one = 1;
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    stream_ = tls_ == nullptr ? std::make_unique<socket_stream>(socket)
                              : std::make_unique<socket_stream>(socket, *tls_, address_,
                                                                "the server at " + address_);
  }
  const auto events = stream_->handshake();
  if (events == 0) {
    watches_.clear();
    timer_.cancel();
    return std::move(stream_);
  }
  if (steady::now() >= deadline_)
    throw error(
        errc::timeout,
        "cannot connect to the server at " + address_ + " with TLS: it did not answer in time",
        {.transient = true});
  if (watches_.empty()) {
    watches_.push_back(std::make_unique<registration>());
    watches_.front()->add(loop_, stream_->descriptor(), events, *this);
  }
  watches_.front()->change(events);
  timer_.cancel();
  timer_.set(deadline_);
  return nullptr;
}

void connector::advance() {
  try {
    if (auto connected = try_connect()) std::exchange(done_, {})(std::move(connected), nullptr);
  } catch (const error& problem) {
    watches_.clear();
    timer_.cancel();
    std::exchange(done_, {})(nullptr, &problem);
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
