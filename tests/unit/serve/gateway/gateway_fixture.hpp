#pragma once

/// \file
/// A gateway on a store in memory, in front of an upstream that a test controls.

#include <holdfast/error.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/store/memory.hpp>

#include "net/tls.hpp"
#include "serve/api/decision_recorder.hpp"
#include "serve/gateway/gateway_server.hpp"
#include "serve/http_client.hpp"
#include "serve/http_server.hpp"
#include "support/free_port.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace serve = detail::serve;
namespace gw = detail::serve::gateway;

/// An upstream whose answers a test sets. It counts requests and keeps the last one.
class scripted_upstream {
 public:
  using script = std::function<void(const serve::server_request&, serve::responder)>;

  /// The port is one that the system gives to no client. While the upstream is stopped, a client
  /// could otherwise take the port, or connect to itself.
  explicit scripted_upstream(script first) : script_(std::move(first)) {
    for (int attempt = 0; !server_; ++attempt) {
      try {
        start("127.0.0.1:" + std::to_string(free_port()));
      } catch (const error&) {
        if (attempt == 10) throw;  // another program is never as fast so often
      }
    }
  }

  void answer_with(script next) {
    const std::scoped_lock lock(mutex_);
    script_ = std::move(next);
  }
  void answer(int status, detail::http::field_block fields, std::string body) {
    answer_with([=](const serve::server_request&, serve::responder reply) {
      reply.answer(
          {.status = status, .fields = fields, .body = body, .has_date = fields.has("Date")});
    });
  }
  /// No connection is accepted any more.
  void stop() { server_.reset(); }
  void restart() { start(address_); }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] std::string url() const { return "http://" + address_; }
  [[nodiscard]] int requests() const noexcept { return requests_; }
  /// Fields of the last request, as lines.
  [[nodiscard]] std::string last_fields() {
    const std::scoped_lock lock(mutex_);
    return last_fields_;
  }
  [[nodiscard]] std::string last_target() {
    const std::scoped_lock lock(mutex_);
    return last_target_;
  }

 private:
  void start(const std::string& listen) {
    server_ = std::make_unique<serve::http_server>(
        serve::server_options{.listen = {listen}},
        [this](const serve::server_request& request, serve::responder reply) {
          script current;
          {
            const std::scoped_lock lock(mutex_);
            current = script_;
            last_fields_.clear();
            for (std::size_t i = 0; i < request.fields.size(); ++i)
              last_fields_.append(request.fields[i].name)
                  .append(": ")
                  .append(request.fields[i].value)
                  .append("\n");
            last_target_ = request.target.text();
          }
          ++requests_;
          current(request, std::move(reply));
        });
    address_ = server_->addresses().front();
  }

  std::mutex mutex_{};
  script script_;
  std::string last_fields_{};
  std::string last_target_{};
  std::atomic<int> requests_ = 0;
  std::string address_{};
  std::unique_ptr<serve::http_server> server_{};
};

inline detail::http::field_block block_of(
    std::initializer_list<std::pair<std::string_view, std::string_view>> list) {
  detail::http::field_block block;
  for (const auto& [name, value] : list) block.add(name, value);
  return block;
}

struct gateway_fixture : ::testing::Test {
  scripted_upstream upstream{
      [](const serve::server_request&, serve::responder reply) { reply.answer({.body = "live"}); }};
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();
  std::shared_ptr<holdfast::store> store = make_memory_store({.clock = clock});
  std::shared_ptr<decision_log> decisions = std::make_shared<decision_log>();
  std::function<void(point_options&)> configure{};
  std::vector<gw::route> routes{{.name = "r", .upstreams = {upstream.url()}}};
  std::string secret = "secret";
  std::shared_ptr<const detail::net::tls_server_context> tls{};
  tls_options upstream_tls{};
  std::shared_ptr<holdfast::engine> engine{};
  std::unique_ptr<gw::gateway_server> gateway{};

  void start() {
    engine_options options{.clock = clock, .insight = serve::server_insight(decisions)};
    options.configure = [this](std::string_view, point_options& point) {
      point.expiry = std::chrono::hours(24);
      point.deadline = std::chrono::seconds(30);
      if (configure) configure(point);
    };
    engine = std::make_shared<holdfast::engine>(store, std::move(options));
    gw::gateway_options setup{.listen = {"127.0.0.1:0"}, .tls = tls};
    setup.runtime.upstream_tls = upstream_tls;
    setup.runtime.routes = routes;
    setup.runtime.engine = engine;
    setup.runtime.decisions = decisions;
    setup.runtime.clock = clock;
    setup.runtime.secret = secret;
    gateway = std::make_unique<gw::gateway_server>(std::move(setup));
    gateway->start();
  }
  void TearDown() override {
    if (gateway) (void)gateway->stop(std::chrono::steady_clock::now() + std::chrono::seconds(30));
  }

  serve::client_response send(std::string_view method, std::string_view target,
                              detail::http::field_block fields = {}, std::string_view body = {}) {
    serve::http_client client((tls ? "https://" : "http://") + gateway->addresses().front(),
                              {.tls = upstream_tls, .limits = {.body = std::uint64_t{64} << 20U}});
    return client.send(
        {.method = method, .target = target, .fields = std::move(fields), .body = body},
        std::chrono::steady_clock::now() + std::chrono::seconds(60));
  }
  serve::client_response get(std::string_view target, detail::http::field_block fields = {}) {
    return send("GET", target, std::move(fields));
  }
  /// `200 live`
  std::string summary(const serve::client_response& response) {
    return std::to_string(response.status) + " " + response.body;
  }
  std::string status_of(const serve::client_response& response) {
    return std::string(response.fields.find("Cache-Status").value_or("none"));
  }
};

}  // namespace holdfast::test
