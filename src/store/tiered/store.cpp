#include <holdfast/store/tiered.hpp>

#include "base/duration_limit.hpp"
#include "store/tiered/memory_tier.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace detail::store {

namespace {

/// What a read in the background uses. It outlives the store.
struct tier_core {
  tier_core(std::shared_ptr<holdfast::store> durable_store, const tiered_options& options)
      : durable(std::move(durable_store)),
        front({.max_entries = options.max_entries,
               .max_bytes = options.max_bytes,
               .clock = options.clock},
              options.freshness, options.clock) {}

  std::shared_ptr<holdfast::store> durable;
  memory_tier front;
  std::atomic<std::size_t> late_running{0};  // reads past their deadline that still run
  std::atomic<std::uint64_t> fresh{0};
  std::atomic<std::uint64_t> asked{0};
  std::atomic<std::uint64_t> backfilled{0};
  std::atomic<std::uint64_t> not_backfilled{0};
  std::atomic<std::uint64_t> stale{0};
  std::atomic<std::uint64_t> late{0};
  std::atomic<std::uint64_t> refused{0};

  /// Reads from the durable store and updates the front.
  std::optional<entry> read(place location, std::string_view key) {
    ++asked;
    const auto pending = front.begin_read(location, key);
    auto answer = durable->find(location, key);
    ++(front.end_read(pending, location, key, answer) ? backfilled : not_backfilled);
    return answer;
  }
  std::vector<std::optional<entry>> read_many(place location, std::span<const std::string> keys) {
    asked += keys.size();
    std::vector<memory_tier::pending_read> pending;
    pending.reserve(keys.size());
    for (const auto& key : keys) pending.push_back(front.begin_read(location, key));
    auto answers = durable->find_many(location, keys);
    for (std::size_t i = 0; i < keys.size(); ++i)
      ++(front.end_read(pending[i], location, keys[i], answers[i]) ? backfilled : not_backfilled);
    return answers;
  }
};

/// A read on the executor for which a caller waits until its deadline.
template <class Answer>
struct background_read {
  std::mutex mutex{};
  std::condition_variable changed{};
  bool started = false;
  bool ended = false;
  bool abandoned = false;  // the caller no longer waits
  std::optional<Answer> answer{};
  std::exception_ptr failure{};
};

bool may_serve_stale(const error& e) {
  return e.transient() || e.code() == errc::timeout || e.code() == errc::unavailable;
}

tiered_options checked(const std::shared_ptr<holdfast::store>& durable, tiered_options options) {
  const auto refuse_if = [](bool invalid, const char* message, const char* option) {
    if (invalid) throw error(errc::invalid_argument, message, {.path = option});
  };
  if (!durable) throw error(errc::invalid_argument, "a tiered store needs a durable store");
  refuse_if(options.freshness.count() < 0, "freshness must not be negative", "freshness");
  refuse_if(options.read_deadline.count() < 0, "read_deadline must not be negative",
            "read_deadline");
  refuse_if(options.read_deadline.count() > 0 && !options.executor,
            "read_deadline requires an executor that runs the reads; use make_thread_pool()",
            "executor");
  refuse_if(options.max_late_reads == 0, "max_late_reads must be at least 1", "max_late_reads");
  if (!options.clock) options.clock = system_clock();
  options.read_deadline = detail::limit_duration(options.read_deadline);
  return options;
}

class memory_fronted_store final : public tiered_store {
 public:
  memory_fronted_store(std::shared_ptr<holdfast::store> durable, tiered_options options)
      : options_(checked(durable, std::move(options))),
        core_(std::make_shared<tier_core>(std::move(durable), options_)) {}

  void put(std::span<const entry> entries) override {
    memory_tier::pending_put pending(core_->front, entries);
    core_->durable->put(entries);
    pending.commit();
  }

  std::optional<entry> find(place location, std::string_view key) override {
    if (auto cached = core_->front.find(location, key); cached && cached->fresh) {
      ++core_->fresh;
      return std::move(cached->value);
    }
    try {
      return read_durable(location, key);
    } catch (const error& e) {
      if (!may_serve_stale(e)) throw;
      // Looked up again: other writes may have been acknowledged while this read waited.
      auto remembered = recall(location, key, core_->front.find(location, key));
      if (!remembered.entry || !(remembered.current || options_.serve_stale)) throw;
      ++core_->stale;
      return std::move(remembered.entry);
    }
  }

  remembered_entry find_in_memory(place location, std::string_view key) override {
    auto cached = core_->front.find(location, key);
    if (cached && cached->fresh) ++core_->fresh;
    return recall(location, key, std::move(cached));
  }

