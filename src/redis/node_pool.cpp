#include "redis/node_pool.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

node_pool::node_pool(std::string address, const settings& configured, const net::tls_context* tls,
                     counters& counted)
    : address_(std::move(address)), settings_(configured), tls_(tls), counters_(counted) {
  idle_.reserve(configured.options.connections);  // returning a connection must not allocate
}

node_pool::~node_pool() { close_idle(); }

void node_pool::enter(pooled_connection& caller) {
  const std::scoped_lock lock(mutex_);
  if (!idle_.empty()) {  // the one that was used last
    caller.connection_ = std::move(idle_.back());
    idle_.pop_back();
  } else if (permits_ < settings_.options.connections) {
    ++permits_;
  } else {
    queue_.push_back(&caller);
    return;
  }
  caller.granted_ = caller.granted_seen_ = true;
}

void node_pool::leave(pooled_connection& caller) noexcept {
  if (!caller.granted_seen_) {
    const std::scoped_lock lock(mutex_);
    if (!caller.granted_) {
      std::erase(queue_, &caller);
      return;
    }
  }
  auto released = std::move(caller.connection_);
  if (released) {
    if (released->ready() && released->first_use()) ++counters_.connected;
    if (!released->reusable()) {
      if (released->ready()) ++counters_.lost;  // a failed login is not a lost connection
      released.reset();
      counters_.open += -1;
    }
  }
  pass_on(std::move(released));
}

/// Grants the permit, with its connection if there is one, to the caller that has waited longest.
void node_pool::pass_on(std::unique_ptr<connection> released) noexcept {
  const std::scoped_lock lock(mutex_);
  if (queue_.empty()) {
    if (released) idle_.push_back(std::move(released));
    else --permits_;
    return;
  }
  pooled_connection& next = *queue_.front();
  queue_.pop_front();
  next.connection_ = std::move(released);
  next.granted_ = true;
  // Notifies under the lock, because the condition variable is on the stack of the waiting thread.
  if (next.waiter_ != nullptr) next.waiter_->notify_one();
}

/// Exchanges a connection that the server has closed for another idle one, or for null if there is
/// none: the caller may then open a new one.
void node_pool::replace_dead(std::unique_ptr<connection>& idle) {
  while (idle && !idle->is_alive()) {
    idle.reset();
    ++counters_.lost;
    counters_.open += -1;
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return;
    idle = std::move(idle_.back());
    idle_.pop_back();
    --permits_;  // of the dead connection; no caller waits for it, because one was idle
  }
}

void node_pool::close_idle() noexcept {
  std::vector<std::unique_ptr<connection>> closed;
  {
    const std::scoped_lock lock(mutex_);
    closed.swap(idle_);
    permits_ -= closed.size();
  }
  counters_.open += -static_cast<std::int64_t>(closed.size());
}

void node_pool::abandon() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& idle : idle_) idle->abandon();
}

pooled_connection::pooled_connection(std::shared_ptr<node_pool> pool) : pool_(std::move(pool)) {
  pool_->enter(*this);
}

pooled_connection::~pooled_connection() { pool_->leave(*this); }

bool pooled_connection::granted() {
  if (granted_seen_) return true;
  const std::scoped_lock lock(pool_->mutex_);
  return granted_seen_ = granted_;
}

void pooled_connection::wait(steady::time_point deadline) {
  std::condition_variable condition;
  std::unique_lock lock(pool_->mutex_);
  waiter_ = &condition;
  static_cast<void>(condition.wait_until(lock, deadline, [this] { return granted_; }));
  waiter_ = nullptr;
}

bool pooled_connection::is_open() {
  if (!std::exchange(checked_, true)) pool_->replace_dead(connection_);
  return connection_ != nullptr;
}

void pooled_connection::open(steady::time_point deadline) {
  if (is_open()) return;
  const auto limit = steady::now() + pool_->settings_.options.connect_timeout;
  connection_ = std::make_unique<connection>(pool_->address_, pool_->settings_, pool_->tls_,
                                             std::min(deadline, limit));
  pool_->counters_.open += 1;
}

error pooled_connection::busy_error() const {
  return {errc::timeout,
          "all " + std::to_string(pool_->settings_.options.connections) +
              " connections to Redis at " + pool_->address_ +
              " are busy; raise options::connections, or look for slow commands",
          {.transient = true}};
}

std::shared_ptr<node_pool> node_pools::get(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  auto& pool = pools_[address];
  if (!pool) pool = std::make_shared<node_pool>(address, settings_, tls_, counters_);
  return pool;
}

void node_pools::remove_absent(const slot_map& map) {
  std::vector<std::shared_ptr<node_pool>> removed;  // closed after the lock is released
  const std::scoped_lock lock(mutex_);
  const auto refreshes = counters_.refreshes.read();
  if (std::exchange(seen_refreshes_, refreshes) == refreshes) return;
  std::erase_if(pools_, [&](auto& entry) {
    const auto& address = entry.first;
    const bool present =
        std::ranges::find(map.nodes(), address, &node::address) != map.nodes().end() ||
        std::ranges::find(settings_.addresses, address) != settings_.addresses.end();
    if (!present) removed.push_back(std::move(entry.second));
    return !present;
  });
}

// A thread of the parent may have held a lock during fork. Then it stays locked, and what the
// thread was changing is left alone.
void node_pools::abandon() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& [address, pool] : pools_) pool->abandon();
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
