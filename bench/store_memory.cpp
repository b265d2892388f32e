#include "store_memory.hpp"

#include <holdfast/store/memory.hpp>

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

constexpr std::size_t held = 10'000;
constexpr std::size_t shards = 64;
constexpr std::string_view name = "bench.country";

struct text_hash : std::hash<std::string_view> {
  using is_transparent = void;
};

/// The floor: no bound on bytes, no expiry, no index by name, no policy, no check of texts. It knows its entries by their key alone.
class hash_maps {
 public:
  void put(const entry& e) {
    part& at = part_of(e.key);
    const std::scoped_lock lock(at.mutex);
    const auto [where, added] = at.entries.insert_or_assign(e.key, e);
    if (!added) return;
    // The oldest leaves: the simplest bound there is.
    at.order.push_back(&where->first);
    if (at.order.size() <= most_) return;
    at.entries.erase(*at.order.front());
    at.order.pop_front();
  }
  [[nodiscard]] std::optional<entry> find(std::string_view key) {
    part& at = part_of(key);
    const std::scoped_lock lock(at.mutex);
    const auto found = at.entries.find(key);
    return found == at.entries.end() ? std::nullopt : std::optional(found->second);
  }
  /// From now on none takes in more than it has, on average.
  void close() { most_ = held / shards; }

 private:
  struct alignas(64) part {
    std::mutex mutex{};
    std::unordered_map<std::string, entry, text_hash, std::equal_to<>> entries{};
    std::deque<const std::string*> order{};
  };
  part& part_of(std::string_view key) { return parts_[std::hash<std::string_view>{}(key) >> 32U & (shards - 1)]; }

  std::size_t most_ = held;
  std::array<part, shards> parts_{};
};

std::string key_of(std::uint64_t number) {
  std::string key = "00000000-0000-4000-8000-000000000000";
  for (std::size_t at = 8; at-- > 0; number /= 10) key[at] = static_cast<char>('0' + number % 10);
  return key;
}

/// The same requests for both sides: entries all over what is held.
class requests {
 public:
  explicit requests(std::uint64_t seed) : at_(seed) {
    for (std::size_t i = 0; i < held; ++i) keys_.push_back(key_of(i));
    const auto now = system_clock()->now();
    entry_ = {.name = std::string(name),
              .key = {},
              .as_of = now,
              .expire_on = now + std::chrono::hours(24),
              .payload = std::string(1024, 'x'),
              .payload_class = "bench.Country"};
  }
  const std::string& key() {
    at_ = at_ * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return keys_[(at_ >> 33U) % held];
  }
  const entry& known() {
    entry_.key = key();
    return entry_;
  }
  const entry& fresh() {
    entry_.key = key_of(++last_);
    return entry_;
  }
  const std::vector<std::string>& keys() const { return keys_; }
  entry& with(const std::string& key) {
    entry_.key = key;
    return entry_;
  }

 private:
  std::uint64_t at_;
  std::uint64_t last_ = held;
  std::vector<std::string> keys_{};
  entry entry_{};
};

std::shared_ptr<memory_store> filled_store() {
  auto made = make_memory_store({.max_entries = held, .shards = shards});
  requests all(1);
  for (const std::string& each : all.keys()) made->put(all.with(each));
  return made;
}

std::shared_ptr<hash_maps> filled_maps() {
  auto made = std::make_shared<hash_maps>();
  requests all(1);
  for (const std::string& each : all.keys()) made->put(all.with(each));
  return made;
}

using work = std::function<void(std::uint64_t)>;

/// The work on two threads, half of it each.
work on_two_threads(work first, work second) {
  return [first = std::move(first), second = std::move(second)](std::uint64_t times) {
    std::thread other([&] { second(times / 2); });
    first(times - times / 2);
    other.join();
  };
}

work finds(const std::shared_ptr<memory_store>& in, std::uint64_t seed) {
  return [in, asked = std::make_shared<requests>(seed)](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) keep(in->find(name, asked->key()));
  };
}

work puts(const std::shared_ptr<memory_store>& into, std::uint64_t seed) {
  return [into, asked = std::make_shared<requests>(seed)](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) into->put(asked->known());
  };
}

contest versus(std::string row_name, double bar, bar_is side, work ours, work floor) {
  contest made;
  made.name = std::move(row_name);
  made.bar = bar;
  made.side = side;
  made.ours = std::move(ours);
  made.floor = std::move(floor);
  return made;
}

}  // namespace

std::vector<contest> memory_store_contests() {
  constexpr double bar = 1.5;
  constexpr double threads_bar = 1.6;
  const auto ours = filled_store();
  const auto floor = filled_maps();
  const auto full_floor = filled_maps();
  full_floor->close();
  std::vector<contest> made;
  made.push_back(versus("store.memory_find", bar, bar_is::at_most, finds(ours, 2),
                        [floor, asked = std::make_shared<requests>(2)](std::uint64_t times) {
                          for (std::uint64_t i = 0; i < times; ++i) keep(floor->find(asked->key()));
                        }));
  made.push_back(
      versus("store.memory_put", bar, bar_is::at_most, puts(ours, 3), [floor, asked = std::make_shared<requests>(3)](std::uint64_t times) {
        for (std::uint64_t i = 0; i < times; ++i) floor->put(asked->known());
      }));
  made.push_back(versus(
      "store.memory_put_new", bar, bar_is::at_most,
      [into = filled_store(), asked = std::make_shared<requests>(4)](std::uint64_t times) {
        for (std::uint64_t i = 0; i < times; ++i) into->put(asked->fresh());
      },
      [full_floor, asked = std::make_shared<requests>(4)](std::uint64_t times) {
        for (std::uint64_t i = 0; i < times; ++i) full_floor->put(asked->fresh());
      }));
  // Here the "floor" is what two threads need for the same number of operations: the ratio is how much faster they are than one.
  made.push_back(versus("store.memory_find_two_threads", threads_bar, bar_is::at_least, finds(ours, 5),
                        on_two_threads(finds(ours, 6), finds(ours, 7))));
  made.push_back(
      versus("store.memory_put_two_threads", threads_bar, bar_is::at_least, puts(ours, 8), on_two_threads(puts(ours, 9), puts(ours, 10))));
  return made;
}

}  // namespace holdfast::bench
