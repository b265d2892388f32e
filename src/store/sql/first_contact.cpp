#include "store/sql/first_contact.hpp"

#include <holdfast/store/sealed.hpp>

#include "base/backoff.hpp"
#include "base/thread.hpp"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using namespace std::chrono_literals;

/// Limits of the growing pause between two attempts.
struct attempt_pauses {
  std::chrono::milliseconds first;
  std::chrono::milliseconds longest;
};
/// For a server that is down. It is found again within a second.
constexpr attempt_pauses short_pauses{.first = 50ms, .longest = 1s};
/// For a server that refuses: a password or a table must be repaired, and a server may lock an
/// account after too many failed logins.
constexpr attempt_pauses long_pauses{.first = 1s, .longest = 30s};

constexpr auto longest_wait_for_attempt_in_destructor = 1s;

/// What the store shares with its thread, which may outlive it.
///
/// Thread-safety: every function may be called from any thread, except attempt() and run(), of
/// which one call at a time may run.
class contact_state {
 public:
  explicit contact_state(first_contact_options options) : options_(std::move(options)) {}

  /// The store, or null if the database was not reached yet.
  [[nodiscard]] holdfast::store* reached() const noexcept {
    return reached_.load(std::memory_order_acquire);
  }
  /// The store. Waits while the first attempt runs, which ends because connecting and statements
  /// have time limits. Throws the failure of the last attempt if the database was not reached. It
  /// is transient, since the attempts go on.
  [[nodiscard]] holdfast::store& wait_for_store() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return attempted_; });
    if (auto* const store = reached()) return *store;
    if (!failure_) throw error(errc::unavailable, "the store is closed");
    throw error(failure_->code(),
                std::string("the store has not been reached yet: ") + failure_->what(),
                {.backend_code = failure_->backend_code(), .transient = true});
  }

  /// Tries once. Returns whether the database was reached.
  bool attempt() {
    try {
      succeed(options_.open());
      return true;
    } catch (const error& e) {
      fail(e);
    } catch (const std::exception& e) {
      fail({errc::internal, std::string("the store could not be opened: ") + e.what()});
    } catch (const abi::__forced_unwind&) {  // thread cancellation must not be swallowed
      throw;
    } catch (...) {
      fail({errc::internal, "the store could not be opened: the driver threw an unknown type"});
    }
    return false;
  }

  /// Tries until the database is reached or stop() was called. `pause_first`: after an attempt that
  /// has failed.
  void run(bool pause_first) {
    if (!pause_first || pause()) {
      while (!attempt() && pause()) {
      }
    }
    // Released by this thread before the destructor of the store returns, not after it.
    options_.open = nullptr;
    options_.log.reset();
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void start_running() noexcept { ended_ = false; }

  /// Ends run(). Waits for a running attempt, but not longer than a second.
  void stop() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, longest_wait_for_attempt_in_destructor, [this] { return ended_; });
  }

 private:
  // Both log before others see the outcome. They log nothing after stop(): the log of the
  // application may be gone.
  void succeed(std::shared_ptr<holdfast::store> store) {
    if (!store) throw error(errc::internal, "the store could not be opened: it is null");
    std::unique_lock lock(mutex_);
    if (failure_ && !stopping_) {
      lock.unlock();
      options_.log->write(log_level::info, "the store was reached");
      lock.lock();
    }
    store_ = std::move(store);
    reached_.store(store_.get(), std::memory_order_release);
    attempted_ = true;
    changed_.notify_all();
  }

  void fail(const error& reason) {
    std::unique_lock lock(mutex_);
    if (!stopping_) {
      lock.unlock();
      log_failure(reason);
      lock.lock();
    }
    const bool short_pause = options_.is_file || reason.transient();
    failures_ = short_pause == short_pause_ ? failures_ + 1 : 1;
    short_pause_ = short_pause;
    failure_ = reason;
    attempted_ = true;
    changed_.notify_all();
  }

  void log_failure(const error& reason) const {
    if (reason.transient())
      options_.log->write_limited(
          "store.not_reached." + options_.name, log_level::warning,
          "the store has not been reached yet: " + std::string(reason.what()) +
              "; it is tried again in the background");
    else
      options_.log->write_limited("store.refused." + options_.name, log_level::error,
                                  "the store cannot be used: " + std::string(reason.what()) +
                                      "; it is tried again until that is repaired");
  }

  /// Waits before the next attempt. Returns false if there is to be none.
  bool pause() {
    std::unique_lock lock(mutex_);
    const auto& limits = short_pause_ ? short_pauses : long_pauses;
    const auto pause = doubled_pause(limits.first, failures_ - 1, limits.longest);
    changed_.wait_for(lock, with_jitter(pause, thread_random()), [this] { return stopping_; });
    return !stopping_;
  }

  first_contact_options options_;  // changed only at the end of run()
  std::atomic<holdfast::store*> reached_{nullptr};

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::shared_ptr<holdfast::store> store_{};
  std::optional<error> failure_{};  // of the last attempt
  unsigned failures_ = 0;           // in a row with the same limits of the pause
  bool short_pause_ = true;
  bool attempted_ = false;  // the first attempt has ended
  bool stopping_ = false;
  bool ended_ = true;  // no thread runs
};

