#include "serve/http_server.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"
#include "http/problem.hpp"
#include "net/listener.hpp"
#include "net/tls.hpp"
#include "serve/answer_stream.hpp"
#include "serve/loop_worker.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// The code that a caller decides on, for a status without an exception.
errc code_of(int status) noexcept {
  switch (status) {
    case 401:
    case 403:
      return errc::permission;
    case 404:
    case 405:
      return errc::not_found;
    case 408:
    case 504:
      return errc::timeout;
    case 409:
    case 412:
      return errc::duplicate;
    case 413:
    case 414:
    case 431:
      return errc::too_large;
    case 415:
    case 501:
    case 505:
      return errc::unsupported_type;
    case 429:
    case 502:
    case 503:
      return errc::unavailable;
    default:
      return status < 500 ? errc::invalid_argument : errc::internal;
  }
}

}  // namespace

server_response problem_response(int status, std::string_view detail) {
  server_response response{.status = status};
  response.fields.add("Content-Type", http::problem::media_type);
  const auto code = code_of(status);
  const bool transient = code == errc::unavailable || code == errc::timeout;
  response.body = http::to_json({.status = status,
                                 .detail = std::string(detail),
                                 .members = {{"code", '"' + std::string(to_string(code)) + '"'},
                                             {"transient", transient ? "true" : "false"},
                                             {"inDoubt", "false"}}});
  return response;
}

responder::responder(std::shared_ptr<loop_worker> worker, std::uint64_t connection,
                     std::uint64_t number) noexcept
    : worker_(std::move(worker)), connection_(connection), number_(number) {}

responder::~responder() {
  if (!worker_) return;
  try {
    answer(problem_response(500, "the request was not answered"));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory: the connection stays until the client closes it.
  }
}

void responder::answer(server_response response) {
  if (response.status < 200 || response.status > 599)
    throw error(errc::invalid_argument, "the status of an answer is between 200 and 599");
  const auto worker = std::exchange(worker_, nullptr);
  if (worker && complete_) complete_(response);
  if (worker) worker->answer(connection_, number_, std::move(response));
}

void responder::watch_client(std::function<void()> gone) {
  if (worker_) worker_->watch_client(connection_, number_, std::move(gone));
}

answer_stream responder::begin_stream(server_response head, answer_stream_options options) {
  if (head.status < 200 || head.status > 599 || head.status == 204 || head.status == 304)
    throw error(errc::invalid_argument, "a stream needs a status that has content");
  auto worker = std::exchange(worker_, nullptr);
  if (!worker) throw error(errc::internal, "the request was answered already");
  if (complete_) complete_(head);
  auto queue = std::make_shared<stream_queue>(std::move(options));
  worker->begin_stream(connection_, number_, std::move(head), queue);
  return {std::move(worker), connection_, std::move(queue)};
}

struct http_server::state {
  std::shared_ptr<server_shared> shared = std::make_shared<server_shared>();
  std::vector<net::listening_socket> sockets{};
  std::vector<std::string> addresses{};
  std::vector<std::shared_ptr<loop_worker>> workers{};
  std::vector<std::jthread> threads{};
  std::atomic<bool> stopped = false;

  /// TCP has a socket for each loop, so that the system distributes connections. Others share one.
  void open(const std::string& address) {
    using sharing = net::listening_socket::sharing;
    const bool share = workers.size() > 1;
    sockets.push_back(
        net::listening_socket::open(address, {.port = share ? sharing::first : sharing::none}));
    addresses.push_back(sockets.back().address());
    listen_everywhere(share && sockets.back().is_tcp());
  }
  /// Registers the last socket, and opens its twins.
  void listen_everywhere(bool with_twins) {
    const bool tls = shared->options.tls != nullptr && sockets.back().is_tcp();
    workers.front()->listen(sockets.back(), tls);
    for (std::size_t i = 1; i < workers.size(); ++i) {
      if (with_twins)
        sockets.push_back(net::listening_socket::open(
            addresses.back(), {.port = net::listening_socket::sharing::next}));
      workers[i]->listen(sockets.back(), tls);
    }
  }
};

