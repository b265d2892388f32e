#pragma once

/// \file
/// Asks databases regularly, so that a page never waits for one. Each database has its own thread,
/// which asks one question at a time: a database that hangs delays only its own answers, and a
/// database is never asked twice at once.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/live/snapshot.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The last answer to a question.
/// Thread-safety: may be called from any thread.
template <class Value>
class cached_answer {
 public:
  cached_answer(std::shared_ptr<const clock> clock, std::chrono::milliseconds limit)
      : clock_(std::move(clock)), limit_(limit) {}

  /// Asks, and keeps the answer or the failure. One call at a time.
  void ask(const std::function<Value()>& question) {
    {
      const std::scoped_lock lock(mutex_);
      asked_at_ = std::chrono::steady_clock::now();
    }
    std::string problem;
    std::optional<Value> value;
    try {
      value = question();
    } catch (const std::exception& failure) {
      problem = failure.what();
    }
    const std::scoped_lock lock(mutex_);
    asked_at_.reset();
    answer_.problem = std::move(problem);
    if (!value) return;
    answer_.value = std::move(value);
    answer_.moment = clock_->now();
    ++count_;
  }
  /// How often the database has answered.
  [[nodiscard]] std::uint64_t count() const {
    const std::scoped_lock lock(mutex_);
    return count_;
  }
  /// Never waits for the database.
  [[nodiscard]] answered<Value> get() const {
    const std::scoped_lock lock(mutex_);
    auto answer = answer_;
    if (asked_at_ && std::chrono::steady_clock::now() - *asked_at_ > limit_)
      answer.problem = "the database does not answer";
    else if (!answer.value && answer.problem.empty()) answer.problem = "not asked yet";
    return answer;
  }

 private:
  std::shared_ptr<const clock> clock_;
  std::chrono::milliseconds limit_;
  mutable std::mutex mutex_{};
  answered<Value> answer_{};
  std::uint64_t count_ = 0;
  std::optional<std::chrono::steady_clock::time_point> asked_at_{};
};

/// Asks the questions about one database, one after the other, every interval.
/// Thread-safety: construction and destruction by one thread.
class database_questions {
 public:
  database_questions(std::vector<std::function<void()>> questions,
                     std::chrono::milliseconds interval);
  /// Waits for a second at most: a question that a database does not answer ends by itself, and
  /// must therefore own what it uses.
  ~database_questions();
  database_questions(const database_questions&) = delete;
  database_questions& operator=(const database_questions&) = delete;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
