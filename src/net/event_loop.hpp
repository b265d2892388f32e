#pragma once

/// \file
/// An epoll loop: one thread that owns its connections. Only `post` and `stop` may be called from
/// other threads.
///
///   handler   an object with a descriptor. Its registration has a slot and a generation, so that
///             an event of a descriptor that was closed in the same turn reaches no other handler.
///   timer     a deadline in a heap. A later deadline does not move it: it moves when it fires.
///   retired   objects that were given up in a turn. They are destroyed at its end, because
///             functions of them may be on the stack.

#include "net/poll_timeout.hpp"

#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::net {

class event_loop;

/// Reacts to the events of a descriptor.
class event_handler {
 public:
  event_handler() = default;
  event_handler(const event_handler&) = delete;
  event_handler& operator=(const event_handler&) = delete;
  /// `events` as epoll reports them: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR. Must not throw.
  virtual void on_events(std::uint32_t events) = 0;

 protected:
  ~event_handler() = default;
};

/// A descriptor that a loop watches. Removes itself when it is destroyed.
/// Thread-safety: used on the thread of the loop only.
class registration {
 public:
  registration() = default;
  ~registration() { remove(); }
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;

  /// Begins to watch. Throws errc::unavailable if epoll refuses. The handler and the descriptor
  /// must outlive the registration.
  void add(event_loop& loop, int descriptor, std::uint32_t events, event_handler& handler);
  /// Watches for other events.
  void change(std::uint32_t events) noexcept;
  void remove() noexcept;
  [[nodiscard]] bool active() const noexcept { return loop_ != nullptr; }
  [[nodiscard]] std::uint32_t events() const noexcept { return events_; }

 private:
  event_loop* loop_ = nullptr;
  int descriptor_ = -1;
  std::uint32_t events_ = 0;
  std::uint32_t slot_ = 0;
};

/// Calls a function at a deadline. Cancels itself when it is destroyed.
/// Thread-safety: used on the thread of the loop only.
class timer {
 public:
  explicit timer(event_loop& loop) noexcept : loop_(loop) {}
  ~timer() { cancel(); }
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;

  /// The function must not throw. Set it before the first deadline.
  void set_callback(std::function<void()> callback) { callback_ = std::move(callback); }
  /// Replaces the deadline, if there is one.
  void set(steady::time_point deadline);
  void cancel() noexcept;

 private:
  friend class event_loop;
  static constexpr std::size_t not_scheduled = ~std::size_t{0};
  event_loop& loop_;
  std::function<void()> callback_{};
  steady::time_point deadline_{};
  steady::time_point scheduled_{};  // the position in the heap; not later than deadline_
  std::size_t index_ = not_scheduled;
};

/// Thread-safety: see the file.
class event_loop {
 public:
  /// Throws errc::unavailable if the system gives no descriptors.
  event_loop();
  ~event_loop();
  event_loop(const event_loop&) = delete;
  event_loop& operator=(const event_loop&) = delete;

  /// Runs on the calling thread until `stop`. Runs the tasks that were posted before `stop`.
  void run();
  /// May be called from any thread, and from a signal handler.
  void stop() noexcept;
  /// Runs a task on the thread of the loop, in the order of the calls. Returns false, and drops the
  /// task, if the loop has ended. May be called from any thread.
  bool post(std::function<void()> task);
  [[nodiscard]] bool is_own_thread() const noexcept {
    return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  /// The time of this turn.
  [[nodiscard]] steady::time_point now() const noexcept { return now_; }
  /// Destroys an object at the end of the turn.
  void retire(std::shared_ptr<void> object) { retired_.push_back(std::move(object)); }
  /// Destroys retired objects now. Only while the loop does not run.
  void destroy_retired() {
    while (!retired_.empty()) std::exchange(retired_, {}).clear();
  }

 private:
  friend class registration;
  friend class timer;

  struct handler_slot {
    event_handler* handler = nullptr;
    std::uint32_t generation = 0;
  };
  [[nodiscard]] std::uint32_t take_slot(event_handler& handler);
  void dispatch(const epoll_event& event);
  void run_tasks();
  void run_timers();
  void wake() noexcept;
  [[nodiscard]] int wait_time() const noexcept;
  void move_up(std::size_t index) noexcept;
  void move_down(std::size_t index) noexcept;
  void put(std::size_t index, timer* entry) noexcept;

  int epoll_ = -1;
  int wake_ = -1;  // eventfd
  std::atomic<std::thread::id> thread_{};
  std::atomic<bool> stopping_ = false;
  steady::time_point now_ = steady::now();
  std::vector<handler_slot> slots_{};
  std::vector<std::uint32_t> free_slots_{};
  std::vector<timer*> timers_{};  // a heap by timer::scheduled_
  std::vector<std::shared_ptr<void>> retired_{};

  bool has_own_tasks_ = false;  // posted by the thread of the loop, in this turn
  std::mutex mutex_{};
  bool ended_ = false;                          // under mutex_
  std::vector<std::function<void()>> tasks_{};  // under mutex_
};

}  // namespace HOLDFAST_NAMESPACE::detail::net