http_server::http_server(server_options options, handler handle)
    : state_(std::make_unique<state>()) {
  if (options.loops == 0 || options.limits.head == 0 || options.max_pipelined == 0)
    throw error(errc::invalid_argument, "loops, limits.head and max_pipelined must be positive");
  auto& shared = *state_->shared;
  shared.options = std::move(options);
  shared.handle = std::move(handle);
  // The options do not own it.
  shared.set_tls({std::shared_ptr<void>(), shared.options.tls});
  for (std::size_t i = 0; i < shared.options.loops; ++i)
    state_->workers.push_back(std::make_shared<loop_worker>(state_->shared));
  for (const auto& address : shared.options.listen) state_->open(address);
  if (shared.options.use_inherited) {
    for (auto& socket : net::listening_socket::inherited()) {
      state_->sockets.push_back(std::move(socket));
      state_->addresses.push_back(state_->sockets.back().address());
      state_->listen_everywhere(false);
    }
  }
  if (state_->sockets.empty())
    throw error(errc::invalid_argument, "there is no address to listen on; give one");
  shared.accepting = state_->workers.size();
  try {
    for (const auto& worker : state_->workers)
      state_->threads.push_back(start_quiet_thread("hf-http", [worker] { worker->run(); }));
  } catch (...) {
    for (const auto& worker : state_->workers) worker->loop().stop();
    throw;
  }
}

http_server::~http_server() { (void)stop(std::chrono::milliseconds(0)); }

const std::vector<std::string>& http_server::addresses() const noexcept {
  return state_->addresses;
}

server_counts http_server::counts() const noexcept {
  const auto& shared = *state_->shared;
  return {.accepted = shared.accepted,
          .requests = shared.requests,
          .refused = shared.refused,
          .overloaded = shared.overloaded,
          .late = shared.late,
          .connections = shared.connections,
          .waiting = shared.waiting,
          .streams = shared.streams,
          .slow_streams = shared.slow_streams};
}

std::size_t http_server::hung_loops(std::chrono::milliseconds limit) const {
  std::size_t count = 0;
  for (const auto& worker : state_->workers) count += worker->is_hung(limit) ? 1 : 0;
  return count;
}

void http_server::set_tls(std::shared_ptr<const net::tls_server_context> context) {
  auto& shared = *state_->shared;
  if (shared.options.tls == nullptr || !context) return;
  const bool checks_clients =
      shared.tls()->requires_client_certificate() || context->requires_client_certificate();
  shared.set_tls(std::move(context));
  if (!checks_clients) return;
  for (const auto& worker : state_->workers)
    (void)worker->loop().post([raw = worker.get()] { raw->finish_tls_connections(); });
}

void http_server::call_contexts(const std::function<void(loop_context&)>& function) {
  for (const auto& worker : state_->workers)
    (void)worker->loop().post([raw = worker.get(), function] {
      if (raw->context() != nullptr) function(*raw->context());
    });
}

void http_server::begin_drain() noexcept { state_->shared->draining = true; }

std::size_t http_server::stop(std::chrono::milliseconds grace) {
  if (state_->stopped.exchange(true)) return 0;
  auto& shared = *state_->shared;
  const auto deadline = net::steady::now() + grace;
  for (const auto& worker : state_->workers)
    (void)worker->loop().post([raw = worker.get()] { raw->begin_stop(); });
  {
    std::unique_lock lock(shared.mutex);
    // Closed before the last answer: else the system goes on accepting connections for them.
    if (shared.closed.wait_until(lock, deadline, [&] { return shared.accepting == 0; }))
      state_->sockets.clear();
    (void)shared.closed.wait_until(lock, deadline, [&] { return shared.connections == 0; });
  }
  for (const auto& worker : state_->workers) worker->loop().stop();
  state_->threads.clear();
  state_->sockets.clear();
  return static_cast<std::size_t>(shared.cut.load());
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
