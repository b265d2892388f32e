#include "bench/store/memory.hpp"

#include <holdfast/store/memory.hpp>

#include "bench/store/traffic.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

namespace holdfast::bench {

namespace {

constexpr std::size_t entry_count = 10'000;
constexpr std::size_t shard_count = 64;

struct text_hash : std::hash<std::string_view> {
  using is_transparent = void;
};

/// The floor: hash maps by key alone, without a limit of bytes, expiry, an index by name, an
/// eviction policy, or checks of texts.
class sharded_map {
 public:
  void put(const entry& added) {
    shard& target = shard_of(added.key);
    const std::scoped_lock lock(target.mutex);
    const auto [position, inserted] = target.entries.insert_or_assign(added.key, added);
    if (!inserted) return;
    // The simplest limit: the oldest entry is evicted.
    target.insertion_order.push_back(&position->first);
    if (target.insertion_order.size() <= max_per_shard_) return;
    target.entries.erase(*target.insertion_order.front());
    target.insertion_order.pop_front();
  }
  [[nodiscard]] std::optional<entry> find(std::string_view key) {
    shard& target = shard_of(key);
    const std::scoped_lock lock(target.mutex);
    const auto position = target.entries.find(key);
    return position == target.entries.end() ? std::nullopt : std::optional(position->second);
  }
  /// From now on, every new entry evicts one.
  void limit_size() { max_per_shard_ = entry_count / shard_count; }

 private:
  struct alignas(64) shard {
    std::mutex mutex{};
    std::unordered_map<std::string, entry, text_hash, std::equal_to<>> entries{};
    std::deque<const std::string*> insertion_order{};
  };
  shard& shard_of(std::string_view key) {
    return shards_[std::hash<std::string_view>{}(key) >> 32U & (shard_count - 1)];
  }

  std::size_t max_per_shard_ = entry_count;
  std::array<shard, shard_count> shards_{};
};

/// Random keys and entries. The same seed produces the same requests.
class random_requests {
 public:
  explicit random_requests(std::uint64_t seed) : state_(seed) {
    for (std::size_t i = 0; i < entry_count; ++i) keys_.push_back(key_at(i));
    const auto now = system_clock()->now();
    entry_ = {.name = std::string(entry_name),
              .key = {},
              .as_of = now,
              .expire_on = now + lifetime,
              .payload = std::string(1024, 'x'),
              .payload_class = std::string(entry_class)};
  }
  /// A random key of the first `entry_count`.
  const std::string& key() {
    state_ = state_ * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return keys_[(state_ >> 33U) % entry_count];
  }
  const entry& existing_entry() { return entry_of(key()); }
  const entry& new_entry() { return entry_of(key_at(++last_new_)); }
  const entry& entry_of(const std::string& key) {
    entry_.key = key;
    return entry_;
  }
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  std::uint64_t state_;
  std::uint64_t last_new_ = entry_count;
  std::vector<std::string> keys_{};
  entry entry_{};
};

template <class Target>
std::shared_ptr<Target> filled(std::shared_ptr<Target> target) {
  random_requests requests(1);
  for (const std::string& key : requests.keys()) target->put(requests.entry_of(key));
  return target;
}

std::shared_ptr<memory_store> filled_store() {
  return filled(make_memory_store({.max_entries = entry_count, .shards = shard_count}));
}

auto find_in(memory_store& target, const std::string& key) { return target.find(entry_name, key); }
auto find_in(sharded_map& target, const std::string& key) { return target.find(key); }

/// Calls `work(target, requests)` in every iteration.
template <class Target, class Work>
workload repeat(std::shared_ptr<Target> target, std::uint64_t seed, Work work) {
  return
      [target, work, requests = std::make_shared<random_requests>(seed)](std::uint64_t iterations) {
        for (std::uint64_t i = 0; i < iterations; ++i) work(*target, *requests);
      };
}

template <class Target>
workload find_entries(std::shared_ptr<Target> target, std::uint64_t seed) {
  return repeat(target, seed, [](Target& searched, random_requests& requests) {
    do_not_optimize(find_in(searched, requests.key()));
  });
}
template <class Target>
workload put_existing(std::shared_ptr<Target> target, std::uint64_t seed) {
  return repeat(target, seed, [](Target& written, random_requests& requests) {
    written.put(requests.existing_entry());
  });
}
template <class Target>
workload put_new(std::shared_ptr<Target> target, std::uint64_t seed) {
  return repeat(target, seed, [](Target& written, random_requests& requests) {
    written.put(requests.new_entry());
  });
}

/// Half of the iterations on each of two threads.
workload on_two_threads(workload first, workload second) {
  return [first = std::move(first), second = std::move(second)](std::uint64_t iterations) {
    std::thread other([&] { second(iterations / 2); });
    first(iterations - iterations / 2);
    other.join();
  };
}

}  // namespace

std::vector<comparison> memory_store_comparisons() {
  constexpr double bar = 1.5;
  constexpr double threads_bar = 1.6;
  const auto ours = filled_store();
  const auto map = filled(std::make_shared<sharded_map>());
  const auto full_map = filled(std::make_shared<sharded_map>());
  full_map->limit_size();
  std::vector<comparison> all;
  all.push_back({.name = "store.memory_find",
                 .bar = bar,
                 .ours = find_entries(ours, 2),
                 .floor = find_entries(map, 2)});
  all.push_back({.name = "store.memory_put",
                 .bar = bar,
                 .ours = put_existing(ours, 3),
                 .floor = put_existing(map, 3)});
  all.push_back({.name = "store.memory_put_new",
                 .bar = bar,
                 .ours = put_new(filled_store(), 4),
                 .floor = put_new(full_map, 4)});
  // The floor is the same number of operations on two threads: the ratio is the speed-up.
  all.push_back({.name = "store.memory_find_two_threads",
                 .bar = threads_bar,
                 .bar_bound = bound::at_least,
                 .ours = find_entries(ours, 5),
                 .floor = on_two_threads(find_entries(ours, 6), find_entries(ours, 7))});
  all.push_back({.name = "store.memory_put_two_threads",
                 .bar = threads_bar,
                 .bar_bound = bound::at_least,
                 .ours = put_existing(ours, 8),
                 .floor = on_two_threads(put_existing(ours, 9), put_existing(ours, 10))});
  return all;
}

}  // namespace holdfast::bench
