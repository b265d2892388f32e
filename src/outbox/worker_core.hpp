#pragma once

#include <holdfast/worker.hpp>

#include "base/breaker.hpp"
#include "outbox/pace.hpp"
#include "outbox/worker_instruments.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Some claimed events that one handler thread takes in a row and settles together.
struct turn {
  std::size_t lane = 0;
  holdfast::fence token = 0;
  std::vector<claimed_event> events{};
  std::vector<std::pair<std::string, std::string>> left_out{};  ///< of their runs; see claimed
  std::chrono::steady_clock::time_point claimed_at{};
  timestamp store_time{};  ///< when it was claimed

  std::mutex mutex{};         // guards what follows: the leases' thread looks at it while the handler works
  std::size_t at = 0;         // the event that is being handled
  std::size_t settled = 0;    // events before this one have been settled
  bool settling = false;      // the outbox is being told: what it says about leases meanwhile means nothing
  std::vector<bool> lost{};   // the lease is gone
  std::stop_source source{};  // for the event that is being handled
  std::chrono::steady_clock::time_point renew_at{};
  std::chrono::steady_clock::time_point lease_end{};
};

/// What a worker is made of, without its threads: `step` looks at a lane, tasks on the executor handle and settle, `renew` keeps the leases.
/// Tests call these themselves; `run` does it on threads. Tasks own it, so a handler that hangs may outlive the worker.
class worker::core : public std::enable_shared_from_this<worker::core> {
 public:
  core(holdfast::outbox from, event_handler handler, worker_options options);

  void on(const std::string& type, event_handler handler, const handler_options& how);

  enum class found : std::uint8_t {
    events,      ///< handed to handlers: look again
    nothing,     ///< wait for news, or for `wait`
    no_room,     ///< enough is in flight: wait for handlers
    locked_out,  ///< another worker has the lane: wait
    paused,
  };
  struct looked {
    found what = found::nothing;
    std::chrono::milliseconds wait{};
    bool quiet = false;            ///< nothing is due, and nothing was in flight before that was found out
    std::shared_ptr<turn> mine{};  ///< for the one who looked, if that was asked for
  };
  /// Drains tickets, claims what there is room for, hands it to the executor; `keep_one`: all but a part for the caller. Throws what the
  /// outbox throws.
  looked step(std::size_t lane, bool keep_one = false);
  /// Extends the leases and locks that are due for it.
  void renew();
  /// Looks at how much waits, at most every few seconds.
  void sample(bool now = false);

  worker_report run(const std::stop_token& stop, bool until_empty);

  /// No more claims; what no handler has begun is given back.
  void stop();
  /// The handlers that still run are told that they are on their own.
  void abandon();
  void unlock_all();
  /// Until nothing is in flight, or the deadline.
  bool wait_for_handlers(std::chrono::steady_clock::time_point deadline);

  [[nodiscard]] worker_numbers count() const;
  [[nodiscard]] worker_health health() const;
  [[nodiscard]] std::size_t in_flight() const;
  [[nodiscard]] const std::string& owner() const noexcept { return owner_; }
  [[nodiscard]] const handler_options& defaults() const noexcept { return options_.handling; }

 private:
  struct route {
    event_handler call;
    handler_options how;
    std::unique_ptr<breaker> guard{};
    std::chrono::milliseconds open_for{};  ///< of the guard
  };
  struct lane_state {
    bool held = false;
    std::chrono::steady_clock::time_point renew_at{};
    std::chrono::steady_clock::time_point ends{};
    std::chrono::steady_clock::time_point drain_at = std::chrono::steady_clock::time_point::min();
    std::chrono::steady_clock::time_point look_at = std::chrono::steady_clock::time_point::min();  ///< whether another's lane is quiet
    bool news = false;     ///< since the last look: an event, or a ticket that expires before all others
    bool held_up = false;  ///< a ticket that has expired
  };
  using moment = std::chrono::steady_clock::time_point;

  static std::unique_ptr<route> make_route(event_handler handler, const handler_options& how);
  route* route_of(const std::string& type) const;
  [[nodiscard]] moment now() const { return clock_->steady(); }

