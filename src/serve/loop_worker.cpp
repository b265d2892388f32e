#include "serve/loop_worker.hpp"

#include <holdfast/error.hpp>

#include "base/local_host.hpp"
#include "http/date.hpp"
#include "net/socket_io.hpp"
#include "net/tls.hpp"
#include "serve/answer_stream.hpp"
#include "serve/server_connection.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr int accepts_at_end = 8;

constexpr std::string_view too_many_connections =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Length: 0\r\n\r\n";

std::string host_of_peer(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (address.ss_family == AF_UNIX) return "unix";
  const void* host = nullptr;
  if (address.ss_family == AF_INET)
    host = &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;
  else if (address.ss_family == AF_INET6)
    host = &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  if (host == nullptr || ::inet_ntop(address.ss_family, host, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

bool is_limited(const std::string& peer) { return peer != "unix" && !is_local_host(peer); }

}  // namespace

void server_shared::set_tls(std::shared_ptr<const net::tls_server_context> context) {
  const std::scoped_lock lock(tls_mutex_);
  tls_.swap(context);
}

std::shared_ptr<const net::tls_server_context> server_shared::tls() {
  const std::scoped_lock lock(tls_mutex_);
  return tls_;
}

bool server_shared::admit(const std::string& peer) {
  if (!is_limited(peer)) return true;
  const std::scoped_lock lock(peers_mutex_);
  auto& count = peers_[peer];
  if (count >= options.max_connections_per_address) return false;
  ++count;
  return true;
}

void server_shared::release(const std::string& peer) noexcept {
  if (!is_limited(peer)) return;
  const std::scoped_lock lock(peers_mutex_);
  const auto it = peers_.find(peer);
  if (it != peers_.end() && --it->second == 0) peers_.erase(it);
}

loop_worker::loop_worker(std::shared_ptr<server_shared> shared)
    : shared_(std::move(shared)),
      empty_buffers_(std::make_unique<const connection_buffers>(shared_->options.limits)),
      scratch_(std::make_unique<std::array<char, scratch_size>>()) {
  kept_buffers_.reserve(max_kept_buffers);
}

loop_worker::~loop_worker() = default;

std::unique_ptr<connection_buffers> loop_worker::take_buffers() {
  if (kept_buffers_.empty()) return std::make_unique<connection_buffers>(shared_->options.limits);
  // The last one, whose memory is most likely in the caches.
  auto buffers = std::move(kept_buffers_.back());
  kept_buffers_.pop_back();
  return buffers;
}

void loop_worker::keep_buffers(std::unique_ptr<connection_buffers> buffers) noexcept {
  if (kept_buffers_.size() < max_kept_buffers) kept_buffers_.push_back(std::move(buffers));
}

void loop_worker::listen(const net::listening_socket& socket, bool tls) {
  acceptors_.push_back(std::make_unique<net::acceptor>(
      loop_, socket, [this, tls](int accepted) { open_connection(accepted, tls); }));
}

void loop_worker::run() {
  if (shared_->options.make_context)
    context_ = shared_->options.make_context({shared_from_this(), &loop_});
  loop_.run();
  acceptors_.clear();
  close_all();
  context_.reset();
  loop_.destroy_retired();  // closes the sockets now, although a handler may keep this worker
}

void loop_worker::answer(std::uint64_t connection, std::uint64_t number, server_response response) {
  if (loop_.is_own_thread()) {
    if (auto* const target = find(connection)) target->answer(number, std::move(response));
    return;
  }
  (void)loop_.post([this, connection, number, response = std::move(response)]() mutable {
    if (auto* const target = find(connection)) target->answer(number, std::move(response));
  });
}

void loop_worker::watch_client(std::uint64_t connection, std::uint64_t number,
                               std::function<void()> gone) {
  auto watch = [this, connection, number, gone = std::move(gone)]() mutable {
    if (auto* const target = find(connection)) target->watch_client(number, std::move(gone));
    else gone();
  };
  if (loop_.is_own_thread()) watch();
  else (void)loop_.post(std::move(watch));
}

void loop_worker::begin_stream(std::uint64_t connection, std::uint64_t number, server_response head,
                               std::shared_ptr<stream_queue> queue) {
  const auto begin = [this, connection, number](server_response& response,
                                                std::shared_ptr<stream_queue> content) {
    if (auto* const target = find(connection))
      target->begin_stream(number, std::move(response), std::move(content));
    else content->mark_closed();
  };
  if (loop_.is_own_thread()) {
    begin(head, std::move(queue));
    return;
  }
  const bool posted = loop_.post(
      [begin, head = std::move(head), queue]() mutable { begin(head, std::move(queue)); });
  if (!posted) queue->mark_closed();
}

bool loop_worker::continue_stream(std::uint64_t connection) {
  return loop_.post([this, connection] {
    if (auto* const target = find(connection)) target->continue_stream();
  });
}

server_connection* loop_worker::find(std::uint64_t id) noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= slots_.size() || slots_[index].generation != id >> 32U) return nullptr;
  return slots_[index].connection.get();
}