class first_contact_store final : public holdfast::store, public rewritable_store {
 public:
  explicit first_contact_store(first_contact_options options)
      : peer_(options.peer), contact_(start(std::move(options))) {}
  first_contact_store(const first_contact_store&) = delete;
  first_contact_store& operator=(const first_contact_store&) = delete;
  ~first_contact_store() override {
    // A forked child has no such thread, and the mutex may be locked there.
    if (::getpid() == owner_) contact_->stop();
  }

  void put(std::span<const entry> entries) override { opened().put(entries); }
  std::optional<entry> find(place location, std::string_view key) override {
    return opened().find(location, key);
  }
  std::vector<std::optional<entry>> find_many(place location,
                                              std::span<const std::string> keys) override {
    return opened().find_many(location, keys);
  }
  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    return opened().find_all(location, limit, after);
  }
  bool erase(place location, std::string_view key, timestamp as_of) override {
    return opened().erase(location, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return opened().expire(before, limit);
  }
  std::uint64_t count(place location) override { return opened().count(location); }
  expiry_profile expiring(place location, std::span<const timestamp> times) override {
    return opened().expiring(location, times);
  }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return peer_; }
  [[nodiscard]] bool waits() const noexcept override { return true; }
  store_health health() noexcept override {
    try {
      return opened().health();
    } catch (const std::exception& e) {
      store_health result;
      try {
        result.problem = e.what();
      } catch (...) {  // NOLINT(bugprone-empty-catch)
        // Out of memory: `available` is false, without a reason.
      }
      return result;
    }
  }

  std::size_t rewrite(std::span<const rewriting> entries) override {
    return rewritable().rewrite(entries);
  }
  std::optional<std::string> name_after(std::string_view name, std::string_view realm) override {
    return rewritable().name_after(name, realm);
  }

 private:
  [[nodiscard]] holdfast::store& opened() {
    if (auto* const reached = contact_->reached()) [[likely]]
      return *reached;
    return contact_->wait_for_store();
  }
  [[nodiscard]] rewritable_store& rewritable() { return dynamic_cast<rewritable_store&>(opened()); }

  /// Makes the first attempt for a file, and starts the thread unless it has succeeded.
  static std::shared_ptr<contact_state> start(first_contact_options options) {
    const bool is_file = options.is_file;
    auto contact = std::make_shared<contact_state>(std::move(options));
    if (is_file && contact->attempt()) return contact;
    contact->start_running();
    try {
      start_quiet_thread("hf-connect", [contact, is_file] { contact->run(is_file); }).detach();
    } catch (const std::system_error& e) {
      throw error(errc::unavailable,
                  std::string("the thread that contacts the store cannot be started (") + e.what() +
                      "); raise the limit of threads, or try again",
                  {.transient = true});
    }
    return contact;
  }

  const holdfast::peer peer_;
  const pid_t owner_ = ::getpid();
  const std::shared_ptr<contact_state> contact_;
};

}  // namespace

std::shared_ptr<holdfast::store> make_first_contact_store(first_contact_options options) {
  return std::make_shared<first_contact_store>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
