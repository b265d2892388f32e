#include "sequence/refiller.hpp"

#include "base/backoff.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::size_t max_requests_per_call = 256;
constexpr steady::duration first_pause = 10ms;
constexpr steady::duration longest_pause = 1000ms;
/// How long a request waits for a call that is under way, to go into the next one, before another
/// thread makes a call for it: a few times the usual duration of a call, within these limits.
constexpr steady::duration shortest_patience = 20ms;
constexpr steady::duration longest_patience = 500ms;
/// A thread that is not needed for so long ends, unless it is the last one.
constexpr steady::duration idle_limit = 10s;

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

/// Requests wait in a queue, and threads take them:
///
/// - A thread that has finished its call takes everything that is due, in one batch.
/// - A thread that is idle while another one calls the store waits for that call, for a short time
///   (the patience). If the call takes longer, a counter may be locked or a server may hang. The
///   idle thread then makes the next call itself, and further requests do not wait at all.
/// - A request that the store could not serve together with others (block_grant::busy) is sent
///   alone. One thread is always left for requests that are not alone.
/// - A name is in one call at a time, and so is a failure domain that has a name: other requests
///   for a machine that hangs would hang, too.
///
/// None of this affects uniqueness: every block comes from a call of its own to the store, and a
/// client has one request at a time.
struct refiller::state : std::enable_shared_from_this<refiller::state> {
  explicit state(refiller_settings settings) : settings_(std::move(settings)) {}

  struct queued_client {
    std::shared_ptr<refill_client> client;
    std::string domain{};
    steady::time_point not_before{};
    unsigned failures = 0;
    bool alone = false;
  };

  struct worker {
    std::jthread thread{};
    bool ended = false;
  };

  /// A call to the store that is under way.
  struct running_call {
    steady::time_point start;
    std::string domain;
    std::vector<std::string_view> names;
    bool alone;
  };

  void run(worker& self) {
    std::unique_lock lock(mutex_);
    auto last_used = steady::now();
    while (!stopping_) {
      auto batch = take_due();
      if (batch.empty()) {
        if (!wait(lock, last_used)) break;
        continue;
      }
      const auto call = calls_.insert(calls_.end(), describe(batch));
      if (!queue_.empty()) wake_another();
      lock.unlock();
      serve(batch);
      lock.lock();
      calls_.erase(call);  // before the batch, which owns the names
      lock.unlock();
      batch.clear();  // not under the lock: this may destroy the last reference to a client
      lock.lock();
      last_used = steady::now();
    }
    self.ended = true;
    changed_.notify_all();
  }

  /// Wakes an idle thread, or starts one. Called with the lock. Throws std::system_error only if
  /// there is no thread at all.
  void wake_another() {
    if (idle_ != 0) {
      changed_.notify_one();
      return;
    }
    if (stopping_) return;
    std::erase_if(workers_, [](const worker& each) { return each.ended; });  // joins: it has ended
    if (workers_.size() >= refiller::max_threads) return;
    auto& added = workers_.emplace_back();
    try {
      added.thread = start_quiet_thread("hf-sequence",
                                        [self = shared_from_this(), &added] { self->run(added); });
    } catch (const std::system_error&) {
      workers_.pop_back();
      if (workers_.empty()) throw;
    }
  }

  [[nodiscard]] static running_call describe(const std::vector<queued_client>& batch) {
    running_call call{.start = steady::now(),
                      .domain = batch.front().domain,
                      .names = {},
                      .alone = batch.front().alone};
    for (const auto& queued : batch) call.names.push_back(queued.client->name());
    return call;
  }

  [[nodiscard]] bool in_flight(const queued_client& queued) const {
    std::size_t alone = 0;
    for (const auto& call : calls_) {
      if (!call.domain.empty() && call.domain == queued.domain) return true;
      if (std::ranges::find(call.names, queued.client->name()) != call.names.end()) return true;
      alone += call.alone ? 1U : 0U;
    }
    return queued.alone && alone + 1 >= refiller::max_threads;
  }

  /// Takes the clients that are due and can share a call: one failure domain, and each name once.
  std::vector<queued_client> take_due() {
    std::vector<queued_client> batch;
    const auto now = steady::now();
    if (now < patient_until()) return batch;
    std::set<std::string_view> names;
    for (auto it = queue_.begin(); it != queue_.end() && batch.size() < max_requests_per_call;) {
      const bool fits = batch.empty() ||
                        (!batch.front().alone && !it->alone && it->domain == batch.front().domain);
      if (fits && it->not_before <= now && !in_flight(*it) &&
          names.insert(it->client->name()).second) {
        batch.push_back(std::move(*it));
        it = queue_.erase(it);
        if (batch.front().alone) break;
      } else {
        ++it;
      }
    }
    return batch;
  }

  /// Until then a request waits for the call that began last, to share the next one.
  [[nodiscard]] steady::time_point patient_until() const {
    auto latest = steady::time_point::min();
    for (const auto& call : calls_) {
      if (!call.alone) latest = std::max(latest, call.start);
    }
    return latest == steady::time_point::min() ? latest : latest + patience();
  }
  [[nodiscard]] steady::duration patience() const {
    return std::clamp<steady::duration>(4 * usual_latency_, shortest_patience, longest_patience);
  }

