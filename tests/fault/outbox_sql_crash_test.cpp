// A PostgreSQL that crashes. Claims of events without a key do not wait for the disk
// (docs/decisions/0080), so a crash may forget the last ones, and nothing else.

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "fault/outbox_sql_places.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// How often the server is killed; HOLDFAST_OUTBOX_CRASHES for a long run.
int crash_count() {
  const char* text = std::getenv("HOLDFAST_OUTBOX_CRASHES");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr || *text == '\0' ? 4 : std::stoi(text);
}

/// A server whose log reaches the disk only when a commit waits for it: the processes that write it
/// in the background are stopped.
class crashing_server {
 public:
  void stop_background_writers() const {
    std::istringstream pids(
        server_.run("SELECT pid FROM pg_stat_activity WHERE backend_type IN "
                    "('walwriter', 'background writer', 'checkpointer')"));
    for (pid_t pid = 0; pids >> pid;) ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  }
  void crash_and_start() {
    server_.kill9();
    server_.start();
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  postgres_server server_{{.settings = {"autovacuum=off"}}};
  const std::string url_ = server_.url(server_.create_database("outbox"));
};

std::vector<settlement> acknowledgements_of(const claimed& claim) {
  std::vector<settlement> settlements;
  for (const auto& each : claim.events)
    settlements.push_back({.id = each.event.id, .key = each.event.key});
  return settlements;
}

/// Publishes events without a key, and delivers the first ten: the next claim does not wait for the
/// disk, because the lane has given out nothing but events without a key.
void publish_and_deliver_some(const outbox& box, std::size_t count) {
  (void)box.publish_all(std::vector<event>(count, {.type = "t"}));
  const auto first = box.claim({.most = 10});
  ASSERT_EQ(first.events.size(), 10U);
  ASSERT_EQ(box.settle(0, first.fence, acknowledgements_of(first)).done,
            std::vector<bool>(10, true));
}

TEST(OutboxSqlCrash, AForgottenClaimIsReplacedByOneWithALargerFence) {
  crashing_server server;
  const auto box = box_of(server.url(), true);
  ASSERT_NO_FATAL_FAILURE(server.stop_background_writers());
  ASSERT_NO_FATAL_FAILURE(publish_and_deliver_some(box, 30));
  const auto forgotten = box.claim({.most = 10, .lease = 1h});
  ASSERT_EQ(forgotten.events.size(), 10U);
  server.crash_and_start();

  const auto again = box.claim({.most = 100});
  EXPECT_EQ(again.events.size(), 20U) << "the settlements are kept, the claim is not";
  EXPECT_GT(again.fence, forgotten.fence);
  EXPECT_EQ(box.settle(0, forgotten.fence, acknowledgements_of(forgotten)).done,
            std::vector<bool>(10, false));
  EXPECT_EQ(box.settle(0, again.fence, acknowledgements_of(again)).done,
            std::vector<bool>(again.events.size(), true));
  EXPECT_EQ(box.admin().stats().events, 0U);
  EXPECT_TRUE(box.admin().check().well());
}

TEST(OutboxSqlCrash, AClaimWithAnEffectIsKept) {
  crashing_server server;
  const auto box = box_of(server.url(), true);
  ASSERT_NO_FATAL_FAILURE(server.stop_background_writers());
  ASSERT_NO_FATAL_FAILURE(publish_and_deliver_some(box, 12));
  const auto claim = box.claim({.most = 2, .lease = 1h});
  ASSERT_EQ(claim.events.size(), 2U);
  {
    postgres_handle client(server.url());
    client.run(postgres_handle::begin);
    auto transaction = client.joined();
    EXPECT_EQ(box.effect_once(transaction, claim.fence, claim.events[0]), commit_status::done);
    client.run("COMMIT");
  }
  server.crash_and_start();

  EXPECT_TRUE(box.claim().events.empty()) << "the effect is on disk, so its claim is";
  {
    postgres_handle client(server.url());
    client.run(postgres_handle::begin);
    auto transaction = client.joined();
    EXPECT_EQ(box.effect_once(transaction, claim.fence, claim.events[0]), commit_status::applied);
    client.run("COMMIT");
  }
  EXPECT_EQ(box.settle(0, claim.fence, acknowledgements_of(claim)).done,
            std::vector<bool>(2, true));
}

/// Publishes and delivers the events of one outbox while its server crashes, and compares what
/// happens with what was promised before.
class crash_checker {
 public:
  crash_checker(const std::string& url, std::string box_prefix, int keys)
      : url_(url), prefix_(std::move(box_prefix)), keys_(keys) {
    ensure_outbox();
  }

  void publish_until(const std::stop_token& stop) {
    const auto box = open_box();
    for (int n = 0; !stop.stop_requested(); ++n) {
      // The events of a key are published one after the other: an event is repeated until the
      // outbox has it.
      event next{.type = "t", .payload = std::to_string(n), .id = new_event_id()};
      if (keys_ > 0) next.key = "k" + std::to_string(n % keys_);
      bool is_published = publish_once(box, next);
      while (!is_published && !stop.stop_requested()) {
        std::this_thread::sleep_for(5ms);
        is_published = publish_once(box, next);
      }
      const std::scoped_lock lock(mutex_);
      if (is_published) published_.insert(next.id);
    }
  }

