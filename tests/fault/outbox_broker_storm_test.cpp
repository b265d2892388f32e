// Workers that publish to message brokers are killed with -9 at random moments, and so are the
// brokers. An independent reader counts: every acknowledged event arrived, in order per key.
//
// A normal run has 10 kills for each broker, HOLDFAST_BROKER_KILLS=1000 more of them.

#include <holdfast/database.hpp>
#include <holdfast/outbox/relay/kafka.hpp>
#include <holdfast/outbox/relay/nats.hpp>
#include <holdfast/outbox/relay/rabbitmq.hpp>
#include <holdfast/worker.hpp>

#include "fault/brokers/broker_under_test.hpp"
#include "support/kill_harness.hpp"
#include "support/running_worker.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

constexpr int keys = 20;
constexpr int events_per_batch = 20;

std::size_t kills() {
  const char* text = std::getenv("HOLDFAST_BROKER_KILLS");
  return text == nullptr ? 10 : static_cast<std::size_t>(std::max(std::atoi(text), 5));
}

outbox open_outbox(const std::string& url) {
  // A worker that is killed ten times with the same event is no reason to park it here.
  return open(url).outbox({.dedup_window = 24h, .max_deliveries = 100'000, .create_schema = true});
}

batch_handler relay_to(const std::string& url) {
  const relay::broker_options options{.connect_timeout = 5s, .timeout = 10s, .pause = 200ms};
  if (url.starts_with("amqp")) return relay::rabbitmq(url, options);
  if (url.starts_with("nats")) return relay::nats(url, options);
  return relay::kafka(url, options);
}

HOLDFAST_WORKER(broker_relay_worker) {
  const auto box = open_outbox(arguments.at(0));
  worker events{box,
                {.concurrency = 2,
                 .lease = 2s,
                 .lock_time = 2s,
                 .compete = true,
                 .idle = 50ms,
                 .handling = {.backoff = {.first = 50ms, .longest = 1s}}}};
  events.handle_other_types(relay_to(arguments.at(1)));
  running_worker running(events);
  worker_is_alive();
  const auto empty = [&] {
    const auto stats = box.admin().stats();
    return stats.pending + stats.following == 0;
  };
  while (!worker_should_stop() || !empty()) std::this_thread::sleep_for(20ms);
  (void)running.stop();
  return 0;
}

/// Publishes numbered events of every key, and remembers what was acknowledged.
class event_source {
 public:
  event_source(outbox box, int batches)
      : box_(std::move(box)), thread_([this, batches] { publish(batches); }) {}
  /// Waits until all are published. Returns key and number of each event, by id.
  std::map<std::string, std::pair<std::string, int>> acknowledged() {
    thread_.join();
    return acknowledged_;
  }

 private:
  void publish(int batches) {
    int number = 0;
    for (int b = 0; b < batches; ++b) {
      std::vector<event> events;
      for (int i = 0; i < events_per_batch; ++i, ++number)
        events.push_back({.type = "t",
                          .key = "k" + std::to_string(number % keys),
                          .payload = std::to_string(number),
                          .id = new_event_id()});
      while (true) {
        try {
          for (const auto& receipt : box_.publish_all(events)) EXPECT_TRUE(receipt.safe());
          break;
        } catch (const error& problem) {
          // The database is busy. The same ids again are the same events.
          if (!problem.transient() && !problem.in_doubt()) throw;
        }
      }
      for (const auto& one : events) acknowledged_[one.id] = {one.key, std::stoi(one.payload)};
      std::this_thread::sleep_for(20ms);
    }
  }

  outbox box_;
  std::map<std::string, std::pair<std::string, int>> acknowledged_{};
  std::thread thread_;
};

/// Kills the broker and starts it again, so many times.
std::thread kill_broker(broker_under_test& broker, std::size_t count, std::uint64_t seed) {
  return std::thread([&broker, count, seed] {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500 + random() % 1500));
      broker.kill();
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 500));
      broker.start();
    }
  });
}

void check_arrivals(const std::map<std::string, std::pair<std::string, int>>& acknowledged,
                    const std::vector<broker_message_read>& messages) {
  std::set<std::string> arrived;
  std::map<std::string, int> latest;
  std::size_t out_of_order = 0;
  for (const auto& message : messages) {
    if (!arrived.insert(message.id).second) continue;
    const auto event = acknowledged.find(message.id);
    ASSERT_NE(event, acknowledged.end()) << "an event that was not published: " << message.body;
    EXPECT_EQ(message.key, event->second.first);
    const int number = std::stoi(message.body);
    EXPECT_EQ(number, event->second.second);
    const auto [before, first] = latest.try_emplace(message.key, number);
    if (!first && before->second > number) ++out_of_order;
    before->second = std::max(before->second, number);
  }
  EXPECT_EQ(arrived.size(), acknowledged.size()) << "events were lost";
  EXPECT_EQ(out_of_order, 0U);
  std::cout << acknowledged.size() << " events, " << messages.size() - arrived.size()
            << " of them twice\n";
}

void survive_storm(broker_under_test& broker) {
  const temporary_directory directory("storm", {}, medium::memory);
  const auto url = "sqlite://" + (directory.path() / "outbox.db").string();
  const auto box = open_outbox(url);
  const std::size_t broker_kills = std::max<std::size_t>(kills() / 5, 2);
  const std::size_t worker_kills = kills() - broker_kills;
  event_source source(box, static_cast<int>(kills() * 15));
  auto killer = kill_broker(broker, broker_kills, std::random_device()());
  const auto report = kill_harness({.workers = 2,
                                    .kills = worker_kills,
                                    .shortest = 50ms,
                                    .longest = 1500ms,
                                    .log = directory.path() / "workers.log",
                                    .patience = 300s})
                          .run("broker_relay_worker", {url, broker.relay_url()});
  killer.join();
  EXPECT_TRUE(report.failures.empty());
  EXPECT_EQ(report.killed, worker_kills);
  const auto acknowledged = source.acknowledged();
  // What was published, or could not be delivered, after the last worker had ended.
  {
    worker rest{box, {.lease = 5s, .lock_time = 5s, .compete = true}};
    rest.handle_other_types(relay_to(broker.relay_url()));
    const running_worker running(rest);
    const auto deadline = std::chrono::steady_clock::now() + 120s;
    while (box.admin().stats().events > 0 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(20ms);
  }
  const auto stats = box.admin().stats();
  EXPECT_EQ(stats.parked, 0U) << "a broker that is down used up attempts";
  EXPECT_EQ(stats.events, 0U);
  check_arrivals(acknowledged, broker.read_all());
}

TEST(OutboxBrokerStorm, RabbitMqLosesNothingAndKeepsOrder) {
  survive_storm(*make_rabbitmq_under_test());
}

TEST(OutboxBrokerStorm, NatsLosesNothingAndKeepsOrder) { survive_storm(*make_nats_under_test()); }

TEST(OutboxBrokerStorm, KafkaLosesNothingAndKeepsOrder) { survive_storm(*make_kafka_under_test()); }

}  // namespace
}  // namespace holdfast::test