void loop_worker::open_connection(int socket, bool tls) {
  if (socket < 0) {
    (void)close_longest_idle();
    return;
  }
  ++shared_->accepted;
  const auto peer = host_of_peer(socket);
  const bool full =
      shared_->connections >= shared_->options.max_connections && !close_longest_idle();
  if (full || !shared_->admit(peer)) {
    ++shared_->overloaded;
    std::string ignored;
    if (!tls) (void)net::write_socket(socket, too_many_connections, ignored);
    ::close(socket);
    return;
  }
  try {
    auto stream = tls ? std::make_unique<net::socket_stream>(socket, *shared_->tls())
                      : std::make_unique<net::socket_stream>(socket);
    if (free_slots_.empty()) {
      slots_.push_back({});
      free_slots_.reserve(slots_.capacity());
      free_slots_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const auto index = free_slots_.back();
    const std::uint64_t id = (std::uint64_t{slots_[index].generation} << 32U) | index;
    auto connection = std::make_shared<server_connection>(*this, id, std::move(stream), peer);
    connection->start();
    free_slots_.pop_back();
    slots_[index].connection = std::move(connection);
    ++shared_->connections;
  } catch (const std::exception&) {
    // No memory or no descriptors: the stream has closed the socket.
    shared_->release(peer);
  }
}

void loop_worker::remove(server_connection& connection) {
  const auto index = static_cast<std::uint32_t>(connection.id());
  auto& slot = slots_[index];
  if (slot.connection.get() != &connection) return;
  shared_->release(connection.peer());
  loop_.retire(std::exchange(slot.connection, nullptr));
  ++slot.generation;
  free_slots_.push_back(index);
  if (--shared_->connections == 0) {
    const std::scoped_lock lock(shared_->mutex);
    shared_->closed.notify_all();
  }
}

bool loop_worker::close_longest_idle() {
  server_connection* oldest = nullptr;
  for (const auto& slot : slots_) {
    auto* const candidate = slot.connection.get();
    if (candidate != nullptr && candidate->is_idle() &&
        (oldest == nullptr || candidate->idle_since() < oldest->idle_since()))
      oldest = candidate;
  }
  if (oldest != nullptr) oldest->close();
  return oldest != nullptr;
}

bool loop_worker::is_hung(std::chrono::milliseconds limit) {
  const auto now = net::steady::now();
  net::steady::rep since = 0;
  if (!called_.compare_exchange_strong(since, now.time_since_epoch().count()))
    return now - net::steady::time_point(net::steady::duration(since)) > limit;
  (void)loop_.post([self = weak_from_this()] {
    if (const auto worker = self.lock()) worker->called_ = 0;
  });
  return false;
}

void loop_worker::begin_stop() {
  // The system has accepted connections already. Those that come meanwhile must not hold the end.
  for (const auto& acceptor : acceptors_) {
    for (int i = 0; i < accepts_at_end; ++i) acceptor->on_events(EPOLLIN);
  }
  acceptors_.clear();
  {
    const std::scoped_lock lock(shared_->mutex);
    --shared_->accepting;
    shared_->closed.notify_all();
  }
  for (const auto& slot : slots_) {
    // A copy: the slot is emptied meanwhile.
    if (const auto connection = slot.connection) connection->finish();
  }
}

void loop_worker::finish_tls_connections() {
  for (const auto& slot : slots_) {
    const auto connection = slot.connection;  // a copy: the slot is emptied meanwhile
    if (!connection || !connection->has_tls()) continue;
    if (connection->is_handshaking()) connection->close();
    else connection->finish();
  }
}

void loop_worker::close_all() {
  for (const auto& slot : slots_) {
    const auto connection = slot.connection;  // a copy, as above
    if (!connection) continue;
    if (connection->is_unanswered()) ++shared_->cut;
    connection->close();
  }
}

const std::string& loop_worker::date_line() {
  if (loop_.now() >= date_until_) {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    date_line_ = "Date: " + http::format_date(now) + "\r\n";
    date_until_ = loop_.now() + std::chrono::seconds(1);
  }
  return date_line_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
