// Two gateways on one PostgreSQL, in front of an upstream that fails again and again. An
// independent recorder knows what each client has seen: no answer may be older.
// HOLDFAST_GATEWAY_REQUESTS (2,000) is the number of requests.

#include <holdfast/database.hpp>
#include <holdfast/failover/engine.hpp>

#include "serve/gateway/gateway_server.hpp"
#include "serve/http_client.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;

int request_count() {
  const char* const text = std::getenv("HOLDFAST_GATEWAY_REQUESTS");
  return text == nullptr ? 2'000 : std::stoi(text);
}

/// Answers each path with a number that grows, or fails.
class failing_upstream {
 public:
  [[nodiscard]] std::string url() const { return "http://" + server_.addresses().front(); }

 private:
  void answer(const server_request& request, responder reply) {
    server_response response;
    {
      const std::scoped_lock lock(mutex_);
      if (random_() % 10 < 4) response = {.status = 503, .body = "broken"};
      else response.body = std::to_string(++versions_[request.target.text()]);
    }
    reply.answer(std::move(response));
  }

  std::mutex mutex_{};
  std::mt19937 random_{17};
  std::map<std::string, int> versions_{};
  http_server server_{{.listen = {"127.0.0.1:0"}},
                      [this](const server_request& request, responder reply) {
                        answer(request, std::move(reply));
                      }};
};

/// One of several gateways that share a database. What one says is stored is in the database.
class shared_gateway {
 public:
  shared_gateway(const std::string& database_url, const std::string& upstream)
      : database_(open(database_url)) {
    engine_options options;
    options.storage.write_behind = std::nullopt;
    options.storage.read_deadline = 60s;  // a slow machine must not leave a client without answer
    options.configure = [](std::string_view, point_options& point) {
      point.expiry = std::chrono::hours(24);
      point.deadline = 60s;
    };
    engine_ = std::make_shared<engine>(
        database_.store({.create_schema = true, .payload = payload_column::bytes}),
        std::move(options));
    gateway::gateway_options setup{.listen = {"127.0.0.1:0"}};
    setup.runtime.routes = {{.name = "r", .upstreams = {upstream}}};
    setup.runtime.engine = engine_;
    setup.runtime.clock = system_clock();
    gateway_ = std::make_unique<gateway::gateway_server>(std::move(setup));
    gateway_->start();
  }
  ~shared_gateway() { (void)gateway_->stop(std::chrono::steady_clock::now() + 60s); }
  shared_gateway(const shared_gateway&) = delete;
  shared_gateway& operator=(const shared_gateway&) = delete;

  [[nodiscard]] std::string url() const { return "http://" + gateway_->addresses().front(); }

 private:
  database database_;
  std::shared_ptr<engine> engine_{};
  std::unique_ptr<gateway::gateway_server> gateway_{};
};

TEST(GatewaysOnPostgres, NoAnswerIsOlderThanOneThatWasSeen) {
  test::postgres_server postgres;
  failing_upstream upstream;
  const shared_gateway first(postgres.url(), upstream.url());
  const shared_gateway second(postgres.url(), upstream.url());
  constexpr int client_count = 4;
  const int requests = request_count() / client_count;
  std::atomic<int> older = 0;
  std::atomic<int> stale = 0;
  std::atomic<int> kept_by_other = 0;
  {
    std::vector<std::jthread> clients;
    for (int number = 0; number < client_count; ++number) {
      clients.emplace_back([&, number] {
        std::mt19937 random(static_cast<unsigned>(number));
        std::vector<std::unique_ptr<http_client>> gateways;
        gateways.push_back(std::make_unique<http_client>(first.url(), client_options{}));
        gateways.push_back(std::make_unique<http_client>(second.url(), client_options{}));
        // Paths are the client's own: requests of others cannot overlap with its.
        struct seen_answer {
          int version = 0;
          std::size_t gateway = 0;
        };
        std::map<std::string, seen_answer> seen;
        for (int i = 0; i < requests; ++i) {
          const auto path = "/" + std::to_string(number) + "/" + std::to_string(random() % 8);
          const auto index = static_cast<std::size_t>(random() % 2);
          const auto answer =
              gateways[index]->send({.target = path}, std::chrono::steady_clock::now() + 60s);
          auto& last = seen[path];
          if (answer.status != 200) {
            // Nothing was kept yet.
            if (last.version != 0) ++older;
            continue;
          }
          const int version = std::stoi(answer.body);
          if (version < last.version) ++older;
          if (answer.fields.has("Holdfast-Answer")) {
            ++stale;
            if (last.gateway != index) ++kept_by_other;
          } else {
            last = {.version = version, .gateway = index};
          }
        }
      });
    }
  }
  EXPECT_EQ(older, 0);
  EXPECT_GT(stale, requests / 2);
  EXPECT_GT(kept_by_other, requests / 4);
}

}  // namespace
