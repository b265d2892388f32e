#pragma once

/// \file
/// Ids that somebody drew, and whether one came twice.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

/// How many of these are the same as another one before them.
[[nodiscard]] inline std::size_t count_again(std::vector<std::int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  std::size_t again = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) again += ids[i] == ids[i - 1] ? 1U : 0U;
  return again;
}

/// Threads that draw without pause, each from a sequence of its own, as processes would. What fails is tried again: the store comes back.
class drawing {
 public:
  using opener = std::function<sequence()>;

  drawing(std::size_t threads, const opener& open) {
    for (std::size_t i = 0; i < threads; ++i) {
      drawers_.push_back(std::make_unique<drawer>());
      drawers_.back()->thread = std::jthread([one = drawers_.back().get(), open](const std::stop_token& stop) { one->run(stop, open); });
    }
  }

  /// Ids so far.
  [[nodiscard]] std::size_t size() const {
    std::size_t all = 0;
    for (const auto& each : drawers_) all += each->count.load();
    return all;
  }
  /// How often the counter was seen to go back.
  [[nodiscard]] std::size_t alarms() const {
    std::size_t all = 0;
    for (const auto& each : drawers_) all += each->alarms.load();
    return all;
  }
  /// Why one of them gave up for good; empty: none did.
  [[nodiscard]] std::string problem() const {
    for (const auto& each : drawers_) {
      const std::scoped_lock lock(each->mutex);
      if (!each->problem.empty()) return each->problem;
    }
    return {};
  }

  /// Ends it, and gives all that was drawn.
  std::vector<std::int64_t> finish() {
    std::vector<std::int64_t> all;
    for (const auto& each : drawers_) each->thread.request_stop();
    for (const auto& each : drawers_) {
      each->thread.join();
      all.insert(all.end(), each->ids.begin(), each->ids.end());
    }
    return all;
  }

 private:
  struct drawer {
    void run(const std::stop_token& stop, const opener& open) {
      try {
        while (!stop.stop_requested()) draw_until_alarm(stop, open);
      } catch (const std::exception& wrong) {
        const std::scoped_lock lock(mutex);
        problem = wrong.what();
      }
    }
    /// Who sees the counter go back stops. The next one does not know, as a process that starts then does not.
    void draw_until_alarm(const std::stop_token& stop, const opener& open) {
      try {
        auto from = open();
        while (!stop.stop_requested()) draw(from);
      } catch (const error& wrong) {
        if (wrong.code() == errc::tampered) ++alarms;
        else if (!wrong.transient()) throw;
        else std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    void draw(sequence& from) {
      using namespace std::chrono_literals;
      try {
        ids.push_back(from.next(std::chrono::steady_clock::now() + 200ms));
        ++count;
        // Slow enough that a run is a few hundred thousand ids, not a few hundred million.
        if (ids.size() % 100 == 0) std::this_thread::sleep_for(100us);
      } catch (const error& failed) {
        if (!failed.transient()) throw;
      }
    }

    std::vector<std::int64_t> ids{};
    std::atomic<std::size_t> count{0};
    std::atomic<std::size_t> alarms{0};
    mutable std::mutex mutex{};
    std::string problem{};
    std::jthread thread{};
  };

  std::vector<std::unique_ptr<drawer>> drawers_{};
};

/// The table, before anybody draws.
inline void prepare(const std::string& url) { (void)open(url).block_store({.create_schema = true}); }

[[nodiscard]] inline drawing::opener drawer_of(const std::string& url, sequence_store_options store = {}, std::int64_t block = 20,
                                               database_options how = {}) {
  return [=] { return open(url, how).sequence("torture.id", {.blocks = fixed_blocks{.size = block}, .store = store}); };
}

/// Waits until more was drawn, so that a promise was at stake.
inline void wait_for_more(const drawing& under, std::size_t more = 2000) {
  using namespace std::chrono_literals;
  ASSERT_TRUE(eventually([&, before = under.size()] { return under.size() > before + more || !under.problem().empty(); }, 60s));
  ASSERT_EQ(under.problem(), "");
}

}  // namespace holdfast::test
