#pragma once

#include <holdfast/store.hpp>

#include "store/checks.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

namespace holdfast::test {

struct model_store_options {
  std::chrono::microseconds max_skew = std::chrono::minutes(5);  ///< see store::put
  std::shared_ptr<const holdfast::clock> clock{};                ///< the machine's unless given
};

/// The model of a store, as simple as the contract allows: one map, one lock, no bound. What other
/// stores are compared with.
class model_store final : public store {
 public:
  explicit model_store(model_store_options options = {}) : options_(std::move(options)) {
    detail::store::check_max_skew(options_.max_skew);
    if (!options_.clock) options_.clock = system_clock();
  }

  using store::put;
  void put(std::span<const entry> given) override {
    const auto now = options_.clock->now();
    const auto horizon = detail::store::skew_horizon(now, options_.max_skew);
    const auto chosen = detail::store::entries_to_write(given, now, horizon);
    const std::scoped_lock lock(mutex_);
    for (const entry* each : chosen) {
      const auto found = entries_.find(identity_of(place(*each), each->key));
      if (found == entries_.end()) {
        add(*each);
      } else if (each->as_of >= found->second.as_of || found->second.as_of > horizon) {
        remove(found);
        add(*each);
      }
    }
  }

  std::optional<entry> find(place where, std::string_view key) override {
    detail::store::check_name(where.name);
    detail::store::check_key(key);
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(identity_of(where, key));
    if (found == entries_.end()) return std::nullopt;
    return found->second;
  }

  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    detail::store::check_name(where.name);
    entry_page page;
    const std::scoped_lock lock(mutex_);
    auto at = entries_.upper_bound(identity_of(where, after));
    for (; at != entries_.end() && is_in(*at, where); ++at) {
      if (page.entries.size() == limit) {
        if (limit != 0) page.next = page.entries.back().key;
        break;
      }
      page.entries.push_back(at->second);
    }
    return page;
  }

  bool erase(place where, std::string_view key, timestamp as_of) override {
    detail::store::check_name(where.name);
    detail::store::check_key(key);
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(identity_of(where, key));
    if (found == entries_.end() || found->second.as_of != as_of) return false;
    remove(found);
    return true;
  }

  std::size_t expire(timestamp before, std::size_t limit) override {
    const std::scoped_lock lock(mutex_);
    std::size_t removed = 0;
    while (removed < limit && !by_expiry_.empty() && by_expiry_.begin()->first < before) {
      remove(entries_.find(by_expiry_.begin()->second));
      ++removed;
    }
    return removed;
  }

  std::uint64_t count(place where) override {
    detail::store::check_name(where.name);
    const std::scoped_lock lock(mutex_);
    std::uint64_t number = 0;
    for (auto at = entries_.lower_bound(identity_of(where, {}));
         at != entries_.end() && is_in(*at, where); ++at)
      ++number;
    return number;
  }

  store_health health() noexcept override { return {.available = true}; }

 private:
  using identity = std::tuple<std::string, std::string, std::string>;  // realm, name, key
  using entries = std::map<identity, entry>;

  static identity identity_of(place where, std::string_view key) {
    return {std::string(where.realm), std::string(where.name), std::string(key)};
  }
  static bool is_in(const entries::value_type& each, place where) {
    return each.second.name == where.name && each.second.realm == where.realm;
  }

  void add(const entry& e) {
    const auto id = identity_of(place(e), e.key);
    auto& kept = entries_.insert_or_assign(id, e).first->second;
    if (kept.tombstone()) kept.payload_class.clear();
    by_expiry_.insert({e.expire_on, id});
  }
  void remove(entries::iterator at) {
    by_expiry_.erase({at->second.expire_on, at->first});
    entries_.erase(at);
  }

  model_store_options options_;
  std::mutex mutex_;
  entries entries_;
  std::set<std::pair<timestamp, identity>> by_expiry_;
};

}  // namespace holdfast::test
