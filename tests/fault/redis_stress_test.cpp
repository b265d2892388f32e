// Eight threads on a network that breaks all the time: whatever happens, a reply belongs to its
// command.
// HOLDFAST_STRESS_SECONDS makes it longer.

#include <holdfast/redis.hpp>

#include "support/cutting_proxy.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using redis::client;
using redis::command;

std::chrono::milliseconds how_long() {
  const char* given = std::getenv("HOLDFAST_STRESS_SECONDS");
  return given == nullptr ? 3s : std::chrono::seconds(std::max(1, std::atoi(given)));
}

/// What eight threads ask, and what they must be told.
class crowd {
 public:
  crowd(const client& with, std::string prefix) : with_(with), prefix_(std::move(prefix)) {
    for (unsigned t = 0; t < 8; ++t)
      threads_.emplace_back([this, t](const std::stop_token& stop) { work(stop, t); });
  }
  void finish() {
    for (auto& each : threads_) each.request_stop();
    threads_.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(right, 0);
    const std::scoped_lock lock(mutex_);
    EXPECT_EQ(strange_, "");
  }
  std::atomic<int> right = 0;
  std::atomic<int> wrong = 0;
  std::atomic<int> failed = 0;

 private:
  void note(const error& problem) {
    ++failed;
    if (problem.transient() &&
        (problem.code() == errc::unavailable || problem.code() == errc::timeout))
      return;
    const std::scoped_lock lock(mutex_);
    strange_ = problem.what();
  }

  void work(const std::stop_token& stop, unsigned thread) {
    const redis::script pair("redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], ARGV[1]}");
    std::minstd_rand random(thread + 1);
    std::int64_t most = 0;  // what the counter may be
    const std::string counter = prefix_ + "n" + std::to_string(thread);
    for (int i = 0; !stop.stop_requested(); ++i) {
      const std::string mark = std::to_string(thread) + '.' + std::to_string(i);
      std::vector<command> commands;
      const auto count = 1 + random() % 40;
      for (unsigned k = 0; k < count; ++k) {
        const std::string name = prefix_ + mark + '.' + std::to_string(k % 5);
        if (k % 3 == 0) commands.push_back(command("ECHO").arg(name).idempotent());
        else
          commands.push_back(
              command(pair).key(name).arg(mark + '/' + std::to_string(k)).idempotent(k % 2 == 0));
      }
      const auto replies =
          with_.pipeline(commands, {.timeout = std::chrono::milliseconds(50 + random() % 1'000)});
      for (unsigned k = 0; k < count; ++k) {
        const std::string name = prefix_ + mark + '.' + std::to_string(k % 5);
        if (replies[k].is_error()) note(replies[k].problem());
        else if (k % 3 == 0
                     ? replies[k].is_text() && replies[k].text() == name
                     : replies[k].is_list() && replies[k].elements().at(0).text() == name &&
                           replies[k].elements().at(1).text() == mark + '/' + std::to_string(k))
          ++right;
        else ++wrong;
      }
      try {  // not idempotent: one more, or one more in doubt
        const auto now = with_.call(command("INCR").key(counter), {.timeout = 500ms}).integer();
        if (now > most + 1) ++wrong;
        most = now;
      } catch (const error& problem) {
        note(problem);
        if (problem.in_doubt()) ++most;
      }
    }
  }

  const client& with_;
  const std::string prefix_;
  std::mutex mutex_;
  std::string strange_{};
  std::vector<std::jthread> threads_{};
};

void disturb(const std::vector<std::unique_ptr<cutting_proxy>>& proxies,
             const std::function<void(unsigned)>& server) {
  std::minstd_rand random(7);
  const auto end = std::chrono::steady_clock::now() + how_long();
  while (std::chrono::steady_clock::now() < end) {
    auto& proxy = *proxies[random() % proxies.size()];
    const auto where = random() % 2 == 0 ? flow::to_client : flow::to_server;
    switch (random() % 5) {
      case 0:
        proxy.cut_after(where, random() % 3'000,
                        random() % 2 == 0 ? ending::reset : ending::finish);
        break;
      case 1:
        proxy.cut();
        break;
      case 2:
        proxy.hold(where);
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
        proxy.hold(where, false);
        break;
      case 3:
        proxy.refuse();
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
        proxy.refuse(false);
        break;
      default:
        server(static_cast<unsigned>(random()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
  }
}

TEST(RedisStress, OneServer) {
  const redis_server server({.durable = false});  // its own: it kills everybody's connections
  std::vector<std::unique_ptr<cutting_proxy>> proxies;
  proxies.push_back(std::make_unique<cutting_proxy>(server.port()));
  const client through(redis_endpoint::url_through(proxies[0]->port()),
                       {.connect_timeout = 300ms, .connections = 5});
  const client direct(server.url());
  crowd all(through, server.unique_prefix("stress"));
  disturb(proxies, [&](unsigned what) {
    if (what % 2 == 0) direct.call(command("SCRIPT").arg("FLUSH"));
    else
      direct.call(command("CLIENT").arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes"),
                  {.timeout = 20s});
  });
  all.finish();
  EXPECT_EQ(through.count().in_flight, 0U);
  EXPECT_LE(through.count().open, 5U);
  EXPECT_EQ(through.count().open, through.count().connected - through.count().lost);
}

TEST(RedisStress, Cluster) {
  const auto& cluster = shared_server<redis_cluster>();
  const client direct(cluster.url(), {.timeout = 30s});
  std::vector<std::unique_ptr<cutting_proxy>> proxies;
  std::map<std::string, std::string> ways;
  for (const auto& each : direct.nodes()) {
    const auto port =
        static_cast<std::uint16_t>(std::stoi(each.address.substr(each.address.rfind(':') + 1)));
    proxies.push_back(std::make_unique<cutting_proxy>(port));
    ways[each.address] = "127.0.0.1:" + std::to_string(proxies.back()->port());
  }
  const client through(
      cluster.url(),
      {.connect_timeout = 300ms, .connections = 3, .translate = [&](const std::string& address) {
         const auto found = ways.find(address);
         return found == ways.end() ? address : found->second;
       }});
  crowd all(through, cluster.unique_prefix("stress"));
  // The servers are shared
  disturb(proxies, [&](unsigned what) { proxies[what % proxies.size()]->cut(ending::finish); });
  all.finish();
  EXPECT_EQ(through.count().in_flight, 0U);
  EXPECT_EQ(through.count().open, through.count().connected - through.count().lost);
}

}  // namespace