  std::vector<std::optional<entry>> find_many(place location,
                                              std::span<const std::string> keys) override {
    std::vector<std::optional<entry>> entries(keys.size());
    std::vector<std::string> missing;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (auto cached = core_->front.find(location, keys[i]); cached && cached->fresh) {
        ++core_->fresh;
        entries[i] = std::move(cached->value);
      } else {
        missing.push_back(keys[i]);
        positions.push_back(i);
      }
    }
    if (missing.empty()) return entries;
    auto answers = read_many(location, missing);
    for (std::size_t i = 0; i < positions.size(); ++i)
      entries[positions[i]] = std::move(answers[i]);
    return entries;
  }

  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    if (!has_deadline()) return core_->durable->find_all(location, limit, after);
    return read_with_deadline<entry_page>(
        [durable = core_->durable, name = std::string(location.name),
         realm = std::string(location.realm), limit, after_key = std::string(after)] {
          return durable->find_all({name, realm}, limit, after_key);
        });
  }

  bool erase(place location, std::string_view key, timestamp as_of) override {
    memory_tier::pending_erase pending(core_->front, location, key);
    const bool existed = core_->durable->erase(location, key, as_of);
    pending.commit();
    return existed;
  }

  std::size_t expire(timestamp before, std::size_t limit) override {
    const memory_tier::pending_expire pending(core_->front, before);
    return core_->durable->expire(before, limit);
  }

  std::uint64_t count(place location) override {
    if (!has_deadline()) return core_->durable->count(location);
    return read_with_deadline<std::uint64_t>(
        [durable = core_->durable, name = std::string(location.name),
         realm = std::string(location.realm)] { return durable->count({name, realm}); });
  }

  expiry_profile expiring(place location, std::span<const timestamp> times) override {
    if (!has_deadline()) return core_->durable->expiring(location, times);
    return read_with_deadline<expiry_profile>(
        [durable = core_->durable, name = std::string(location.name),
         realm = std::string(location.realm), copy = std::vector(times.begin(), times.end())] {
          return durable->expiring({name, realm}, copy);
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
  [[nodiscard]] bool has_deadline() const noexcept { return options_.read_deadline.count() != 0; }

  /// Returns the better of two memories: the front, where `cached` was found, and that of the
  /// durable store, such as a queue of writes. As in `find`, an entry of the front that is not
  /// fresh gives way to the answer of the durable store.
  remembered_entry recall(place location, std::string_view key,
                          std::optional<memory_tier::cached_entry> cached) {
    if (cached && cached->fresh) return {.entry = std::move(cached->value), .current = true};
    auto below = core_->durable->find_in_memory(location, key);
    const bool newer_below = below.entry && (!cached || cached->value.as_of <= below.entry->as_of);
    if (below.current || newer_below) {
      core_->front.record_answer(location, key, below.entry);
      return below;
    }
    if (!cached) return {};
    return {.entry = std::move(cached->value)};
  }

  std::optional<entry> read_durable(place location, std::string_view key) {
    if (!has_deadline()) return core_->read(location, key);
    return read_with_deadline<std::optional<entry>>(
        [core = core_, name = std::string(location.name), realm = std::string(location.realm),
         owned_key = std::string(key)] { return core->read({name, realm}, owned_key); });
  }

  /// As read_durable. If the durable store fails, the cached entries are served if there is one for
  /// each key.
  std::vector<std::optional<entry>> read_many(place location,
                                              const std::vector<std::string>& keys) {
    try {
      if (!has_deadline()) return core_->read_many(location, keys);
      return read_with_deadline<std::vector<std::optional<entry>>>(
          [core = core_, name = std::string(location.name), realm = std::string(location.realm),
           keys] { return core->read_many({name, realm}, keys); });
    } catch (const error& e) {
      if (!options_.serve_stale || !may_serve_stale(e)) throw;
      std::vector<std::optional<entry>> entries;
      for (const auto& key : keys) {
        auto cached = core_->front.find(location, key);
        if (!cached) throw;
        entries.emplace_back(std::move(cached->value));
      }
      core_->stale += entries.size();
      return entries;
    }
  }

  /// Runs a read on the executor and waits for it. The read owns everything that it uses, since it
  /// may end after this store was destroyed.
  template <class Answer, class Read>
  Answer read_with_deadline(Read read) {
    if (core_->late_running >= options_.max_late_reads)
      refuse("has " + std::to_string(options_.max_late_reads) + " late reads still running");
    auto state = std::make_shared<background_read<Answer>>();
    const bool accepted = options_.executor->post(
        [core = core_, state, read = std::move(read)] { run_in_background(*core, *state, read); });
    if (!accepted) refuse("was not asked: the executor is full or closed");
    std::unique_lock lock(state->mutex);
    // Real time, even if a test's clock is set: the caller must not wait forever.
    if (!state->changed.wait_for(lock, options_.read_deadline, [&] { return state->ended; })) {
      state->abandoned = true;
      if (state->started) ++core_->late_running;
      ++core_->late;
      throw error(errc::timeout,
                  "the durable store did not answer within " +
                      std::to_string(options_.read_deadline.count()) + " ms (read_deadline)",
                  {.transient = true});
    }
    std::optional<Answer> answer = std::move(state->answer);
    if (!answer) std::rethrow_exception(state->failure);
    return std::move(*answer);
  }

  template <class Answer, class Read>
  static void run_in_background(tier_core& core, background_read<Answer>& state, const Read& read) {
    {
      const std::scoped_lock lock(state.mutex);
      if (state.abandoned) return;  // spares the durable store, which is slow enough
      state.started = true;
    }
    std::optional<Answer> answer;
    std::exception_ptr failure;
    try {
      answer.emplace(read());
    } catch (...) {
      failure = std::current_exception();
    }
    const std::scoped_lock lock(state.mutex);
    state.answer = std::move(answer);
    state.failure = std::move(failure);
    state.ended = true;
    if (state.abandoned) --core.late_running;
    state.changed.notify_all();
  }

  [[noreturn]] void refuse(const std::string& reason) {
    ++core_->refused;
    throw error(errc::timeout, "the durable store " + reason, {.transient = true});
  }

  tiered_options options_;
  std::shared_ptr<tier_core> core_;
};

}  // namespace

}  // namespace detail::store

std::shared_ptr<tiered_store> make_tiered_store(std::shared_ptr<store> durable,
                                                tiered_options options) {
  return std::make_shared<detail::store::memory_fronted_store>(std::move(durable),
                                                               std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