  // worker_core.cpp: from the outbox to the executor
  std::optional<std::chrono::milliseconds> own(std::size_t lane);
  void lose(std::size_t lane, std::string_view why);
  std::chrono::milliseconds drain(std::size_t lane);
  void note_parked(const claimed& what);
  std::vector<std::shared_ptr<turn>> take(claimed&& what, moment asked, std::size_t lane);
  void hand_out(const std::vector<std::shared_ptr<turn>>& turns, std::size_t from);
  void end(const std::shared_ptr<turn>& which);

  // worker_handle.cpp: from the executor back to the outbox
  struct continuation {
    claimed what{};
    moment asked{};
  };
  void handle(std::shared_ptr<turn> which);
  std::shared_ptr<turn> handle_one(const std::shared_ptr<turn>& which);
  void handle_events(turn& which, std::vector<settlement>& out, continuation& next);
  outcome deliver(turn& which, std::size_t index);
  settlement settlement_of(const turn& which, std::size_t index, const outcome& how);
  std::chrono::milliseconds pause_of(const backoff_options& how, std::uint32_t attempts);
  void settle(turn& which, std::vector<settlement>& out, std::size_t upto, bool go_on, continuation& next);
  bool try_settle(const turn& which, const std::vector<settlement>& out, const std::optional<run_request>& more, settled& into);
  void tell(const turn& which, const std::vector<settlement>& out, const settled& what);

  // worker_leases.cpp
  void renew_turns(moment at);
  void renew_locks(moment at);
  void extend(const std::vector<std::shared_ptr<turn>>& turns, moment at);
  void lose_turns(moment whose_lease_ends_by);

  // worker_run.cpp: the threads
  struct poller {
    std::vector<std::size_t> lanes{};
    std::uint64_t run = 0;  ///< one that was left behind, in a handler that did not end, has no part in the next
    bool alone = true;      ///< no other poller
    bool until_empty = false;
    bool may_pass = false;  ///< on the worker's own threads: whoever claimed handles, and another one goes on looking
    unsigned failures = 0;
    std::size_t rounds = 0;
    std::size_t first = 0;  ///< of `lanes`, where to begin: behind the one that gave events, so that a busy lane starves no other
    std::chrono::milliseconds slice{};
    std::optional<moment> woken{};  ///< by news, and has not claimed yet
  };
  bool is_time_to_look(std::size_t lane);
  void poll(const std::shared_ptr<poller>& which);
  bool look(const std::shared_ptr<poller>& shared);
  void wait_for_news(poller& which, std::chrono::milliseconds wait);
  void give_back(moment until);
  void keep_leases();
  looked step_safely(std::size_t lane, poller& which);
  void sample_safely();
  void sleep(std::chrono::milliseconds longest);
  [[nodiscard]] std::size_t wanted() const { return pace_.claim(); }

  const holdfast::outbox from_;
  const worker_options options_;
  const std::shared_ptr<const holdfast::clock> clock_;
  const std::string owner_;
  const logger log_;
  worker_instruments numbers_;
  std::shared_ptr<executor> executor_;
  pace pace_;
  std::unique_ptr<route> others_{};
  std::map<std::string, std::unique_ptr<route>, std::less<>> routes_{};

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};  // something ended, or stops
  std::list<std::shared_ptr<turn>> turns_{};
  std::size_t in_flight_ = 0;
  std::size_t handling_ = 0;                   // threads in handlers: at most `concurrency`
  std::deque<std::shared_ptr<turn>> ready_{};  // for the next of them that is free
  std::size_t pollers_ = 0;                    // of this run that have not ended
  std::atomic<std::uint64_t> run_ = 0;         // which one it is
  std::vector<lane_state> lanes_;
  std::vector<bool> quiet_{};  // lanes in which nothing was due; for run_until_empty
  std::optional<error> problem_{};
  outbox_stats sampled_{};
  moment sample_at_ = moment::min();
  std::mt19937_64 random_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> running_{false};
};

}  // namespace HOLDFAST_NAMESPACE
