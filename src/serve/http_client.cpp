#include "serve/http_client.hpp"

#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "http/writer.hpp"
#include "net/byte_stream.hpp"
#include "net/tls.hpp"
#include "serve/response_collector.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using net::io_status;
using net::steady;

/// Waits until a socket is ready. Returns false at the deadline.
bool wait_for(std::vector<pollfd>& polls, steady::time_point until, steady::time_point deadline) {
  const auto wake = std::min(until, deadline);
  (void)::poll(polls.data(), polls.size(), net::poll_timeout(wake));
  return steady::now() < deadline;
}

/// One request on one connection.
class client_exchange {
 public:
  client_exchange(net::byte_stream& stream, const http::limits& limits, std::string_view method,
                  steady::time_point deadline)
      : stream_(stream), deadline_(deadline), collector_(limits, method) {}

  client_response run(std::string_view text) {
    if (send(text)) receive();
    return collector_.take_response();
  }
  [[nodiscard]] bool reusable() const noexcept { return collector_.reusable(); }

 private:
  bool fail_late() {
    collector_.fail(exchange_status::late, "the deadline has passed");
    return false;
  }
  bool wait(io_status status) {
    const short events = status == io_status::wait_write ? POLLOUT : POLLIN;
    std::vector<pollfd> polls{{stream_.descriptor(), events, 0}};
    return wait_for(polls, deadline_, deadline_) || fail_late();
  }

  bool send(std::string_view text) {
    while (!text.empty()) {
      const auto result = stream_.write(text);
      if (result.status == io_status::done) {
        collector_.set_sent();
        text.remove_prefix(result.bytes);
      } else if (result.status == io_status::closed) {
        // The server may have answered before it had the whole request.
        if (collector_.sent()) return true;
        collector_.fail(exchange_status::unreachable, stream_.close_reason());
        return false;
      } else if (!wait(result.status)) {
        return false;
      }
    }
    return true;
  }

  void receive() {
    std::array<char, 16'384> buffer{};
    for (;;) {
      const auto result = stream_.read(buffer);
      if (result.status == io_status::closed) {
        collector_.end(stream_.close_reason(), result.in_order);
        return;
      }
      if (result.status != io_status::done) {
        if (!wait(result.status)) return;
        continue;
      }
      if (collector_.add({buffer.data(), result.bytes})) return;
      if (steady::now() >= deadline_) {
        (void)fail_late();
        return;
      }
    }
  }

  net::byte_stream& stream_;
  steady::time_point deadline_;
  response_collector collector_;
};

}  // namespace

struct http_client::state {
  struct idle_connection {
    std::unique_ptr<net::byte_stream> stream{};
    steady::time_point since{};
  };
  client_options options{};
  std::string server{};   // https://host:443
  std::string host{};     // for Host
  std::string address{};  // host:port
  std::optional<net::tls_context> tls{};
  std::mutex mutex{};
  std::vector<idle_connection> idle{};

  /// Returns an idle connection on which the server neither sent bytes nor closed it, or null.
  std::unique_ptr<net::byte_stream> take_idle() {
    const std::scoped_lock lock(mutex);
    while (!idle.empty()) {
      auto candidate = std::move(idle.back());
      idle.pop_back();
      if (steady::now() - candidate.since < options.idle_timeout && candidate.stream->is_idle())
        return std::move(candidate.stream);
    }
    return nullptr;
  }
  void keep(std::unique_ptr<net::byte_stream> stream) {
    const std::scoped_lock lock(mutex);
    if (idle.size() < options.max_idle) idle.push_back({std::move(stream), steady::now()});
  }

  /// Returns null, and sets why, if the server cannot be reached.
  std::unique_ptr<net::byte_stream> connect(steady::time_point deadline,
                                            client_response& response) {
    try {
      auto stream = std::make_unique<net::byte_stream>(
          address, net::stream_options{.service = "the server", .tls = tls ? &*tls : nullptr},
          deadline);
      while (!stream->set_up()) {
        std::vector<pollfd> polls;
        stream->add_polls(polls);
        (void)wait_for(polls, stream->wake_at(), deadline);
      }
      return stream;
    } catch (const error& problem) {
      response.result =
          problem.code() == errc::timeout ? exchange_status::late : exchange_status::unreachable;
      response.certificate_refused = problem.code() == errc::permission;
      response.reason = problem.message();
      return nullptr;
    }
  }
};

http_client::http_client(std::string_view url, client_options options)
    : state_(std::make_unique<state>()) {
  const auto parsed = parse_url(url);
  const bool secure = parsed.scheme == "https";
  if ((!secure && parsed.scheme != "http") || parsed.host.empty())
    throw error(errc::invalid_argument,
                without_password(url) + " is not a URL of a web server; use http:// or https://");
  const auto default_port = secure ? 443U : 80U;
  const auto port = parsed.port.value_or(default_port);
  const bool is_ipv6 = parsed.host.find(':') != std::string::npos;
  const auto host = is_ipv6 ? '[' + parsed.host + ']' : parsed.host;
  state_->options = std::move(options);
  state_->server = parsed.scheme + "://" + host + (parsed.port ? ':' + std::to_string(port) : "");
  state_->host = port == default_port ? host : host + ':' + std::to_string(port);
  state_->address = parsed.host + ':' + std::to_string(port);
  if (secure) state_->tls.emplace(state_->options.tls);
}

http_client::~http_client() = default;

const std::string& http_client::server() const noexcept { return state_->server; }

client_response http_client::send(const client_request& request, steady::time_point deadline) {
  std::string text;
  const bool has_content = !request.body.empty() || request.method == "POST" ||
                           request.method == "PUT" || request.method == "PATCH";
  http::append_request_head(
      text, request.method, request.target, state_->host, request.fields,
      {.kind = has_content ? http::content_framing::length : http::content_framing::none,
       .bytes = request.body.size()});
  text += request.body;

  const auto run = [&](std::unique_ptr<net::byte_stream> stream) {
    client_exchange exchange(*stream, state_->options.limits, request.method, deadline);
    auto response = exchange.run(text);
    if (exchange.reusable()) state_->keep(std::move(stream));
    return response;
  };
  if (auto stream = state_->take_idle()) {
    auto response = run(std::move(stream));
    if (response.sent || response.result != exchange_status::unreachable) return response;
  }
  client_response failure;
  auto stream = state_->connect(deadline, failure);
  return stream ? run(std::move(stream)) : failure;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
