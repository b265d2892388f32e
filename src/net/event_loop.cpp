#include "net/event_loop.hpp"

#include <holdfast/error.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::net {

namespace {

constexpr std::uint64_t wake_mark = ~std::uint64_t{0};
constexpr std::size_t events_per_turn = 256;

[[noreturn]] void throw_system_failure(const char* action) {
  const int number = errno;
  throw error(errc::unavailable,
              std::string(action) + ": " + std::generic_category().message(number),
              {.transient = true});
}

}  // namespace

void registration::add(event_loop& loop, int descriptor, std::uint32_t events,
                       event_handler& handler) {
  const auto slot = loop.take_slot(handler);
  epoll_event event{};
  event.events = events;
  event.data.u64 = (std::uint64_t{loop.slots_[slot].generation} << 32U) | slot;
  if (::epoll_ctl(loop.epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    loop.slots_[slot].handler = nullptr;
    loop.free_slots_.push_back(slot);
    throw_system_failure("cannot watch a connection");
  }
  loop_ = &loop;
  descriptor_ = descriptor;
  events_ = events;
  slot_ = slot;
}

void registration::change(std::uint32_t events) noexcept {
  if (loop_ == nullptr || events == events_) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = (std::uint64_t{loop_->slots_[slot_].generation} << 32U) | slot_;
  (void)::epoll_ctl(loop_->epoll_, EPOLL_CTL_MOD, descriptor_, &event);
  events_ = events;
}

void registration::remove() noexcept {
  if (loop_ == nullptr) return;
  (void)::epoll_ctl(loop_->epoll_, EPOLL_CTL_DEL, descriptor_, nullptr);
  auto& slot = loop_->slots_[slot_];
  slot.handler = nullptr;
  ++slot.generation;
  loop_->free_slots_.push_back(slot_);
  loop_ = nullptr;
}

void timer::set(steady::time_point deadline) {
  deadline_ = deadline;
  if (index_ != not_scheduled && deadline >= scheduled_) return;
  scheduled_ = deadline;
  if (index_ == not_scheduled) {
    index_ = loop_.timers_.size();
    loop_.timers_.push_back(this);
  }
  loop_.move_up(index_);
}

void timer::cancel() noexcept {
  if (index_ == not_scheduled) return;
  const auto index = std::exchange(index_, not_scheduled);
  timer* const last = loop_.timers_.back();
  loop_.timers_.pop_back();
  if (last == this) return;
  loop_.put(index, last);
  loop_.move_up(index);
  loop_.move_down(last->index_);
}

event_loop::event_loop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = wake_mark;
  if (epoll_ < 0 || wake_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    if (epoll_ >= 0) ::close(epoll_);
    if (wake_ >= 0) ::close(wake_);
    throw_system_failure("cannot create an event loop");
  }
}

event_loop::~event_loop() {
  // Objects may retire others.
  while (!retired_.empty()) std::exchange(retired_, {}).clear();
  tasks_.clear();
  ::close(wake_);
  ::close(epoll_);
}

std::uint32_t event_loop::take_slot(event_handler& handler) {
  if (free_slots_.empty()) {
    slots_.push_back({});
    // So that `remove` never allocates.
    free_slots_.reserve(slots_.capacity());
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const auto index = free_slots_.back();
  free_slots_.pop_back();
  slots_[index].handler = &handler;
  return index;
}

void event_loop::wake() noexcept {
  const std::uint64_t one = 1;
  // Fails only if the counter is full: then the loop wakes up anyway.
  (void)!::write(wake_, &one, sizeof one);
}

void event_loop::stop() noexcept {
  stopping_ = true;
  wake();
}

bool event_loop::post(std::function<void()> task) {
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    if (ended_) return false;
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  // This thread runs its tasks after the turn, without a system call.
  if (is_own_thread()) has_own_tasks_ = true;
  else if (first) wake();
  return true;
}

void event_loop::run_tasks() {
  std::vector<std::function<void()>> tasks;
  {
    const std::scoped_lock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) task();
}

void event_loop::dispatch(const epoll_event& event) {
  if (event.data.u64 == wake_mark) {
    std::uint64_t count = 0;
    (void)!::read(wake_, &count, sizeof count);
    run_tasks();
    return;
  }
  const auto index = static_cast<std::uint32_t>(event.data.u64);
  const auto& slot = slots_[index];
  if (slot.handler != nullptr && slot.generation == event.data.u64 >> 32U)
    slot.handler->on_events(event.events);
}

void event_loop::run_timers() {
  while (!timers_.empty() && timers_.front()->scheduled_ <= now_) {
    timer* const first = timers_.front();
    if (first->deadline_ > first->scheduled_) {
      first->scheduled_ = first->deadline_;
      move_down(0);
      continue;
    }
    first->cancel();
    first->callback_();
  }
}

int event_loop::wait_time() const noexcept {
  if (has_own_tasks_) return 0;
  return timers_.empty() ? -1 : poll_timeout(timers_.front()->scheduled_);
}

void event_loop::run() {
  thread_ = std::this_thread::get_id();
  std::array<epoll_event, events_per_turn> events{};
  while (!stopping_) {
    const int count =
        ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_time());
    now_ = steady::now();
    for (int i = 0; i < count; ++i) dispatch(events[static_cast<std::size_t>(i)]);
    run_timers();
    if (!retired_.empty()) std::exchange(retired_, {}).clear();
    if (!std::exchange(has_own_tasks_, false)) continue;
    run_tasks();
    if (!retired_.empty()) std::exchange(retired_, {}).clear();
  }
  run_tasks();
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  run_tasks();
  while (!retired_.empty()) std::exchange(retired_, {}).clear();
  thread_ = std::thread::id{};
}

void event_loop::put(std::size_t index, timer* entry) noexcept {
  timers_[index] = entry;
  entry->index_ = index;
}

void event_loop::move_up(std::size_t index) noexcept {
  timer* const moved = timers_[index];
  while (index > 0) {
    const auto parent = (index - 1) / 2;
    if (timers_[parent]->scheduled_ <= moved->scheduled_) break;
    put(index, timers_[parent]);
    index = parent;
  }
  put(index, moved);
}

void event_loop::move_down(std::size_t index) noexcept {
  timer* const moved = timers_[index];
  for (;;) {
    auto child = index * 2 + 1;
    if (child >= timers_.size()) break;
    if (child + 1 < timers_.size() && timers_[child + 1]->scheduled_ < timers_[child]->scheduled_)
      ++child;
    if (moved->scheduled_ <= timers_[child]->scheduled_) break;
    put(index, timers_[child]);
    index = child;
  }
  put(index, moved);
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
