#include "sql/pool.hpp"

#include "base/duration_limit.hpp"
#include "base/recent_time.hpp"
#include "base/thread.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql {

using steady = std::chrono::steady_clock;

namespace {

/// After a server refused to write, older connections are replaced, because they may lead to the
/// same server. They are not replaced before this age: a database that stays read-only would
/// otherwise cost a new connection for each read.
constexpr auto read_only_patience = std::chrono::seconds(5);

/// A connection that is lent for longer may lead to a server that was replaced. Most statements
/// take less.
constexpr auto suspicious_time = std::chrono::seconds(2);
/// Between two questions to the server about such connections.
constexpr auto question_interval = std::chrono::seconds(1);
/// After the server has answered that it has the sessions: their statements are slow.
constexpr auto question_interval_if_slow = std::chrono::seconds(5);

pool_options checked(pool_options options) {
  if (options.maximum < 2)
    throw error(errc::invalid_argument,
                "pool.maximum must be at least 2: one connection to write, one to read");
  options.acquire_timeout = positive_duration("pool.acquire_timeout", options.acquire_timeout);
  options.validation_timeout =
      positive_duration("pool.validation_timeout", options.validation_timeout);
  options.max_lifetime = limit_duration(options.max_lifetime);
  options.leak_detection = limit_duration(options.leak_detection);
  options.idle_timeout = limit_duration(options.idle_timeout);
  options.validate_after = limit_duration(options.validate_after);
  return options;
}

/// Whether a limit is set, and exceeded.
bool exceeds(steady::duration duration, std::chrono::milliseconds limit) {
  return limit.count() > 0 && duration > limit;
}

std::string in_milliseconds(steady::duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

pooled_connection::pooled_connection(pooled_connection&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), slot_(other.slot_) {}

pooled_connection::~pooled_connection() {
  if (owner_ != nullptr) owner_->give_back(*slot_);
}

pool::pool(connection_factory connect, pool_options options, std::shared_ptr<const logger> log)
    : connect_(std::move(connect)),
      options_(checked(options)),
      log_(std::move(log)),
      owner_(getpid()),
      keeper_(std::make_unique<keeper>()) {}

pool::~pool() {
  if (getpid() != owner_) {
    // A forked child does not have the thread, which can neither be joined nor detached there, and
    // destroying a condition variable waits for the threads that wait on it.
    (void)keeper_.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    keeper_->stopping = true;
  }
  keeper_->stop.notify_all();
}

pooled_connection pool::acquire_reader(const char* borrower) {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it waits, or throws
  return std::move(acquire_reader(borrower, true)).value();
}

std::optional<pooled_connection> pool::try_acquire_reader(const char* borrower) {
  return acquire_reader(borrower, false);
}

std::optional<pooled_connection> pool::acquire_reader(const char* borrower, bool wait) {
  connections expired;  // closed after the lock is released: closing may block
  guard lock(mutex_);
  std::optional<time_point> deadline;
  for (bool late = false;;) {
    if (auto* slot = take_idle(lock, idle_readers_, borrower, expired))
      return pooled_connection(*this, *slot);
    // Leaves room for the writer if it is not open.
    const std::size_t reserved = writer_in_use_ || !idle_writers_.empty() ? 0 : 1;
    if (slots_.size() + reserved < options_.maximum)
      return pooled_connection(*this, open(lock, false, borrower));
    if (!wait) return std::nullopt;
    if (late) {
      throw_timeout("a connection, and all " + std::to_string(options_.maximum) +
                    " are busy; raise pool.maximum, or look for slow statements");
    }
    if (!deadline) deadline = steady::now() + options_.acquire_timeout;
    // After a timeout the loop tries once more.
    late = changed_.wait_until(lock, *deadline) == std::cv_status::timeout;
  }
}

// The order matters: without it, a cleaner that asks again and again could starve other callers.
pooled_connection pool::acquire_writer(const char* borrower) {
  connections expired;
  expired.reserve(2);  // nothing may throw while writer_in_use_ is set and nothing is lent
  guard lock(mutex_);
  if (writer_in_use_ || !waiting_writers_.empty()) {
    const auto deadline = steady::now() + options_.acquire_timeout;
    const auto ticket = ++last_ticket_;
    waiting_writers_.push_back(ticket);
    for (bool late = false; writer_in_use_ || waiting_writers_.front() != ticket;) {
      if (late) {
        std::erase(waiting_writers_, ticket);
        changed_.notify_all();
        throw_timeout(writer_connect_failure_.empty()
                          ? "the connection that writes; look for slow writes, or put more entries "
                            "into one put"
                          : "the connection that writes, which cannot be opened: " +
                                writer_connect_failure_);
      }
      late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
    }
    waiting_writers_.pop_front();
  }
  writer_in_use_ = true;
  if (auto* slot = take_idle(lock, idle_writers_, borrower, expired)) return {*this, *slot};
  return {*this, open(lock, true, borrower)};
}

/// Takes the connection that was returned last, and marks it as lent. Moves connections that cannot
/// be reused to `expired`.
pool_slot* pool::take_idle(guard& lock, std::vector<pool_slot*>& idle, const char* borrower,
                           connections& expired) {
  while (!idle.empty()) {
    const auto now = recent_steady_time();
    pool_slot& last = *idle.back();
    idle.pop_back();
    if (must_close(last, now)) {
      expired.push_back(remove(last));
      continue;
    }
    const auto idle_time = now - std::exchange(last.since, now);
    last.borrower = borrower;
    last.reported = false;
    ++counters_.in_use;
    if (!exceeds(idle_time, options_.validate_after) || validate(lock, last, expired)) return &last;
  }
  return nullptr;
}

/// Connections that cannot be reused: those that are too old, those opened before a connection was
/// found broken, because a server that restarted has closed them all, and those opened before a
/// server refused to write.
bool pool::must_close(const pool_slot& idle, time_point now) const {
  const auto age = now - idle.opened;
  return exceeds(age, options_.max_lifetime) || idle.opened <= last_broken_ ||
         (idle.opened <= last_read_only_ && age > read_only_patience);
}

/// Pings a connection that is marked as lent. If the server does not answer, moves the connection
/// to `expired` and returns false. Releases the lock meanwhile.
bool pool::validate(guard& lock, pool_slot& slot, connections& expired) {
  lock.unlock();
  const bool alive = slot.connection->responds(options_.validation_timeout);
  lock.lock();
  if (alive) return true;
  // The other connections were idle on the same way to the server.
  last_broken_ = steady::now();
  --counters_.in_use;
  ++counters_.found_dead;
  expired.push_back(remove(slot));
  return false;
}

/// Opens a connection and marks it as lent. Releases the lock meanwhile, because connecting takes
/// time.
pool_slot& pool::open(guard& lock, bool is_writer, const char* borrower) {
  pool_slot* slot = nullptr;
  try {
    // give_back() must not allocate.
    idle_readers_.reserve(slots_.size() + 1);
    idle_writers_.reserve(1);
    slot = slots_.emplace_back(std::make_unique<pool_slot>()).get();
    slot->is_writer = is_writer;
    slot->borrower = borrower;
    slot->since = steady::now();
    ++counters_.in_use;
    lock.unlock();
    auto connection = connect_();
    if (!connection) throw error(errc::internal, "the connection factory returned null");
    lock.lock();
    slot->watched = dynamic_cast<watched_session*>(connection.get());
    slot->connection = std::move(connection);
    if (slot->watched != nullptr) ++watched_count_;
    slot->opened = slot->since = steady::now();
    slot->reported = false;
    ++counters_.opened;
    if (is_writer) writer_connect_failure_.clear();
    start_keeper();
    return *slot;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (slot != nullptr) {
      --counters_.in_use;
      (void)remove(*slot);
    }
    if (is_writer) {
      keep_writer_connect_error();
      writer_in_use_ = false;
    }
    changed_.notify_all();
    throw;
  }
}

/// Forgets a slot and returns its connection, for the caller to close without the lock.
std::unique_ptr<connection> pool::remove(pool_slot& slot) noexcept {
  auto connection = std::move(slot.connection);
  if (slot.watched != nullptr) --watched_count_;
  const auto position =
      std::ranges::find(slots_, &slot, [](const auto& each) { return each.get(); });
  std::swap(*position, slots_.back());
  slots_.pop_back();
  return connection;
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

void pool::give_back(pool_slot& slot) noexcept {
  const bool broken = slot.connection->broken();
  const bool read_only = slot.connection->read_only();
  const auto now = recent_steady_time();
  const char* overdue_borrower = nullptr;
  steady::duration held{};
  std::unique_ptr<sql::connection> closed;  // after the lock is released: closing may block
  {
    const std::scoped_lock lock(mutex_);
    --counters_.in_use;
    if (broken) last_broken_ = steady::now();
    if (read_only) last_read_only_ = steady::now();
    if (slot.is_writer) writer_in_use_ = false;
    if (slot.reported) overdue_borrower = slot.borrower;
    slot.borrower = nullptr;
    held = now - std::exchange(slot.since, now);
    if (broken || read_only || exceeds(now - slot.opened, options_.max_lifetime))
      closed = remove(slot);
    else (slot.is_writer ? idle_writers_ : idle_readers_).push_back(&slot);
  }
  changed_.notify_all();
  if (overdue_borrower != nullptr) report_return(overdue_borrower, held);
}

void pool::throw_timeout(const std::string& reason) {
  ++counters_.timeouts;
  throw error(errc::timeout,
              "waited " + std::to_string(options_.acquire_timeout.count()) + " ms for " + reason,
              {.transient = true});
}

pool::counters pool::stats() const {
  const std::scoped_lock lock(mutex_);
  auto result = counters_;
  result.open = slots_.size();
  result.waiting_writers = waiting_writers_.size();
  return result;
}

/// Starts the thread that watches the connections, unless it runs. Called with the lock.
void pool::start_keeper() noexcept {
  const bool has_limits = options_.leak_detection.count() > 0 ||
                          options_.idle_timeout.count() > 0 || options_.max_lifetime.count() > 0;
  if (keeper_->running || !has_limits) return;
  try {
    if (keeper_->thread.joinable()) keeper_->thread.join();  // it has ended
    keeper_->thread = start_quiet_thread("hf-pool", [this] { run_keeper(); });
    keeper_->running = true;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No thread can be started now. The next connection tries again.
  }
}

/// Ends when no connection is open.
void pool::run_keeper() noexcept {
  const auto is_stopping = [this] { return keeper_->stopping; };
  guard lock(mutex_);
  while (!is_stopping() && !slots_.empty()) {
    try {
      const auto now = steady::now();
      connections closed;
      std::vector<overdue_connection> overdue;
      collect_idle(now, closed);
      collect_overdue(now, overdue);
      if (must_ask_for_sessions(now)) ask_for_sessions(lock);
      if (closed.empty() && overdue.empty()) {
        keeper_->stop.wait_until(lock, next_check(now), is_stopping);
        continue;
      }
      lock.unlock();
      changed_.notify_all();
      closed.clear();
      for (const auto& each : overdue) report(each);
      lock.lock();
    } catch (const std::exception&) {  // out of memory: try again later
      if (!lock.owns_lock()) lock.lock();
      keeper_->stop.wait_for(lock, std::chrono::seconds(1), is_stopping);
    }
  }
  keeper_->running = false;
}

/// When the next connection may be idle or lent for too long. A connection that is lent or returned
/// later cannot be due earlier.
pool::time_point pool::next_check(time_point now) const {
  auto next = now + longest_duration;
  const auto consider = [&next](time_point since, std::chrono::milliseconds limit) {
    // Afterwards the limit must be exceeded.
    if (limit.count() > 0)
      next = std::min<time_point>(next, since + limit + std::chrono::microseconds(1));
  };
  consider(now, options_.leak_detection);
  consider(now, options_.idle_timeout);
  // A connection that is lent from now on becomes suspicious later.
  if (watched_count_ > 0) consider(now, suspicious_time);
  for (const auto& slot : slots_) {
    if (slot->connection == nullptr) continue;
    if (slot->borrower != nullptr) {
      if (!slot->reported) consider(slot->since, options_.leak_detection);
      if (slot->watched != nullptr)
        consider(std::max<time_point>(slot->since, next_question_ - suspicious_time),
                 suspicious_time);
    } else {
      consider(slot->since, options_.idle_timeout);
      consider(slot->opened, options_.max_lifetime);
    }
  }
  return next;
}

/// Removes the connections that were idle for too long or are too old.
void pool::collect_idle(time_point now, connections& closed) {
  closed.reserve(idle_readers_.size() + idle_writers_.size());
  for (auto* idle : {&idle_readers_, &idle_writers_}) {
    std::erase_if(*idle, [&](pool_slot* slot) {
      if (!exceeds(now - slot->since, options_.idle_timeout) && !must_close(*slot, now))
        return false;
      closed.push_back(remove(*slot));
      return true;
    });
  }
}

/// Finds the connections that are lent for too long and not reported yet.
void pool::collect_overdue(time_point now, std::vector<overdue_connection>& overdue) {
  for (const auto& slot : slots_) {
    const auto held = now - slot->since;
    if (slot->borrower == nullptr || slot->connection == nullptr || slot->reported ||
        !exceeds(held, options_.leak_detection))
      continue;
    overdue.push_back({.borrower = slot->borrower, .held = held});
    slot->reported = true;
    ++counters_.held_too_long;
  }
}

bool pool::must_ask_for_sessions(time_point now) const {
  if (watched_count_ == 0 || now < next_question_) return false;
  return std::ranges::any_of(slots_, [now](const auto& slot) {
    return slot->watched != nullptr && slot->borrower != nullptr &&
           now - slot->since > suspicious_time;
  });
}

/// Interrupts the calls on connections whose server is not the one that new connections lead to.
/// Releases the lock meanwhile.
void pool::ask_for_sessions(guard& lock) {
  struct suspect {
    const watched_session* connection;
    std::string name;
    bool replaced = false;
  };
  std::vector<suspect> suspects;
  const auto now = steady::now();
  for (const auto& slot : slots_) {
    if (slot->watched == nullptr || slot->borrower == nullptr ||
        now - slot->since <= suspicious_time)
      continue;
    suspects.push_back({.connection = slot->watched, .name = slot->watched->session_name()});
  }
  lock.unlock();
  bool found_replaced = false;
  bool answered = false;
  try {
    const auto connection = connect_();
    auto* const asked = dynamic_cast<watched_session*>(connection.get());
    for (auto& each : suspects) {
      each.replaced = asked != nullptr && !asked->has_session(each.name).value_or(true);
      found_replaced = found_replaced || each.replaced;
    }
    answered = true;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No server answers. The calls wait until their time limit, or until the next question.
  }
  lock.lock();
  const bool slow = answered && !found_replaced;
  next_question_ = steady::now() + (slow ? question_interval_if_slow : question_interval);
  if (!found_replaced) return;
  // The idle connections lead to the same server.
  last_broken_ = now;
  for (const auto& slot : slots_) {
    if (slot->watched == nullptr || slot->borrower == nullptr) continue;
    const auto is_same = [&](const suspect& each) {
      return each.replaced && each.connection == slot->watched &&
             each.name == slot->watched->session_name();
    };
    if (std::ranges::none_of(suspects, is_same)) continue;
    slot->watched->interrupt();
    ++counters_.replaced;
  }
}

void pool::report(const overdue_connection& overdue) const noexcept {
  if (!log_ || !log_->listened()) return;
  try {
    const auto held_ms = in_milliseconds(overdue.held);
    log_->write_limited(
        std::string("pool.leak.") + overdue.borrower, log_level::warning,
        std::string(overdue.borrower) + " has held a database connection for " + held_ms +
            " ms and still holds it; look for a slow statement or a transaction that waits, or "
            "raise pool.leak_detection",
        {{.name = "operation", .value = overdue.borrower}, {.name = "held_ms", .value = held_ms}});
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory: the counter reports it.
  }
}

void pool::report_return(const char* borrower, steady::duration held) const noexcept {
  if (!log_ || !log_->listened()) return;
  try {
    const auto held_ms = in_milliseconds(held);
    log_->write_limited(
        std::string("pool.return.") + borrower, log_level::info,
        std::string(borrower) + " returned a database connection after " + held_ms + " ms",
        {{.name = "operation", .value = borrower}, {.name = "held_ms", .value = held_ms}});
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory: the counter reported it.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
