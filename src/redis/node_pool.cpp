#include "redis/node_pool.hpp"

#include "base/backoff.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

// Pauses before a server that refused another connection (maxclients) is asked for one again.
constexpr std::chrono::microseconds first_refusal_pause = std::chrono::milliseconds(50);
constexpr std::chrono::microseconds longest_refusal_pause = std::chrono::seconds(1);

}  // namespace

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
    caller.granted_ = caller.granted_seen_ = true;
    return;
  }
  queue_.push_back(&caller);
  grant_waiting(steady::now());
  caller.granted_seen_ = caller.granted_;
}

/// Returns how many connections there may be. Requires the lock.
std::size_t node_pool::limit(steady::time_point now) const noexcept {
  const auto configured = settings_.options.connections;
  if (!refused_more_) return configured;
  const std::size_t additional = now >= open_more_at_ ? 1 : 0;
  return std::clamp<std::size_t>(ready_ + additional, 1, configured);
}

/// Grants permits to open connections, as many as there may be. Requires the lock.
void node_pool::grant_waiting(steady::time_point now) noexcept {
  while (!queue_.empty() && permits_ < limit(now)) {
    pooled_connection& next = *queue_.front();
    queue_.pop_front();
    ++permits_;
    grant(next, nullptr);
  }
}

/// Requires the lock.
void node_pool::grant(pooled_connection& caller, std::unique_ptr<connection> granted) noexcept {
  caller.connection_ = std::move(granted);
  caller.granted_ = true;
  // Notifies under the lock, because the condition variable is on the stack of the waiting thread.
  if (caller.waiter_ != nullptr) caller.waiter_->notify_one();
}

/// The server has refused another connection: the caller waits for one that is open, or that
/// another caller opens. Returns false if no connection can be waited for.
bool node_pool::return_to_queue(pooled_connection& caller) {
  const std::scoped_lock lock(mutex_);
  if (permits_ <= 1) return false;
  const auto now = steady::now();
  refused_more_ = true;
  open_more_at_ =
      now + with_jitter(doubled_pause(first_refusal_pause, refusals_++, longest_refusal_pause),
                        thread_random());
  --permits_;
  caller.granted_ = caller.granted_seen_ = caller.checked_ = false;
  if (idle_.empty()) {
    queue_.push_front(&caller);
    return true;
  }
  auto taken = std::move(idle_.back());
  idle_.pop_back();
  grant(caller, std::move(taken));
  return true;
}

void node_pool::count_closed(std::size_t connections) noexcept {
  counters_.open += -static_cast<std::int64_t>(connections);
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
  bool lost = false;
  if (released) {
    if (released->ready() && released->first_use()) ++counters_.connected;
    if (!released->reusable()) {
      lost = released->ready();  // a failed login is not a lost connection
      if (lost) ++counters_.lost;
      released.reset();
      count_closed(1);
    }
  }
  const std::scoped_lock lock(mutex_);
  if (caller.connecting_) gate_.cancelled(caller.connect_start_, steady::now());
  if (lost) --ready_;
  pass_on(std::move(released));
}

/// Grants the connection to the caller that has waited longest, or keeps it. Without a connection,
/// the permit is free for another one. Requires the lock.
void node_pool::pass_on(std::unique_ptr<connection> released) noexcept {
  if (!released) {
    --permits_;
    if (!queue_.empty()) grant_waiting(steady::now());
  } else if (queue_.empty()) {
    idle_.push_back(std::move(released));
  } else {
    pooled_connection& next = *queue_.front();
    queue_.pop_front();
    grant(next, std::move(released));
    if (refused_more_) grant_waiting(steady::now());
  }
}

/// Exchanges a connection that the server has closed for another idle one, or for null if there is
/// none: the caller may then open a new one.
void node_pool::replace_dead(std::unique_ptr<connection>& idle) {
  while (idle && !idle->is_alive()) {
    idle.reset();
    ++counters_.lost;
    count_closed(1);
    const std::scoped_lock lock(mutex_);
    --ready_;
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
    ready_ -= closed.size();
  }
  count_closed(closed.size());
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
  connect_start_ = steady::now();
  bool first_contact = false;
  {
    const std::scoped_lock lock(pool_->mutex_);
    pool_->gate_.enter(connect_start_);
    connecting_ = true;
    first_contact = !pool_->connected_before_;
  }
  const auto limit = connect_start_ + pool_->settings_.options.connect_timeout;
  connection_ = std::make_unique<connection>(pool_->address_, pool_->settings_, pool_->tls_,
                                             std::min(deadline, limit), first_contact);
  pool_->counters_.open += 1;
}

void pooled_connection::set_up_done() {
  if (!std::exchange(connecting_, false)) return;
  const std::scoped_lock lock(pool_->mutex_);
  ++pool_->ready_;
  pool_->connected_before_ = true;
  pool_->gate_.succeeded();
  if (!pool_->refused_more_) return;
  // Another one may be accepted, too.
  pool_->refusals_ = 0;
  pool_->refused_more_ = pool_->ready_ < pool_->settings_.options.connections;
  pool_->open_more_at_ = {};
  pool_->grant_waiting(steady::now());
}

bool pooled_connection::set_up_failed(const error& problem) {
  if (!std::exchange(connecting_, false)) return false;
  const auto now = steady::now();
  // A caller with little time says nothing about the server.
  const bool gave_up = problem.code() == errc::timeout &&
                       now - connect_start_ < pool_->settings_.options.connect_timeout;
  const bool server_is_full = problem.backend_code() == "MAXCLIENTS";
  if (server_is_full && connection_) {
    connection_.reset();
    pool_->count_closed(1);
  }
  if (server_is_full && pool_->return_to_queue(*this)) {
    const std::scoped_lock lock(pool_->mutex_);
    pool_->gate_.cancelled(connect_start_, now);
    return true;
  }
  const std::scoped_lock lock(pool_->mutex_);
  if (gave_up) pool_->gate_.cancelled(connect_start_, now);
  else pool_->gate_.failed(problem, connect_start_, now);
  return false;
}

error pooled_connection::busy_error() const {
  std::size_t accepted = 0;
  {
    const std::scoped_lock lock(pool_->mutex_);
    if (pool_->refused_more_) accepted = pool_->ready_;
  }
  if (accepted > 0)
    return {errc::timeout,
            "all " + std::to_string(accepted) + " connections that Redis at " + pool_->address_ +
                " accepts are busy; raise maxclients, or use fewer connections",
            {.backend_code = "MAXCLIENTS", .transient = true}};
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

void node_pools::keep_only(const std::string& master) {
  std::vector<std::shared_ptr<node_pool>> removed;  // closed after the lock is released
  const std::scoped_lock lock(mutex_);
  if (seen_master_ == master) return;
  seen_master_ = master;
  std::erase_if(pools_, [&](auto& entry) {
    if (entry.first == master) return false;
    removed.push_back(std::move(entry.second));
    return true;
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
