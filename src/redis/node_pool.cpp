#include "redis/node_pool.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::redis {

node_pool::node_pool(std::string address, const settings& from, const tls_context* tls, counters& count)
    : address_(std::move(address)), from_(from), tls_(tls), count_(count) {
  idle_.reserve(from.how.connections);  // giving a connection back must not fail for want of memory
}

node_pool::~node_pool() { close_idle(); }

/// The one that came back last and is still good. Those that the server has closed meanwhile go: a command sent over one of them would be
/// in doubt for nothing.
std::unique_ptr<connection> node_pool::take_idle(std::unique_lock<std::mutex>& lock) {
  while (!idle_.empty()) {
    auto found = std::move(idle_.back());
    idle_.pop_back();
    lock.unlock();
    if (found->usable()) return found;
    found.reset();
    ++count_.lost;
    forget_one();
    lock.lock();
  }
  return nullptr;
}

void node_pool::forget_one() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    --open_;
  }
  count_.open += -1;
  changed_.notify_one();
}

node_pool::lease node_pool::acquire(const std::shared_ptr<node_pool>& from, steady::time_point deadline) {
  node_pool& self = *from;
  std::unique_lock lock(self.mutex_);
  for (bool late = false;;) {
    if (auto found = self.take_idle(lock)) return {from, std::move(found)};
    if (self.open_ < self.from_.how.connections) break;
    if (late) {
      throw error(errc::timeout,
                  "all " + std::to_string(self.open_) + " connections to Redis at " + self.address_ +
                      " are busy; raise options::connections, or look for slow commands",
                  {.transient = true});
    }
    late = self.changed_.wait_until(lock, deadline) == std::cv_status::timeout;  // and then look once more
  }
  ++self.open_;
  lock.unlock();
  self.count_.open += 1;
  try {
    auto made = std::make_unique<connection>(self.address_, self.from_, self.tls_,
                                             std::min(deadline, steady::now() + self.from_.how.connect_timeout));
    ++self.count_.connected;
    return {from, std::move(made)};
  } catch (...) {
    self.forget_one();
    throw;
  }
}

void node_pool::take_back(std::unique_ptr<connection> done) noexcept {
  if (done->broken()) {
    done.reset();
    ++count_.lost;
    forget_one();
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(done));
  }
  changed_.notify_one();
}

void node_pool::abandon() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& each : idle_) each->io().abandon();
}

void node_pool::close_idle() noexcept {
  std::vector<std::unique_ptr<connection>> dropped;
  {
    const std::scoped_lock lock(mutex_);
    dropped.swap(idle_);
    open_ -= dropped.size();
  }
  count_.open += -static_cast<std::int64_t>(dropped.size());
  changed_.notify_all();
}

}  // namespace HOLDFAST_NAMESPACE::redis
