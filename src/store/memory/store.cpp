#include <holdfast/store/memory.hpp>

#include "base/recent_time.hpp"
#include "store/checks.hpp"
#include "store/memory/table.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace detail::store {

namespace {

/// Adds the checks of texts, versions and expiries to a memory_table.
class bounded_memory_store final : public memory_store, public name_listing {
 public:
  explicit bounded_memory_store(memory_store_options options)
      : options_(std::move(options)),
        coarse_clock_(!options_.clock && options_.max_skew >= long_lifetime),
        table_(options_) {
    check_max_skew(options_.max_skew);
    if (!options_.clock) options_.clock = system_clock();
  }

  void put(std::span<const entry> entries) override {
    if (entries.size() == 1) {
      const entry& e = entries.front();
      check_entry(e);
      const auto now = time_for(e);
      if (e.expire_on < now) return;
      table_.check_size(e);
      table_.put(e, {.now = now, .horizon = skew_horizon(now, options_.max_skew)});
      return;
    }
    const auto now = options_.clock->now();
    const memory_write write{.now = now, .horizon = skew_horizon(now, options_.max_skew)};
    const auto selected = entries_to_write(entries, now, write.horizon);
    for (const entry* e : selected) table_.check_size(*e);
    for (const entry* e : selected) table_.put(*e, write);
  }

  std::optional<entry> find(place location, std::string_view key) override {
    check_name(location.name);
    check_key(key);
    return table_.find(location, key);
  }

  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    check_name(location.name);
    return table_.find_all(location, limit, after);
  }

  bool erase(place location, std::string_view key, timestamp as_of) override {
    check_name(location.name);
    check_key(key);
    return table_.erase(location, key, as_of);
  }

  std::size_t expire(timestamp before, std::size_t limit) override {
    return table_.expire(before, limit);
  }

  std::uint64_t count(place location) override {
    check_name(location.name);
    return table_.count(location);
  }

  std::vector<std::string> names(std::string_view realm, std::size_t limit,
                                 std::string_view after) override {
    return table_.names(realm, limit, after);
  }

  store_health health() noexcept override { return {.available = true}; }

  numbers stats() const override { return table_.stats(); }

 private:
  /// Returns the current time; for an entry with a long lifetime the time of the last clock tick,
  /// since reading the clock takes a fifth of the time of a put.
  [[nodiscard]] timestamp time_for(const entry& e) const noexcept {
    if (coarse_clock_) {
      const auto tick = detail::recent_time();
      if (e.expire_on > tick + long_lifetime) return tick;
    }
    return options_.clock->now();
  }

  // Many clock ticks, even on a machine that stalls
  static constexpr auto long_lifetime = std::chrono::seconds(10);
  memory_store_options options_;
  const bool coarse_clock_;
  memory_table table_;
};

}  // namespace

}  // namespace detail::store

std::shared_ptr<memory_store> make_memory_store(memory_store_options options) {
  return std::make_shared<detail::store::bounded_memory_store>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
