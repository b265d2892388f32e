#include "serve/live/database_questions.hpp"

#include "base/thread.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

struct database_questions::state {
  std::vector<std::function<void()>> questions{};
  std::chrono::milliseconds interval{};
  std::mutex mutex{};
  std::condition_variable changed{};
  bool stopping = false;  // under mutex
  bool ended = false;     // under mutex

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      for (const auto& question : questions) {
        if (stopping) break;
        lock.unlock();
        question();
        lock.lock();
      }
      (void)changed.wait_for(lock, interval, [this] { return stopping; });
    }
    ended = true;
    changed.notify_all();
  }
};

database_questions::database_questions(std::vector<std::function<void()>> questions,
                                       std::chrono::milliseconds interval)
    : state_(std::make_shared<state>()) {
  state_->questions = std::move(questions);
  state_->interval = interval;
  // Detached: it may wait for a database that does not answer.
  start_quiet_thread("hf-live-ask", [shared = state_] { shared->run(); }).detach();
}

database_questions::~database_questions() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  (void)state_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return state_->ended; });
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
