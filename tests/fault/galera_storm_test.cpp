// Publishers and workers on all nodes of a MariaDB cluster with Galera, of which nodes are killed
// with -9, freeze and rejoin. Each call goes to another node than the call before it: what is
// published, claimed and settled through one node must hold on the others. An independent checker
// counts: every acknowledged event arrived, in order per key, and none after it was settled.
//
// A normal run has 3,000 events and 2 disturbances. HOLDFAST_GALERA_EVENTS=100000 makes it longer,
// with one disturbance for each 5,000 events.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "support/galera_cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::size_t publisher_count = 3;
constexpr std::size_t worker_count = 3;
constexpr std::size_t keys_per_publisher = 8;
constexpr auto lease = 15s;

std::size_t requested_events() {
  const char* const text = std::getenv("HOLDFAST_GALERA_EVENTS");
  return text == nullptr ? 3'000 : static_cast<std::size_t>(std::max(std::atoi(text), 100));
}

/// The outbox through each node first: another one only if that node cannot be used.
std::vector<outbox> outboxes(galera_cluster& cluster) {
  std::vector<outbox> boxes;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    boxes.push_back(
        open(cluster.url_from(i), {.connect_timeout = 3s, .statement_timeout = 6s})
            .outbox({.prefix = "{storm}", .dedup_window = 1h, .max_deliveries = 1'000'000}));
  }
  return boxes;
}

/// What was acknowledged, and what arrived.
class checker {
 public:
  void published(const event& event) {
    const std::scoped_lock lock(mutex_);
    acknowledged_.emplace(event.id, event.key);
  }
  /// `started`: when the claim was called. A claim whose answer was late may have ended: it counts
  /// as not received. Returns whether it counts.
  bool claimed_at(steady::time_point started, const claimed& claim) {
    const std::scoped_lock lock(mutex_);
    if (steady::now() - started > lease / 2) return false;
    for (const auto& each : claim.events) arrived(each.event);
    return true;
  }
  void settled_all(const std::vector<settlement>& settlements, const std::vector<bool>& done) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < settlements.size(); ++i) {
      if (done[i]) settled_.insert(settlements[i].id);
    }
  }

  [[nodiscard]] std::size_t published_count() const {
    const std::scoped_lock lock(mutex_);
    return acknowledged_.size();
  }
  [[nodiscard]] std::size_t arrived_count() const {
    const std::scoped_lock lock(mutex_);
    return arrived_.size();
  }
  /// Acknowledged events that did not arrive.
  [[nodiscard]] std::size_t missing() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        acknowledged_, [&](const auto& each) { return !arrived_.contains(each.first); }));
  }

  void report() const {
    const std::scoped_lock lock(mutex_);
    EXPECT_EQ(out_of_order_, 0U);
    EXPECT_EQ(after_settlement_, 0U);
    EXPECT_EQ(unknown_, 0U);
    std::cout << acknowledged_.size() << " events acknowledged, " << arrived_.size() << " arrived, "
              << repeated_ << " of them again after a lost lease, " << after_settlement_
              << " again after they were settled, " << out_of_order_ << " out of order\n";
  }

 private:
  void arrived(const event& event) {
    if (settled_.contains(event.id)) ++after_settlement_;
    if (!arrived_.insert(event.id).second) {
      ++repeated_;  // says nothing about the order
      return;
    }
    if (event.key.empty()) return;
    const auto number = std::stoll(event.payload);
    auto& last = last_of_key_.try_emplace(event.key, -1).first->second;
    if (number <= last) ++out_of_order_;
    if (number != last + 1) ++unknown_;  // a gap: an earlier one comes later, or never
    last = std::max<long long>(last, number);
  }

  mutable std::mutex mutex_{};
  std::map<std::string, std::string> acknowledged_{};  // id, key
  std::set<std::string> arrived_{};
  std::set<std::string> settled_{};
  std::map<std::string, long long> last_of_key_{};
  std::size_t repeated_ = 0, after_settlement_ = 0, out_of_order_ = 0, unknown_ = 0;
};

/// Publishes the numbered events of its keys, each batch until it is acknowledged. Each attempt
/// goes to the next node.
class publisher {
 public:
  publisher(std::size_t index, std::vector<outbox> boxes, checker& checker)
      : index_(index), boxes_(std::move(boxes)), checker_(checker) {}

  /// Publishes so many events, and more until it is told to stop, so that each disturbance has
  /// some.
  void run(std::size_t count, const std::stop_token& stop) {
    for (std::size_t sent = 0; sent < count || !stop.stop_requested();) {
      const auto batch = next_batch();
      publish(batch);
      sent += batch.size();
      for (const auto& event : batch) checker_.published(event);
      if (sent >= count) std::this_thread::sleep_for(50ms);
    }
  }

 private:
  std::vector<event> next_batch() {
    std::vector<event> batch;
    for (auto size = 1 + random_() % 4; size > 0; --size) {
      // One of eight events has no key.
      const auto key = random_() % 8 == 0 ? std::string()
                                          : "p" + std::to_string(index_) + "-" +
                                                std::to_string(random_() % keys_per_publisher);
      auto& number = numbers_[key];
      batch.push_back(
          {.type = "t", .key = key, .payload = std::to_string(number++), .id = new_event_id()});
    }
    return batch;
  }

