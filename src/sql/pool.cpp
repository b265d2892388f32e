#include "sql/pool.hpp"

#include "base/duration_limit.hpp"

#include <exception>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql {

using steady = std::chrono::steady_clock;

namespace {

pool_options checked(pool_options options) {
  if (options.maximum < 2)
    throw error(errc::invalid_argument,
                "pool.maximum must be at least 2: one connection to write, one to read");
  options.acquire_timeout = positive_duration("pool.acquire_timeout", options.acquire_timeout);
  options.max_lifetime = limit_duration(options.max_lifetime);
  options.leak_detection = limit_duration(options.leak_detection);
  return options;
}

}  // namespace

pooled_connection::pooled_connection(pool& owner, std::unique_ptr<connection> lent, bool is_writer,
                                     time_point opened)
    : owner_(&owner),
      connection_(std::move(lent)),
      is_writer_(is_writer),
      opened_(opened),
      lent_(steady::now()) {}

pooled_connection::pooled_connection(pooled_connection&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      connection_(std::move(other.connection_)),
      is_writer_(other.is_writer_),
      opened_(other.opened_),
      lent_(other.lent_) {}

pooled_connection::~pooled_connection() {
  if (owner_ != nullptr) owner_->give_back(*this);
}

pool::pool(connection_factory connect, pool_options options, std::shared_ptr<const logger> log)
    : connect_(std::move(connect)), options_(checked(options)), log_(std::move(log)) {
  // give_back() must not allocate.
  idle_readers_.reserve(options_.maximum);
  idle_writers_.reserve(1);
}

pooled_connection pool::acquire_reader() {
  std::vector<idle_connection> expired;  // closed after the lock is released: closing may block
  std::unique_lock lock(mutex_);
  const auto deadline = steady::now() + options_.acquire_timeout;
  for (bool late = false;;) {
    if (auto idle = take_idle(idle_readers_, expired))
      return {*this, std::move(idle->connection), false, idle->opened};
    // Leaves room for the writer if it is not open.
    const std::size_t reserved = writer_in_use_ || !idle_writers_.empty() ? 0 : 1;
    if (counters_.open + reserved < options_.maximum) return open(lock, false);
    if (late) {
      throw_timeout("a connection, and all " + std::to_string(options_.maximum) +
                    " are busy; raise pool.maximum, or look for slow statements");
    }
    // After a timeout the loop tries once more.
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
  }
}

// The order matters: without it, a cleaner that asks again and again could starve other callers.
pooled_connection pool::acquire_writer() {
  std::vector<idle_connection> expired;
  expired.reserve(1);  // nothing may throw while writer_in_use_ is set and nothing is lent
  std::unique_lock lock(mutex_);
  const auto deadline = steady::now() + options_.acquire_timeout;
  const auto ticket = ++last_ticket_;
  waiting_writers_.push_back(ticket);
  for (bool late = false; writer_in_use_ || waiting_writers_.front() != ticket;) {
    if (late) {
      std::erase(waiting_writers_, ticket);
      changed_.notify_all();
      throw_timeout(
          writer_connect_failure_.empty()
              ? "the connection that writes; look for slow writes, or put more entries into one put"
              : "the connection that writes, which cannot be opened: " + writer_connect_failure_);
    }
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
  }
  waiting_writers_.pop_front();
  writer_in_use_ = true;
  if (auto idle = take_idle(idle_writers_, expired))
    return {*this, std::move(idle->connection), true, idle->opened};
  return open(lock, true);
}

/// Takes the connection that was returned last. Moves connections that cannot be reused to
/// `expired`: those that are too old, and those opened before a connection was found broken,
/// because a server that restarted has closed them all.
std::optional<pool::idle_connection> pool::take_idle(std::vector<idle_connection>& idle,
                                                     std::vector<idle_connection>& expired) {
  while (!idle.empty()) {
    idle_connection last = std::move(idle.back());
    idle.pop_back();
    if (!too_old(last.opened) && last.opened > last_broken_) {
      ++counters_.in_use;
      return last;
    }
    --counters_.open;
    expired.push_back(std::move(last));
  }
  return std::nullopt;
}

/// Opens a connection. Releases the lock meanwhile, because connecting takes time.
pooled_connection pool::open(std::unique_lock<std::mutex>& lock, bool is_writer) {
  ++counters_.open;
  ++counters_.in_use;
  lock.unlock();
  try {
    auto opened = connect_();
    if (!opened) throw error(errc::internal, "the connection factory returned null");
    lock.lock();
    ++counters_.opened;
    if (is_writer) writer_connect_failure_.clear();
    return {*this, std::move(opened), is_writer, steady::now()};
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    --counters_.open;
    --counters_.in_use;
    if (is_writer) {
      keep_writer_connect_error();
      writer_in_use_ = false;
    }
    changed_.notify_all();
    throw;
  }
}

/// Keeps the message of the current exception for the callers that wait for the writer.
void pool::keep_writer_connect_error() noexcept {
  try {
    throw;
  } catch (const std::exception& e) {
    try {
      writer_connect_failure_ = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // Out of memory: the callers get a message without the reason.
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Not a std::exception: it has no message.
  }
}

void pool::give_back(pooled_connection& returned) noexcept {
  const auto held = steady::now() - returned.lent_;
  const bool held_too_long = options_.leak_detection.count() > 0 && held > options_.leak_detection;
  const bool broken = returned.connection_->broken();
  const bool reusable = !broken && !too_old(returned.opened_);
  if (!reusable) returned.connection_.reset();  // before locking: closing may block
  {
    const std::scoped_lock lock(mutex_);
    --counters_.in_use;
    if (held_too_long) ++counters_.held_too_long;
    if (broken) last_broken_ = steady::now();
    if (returned.is_writer_) writer_in_use_ = false;
    auto& idle = returned.is_writer_ ? idle_writers_ : idle_readers_;
    if (reusable) idle.push_back({std::move(returned.connection_), returned.opened_});
    else --counters_.open;
  }
  changed_.notify_all();
  if (held_too_long) warn_held_too_long(held);
}

void pool::warn_held_too_long(steady::duration held) const noexcept {
  if (!log_ || !log_->listened()) return;
  try {
    const auto held_ms =
        std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(held).count());
    log_->write_limited("pool.leak", log_level::warning,
                        "a database connection was held for " + held_ms +
                            " ms; look for a slow statement, or raise pool.leak_detection",
                        {{.name = "held_ms", .value = held_ms}});
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory: the counter reports the leak.
  }
}

void pool::throw_timeout(const std::string& reason) {
  ++counters_.timeouts;
  throw error(errc::timeout,
              "waited " + std::to_string(options_.acquire_timeout.count()) + " ms for " + reason,
              {.transient = true});
}

bool pool::too_old(time_point opened) const {
  return options_.max_lifetime.count() > 0 && steady::now() - opened > options_.max_lifetime;
}

pool::counters pool::stats() const {
  const std::scoped_lock lock(mutex_);
  auto result = counters_;
  result.waiting_writers = waiting_writers_.size();
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
