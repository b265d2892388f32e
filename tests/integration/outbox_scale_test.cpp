// Order under many workers, one hot key, and a full outbox. HOLDFAST_OUTBOX_SCALE=100 is the full
// size (1,000 keys of 100 events, 200,000 events of one key, a million pending); the default is a
// tenth or less of it.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/redis.hpp>

#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// Of a hundred.
int scale() {
  const char* text = std::getenv("HOLDFAST_OUTBOX_SCALE");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr || *text == '\0' ? 4 : std::stoi(text);
}

TEST(OutboxScale, FirstDeliveriesAreInOrderWithManyWorkers) {
  redis_server server({.durable = false});
  const auto box = open(server.url()).outbox({.dedup_limit = 1000});
  const int keys = 1000;
  const int each = std::max(5, scale());
  for (int n = 0; n < each; ++n) {
    std::vector<event> part;
    for (int k = 0; k < keys; ++k)
      part.push_back({.type = "t",
                      .key = "k" + std::to_string(k),
                      .payload = std::to_string(n),
                      .id = new_event_id()});
    for (const auto& one : box.publish_all(part)) ASSERT_TRUE(one.safe());
  }
  std::mutex mutex;
  std::map<std::string, int> next;
  std::string wrong;
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> workers;
    for (unsigned w = 0; w < 8; ++w) {
      workers.emplace_back([&, w] {
        std::mt19937 random(w);
        while (true) {
          auto got = box.claim({.most = 40, .run = 4, .lease = 30s});
          if (got.events.empty()) {
            if (box.admin().stats().events == 0) return;
            std::this_thread::sleep_for(2ms);
            continue;
          }
          std::vector<settlement> outcomes;
          std::string failed;
          for (const auto& one : got.events) {
            if (one.event.key == failed) continue;
            settlement outcome{.id = one.event.id, .key = one.event.key};
            {
              const std::scoped_lock lock(mutex);
              auto& expected = next[one.event.key];
              const auto number = std::stoi(one.event.payload);
              if (number > expected)
                wrong = one.event.key + ": " + one.event.payload + " before " +
                        std::to_string(expected);
              if (number == expected) ++expected;
            }
            if (random() % 20 == 0) {
              outcome.action = settlement::kind::retry;
              outcome.delay = std::chrono::milliseconds(random() % 20);
              outcome.error = "at random";
              failed = one.event.key;
              ++failures;
            }
            outcomes.push_back(std::move(outcome));
          }
          (void)box.settle(0, got.fence, std::move(outcomes));
        }
      });
    }
  }
  EXPECT_EQ(wrong, "");
  EXPECT_GT(failures, 100);
  EXPECT_EQ(next.size(), static_cast<std::size_t>(keys));
  for (const auto& [key, count] : next) ASSERT_EQ(count, each) << key;
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxScale, OneHotKeyInRuns) {
  redis_server server({.durable = false});
  const auto box = open(server.url()).outbox({.dedup_limit = 1000});
  const int count = 2000 * std::max(3, scale());
  for (int from = 0; from < count; from += 1000) {
    std::vector<event> part;
    for (int n = from; n < from + 1000; ++n)
      part.push_back(
          {.type = "t", .key = "hot", .payload = std::to_string(n), .id = new_event_id()});
    for (const auto& one : box.publish_all(part)) ASSERT_TRUE(one.safe());
  }
  const auto begin = steady::now();
  auto got = box.claim({.run = 50});
  int expected = 0;
  while (!got.events.empty()) {
    std::vector<settlement> acks;
    for (const auto& one : got.events) {
      ASSERT_EQ(one.event.payload, std::to_string(expected++));
      acks.push_back({.id = one.event.id, .key = one.event.key});
    }
    got = box.settle(0, got.fence, std::move(acks), run_request{.run = 50}).next;
  }
  const std::chrono::duration<double> time = steady::now() - begin;
  EXPECT_EQ(expected, count);
  EXPECT_EQ(box.admin().stats().events, 0U);
  std::cout << "one hot key, runs of 50: " << static_cast<int>(count / time.count())
            << " events/s\n";
}

std::chrono::microseconds p99(std::vector<std::chrono::microseconds> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() * 99 / 100];
}

TEST(OutboxScale, ManyPending) {
  redis_server server({.durable = false});
  const auto box = open(server.url()).outbox({.dedup_limit = 1000});
  const redis::client client(server.url());
  const auto used = [&] { return client.probe().front().used_memory; };
  const std::string payload = R"({"text":")" + std::string(180, 'x') + "\"}";
  const auto measure = [&](const char* when) {
    std::vector<std::chrono::microseconds> publish, claim;
    for (int i = 0; i < 300; ++i) {
      auto start = steady::now();
      (void)box.publish({.type = "ticket.created", .payload = payload});
      publish.push_back(
          std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - start));
      start = steady::now();
      const auto got = box.claim({.most = 1});
      claim.push_back(std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - start));
      EXPECT_TRUE(box.ack(got.fence, got.events.at(0)));
    }
    std::cout << when << ": publish p99 " << p99(publish).count() << " us, claim p99 "
              << p99(claim).count() << " us\n";
    return std::pair(p99(publish), p99(claim));
  };
  const auto empty = measure("empty");
  const auto before = used();
  const int count = 10'000 * scale();
  for (int from = 0; from < count; from += 1000) {
    std::vector<event> part(1000, {.type = "ticket.created", .payload = payload});
    for (const auto& one : box.publish_all(std::move(part))) ASSERT_TRUE(one.safe());
  }
  const auto per_event = (used() - before) / static_cast<std::uint64_t>(count);
  const auto full = measure("full");
  std::cout << count << " pending: " << per_event << " bytes of memory for each, its entry "
            << box.admin().stats().bytes / box.admin().stats().events << "\n";
  EXPECT_LT(per_event, 1200U);
  // Generous where the machine is shared: a structure that grows with what is pending would be off
  // by far more.
  EXPECT_LT(full.first, empty.first * 10 + 300ms);
  EXPECT_LT(full.second, empty.second * 10 + 300ms);
}

}  // namespace
}  // namespace holdfast::test
