#include <holdfast/store/tiered.hpp>

#include "base/deadline.hpp"
#include "store/tier_front.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

/// What a read in the background needs, and so outlives the store.
struct tier_core {
  tier_core(std::shared_ptr<store> below, const tiered_options& how, const std::shared_ptr<const clock>& time)
      : durable(std::move(below)),
        front({.max_entries = how.max_entries, .max_bytes = how.max_bytes, .clock = time}, how.freshness, time) {}

  std::shared_ptr<store> durable;
  tier_front front;
  std::atomic<std::size_t> late_now{0};  // reads past their deadline that are still running
  std::atomic<std::uint64_t> fresh{0};
  std::atomic<std::uint64_t> asked{0};
  std::atomic<std::uint64_t> backfilled{0};
  std::atomic<std::uint64_t> not_backfilled{0};
  std::atomic<std::uint64_t> stale{0};
  std::atomic<std::uint64_t> late{0};
  std::atomic<std::uint64_t> refused{0};

  std::optional<entry> read(place where, std::string_view key) {
    ++asked;
    const auto ticket = front.begin_read(where, key);
    auto answer = durable->find(where, key);
    ++(front.end_read(ticket, where, key, answer) ? backfilled : not_backfilled);
    return answer;
  }
};

/// A read that somebody waits for, for a while.
template <class Answer>
struct waited_read {
  std::mutex mutex{};
  std::condition_variable changed{};
  bool begun = false;
  bool ended = false;
  bool given_up = false;
  std::optional<Answer> answer{};
  std::exception_ptr failure{};
};

bool may_pass(const error& e) { return e.transient() || e.code() == errc::timeout || e.code() == errc::unavailable; }

class memory_fronted_store final : public tiered_store {
 public:
  memory_fronted_store(std::shared_ptr<store> durable, tiered_options options) : options_(std::move(options)) {
    if (!durable) throw error(errc::invalid_argument, "there is no store below; give the durable one");
    if (options_.freshness.count() < 0) throw error(errc::invalid_argument, "freshness must not be negative", {.path = "freshness"});
    if (options_.read_deadline.count() < 0)
      throw error(errc::invalid_argument, "read_deadline must not be negative", {.path = "read_deadline"});
    if (options_.read_deadline.count() > 0 && !options_.executor) {
      throw error(errc::invalid_argument, "read_deadline needs an executor on which the reads run; give make_thread_pool()",
                  {.path = "executor"});
    }
    if (options_.max_late_reads == 0) throw error(errc::invalid_argument, "max_late_reads must be at least 1", {.path = "max_late_reads"});
    if (!options_.clock) options_.clock = system_clock();
    options_.read_deadline = std::min<std::chrono::milliseconds>(options_.read_deadline, longest_wait);
    core_ = std::make_shared<tier_core>(std::move(durable), options_, options_.clock);
  }

  void put(std::span<const entry> entries) override {
    tier_front::put writing(core_->front, entries);
    core_->durable->put(entries);
    writing.succeeded();
  }

  std::optional<entry> find(place where, std::string_view key) override {
    if (auto held = core_->front.find(where, key); held && held->fresh) {
      ++core_->fresh;
      return std::move(held->value);
    }
    if (!options_.serve_stale) return ask(where, key);
    try {
      return ask(where, key);
    } catch (const error& e) {
      if (!may_pass(e)) throw;
      // Again, and not what was found above: much may have been acknowledged while we waited.
      auto held = core_->front.find(where, key);
      if (!held) throw;
      ++core_->stale;
      return std::move(held->value);
    }
  }

  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    if (options_.read_deadline.count() == 0) return core_->durable->find_all(where, limit, after);
    return within_deadline<entry_page>([durable = core_->durable, name = std::string(where.name), realm = std::string(where.realm), limit,
                                        from = std::string(after)] { return durable->find_all({name, realm}, limit, from); });
  }

  bool erase(place where, std::string_view key, timestamp as_of) override {
    tier_front::erase erasing(core_->front, where, key);
    const bool was_there = core_->durable->erase(where, key, as_of);
    erasing.succeeded();
    return was_there;
  }

  std::size_t expire(timestamp before, std::size_t limit) override {
    const tier_front::expiry expiring(core_->front, before);
    return core_->durable->expire(before, limit);
  }

  std::uint64_t count(place where) override {
    if (options_.read_deadline.count() == 0) return core_->durable->count(where);
    return within_deadline<std::uint64_t>([durable = core_->durable, name = std::string(where.name), realm = std::string(where.realm)] {
      return durable->count({name, realm});
    });
  }

  [[nodiscard]] holdfast::peer peer() const noexcept override { return core_->durable->peer(); }
  [[nodiscard]] bool waits() const noexcept override { return core_->durable->waits(); }
  store_health health() noexcept override { return core_->durable->health(); }

  numbers stats() const override {
    return {.front = core_->front.stats(),
            .fresh = core_->fresh,
            .asked = core_->asked,
            .backfilled = core_->backfilled,
            .not_backfilled = core_->not_backfilled,
            .stale = core_->stale,
            .late = core_->late,
            .refused = core_->refused};
  }

 private:
  std::optional<entry> ask(place where, std::string_view key) {
    if (options_.read_deadline.count() == 0) return core_->read(where, key);
    return within_deadline<std::optional<entry>>([core = core_, name = std::string(where.name), realm = std::string(where.realm),
                                                  wanted = std::string(key)] { return core->read({name, realm}, wanted); });
  }

  /// Runs the read on the executor and waits for it. The work owns all that it uses: it may end long after everybody has gone.
  template <class Answer, class Work>
  Answer within_deadline(Work work) {
    if (core_->late_now >= options_.max_late_reads) refuse("has " + std::to_string(options_.max_late_reads) + " late reads still running");
    auto read = std::make_shared<waited_read<Answer>>();
    const bool taken = options_.executor->post([core = core_, read, work = std::move(work)] {
      {
        const std::scoped_lock lock(read->mutex);
        if (read->given_up) return;  // nobody waits for it any more: spare the durable store, which is slow enough
        read->begun = true;
      }
      std::optional<Answer> answer;
      std::exception_ptr failure;
      try {
        answer.emplace(work());
      } catch (...) {
        failure = std::current_exception();
      }
      const std::scoped_lock lock(read->mutex);
      read->answer = std::move(answer);
      read->failure = std::move(failure);
      read->ended = true;
      if (read->given_up) --core->late_now;
      read->changed.notify_all();
    });
    if (!taken) refuse("was not asked: the executor is full or closed");
    std::unique_lock lock(read->mutex);
    // Real time, whatever clock was given: the caller's wait must end when nothing else moves.
    if (!read->changed.wait_for(lock, options_.read_deadline, [&] { return read->ended; })) {
      read->given_up = true;
      if (read->begun) ++core_->late_now;
      ++core_->late;
      throw error(errc::timeout,
                  "the durable store did not answer within " + std::to_string(options_.read_deadline.count()) + " ms (read_deadline)",
                  {.transient = true});
    }
    std::optional<Answer> answer = std::move(read->answer);
    if (!answer) std::rethrow_exception(read->failure);
    return std::move(*answer);
  }

  [[noreturn]] void refuse(const std::string& why) {
    ++core_->refused;
    throw error(errc::timeout, "the durable store " + why, {.transient = true});
  }

  tiered_options options_;
  std::shared_ptr<tier_core> core_;
};

}  // namespace

std::shared_ptr<tiered_store> make_tiered_store(std::shared_ptr<store> durable, tiered_options options) {
  return std::make_shared<memory_fronted_store>(std::move(durable), std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
