// A primary of PostgreSQL that dies, hangs or is exchanged with its standby, while entries are put,
// ids are drawn and events are delivered: by a URL with both hosts, and behind HAProxy, which does
// not shut down the sessions of a server that is gone. Nothing that was acknowledged is lost, no id
// comes twice, and all jobs go on without a restart.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/worker.hpp>

#include "fault/sequence_ids.hpp"
#include "fault/write_storm.hpp"
#include "support/eventually.hpp"
#include "support/haproxy.hpp"
#include "support/postgres_pair.hpp"
#include "support/running_worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// A call that waits for its time limit would make the test fail: none of the jobs needs it.
database_options patient() { return {.statement_timeout = 10min}; }

/// Publishes numbered events in order, each until it is acknowledged, and delivers them.
class event_traffic {
 public:
  explicit event_traffic(const std::string& url)
      : box_(open(url, patient()).outbox({.prefix = "{failover}", .dedup_window = 1h})),
        worker_(box_, [this](const delivery& each) { return handle(each.event()); },
                {.lease = 2s, .lock_time = 2s}),
        running_(worker_),
        publisher_([this](const std::stop_token& stop) { publish_all(stop); }) {}

  [[nodiscard]] std::size_t published() const { return published_; }
  [[nodiscard]] std::size_t delivered() const {
    const std::scoped_lock lock(mutex_);
    return delivered_.size();
  }

  /// Stops publishing, and expects that all is delivered in order.
  void finish() {
    publisher_.request_stop();
    publisher_.join();
    EXPECT_TRUE(eventually([this] { return delivered() >= published_; }, 60s))
        << delivered() << " of " << published_;
    (void)running_.stop();
    EXPECT_EQ(disorder_, "");
  }

 private:
  static constexpr int key_count = 4;

  void publish_all(const std::stop_token& stop) {
    for (int number = 0; !stop.stop_requested(); ++number) {
      const event next{.type = "t",
                       .key = "k" + std::to_string(number % key_count),
                       .payload = std::to_string(number),
                       .id = new_event_id()};
      while (!stop.stop_requested()) {
        const auto receipt = box_.publish(next);
        if (receipt.safe()) {
          ++published_;
          break;
        }
        if (receipt.problem) {
          EXPECT_TRUE(receipt.problem->transient()) << receipt.problem->what();
        }
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  outcome handle(const event& event) {
    const int number = std::stoi(event.payload);
    const std::scoped_lock lock(mutex_);
    if (delivered_.insert(number).second) {  // a repeated one says nothing about the order
      auto& last = last_of_key_.try_emplace(event.key, -1).first->second;
      if (number != last + key_count && last != -1)
        disorder_ = event.key + ": " + event.payload + " after " + std::to_string(last);
      last = number;
    }
    return outcome::done();
  }

  outbox box_;
  mutable std::mutex mutex_{};
  std::set<int> delivered_{};
  std::map<std::string, int> last_of_key_{};
  std::string disorder_{};
  std::atomic<std::size_t> published_ = 0;
  worker worker_;
  running_worker running_;
  std::jthread publisher_;
};

/// Everything that an application does, on one URL.
class traffic {
 public:
  explicit traffic(const std::string& url)
      : store_(open(url, patient()).store()),
        putter_([this](const std::stop_token& stop) { write_storm(*store_, ledger_, stop, 1); }),
        ids_(1, drawer_of(url, {}, 20, patient())),
        events_(url) {}

  /// Waits until each job has done something more. Prints how long that took.
  void wait_for_progress(const std::string& moment) {
    const auto start = std::chrono::steady_clock::now();
    wait_for("puts", [this] { return ledger_.count(); }, moment, start);
    wait_for("ids", [this] { return ids_.size(); }, moment, start);
    wait_for("published", [this] { return events_.published(); }, moment, start);
    wait_for("delivered", [this] { return events_.delivered(); }, moment, start);
    EXPECT_EQ(ids_.problem(), "");
  }

  void finish(const std::string& url_of_new_primary) {
    events_.finish();
    EXPECT_EQ(count_duplicates(ids_.finish()), 0U);
    putter_.request_stop();
    putter_.join();
    ledger_.check(*open(url_of_new_primary).store());
  }

 private:
  template <class Count>
  void wait_for(const char* job, Count count, const std::string& moment,
                std::chrono::steady_clock::time_point start) {
    const auto before = count();
    EXPECT_TRUE(eventually([&] { return count() > before + 20; }, 60s))
        << job << " do not go on: " << moment;
    std::cout << moment << ", " << job << ": "
              << std::chrono::duration_cast<std::chrono::milliseconds>(
                     std::chrono::steady_clock::now() - start)
                     .count()
              << " ms\n";
  }

  std::shared_ptr<store> store_;
  acknowledged ledger_{};
  std::jthread putter_;
  drawing ids_;
  event_traffic events_;
};

enum class way { url, proxy };

class PostgresFailover : public ::testing::TestWithParam<way> {
 protected:
  void survive(void (postgres_pair::*event)()) {
    postgres_pair pair;
    {
      const auto db = open(pair.first().url());
      (void)db.store({.create_schema = true, .start = start_mode::require});
      (void)db.block_store({.create_schema = true})->list(1);
      (void)db.outbox({.prefix = "{failover}", .create_schema = true}).admin().stats();
    }
    std::optional<haproxy> proxy;
    if (GetParam() == way::proxy)
      proxy.emplace(std::vector{pair.first().port(), pair.second().port()});
    traffic load(proxy ? pair.first().url_through(proxy->port()) : pair.url());
    load.wait_for_progress("before");
    (pair.*event)();
    load.wait_for_progress("after");
    load.finish(pair.second().url());
  }
};

TEST_P(PostgresFailover, SurvivesAPrimaryThatDies) { survive(&postgres_pair::kill_and_promote); }
TEST_P(PostgresFailover, SurvivesAPrimaryThatHangs) { survive(&postgres_pair::hang_and_promote); }
TEST_P(PostgresFailover, SurvivesASwitchover) { survive(&postgres_pair::switch_over); }

INSTANTIATE_TEST_SUITE_P(By, PostgresFailover, ::testing::Values(way::url, way::proxy),
                         [](const auto& info) {
                           return std::string(info.param == way::url ? "Url" : "Proxy");
                         });

}  // namespace
}  // namespace holdfast::test
