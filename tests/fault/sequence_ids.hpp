#pragma once

/// \file
/// Threads that draw ids, and a count of ids that came twice.

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

[[nodiscard]] inline std::size_t count_duplicates(std::vector<std::int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  std::size_t duplicates = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) duplicates += ids[i] == ids[i - 1] ? 1U : 0U;
  return duplicates;
}

/// Threads that draw without pause, each from its own sequence, as processes would. Transient
/// failures are retried.
class drawing {
 public:
  using opener = std::function<sequence()>;

  drawing(std::size_t threads, const opener& open) {
    for (std::size_t i = 0; i < threads; ++i) {
      drawers_.push_back(std::make_unique<drawing_thread>());
      drawers_.back()->thread =
          std::jthread([drawer = drawers_.back().get(), open](const std::stop_token& stop) {
            drawer->run(stop, open);
          });
    }
  }

  /// Ids drawn so far.
  [[nodiscard]] std::size_t size() const {
    std::size_t all = 0;
    for (const auto& drawer : drawers_) all += drawer->count.load();
    return all;
  }
  /// How often a sequence noticed that the counter went back.
  [[nodiscard]] std::size_t alarms() const {
    std::size_t all = 0;
    for (const auto& drawer : drawers_) all += drawer->alarms.load();
    return all;
  }
  /// The permanent failure that stopped one of the threads, or empty.
  [[nodiscard]] std::string problem() const {
    for (const auto& drawer : drawers_) {
      const std::scoped_lock lock(drawer->mutex);
      if (!drawer->problem.empty()) return drawer->problem;
    }
    return {};
  }

  /// Stops the threads, and returns all ids.
  std::vector<std::int64_t> finish() {
    std::vector<std::int64_t> all;
    for (const auto& drawer : drawers_) drawer->thread.request_stop();
    for (const auto& drawer : drawers_) {
      drawer->thread.join();
      all.insert(all.end(), drawer->ids.begin(), drawer->ids.end());
    }
    return all;
  }

 private:
  struct drawing_thread {
    void run(const std::stop_token& stop, const opener& open) {
      try {
        while (!stop.stop_requested()) draw_until_alarm(stop, open);
      } catch (const std::exception& failure) {
        const std::scoped_lock lock(mutex);
        problem = failure.what();
      }
    }
    /// A sequence that notices that the counter went back stops. A new one does not know, like a
    /// process that starts then.
    void draw_until_alarm(const std::stop_token& stop, const opener& open) {
      try {
        auto sequence = open();
        while (!stop.stop_requested()) draw(sequence);
      } catch (const error& failure) {
        if (failure.code() == errc::tampered) ++alarms;
        else if (!failure.transient()) throw;
        else std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    void draw(sequence& sequence) {
      using namespace std::chrono_literals;
      try {
        ids.push_back(sequence.next(std::chrono::steady_clock::now() + 200ms));
        ++count;
        // Slow enough that a run is a few hundred thousand ids, not a few hundred million.
        if (ids.size() % 100 == 0) std::this_thread::sleep_for(100us);
      } catch (const error& failure) {
        if (!failure.transient()) throw;
      }
    }

    std::vector<std::int64_t> ids{};
    std::atomic<std::size_t> count{0};
    std::atomic<std::size_t> alarms{0};
    mutable std::mutex mutex{};
    std::string problem{};
    std::jthread thread{};
  };

  std::vector<std::unique_ptr<drawing_thread>> drawers_{};
};

/// Creates the table.
inline void prepare(const std::string& url) {
  (void)open(url).block_store({.create_schema = true})->list(1);
}

[[nodiscard]] inline drawing::opener drawer_of(const std::string& url,
                                               sequence_store_options store = {},
                                               std::int64_t block = 20,
                                               database_options options = {}) {
  return [=] {
    return open(url, options)
        .sequence("torture.id", {.blocks = fixed_blocks{.size = block}, .store = store});
  };
}

/// Waits until `count` more ids were drawn.
inline void wait_for_more(const drawing& drawing, std::size_t count = 2000) {
  using namespace std::chrono_literals;
  ASSERT_TRUE(eventually(
      [&, before = drawing.size()] {
        return drawing.size() > before + count || !drawing.problem().empty();
      },
      60s));
  ASSERT_EQ(drawing.problem(), "");
}

}  // namespace holdfast::test