  /// Waits until there may be something to do. Returns false if this thread is not needed any more.
  bool wait(std::unique_lock<std::mutex>& lock, steady::time_point last_used) {
    const auto now = steady::now();
    if (now - last_used >= idle_limit && idle_ != 0) return false;
    auto wake_up = now - last_used < idle_limit ? last_used + idle_limit : now + idle_limit;
    for (const auto& queued : queue_) {
      const auto due = std::max(queued.not_before, patient_until());
      // A request that is due and was not taken waits for the end of a call, which notifies.
      if (due > now) wake_up = std::min(wake_up, due);
    }
    ++idle_;
    changed_.wait_until(lock, wake_up);
    --idle_;
    return true;
  }

  void serve(std::vector<queued_client>& batch) {
    try {
      if (settings_.before_first && !before_first_done_.load(std::memory_order_acquire)) {
        settings_.before_first();
        before_first_done_.store(true, std::memory_order_release);
      }
    } catch (...) {
      fail(batch, as_error(std::current_exception()));
      return;
    }
    request_blocks(batch, true);
  }

  void request_blocks(std::span<queued_client> batch, bool may_split) {
    std::vector<block_request> requests;
    std::vector<queued_client*> clients;
    for (auto& queued : batch) {
      const auto request = queued.client->next_request();
      if (request.count == 0) continue;
      requests.push_back(request);
      clients.push_back(&queued);
    }
    if (requests.empty()) return;
    for (auto& request : requests) request.accepts_busy = requests.size() > 1;
    const auto start = steady::now();
    try {
      auto grants = settings_.store->allocate(requests);
      if (grants.size() != requests.size())
        throw error(errc::internal,
                    "the block store returned another number of grants than it "
                    "was given requests");
      const auto latency =
          std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - start);
      record_latency(latency);
      for (std::size_t i = 0; i < grants.size(); ++i) {
        if (const auto problem = grants[i].problem) fail({clients[i], 1}, *problem);
        else if (grants[i].busy) ask_alone(*clients[i]);
        else clients[i]->client->on_granted(std::move(grants[i]), latency);
      }
    } catch (...) {
      const auto reason = as_error(std::current_exception());
      if (requests.size() == 1) isolate_if_slow(*clients.front(), steady::now() - start);
      if (!may_split || requests.size() == 1 || reason.transient()) {
        fail(batch, reason);
        return;
      }
      // One request may be the reason. Sent alone, it does not affect the others.
      for (auto* queued : clients) request_blocks({queued, 1}, false);
    }
  }

  void record_latency(steady::duration latency) {
    const std::scoped_lock lock(mutex_);
    usual_latency_ += (latency - usual_latency_) / 8;
  }

  /// A counter that failed slowly, by itself, is likely to be slow again. It does not go into a
  /// batch until it has succeeded.
  void isolate_if_slow(queued_client& queued, steady::duration duration) {
    const std::scoped_lock lock(mutex_);
    queued.alone = queued.alone || duration > patience();
  }

  /// The counter is locked, or needs something that takes longer. The others have their blocks.
  void ask_alone(queued_client& queued) {
    if (queued.alone) {
      fail({&queued, 1}, error(errc::unavailable, "the counter is in use by another transaction",
                               {.transient = true}));
      return;
    }
    queued.alone = true;
    const std::scoped_lock lock(mutex_);
    queue_.push_back(queued);
  }

  void fail(std::span<queued_client> batch, const error& reason) {
    settings_.log->write_limited("sequence-refill", log_level::warning,
                                 "a refill of sequences failed: " + std::string(reason.what()));
    for (auto& queued : batch) {
      if (!queued.client->on_failed(reason)) continue;
      queued.not_before = steady::now() + pause_after(queued.failures++);
      queued.domain = settings_.store->failure_domain(queued.client->name());
      const std::scoped_lock lock(mutex_);
      queue_.push_back(queued);
    }
  }

  static steady::duration pause_after(unsigned failures) {
    return with_jitter(doubled_pause(first_pause, failures, longest_pause), thread_random());
  }

  const refiller_settings settings_;
  std::atomic<bool> before_first_done_{false};
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<queued_client> queue_{};
  std::list<running_call> calls_{};
  std::list<worker> workers_{};  // the refiller joins or detaches them
  std::size_t idle_ = 0;         // workers that wait for requests
  steady::duration usual_latency_ = 1ms;
  bool stopping_ = false;
};

refiller::refiller(refiller_settings settings)
    : state_(std::make_shared<state>(std::move(settings))) {}

refiller::~refiller() {
  std::unique_lock lock(state_->mutex_);
  state_->stopping_ = true;
  const auto dropped = std::exchange(state_->queue_, {});
  state_->changed_.notify_all();
  // The last client may be destroyed by a thread of this refiller, which cannot wait for itself.
  const auto own = std::this_thread::get_id();
  state_->changed_.wait_for(lock, 1s, [&] {
    return std::ranges::all_of(state_->workers_, [&](const state::worker& each) {
      return each.ended || each.thread.get_id() == own;
    });
  });
  std::vector<std::jthread> ended;  // joined after the lock is released
  for (auto& each : state_->workers_) {
    if (each.ended) ended.push_back(std::move(each.thread));
    else each.thread.detach();
  }
  lock.unlock();
}

void refiller::request(std::shared_ptr<refill_client> client) {
  auto domain = state_->settings_.store->failure_domain(client->name());
  const std::scoped_lock lock(state_->mutex_);
  if (state_->stopping_) return;
  // Before the client is queued: if no thread can be started, the queue stays unchanged.
  try {
    state_->wake_another();
  } catch (const std::system_error& e) {
    throw error(errc::unavailable,
                std::string("the thread that refills the sequences cannot be started (") +
                    e.what() + "); raise the limit of threads, or try again",
                {.transient = true});
  }
  state_->queue_.push_back({.client = std::move(client), .domain = std::move(domain)});
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
