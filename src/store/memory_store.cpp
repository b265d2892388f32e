#include <holdfast/store/memory.hpp>

#include "base/recent_time.hpp"
#include "store/checks.hpp"
#include "store/memory_table.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

store::~store() = default;

holdfast::peer store::peer() const noexcept { return holdfast::peer::none; }

namespace {

/// The skin over the table: what a store promises about texts, versions and expiries.
class bounded_memory_store final : public memory_store {
 public:
  explicit bounded_memory_store(memory_store_options options)
      : options_(std::move(options)), by_ticks_(!options_.clock && options_.max_skew >= far), table_(options_) {
    check_skew(options_.max_skew);
    if (!options_.clock) options_.clock = system_clock();
  }

  void put(std::span<const entry> given) override {
    if (given.size() == 1) {
      const entry& one = given.front();
      check_entry(one);
      const auto now = time_for(one);
      if (one.expire_on < now) return;
      table_.check_size(one);
      table_.put(one, {.now = now, .horizon = skew_horizon(now, options_.max_skew)});
      return;
    }
    const auto now = options_.clock->now();
    const memory_write how{.now = now, .horizon = skew_horizon(now, options_.max_skew)};
    const auto chosen = to_be_written(given, now, how.horizon);
    for (const entry* each : chosen) table_.check_size(*each);
    for (const entry* each : chosen) table_.put(*each, how);
  }

  std::optional<entry> find(place where, std::string_view key) override {
    check_name(where.name);
    check_key(key);
    return table_.find(where, key);
  }

  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    check_name(where.name);
    return table_.find_all(where, limit, after);
  }

  bool erase(place where, std::string_view key, timestamp as_of) override {
    check_name(where.name);
    check_key(key);
    return table_.erase(where, key, as_of);
  }

  std::size_t expire(timestamp before, std::size_t limit) override { return table_.expire(before, limit); }

  std::uint64_t count(place where) override {
    check_name(where.name);
    return table_.count(where);
  }

  store_health health() noexcept override { return {.available = true}; }

  numbers stats() const override { return table_.stats(); }

 private:
  /// Now; for an entry that lives on for long, as of the last tick: reading the clock would be a fifth of putting it.
  [[nodiscard]] timestamp time_for(const entry& e) const noexcept {
    if (by_ticks_) {
      const auto tick = recent_time();
      if (e.expire_on > tick + far) return tick;
    }
    return options_.clock->now();
  }

  static constexpr auto far = std::chrono::seconds(10);  // many ticks, even on a machine that stumbles
  memory_store_options options_;
  const bool by_ticks_;
  memory_table table_;
};

}  // namespace

std::shared_ptr<memory_store> make_memory_store(memory_store_options options) {
  return std::make_shared<bounded_memory_store>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
