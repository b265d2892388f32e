#include "sequence/refiller.hpp"

#include "base/thread.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// What one call carries at most.
constexpr std::size_t most_at_once = 256;
constexpr auto first_pause = 10ms;
constexpr auto longest_pause = 1000ms;

/// What a store threw, as the one type that callers know.
error as_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const error& e) {
    return e;
  } catch (const std::exception& e) {
    return {errc::internal, std::string("the block store failed: ") + e.what()};
  } catch (...) {
    return {errc::internal, "the block store failed with something that is no exception"};
  }
}

}  // namespace

struct refiller::state {
  explicit state(settings how) : how_(std::move(how)) {}

  struct place {
    std::shared_ptr<refill_client> who;
    steady::time_point not_before{};
    int tries = 0;
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
      batch.clear();  // the last reference to a client may be this one: not under the lock
      lock.lock();
    }
    ended_ = true;
    changed_.notify_all();
  }

  /// Two of one name do not travel together: the store would have to grant to the same counter twice.
  std::vector<place> take_due() {
    std::vector<place> batch;
    std::set<std::string_view> names;
    const auto now = steady::now();
    for (auto at = queue_.begin(); at != queue_.end() && batch.size() < most_at_once;) {
      if (at->not_before <= now && names.insert(at->who->name()).second) {
        batch.push_back(std::move(*at));
        at = queue_.erase(at);
      } else {
        ++at;
      }
    }
    return batch;
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    if (queue_.empty()) {
      changed_.wait(lock);
      return;
    }
    const auto next = std::ranges::min_element(queue_, {}, &place::not_before)->not_before;
    changed_.wait_until(lock, next);
  }

  void serve(std::vector<place>& batch) {
    try {
      if (how_.before_first && !looked_) {
        how_.before_first();
        looked_ = true;
      }
    } catch (...) {
      fail(batch, as_error(std::current_exception()));
      return;
    }
    send(batch, true);
  }

  void send(std::vector<place>& batch, bool together) {
    std::vector<block_request> requests;
    std::vector<place*> asking;
    for (auto& each : batch) {
      const auto wanted = each.who->wanted();
      if (wanted.count == 0) continue;
      requests.push_back(wanted);
      asking.push_back(&each);
    }
    if (requests.empty()) return;
    const auto begun = steady::now();
    try {
      calls_.fetch_add(1, std::memory_order_relaxed);
      auto grants = how_.store->allocate(requests);
      if (grants.size() != requests.size()) throw error(errc::internal, "the block store answered other requests than it was given");
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - begun);
      for (std::size_t i = 0; i < grants.size(); ++i) {
        if (const auto why = grants[i].problem) fail(*asking[i], *why);
        else asking[i]->who->granted(std::move(grants[i]), took);
      }
    } catch (...) {
      const auto why = as_error(std::current_exception());
      // One of many may be the reason: then the others should not suffer.
      if (together && requests.size() > 1 && !why.transient()) {
        for (auto* each : asking) {
          std::vector<place> alone;
          alone.push_back(std::move(*each));
          send(alone, false);
        }
        return;
      }
      fail(batch, why);
    }
  }

  void fail(std::vector<place>& batch, const error& why) {
    how_.log->write_limited("sequence-refill", log_level::warning, "a refill of sequences failed: " + std::string(why.what()));
    for (auto& each : batch) ask_again(each, why);
  }
  void fail(place& one, const error& why) {
    how_.log->write_limited("sequence-refill", log_level::warning, "a refill of sequences failed: " + std::string(why.what()));
    ask_again(one, why);
  }

  void ask_again(place& one, const error& why) {
    if (!one.who->failed(why)) return;
    one.not_before = steady::now() + pause(one.tries++);
    const std::scoped_lock lock(mutex_);
    queue_.push_back(std::move(one));
  }

  steady::duration pause(int tries) {
    const auto whole = std::min<std::chrono::milliseconds>(first_pause * (1 << std::min(tries, 10)), longest_pause);
    std::uniform_real_distribution<double> part(0.5, 1.0);  // not all processes at the same moment
    return std::chrono::duration_cast<steady::duration>(whole * part(random_));
  }

  const settings how_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<place> queue_{};
  bool stopping_ = false;
  bool ended_ = false;
  std::atomic<std::uint64_t> calls_{0};
  bool looked_ = false;                              // the thread's own
  std::minstd_rand random_{std::random_device{}()};  // the thread's own
};

refiller::refiller(settings how) : state_(std::make_shared<state>(std::move(how))) {}

refiller::~refiller() {
  std::unique_lock lock(state_->mutex_);
  state_->stopping_ = true;
  const auto dropped = std::exchange(state_->queue_, {});
  state_->changed_.notify_all();
  const bool mine = thread_.get_id() == std::this_thread::get_id();  // the last client died here
  if (thread_.joinable() && !mine) state_->changed_.wait_for(lock, 1s, [this] { return state_->ended_; });
  const bool ended = state_->ended_;
  lock.unlock();
  if (thread_.joinable() && !ended) thread_.detach();
}

void refiller::ask(std::shared_ptr<refill_client> who) {
  const std::scoped_lock lock(state_->mutex_);
  if (state_->stopping_) return;
  // First the thread: if it cannot be started, nobody waits in the queue for it.
  try {
    if (!thread_.joinable()) thread_ = start_quiet_thread("hf-sequence", [kept = state_] { kept->run(); });
  } catch (const std::system_error& e) {
    throw error(
        errc::unavailable,
        std::string("the thread that refills the sequences cannot be started (") + e.what() + "); raise the limit of threads, or try again",
        {.transient = true});
  }
  state_->queue_.push_back({.who = std::move(who)});
  state_->changed_.notify_all();
}

bool refiller::forget(const refill_client& who) {
  std::shared_ptr<refill_client> dropped;  // after the lock
  const std::scoped_lock lock(state_->mutex_);
  const auto found = std::ranges::find(state_->queue_, &who, [](const auto& each) { return each.who.get(); });
  if (found == state_->queue_.end()) return false;
  dropped = std::move(found->who);
  state_->queue_.erase(found);
  return true;
}

std::uint64_t refiller::calls() const noexcept { return state_->calls_.load(std::memory_order_relaxed); }

}  // namespace HOLDFAST_NAMESPACE::detail
