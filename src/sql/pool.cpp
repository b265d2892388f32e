#include "sql/pool.hpp"

#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

using steady = std::chrono::steady_clock;

pool::pool(connection_factory connect, pool_options options, std::function<void(std::string_view)> log)
    : connect_(std::move(connect)), options_(options), log_(std::move(log)) {
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
  std::unique_lock lock(mutex_);
  const auto deadline = steady::now() + options_.acquire_timeout;
  for (;;) {
    while (!readers_.empty()) {
      idle last = std::move(readers_.back());
      readers_.pop_back();
      if (!too_old(last.made)) {
        ++numbers_.taken;
        return lease(*this, std::move(last.held), false, last.made);
      }
      --numbers_.open;
    }
    // One place is kept for the writer, whether it exists yet or not.
    const std::size_t for_writer = writer_taken_ || !writers_.empty() ? 0 : 1;
    if (numbers_.open + for_writer < options_.maximum) return connect_now(lock, false);
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) fail_waiting("connections");
  }
}

pool::lease pool::writer() {
  std::unique_lock lock(mutex_);
  const auto deadline = steady::now() + options_.acquire_timeout;
  while (writer_taken_) {
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout && writer_taken_) fail_waiting("the writer");
  }
  writer_taken_ = true;
  if (!writers_.empty()) {
    idle last = std::move(writers_.back());
    writers_.pop_back();
    if (!too_old(last.made)) {
      ++numbers_.taken;
      return lease(*this, std::move(last.held), true, last.made);
    }
    --numbers_.open;
  }
  return connect_now(lock, true);
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
    return lease(*this, std::move(made), writer, steady::now());
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    --numbers_.open;
    --numbers_.taken;
    if (writer) writer_taken_ = false;
    changed_.notify_all();
    throw;
  }
}

void pool::take_back(lease& done) noexcept {
  const auto held_for = steady::now() - done.taken_;
  const bool leaked = options_.leak_detection.count() > 0 && held_for > options_.leak_detection;
  const bool keep = !done.held_->broken() && !too_old(done.made_);
  if (!keep) done.held_.reset();  // closing may take time too
  {
    const std::scoped_lock lock(mutex_);
    --numbers_.taken;
    if (leaked) ++numbers_.leaks;
    if (done.writer_) writer_taken_ = false;
    if (keep) (done.writer_ ? writers_ : readers_).push_back({std::move(done.held_), done.made_});
    else --numbers_.open;
  }
  changed_.notify_all();
  if (leaked) {
    say("a database connection was held for " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(held_for).count()) +
        " ms; look for a slow statement, or raise pool.leak_detection");
  }
}

void pool::fail_waiting(const char* what) {
  ++numbers_.timeouts;
  throw error(errc::timeout,
              std::string("waited ") + std::to_string(options_.acquire_timeout.count()) + " ms for " + what + " of the pool, and all " +
                  std::to_string(options_.maximum) + " are busy; raise pool.maximum, or look for slow statements",
              {.transient = true});
}

bool pool::too_old(steady::time_point made) const {
  return options_.max_lifetime.count() > 0 && steady::now() - made > options_.max_lifetime;
}

void pool::say(std::string_view line) const noexcept {
  try {
    if (log_) log_(line);
  } catch (...) {
    // A log that fails must not cost the caller its connection.
  }
}

pool::numbers pool::count() const {
  const std::scoped_lock lock(mutex_);
  return numbers_;
}

}  // namespace HOLDFAST_NAMESPACE::sql
