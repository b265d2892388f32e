#include "sql/pool.hpp"

#include "sql/within_reach.hpp"

#include <exception>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

using steady = std::chrono::steady_clock;

namespace {

pool_options bounded(pool_options options) {
  for (auto* const each : {&options.acquire_timeout, &options.max_lifetime, &options.leak_detection}) *each = within_reach(*each);
  return options;
}

}  // namespace

pool::pool(connection_factory connect, pool_options options, std::shared_ptr<const logger> log)
    : connect_(std::move(connect)), options_(bounded(options)), log_(std::move(log)) {
  if (options_.maximum < 2) throw error(errc::invalid_argument, "a pool needs room for at least 2 connections: one to write, one to read");
  if (options_.acquire_timeout.count() <= 0) throw error(errc::invalid_argument, "the pool's acquire timeout must be more than nothing");
  readers_.reserve(options_.maximum);  // giving a connection back must not fail for want of memory
  writers_.reserve(1);
}

pool::lease::lease(pool& from, std::unique_ptr<connection> held, bool writer, steady::time_point made)
    : from_(&from), held_(std::move(held)), writer_(writer), made_(made), taken_(steady::now()) {}

pool::lease::lease(lease&& other) noexcept
    : from_(std::exchange(other.from_, nullptr)),
      held_(std::move(other.held_)),
      writer_(other.writer_),
      made_(other.made_),
      taken_(other.taken_) {}

pool::lease::~lease() {
  if (from_ != nullptr) from_->take_back(*this);
}

pool::lease pool::reader() {
  std::vector<idle> dropped;  // closed when the lock is gone: closing may take time
  std::unique_lock lock(mutex_);
  const auto deadline = steady::now() + options_.acquire_timeout;
  for (bool late = false;;) {
    if (auto kept = take_idle(readers_, dropped)) return lease(*this, std::move(kept->held), false, kept->made);
    // One place is kept for the writer, whether it exists yet or not.
    const std::size_t for_writer = writer_taken_ || !writers_.empty() ? 0 : 1;
    if (numbers_.open + for_writer < options_.maximum) return connect_now(lock, false);
    if (late) {
      fail_waiting("a connection, and all " + std::to_string(options_.maximum) +
                   " are busy; raise pool.maximum, or look for slow statements");
    }
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;  // and then look once more
  }
}

/// Writers come in the order in which they asked: a cleaner that asks again and again must not keep a caller waiting.
pool::lease pool::writer() {
  std::vector<idle> dropped;
  dropped.reserve(1);  // nothing may fail between taking the place of the writer and giving it back
  std::unique_lock lock(mutex_);
  const auto deadline = steady::now() + options_.acquire_timeout;
  const auto mine = ++tickets_;
  waiting_writers_.push_back(mine);
  for (bool late = false; writer_taken_ || waiting_writers_.front() != mine;) {
    if (late) {
      std::erase(waiting_writers_, mine);
      changed_.notify_all();
      fail_waiting(refusal_.empty() ? "the connection that writes; look for slow writes, or put more entries into one put"
                                    : "the connection that writes, which cannot be made: " + refusal_);
    }
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
  }
  waiting_writers_.pop_front();
  writer_taken_ = true;
  if (auto kept = take_idle(writers_, dropped)) return lease(*this, std::move(kept->held), true, kept->made);
  return connect_now(lock, true);
}

/// The one that came back last, unless it is too old. What is too old, or was made before a connection was found broken, is dropped: a
/// server that restarted has closed them all.
std::optional<pool::idle> pool::take_idle(std::vector<idle>& from, std::vector<idle>& dropped) {
  while (!from.empty()) {
    idle last = std::move(from.back());
    from.pop_back();
    if (!too_old(last.made) && last.made > broken_until_) {
      ++numbers_.taken;
      return last;
    }
    --numbers_.open;
    dropped.push_back(std::move(last));
  }
  return std::nullopt;
}

/// Connecting takes time: others must not wait for it.
pool::lease pool::connect_now(std::unique_lock<std::mutex>& lock, bool writer) {
  ++numbers_.open;
  ++numbers_.taken;
  lock.unlock();
  try {
    auto made = connect_();
    if (!made) throw error(errc::internal, "the connection factory gave nothing");
    lock.lock();
    ++numbers_.made;
    refusal_.clear();
    return lease(*this, std::move(made), writer, steady::now());
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (writer) note_refusal();
    --numbers_.open;
    --numbers_.taken;
    if (writer) writer_taken_ = false;
    changed_.notify_all();
    throw;
  }
}

/// Why nobody can connect, for those who wait behind the one that tries. Within a catch.
void pool::note_refusal() noexcept {
  try {
    throw;
  } catch (const std::exception& e) {
    try {
      refusal_ = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // No memory for a reason: they are told without.
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // It has no words.
  }
}

void pool::take_back(lease& done) noexcept {
  const auto held_for = steady::now() - done.taken_;
  const bool leaked = options_.leak_detection.count() > 0 && held_for > options_.leak_detection;
  const bool was_broken = done.held_->broken();
  const bool keep = !was_broken && !too_old(done.made_);
  if (!keep) done.held_.reset();  // closing may take time too
  {
    const std::scoped_lock lock(mutex_);
    --numbers_.taken;
    if (leaked) ++numbers_.leaks;
    if (was_broken) broken_until_ = steady::now();
    if (done.writer_) writer_taken_ = false;
    if (keep) (done.writer_ ? writers_ : readers_).push_back({std::move(done.held_), done.made_});
    else --numbers_.open;
  }
  changed_.notify_all();
  if (!leaked || !log_ || !log_->listened()) return;
  try {
    const auto held_ms = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(held_for).count());
    log_->write_limited("pool.leak", log_level::warning,
                        "a database connection was held for " + held_ms + " ms; look for a slow statement, or raise pool.leak_detection",
                        {{.name = "held_ms", .value = held_ms}});
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory for words: the number above tells of it.
  }
}

void pool::fail_waiting(const std::string& what) {
  ++numbers_.timeouts;
  throw error(errc::timeout, "waited " + std::to_string(options_.acquire_timeout.count()) + " ms for " + what, {.transient = true});
}

bool pool::too_old(steady::time_point made) const {
  return options_.max_lifetime.count() > 0 && steady::now() - made > options_.max_lifetime;
}

pool::numbers pool::count() const {
  const std::scoped_lock lock(mutex_);
  auto now = numbers_;
  now.waiting = waiting_writers_.size();
  return now;
}

}  // namespace HOLDFAST_NAMESPACE::sql