  void publish(const std::vector<event>& batch) {
    for (;;) {
      try {
        const auto receipts = boxes_[turn_++ % boxes_.size()].publish_all(batch);
        if (std::ranges::all_of(receipts, [](const auto& each) { return each.safe(); })) return;
        for (const auto& receipt : receipts) {
          if (receipt.problem) {
            EXPECT_TRUE(receipt.problem->transient()) << receipt.problem->what();
          }
        }
      } catch (const error& problem) {
        EXPECT_TRUE(problem.transient() || problem.in_doubt()) << problem.what();
      }
    }
  }

  std::size_t index_;
  std::vector<outbox> boxes_;
  checker& checker_;
  std::map<std::string, std::uint64_t> numbers_{};
  std::size_t turn_ = index_;
  std::mt19937_64 random_{index_ + 1};
};

/// Claims through one node and settles through the next one.
class claimer {
 public:
  claimer(std::size_t index, std::vector<outbox> boxes, checker& checker)
      : turn_(index), boxes_(std::move(boxes)), checker_(checker) {}

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      try {
        if (!claim_and_settle()) std::this_thread::sleep_for(2ms);
      } catch (const error& problem) {
        EXPECT_TRUE(problem.transient() || problem.in_doubt()) << problem.what();
      }
    }
  }

 private:
  const outbox& next_box() { return boxes_[turn_++ % boxes_.size()]; }

  bool claim_and_settle() {
    const auto started = steady::now();
    const auto claim = next_box().claim({.most = 10, .run = 5, .lease = lease});
    if (claim.events.empty() || !checker_.claimed_at(started, claim)) return false;
    std::vector<settlement> settlements;
    for (const auto& each : claim.events)
      settlements.push_back({.id = each.event.id, .key = each.event.key});
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        const auto answer = next_box().settle(claim.lane, claim.fence, settlements);
        checker_.settled_all(settlements, answer.done);
        return true;
      } catch (const error& problem) {
        EXPECT_TRUE(problem.transient() || problem.in_doubt()) << problem.what();
      }
    }
    return true;  // they come again when the lease ends
  }

  std::size_t turn_;
  std::vector<outbox> boxes_;
  checker& checker_;
};

/// Kills nodes and freezes them, in turn, and lets them rejoin.
void disturb(galera_cluster& cluster, std::size_t count, const checker& checker) {
  const auto wait_for_arrivals = [&] {
    const auto before = checker.arrived_count();
    const auto deadline = steady::now() + 600s;
    while (checker.arrived_count() < before + 50 && steady::now() < deadline)
      std::this_thread::sleep_for(5ms);
    EXPECT_GE(checker.arrived_count(), before + 50) << "nothing arrives";
  };
  for (std::size_t i = 0; i < count; ++i) {
    wait_for_arrivals();
    const auto victim = i % cluster.size();
    auto& node = cluster.node(victim);
    const auto others = (victim + 1) % cluster.size();
    if (i % 2 == 0) {
      node.kill9();
      cluster.wait_for_members(others, cluster.size() - 1);
      wait_for_arrivals();
      node.start();
    } else {
      node.pause();
      cluster.wait_for_members(others, cluster.size() - 1);
      wait_for_arrivals();
      node.resume();
    }
    cluster.wait_for_members(victim, cluster.size());
  }
}

TEST(GaleraStorm, LosesNothingDeliversOnceAndKeepsOrder) {
  galera_cluster cluster({.suspect_timeout = 3s});
  (void)open(cluster.node(0).url())
      .outbox({.prefix = "{storm}", .create_schema = true})
      .admin()
      .stats();
  checker checker;
  const auto events = requested_events();
  const auto disturbances = std::max<std::size_t>(events / 5'000, 2);
  const auto start = steady::now();
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < worker_count; ++i) {
      workers.emplace_back([&, i](const std::stop_token& stop) {
        claimer(i, outboxes(cluster), checker).run(stop);
      });
    }
    std::vector<std::jthread> publishers;
    for (std::size_t i = 0; i < publisher_count; ++i) {
      publishers.emplace_back([&, i](const std::stop_token& stop) {
        publisher(i, outboxes(cluster), checker).run(events / publisher_count, stop);
      });
    }
    disturb(cluster, disturbances, checker);
    for (auto& each : publishers) each.request_stop();
    for (auto& each : publishers) each.join();
    // As long as something arrives, and longer than a lease.
    auto last = checker.arrived_count();
    auto deadline = steady::now() + 4 * lease;
    while (checker.missing() > 0 && steady::now() < deadline) {
      std::this_thread::sleep_for(20ms);
      if (checker.arrived_count() == last) continue;
      last = checker.arrived_count();
      deadline = steady::now() + 4 * lease;
    }
    EXPECT_EQ(checker.missing(), 0U) << "lost";
    // The last settlements may have been lost, and then their leases end first.
    deadline = steady::now() + 4 * lease;
    while (outboxes(cluster)[0].admin().stats().events > 0 && steady::now() < deadline)
      std::this_thread::sleep_for(20ms);
  }
  const auto admin = outboxes(cluster)[0].admin();
  const auto stats = admin.stats();
  EXPECT_EQ(stats.events, 0U);
  EXPECT_EQ(stats.stuck, 0U);
  EXPECT_EQ(stats.published, checker.published_count());
  EXPECT_TRUE(admin.check().well());
  std::cout << disturbances << " disturbances, " << stats.duplicates << " repeated publications, "
            << stats.stale << " stale settlements, "
            << std::chrono::duration_cast<std::chrono::seconds>(steady::now() - start).count()
            << " s\n";
  checker.report();
}

}  // namespace
}  // namespace holdfast::test
