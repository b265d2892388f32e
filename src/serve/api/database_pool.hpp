#pragma once

/// \file
/// Asks several databases at the same time: those that hang delay an answer once, and not one after
/// the other.

#include <holdfast/executor.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The threads that ask. They are started when they are needed.
/// Thread-safety: may be called from any thread.
class database_pool {
 public:
  /// How long an endpoint waits for its databases: a little longer than question_limits, so that a
  /// question that ends by itself is answered.
  static constexpr std::chrono::milliseconds longest_wait{2'500};

  database_pool();
  /// Waits until the questions end: they use what their endpoints own.
  ~database_pool();
  database_pool(const database_pool&) = delete;
  database_pool& operator=(const database_pool&) = delete;

  /// Asks one question of each database. Returns an answer for each, or nothing if it did not come
  /// in time, or if the question threw. A question that is late goes on, so it must own what the
  /// caller does not keep for as long as the server.
  template <class Answer>
  [[nodiscard]] std::vector<std::optional<Answer>> ask(
      std::vector<std::function<Answer()>> questions,
      std::chrono::milliseconds wait = longest_wait) {
    auto shared = std::make_shared<collected<Answer>>(questions.size());
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const bool accepted = threads_->post([shared, i, question = std::move(questions[i])] {
        std::optional<Answer> answer;
        try {
          answer = question();
        } catch (const std::exception&) {
          answer.reset();
        }
        shared->set(i, std::move(answer));
      });
      if (!accepted) shared->set(i, std::nullopt);
    }
    return shared->wait(wait);
  }

  /// Returns how many questions still run at the deadline.
  std::size_t close(std::chrono::steady_clock::time_point deadline);

 private:
  template <class Answer>
  class collected {
   public:
    explicit collected(std::size_t count) : answers_(count), missing_(count) {}
    void set(std::size_t index, std::optional<Answer> answer) {
      const std::scoped_lock lock(mutex_);
      answers_[index] = std::move(answer);
      if (--missing_ == 0) changed_.notify_all();
    }
    [[nodiscard]] std::vector<std::optional<Answer>> wait(std::chrono::milliseconds limit) {
      std::unique_lock lock(mutex_);
      (void)changed_.wait_for(lock, limit, [this] { return missing_ == 0; });
      return answers_;
    }

   private:
    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::vector<std::optional<Answer>> answers_;
    std::size_t missing_;
  };

  std::shared_ptr<thread_pool> threads_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
