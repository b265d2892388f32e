#include "sequence/refiller.hpp"

#include "base/backoff.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::size_t max_requests_per_call = 256;
constexpr steady::duration first_pause = 10ms;
constexpr steady::duration longest_pause = 1000ms;

/// Whatever a store threw, as a holdfast::error.
error as_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const error& e) {
    return e;
  } catch (const std::exception& e) {
    return {errc::internal, std::string("the block store failed: ") + e.what()};
  } catch (...) {
    return {errc::internal, "the block store threw something that is not a std::exception"};
  }
}

}  // namespace

struct refiller::state {
  explicit state(refiller_settings settings) : settings_(std::move(settings)) {}

  struct queued_client {
    std::shared_ptr<refill_client> client;
    steady::time_point not_before{};
    unsigned failures = 0;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      auto batch = take_due();
      if (batch.empty()) {
        wait(lock);
        continue;
      }
      lock.unlock();
      serve(batch);
      batch.clear();  // not under the lock: this may destroy the last reference to a client
      lock.lock();
    }
    ended_ = true;
    changed_.notify_all();
  }

  /// Takes the clients that are due. Of clients with the same name it takes one: a call to the
  /// store must not contain a name twice.
  std::vector<queued_client> take_due() {
    std::vector<queued_client> batch;
    std::set<std::string_view> names;
    const auto now = steady::now();
    for (auto it = queue_.begin(); it != queue_.end() && batch.size() < max_requests_per_call;) {
      if (it->not_before <= now && names.insert(it->client->name()).second) {
        batch.push_back(std::move(*it));
        it = queue_.erase(it);
      } else {
        ++it;
      }
    }
    return batch;
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    if (queue_.empty()) {
      changed_.wait(lock);
      return;
    }
    const auto next = std::ranges::min_element(queue_, {}, &queued_client::not_before)->not_before;
    changed_.wait_until(lock, next);
  }

  void serve(std::vector<queued_client>& batch) {
    try {
      if (settings_.before_first && !before_first_done_) {
        settings_.before_first();
        before_first_done_ = true;
      }
    } catch (...) {
      fail(batch, as_error(std::current_exception()));
      return;
    }
    request_blocks(batch, true);
  }

  void request_blocks(std::vector<queued_client>& batch, bool may_split) {
    std::vector<block_request> requests;
    std::vector<queued_client*> clients;
    for (auto& queued : batch) {
      const auto request = queued.client->next_request();
      if (request.count == 0) continue;
      requests.push_back(request);
      clients.push_back(&queued);
    }
    if (requests.empty()) return;
    const auto start = steady::now();
    try {
      auto grants = settings_.store->allocate(requests);
      if (grants.size() != requests.size())
        throw error(errc::internal,
                    "the block store returned another number of grants than it "
                    "was given requests");
      const auto latency =
          std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - start);
      for (std::size_t i = 0; i < grants.size(); ++i) {
        if (const auto problem = grants[i].problem) fail({clients[i], 1}, *problem);
        else clients[i]->client->on_granted(std::move(grants[i]), latency);
      }
    } catch (...) {
      const auto reason = as_error(std::current_exception());
      if (!may_split || requests.size() == 1 || reason.transient()) {
        fail(batch, reason);
        return;
      }
      // One request may be the reason. Sent alone, it does not affect the others.
      for (auto* queued : clients) {
        std::vector<queued_client> alone;
        alone.push_back(std::move(*queued));
        request_blocks(alone, false);
      }
    }
  }

  void fail(std::span<queued_client> batch, const error& reason) {
    settings_.log->write_limited("sequence-refill", log_level::warning,
                                 "a refill of sequences failed: " + std::string(reason.what()));
    for (auto& queued : batch) {
      if (!queued.client->on_failed(reason)) continue;
      queued.not_before = steady::now() + pause_after(queued.failures++);
      const std::scoped_lock lock(mutex_);
      queue_.push_back(std::move(queued));
    }
  }

  static steady::duration pause_after(unsigned failures) {
    return with_jitter(doubled_pause(first_pause, failures, longest_pause), thread_random());
  }

  const refiller_settings settings_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<queued_client> queue_{};
  bool stopping_ = false;
  bool ended_ = false;
  // Only used by the thread
  bool before_first_done_ = false;
};

refiller::refiller(refiller_settings settings)
    : state_(std::make_shared<state>(std::move(settings))) {}

refiller::~refiller() {
  std::unique_lock lock(state_->mutex_);
  state_->stopping_ = true;
  const auto dropped = std::exchange(state_->queue_, {});
  state_->changed_.notify_all();
  // The last client may be destroyed by the thread itself, which then cannot wait for its own end.
  const bool on_own_thread = thread_.get_id() == std::this_thread::get_id();
  if (thread_.joinable() && !on_own_thread)
    state_->changed_.wait_for(lock, 1s, [this] { return state_->ended_; });
  const bool ended = state_->ended_;
  lock.unlock();
  if (thread_.joinable() && !ended) thread_.detach();
}

void refiller::request(std::shared_ptr<refill_client> client) {
  const std::scoped_lock lock(state_->mutex_);
  if (state_->stopping_) return;
  // Before the client is queued: if the thread cannot be started, the queue stays unchanged.
  try {
    if (!thread_.joinable())
      thread_ = start_quiet_thread("hf-sequence", [state = state_] { state->run(); });
  } catch (const std::system_error& e) {
    throw error(errc::unavailable,
                std::string("the thread that refills the sequences cannot be started (") +
                    e.what() + "); raise the limit of threads, or try again",
                {.transient = true});
  }
  state_->queue_.push_back({.client = std::move(client)});
  state_->changed_.notify_all();
}

bool refiller::cancel(const refill_client& client) {
  std::shared_ptr<refill_client> removed;  // destroyed after the lock is released
  const std::scoped_lock lock(state_->mutex_);
  const auto it = std::ranges::find(state_->queue_, &client,
                                    [](const auto& queued) { return queued.client.get(); });
  if (it == state_->queue_.end()) return false;
  removed = std::move(it->client);
  state_->queue_.erase(it);
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
