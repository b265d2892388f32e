#include "redis/node_pool.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

node_pool::node_pool(std::string address, const settings& from, const tls_context* tls, counters& count)
    : address_(std::move(address)), from_(from), tls_(tls), count_(count) {
  idle_.reserve(from.how.connections);  // giving a connection back must not fail
                                        // for want of memory
}

node_pool::~node_pool() { close_idle(); }

void node_pool::enter(ticket& who) {
  const std::scoped_lock lock(mutex_);
  if (!idle_.empty()) {  // the one that came back last
    who.held_ = std::move(idle_.back());
    idle_.pop_back();
    who.called_ = true;
  } else if (seats_ < from_.how.connections) {
    ++seats_;
    who.called_ = true;
  } else {
    queue_.push_back(&who);
  }
}

void node_pool::leave(ticket& who) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (!who.called_) {
      std::erase(queue_, &who);
      return;
    }
  }
  pass_on(std::move(who.held_));  // called, and not taken
}

/// The seat, and the connection on it if there is one, go to whoever waits longest.
void node_pool::pass_on(std::unique_ptr<connection> done) noexcept {
  const std::scoped_lock lock(mutex_);
  if (queue_.empty()) {
    if (done) idle_.push_back(std::move(done));
    else --seats_;
    return;
  }
  ticket& next = *queue_.front();
  queue_.pop_front();
  next.held_ = std::move(done);
  next.called_ = true;
  if (next.sleeper_ != nullptr) next.sleeper_->notify_one();  // under the lock: it lives on the sleeper's stack
}

void node_pool::take_back(std::unique_ptr<connection> done) noexcept {
  if (done->ready() && done->first_time()) ++count_.connected;
  if (done->broken()) {
    if (done->ready()) ++count_.lost;  // one that was never there is not lost
    done.reset();
    count_.open += -1;
  }
  pass_on(std::move(done));
}

/// Those that the server has closed meanwhile go: a command sent over one of them would be in doubt for nothing.
void node_pool::drop_dead(ticket& who) {
  while (who.held_ && !who.held_->usable()) {
    who.held_.reset();
    ++count_.lost;
    count_.open += -1;
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return;
    who.held_ = std::move(idle_.back());
    idle_.pop_back();
    --seats_;  // that of the dead one; nobody waits for it, since one was idle
  }
}

void node_pool::close_idle() noexcept {
  std::vector<std::unique_ptr<connection>> dropped;
  {
    const std::scoped_lock lock(mutex_);
    dropped.swap(idle_);
    seats_ -= dropped.size();
  }
  count_.open += -static_cast<std::int64_t>(dropped.size());
}

void node_pool::abandon() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& each : idle_) each->io().abandon();
}

node_pool::ticket::ticket(std::shared_ptr<node_pool> from) : from_(std::move(from)) { from_->enter(*this); }

node_pool::ticket::~ticket() {
  if (from_) from_->leave(*this);
}

bool node_pool::ticket::called() {
  if (seen_) return true;
  const std::scoped_lock lock(from_->mutex_);
  return seen_ = called_;
}

bool node_pool::ticket::wait(steady::time_point deadline) {
  std::condition_variable here;
  std::unique_lock lock(from_->mutex_);
  sleeper_ = &here;
  const bool mine = here.wait_until(lock, deadline, [this] { return called_; });
  sleeper_ = nullptr;
  return mine;
}

bool node_pool::ticket::has_connection() {
  if (!std::exchange(checked_, true)) from_->drop_dead(*this);
  return held_ != nullptr;
}

node_pool::lease node_pool::ticket::take(steady::time_point deadline) {
  node_pool& pool = *from_;
  if (!held_) {
    held_ = std::make_unique<connection>(pool.address_, pool.from_, pool.tls_,
                                         std::min(deadline, steady::now() + pool.from_.how.connect_timeout));
    pool.count_.open += 1;
  }
  return {std::move(from_), std::move(held_)};
}

error node_pool::ticket::busy() const {
  return {errc::timeout,
          "all " + std::to_string(from_->from_.how.connections) + " connections to Redis at " + from_->address_ +
              " are busy; raise options::connections, or look for slow commands",
          {.transient = true}};
}

}  // namespace HOLDFAST_NAMESPACE::redis