  /// Delivers until the outbox is empty after `stop`. One event in eight keeps its claim until the
  /// lease ends.
  void deliver_until(const std::stop_token& stop) {
    const auto box = open_box();
    claimed abandoned;
    std::optional<std::chrono::steady_clock::time_point> give_up_at;
    for (int round = 0;; ++round) {
      const bool last = stop.stop_requested();
      if (last && !give_up_at) give_up_at = std::chrono::steady_clock::now() + 60s;
      if (last && std::chrono::steady_clock::now() > *give_up_at) {
        const std::scoped_lock lock(mutex_);
        violations_.emplace_back("the outbox is not empty after a minute");
        return;
      }
      try {
        const auto claim = box.claim({.most = 20, .run = 5, .lease = 300ms});
        if (claim.events.empty()) {
          if (last && box.admin().stats().events == 0) return;
          std::this_thread::sleep_for(2ms);
          continue;
        }
        record_claim(claim);
        if (round % 8 == 7) {
          abandoned = claim;
          continue;
        }
        const auto settlements = acknowledgements_of(claim);
        record_settlements(settlements, box.settle(0, claim.fence, settlements).done);
        if (abandoned.events.empty()) continue;
        record_late_settlements(box, abandoned);
        abandoned = {};
      } catch (const error&) {
        ++failed_calls_;
        std::this_thread::sleep_for(5ms);
      }
    }
  }

  void expect_everything_was_delivered() const {
    for (const auto& id : published_)
      EXPECT_TRUE(fences_.contains(id)) << prefix_ << " lost the event " << id;
    EXPECT_EQ(violations_, std::vector<std::string>{}) << prefix_;
    const auto box = open_box();
    EXPECT_EQ(box.admin().stats().events, 0U);
    EXPECT_TRUE(box.admin().check().well());
    EXPECT_GT(settled_.size(), 0U);
    std::cout << prefix_ << ": " << published_.size() << " published, " << settled_.size()
              << " settled, " << repeated_ << " repeated, " << failed_calls_ << " calls failed\n";
  }

 private:
  [[nodiscard]] outbox open_box() const { return open(url_).outbox({.prefix = prefix_}); }
  void ensure_outbox() const {
    const auto box = open(url_).outbox({.prefix = prefix_, .create_schema = true});
    if (const auto problem = box.admin().health()) throw error(*problem);
  }

  bool publish_once(const outbox& box, const event& next) {
    try {
      return box.publish(next).safe();
    } catch (const error&) {
      ++failed_calls_;
      return false;
    }
  }

  void record_claim(const claimed& claim) {
    const std::scoped_lock lock(mutex_);
    for (const auto& each : claim.events) {
      const auto& id = each.event.id;
      if (settled_.contains(id))
        violations_.push_back(id + " is delivered after its settlement was answered");
      // One thread claims, so claims are recorded in their order.
      auto& last = fences_[id];
      if (last >= claim.fence) violations_.push_back(id + " has a fence that does not grow");
      if (last != 0) ++repeated_;
      last = claim.fence;
      if (!each.event.key.empty()) record_order(each.event, claim.fence);
    }
  }
  void record_order(const event& delivered, fence token) {
    auto& [next, last_fence] = progress_of_keys_[delivered.key];
    const int n = std::stoi(delivered.payload) / keys_;
    if (n > next) violations_.push_back(delivered.key + " is delivered out of order");
    if (n == next) ++next;
    if (token < last_fence)
      violations_.push_back(delivered.key + " has a fence that is smaller than the one before");
    last_fence = token;
  }
  void record_settlements(const std::vector<settlement>& settlements,
                          const std::vector<bool>& done) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < settlements.size(); ++i) {
      if (done[i]) settled_.insert(settlements[i].id);
    }
  }
  /// A claim that was replaced by a later one settles nothing.
  void record_late_settlements(const outbox& box, const claimed& abandoned) {
    std::vector<settlement> replaced;
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& each : abandoned.events) {
        if (fences_.at(each.event.id) > abandoned.fence)
          replaced.push_back({.id = each.event.id, .key = each.event.key});
      }
    }
    if (replaced.empty()) return;
    const auto done = box.settle(0, abandoned.fence, replaced).done;
    const std::scoped_lock lock(mutex_);
    if (std::ranges::find(done, true) != done.end())
      violations_.push_back("a claim that was replaced settled its events");
  }

  struct key_progress {
    int next = 0;
    fence last_fence = 0;
  };

  const std::string url_;
  const std::string prefix_;
  const int keys_;  ///< 0: events without a key
  std::mutex mutex_{};
  std::set<std::string> published_{};  ///< ids that the outbox said it has
  std::set<std::string> settled_{};    ///< ids whose settlement was answered with success
  std::map<std::string, fence> fences_{};
  std::map<std::string, key_progress> progress_of_keys_{};
  std::vector<std::string> violations_{};
  std::size_t repeated_ = 0;
  std::atomic<std::size_t> failed_calls_ = 0;
};

TEST(OutboxSqlCrash, LosesNothingAndKeepsOrderAndFences) {
  crashing_server server;
  crash_checker without_keys(server.url(), "{plain}", 0);
  crash_checker with_keys(server.url(), "{keys}", 7);
  {
    // The publishers end first: then the outbox gets no more events.
    std::vector<std::jthread> workers;
    std::vector<std::jthread> publishers;
    for (auto* checker : {&without_keys, &with_keys}) {
      workers.emplace_back(
          [checker](const std::stop_token& stop) { checker->deliver_until(stop); });
      publishers.emplace_back(
          [checker](const std::stop_token& stop) { checker->publish_until(stop); });
    }
    for (int i = 0; i < crash_count(); ++i) {
      // At different moments of the log writer, which flushes every 200 ms.
      std::this_thread::sleep_for(150ms + 37ms * (i % 7));
      server.crash_and_start();
    }
  }
  without_keys.expect_everything_was_delivered();
  with_keys.expect_everything_was_delivered();
}

}  // namespace
}  // namespace holdfast::test
