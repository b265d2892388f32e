#include "bench/store/cache_policies.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <list>
#include <random>
#include <unordered_map>
#include <utility>

namespace holdfast::bench {

namespace {

using key = std::uint64_t;
using key_list = std::list<key>;

// Each policy has a function `request`: it returns whether the key is cached, and caches it.

/// Evicts the least recently used key.
class lru {
 public:
  explicit lru(std::size_t capacity) : capacity_(capacity) {}

  bool request(key requested) {
    if (const auto cached = positions_.find(requested); cached != positions_.end()) {
      order_.splice(order_.begin(), order_, cached->second);
      return true;
    }
    if (order_.size() == capacity_) {
      positions_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(requested);
    positions_[requested] = order_.begin();
    return false;
  }

 private:
  std::size_t capacity_;
  key_list order_;
  std::unordered_map<key, key_list::iterator> positions_;
};

/// Yang and others, "FIFO queues are all you need for cache eviction" (SOSP 2023): a small queue
/// for new keys, a main queue for keys that were requested again, and ghosts: the keys that the
/// small queue evicted lately. A key needs one more request to enter the main queue. (The paper
/// requires two; one is better on all of these traces.)
class s3_fifo {
 public:
  explicit s3_fifo(std::size_t capacity)
      : capacity_(capacity), small_target_(std::max<std::size_t>(1, capacity / 10)) {}

  bool request(key requested) {
    if (const auto cached = use_counts_.find(requested); cached != use_counts_.end()) {
      cached->second = std::min(cached->second + 1, 3);
      return true;
    }
    while (use_counts_.size() >= capacity_) evict();
    if (ghosts_.erase(requested) != 0) main_.push_front(requested);
    else small_.push_front(requested);
    use_counts_[requested] = 0;
    return false;
  }

 private:
  void evict() {
    if (small_.size() >= small_target_ || main_.empty()) evict_small();
    else evict_main();
  }
  void evict_small() {
    const key oldest = small_.back();
    small_.pop_back();
    if (int& uses = use_counts_[oldest]; uses > 0) {
      uses = 0;
      main_.push_front(oldest);
      return;
    }
    use_counts_.erase(oldest);
    ghost_order_.push_front(oldest);
    ghosts_[oldest] = ++ghost_number_;
    while (ghost_order_.size() > capacity_ - small_target_) {
      // A key that became a ghost twice stays until its second turn.
      if (const auto ghost = ghosts_.find(ghost_order_.back());
          ghost != ghosts_.end() && ghost->second + ghost_order_.size() <= ghost_number_ + 1)
        ghosts_.erase(ghost);
      ghost_order_.pop_back();
    }
  }
  void evict_main() {
    const key oldest = main_.back();
    main_.pop_back();
    if (int& uses = use_counts_[oldest]; uses > 0) {
      --uses;
      main_.push_front(oldest);
    } else {
      use_counts_.erase(oldest);
    }
  }

  std::size_t capacity_;
  std::size_t small_target_;
  key_list small_;
  key_list main_;
  key_list ghost_order_;
  std::uint64_t ghost_number_ = 0;
  std::unordered_map<key, std::uint64_t> ghosts_;
  std::unordered_map<key, int> use_counts_;
};

/// Estimates how often keys were requested lately: four rows of small counters, which are halved
/// regularly.
class sketch {
 public:
  explicit sketch(std::size_t capacity) : width_(std::bit_ceil(capacity)), sample_(10 * capacity) {
    for (auto& row : rows_) row.resize(width_);
  }
  void count(key requested) {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      auto& counter = rows_[row][slot(requested, row)];
      if (counter < 15) ++counter;
    }
    if (++counted_ < sample_) return;
    counted_ /= 2;
    for (auto& row : rows_) {
      for (auto& counter : row) counter /= 2;
    }
  }
  [[nodiscard]] int estimate(key counted) const {
    int least = 15;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      least = std::min<int>(least, rows_[row][slot(counted, row)]);
    return least;
  }

 private:
  [[nodiscard]] std::size_t slot(key hashed, std::size_t row) const {
    constexpr std::array<std::uint64_t, 4> odd{0x9E3779B97F4A7C15U, 0xC2B2AE3D27D4EB4FU,
                                               0x165667B19E3779F9U, 0xD6E8FEB86659FD93U};
    std::uint64_t mixed = (hashed + row + 1) * odd[row];
    mixed = (mixed ^ (mixed >> 32U)) * odd[(row + 1) % 4];
    return static_cast<std::size_t>(mixed >> 32U) & (width_ - 1);
  }

  std::size_t width_;
  std::size_t sample_;
  std::size_t counted_ = 0;
  std::array<std::vector<std::uint8_t>, 4> rows_;
};

/// Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy" (2017): a window
/// for new keys, and a main area. A key enters the main area only if it was requested more often
/// than the key that it replaces.
class w_tinylfu {
 public:
  explicit w_tinylfu(std::size_t capacity)
      : window_size_(std::max<std::size_t>(1, capacity / 100)),
        main_size_(capacity - window_size_),
        protected_size_(main_size_ * 8 / 10),
        frequencies_(capacity) {}

  bool request(key requested) {
    frequencies_.count(requested);
    if (const auto cached = positions_.find(requested); cached != positions_.end()) {
      promote(cached->second);
      return true;
    }
    window_.push_front(requested);
    positions_[requested] = {&window_, window_.begin()};
    if (window_.size() > window_size_) shrink_window();
    return false;
  }

 private:
  struct position {
    key_list* list;
    key_list::iterator element;
  };

  void promote(position& cached) {
    if (cached.list != &probation_) {
      cached.list->splice(cached.list->begin(), *cached.list, cached.element);
      return;
    }
    protected_.splice(protected_.begin(), probation_, cached.element);
    cached.list = &protected_;
    if (protected_.size() > protected_size_) {
      positions_[protected_.back()].list = &probation_;
      probation_.splice(probation_.begin(), protected_, std::prev(protected_.end()));
    }
  }
  void shrink_window() {
    const key candidate = window_.back();
    if (probation_.size() + protected_.size() >= main_size_) {
      key_list& evicting = probation_.empty() ? protected_ : probation_;
      const key victim = evicting.back();
      if (frequencies_.estimate(candidate) <= frequencies_.estimate(victim)) {
        window_.pop_back();
        positions_.erase(candidate);
        return;
      }
      evicting.pop_back();
      positions_.erase(victim);
    }
    probation_.splice(probation_.begin(), window_, std::prev(window_.end()));
    positions_[candidate].list = &probation_;
  }

  std::size_t window_size_;
  std::size_t main_size_;
  std::size_t protected_size_;
  sketch frequencies_;
  key_list window_;
  key_list probation_;
  key_list protected_;
  std::unordered_map<key, position> positions_;
};

constexpr std::size_t request_count = 1'000'000;
constexpr std::size_t key_count = 100'000;

/// A Zipf distribution: the n-th key has a weight of 1 / n^skew.
class zipf {
 public:
  explicit zipf(double skew) {
    double sum = 0;
    for (std::size_t i = 1; i <= key_count; ++i)
      sums_.push_back(sum += 1 / std::pow(static_cast<double>(i), skew));
  }
  key operator()(std::mt19937_64& random) const {
    // std::uniform_real_distribution differs between standard libraries; the requests must not.
    const double position = static_cast<double>(random() >> 11U) * 0x1p-53 * sums_.back();
    return static_cast<key>(std::lower_bound(sums_.begin(), sums_.end(), position) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

using trace = std::vector<key>;

trace make_trace(const std::function<key(std::size_t index)>& key_at) {
  trace requests(request_count);
  for (std::size_t i = 0; i < request_count; ++i) requests[i] = key_at(i);
  return requests;
}

template <class Policy>
double hit_ratio(const trace& requests, std::size_t capacity) {
  Policy policy(capacity);
  std::size_t hits = 0;
  for (const key requested : requests) hits += policy.request(requested) ? 1U : 0U;
  return static_cast<double>(hits) / static_cast<double>(requests.size());
}

}  // namespace

std::vector<policy_row> compare_policies() {
  const zipf steep(0.99);
  const zipf flat(0.7);
  std::mt19937_64 random(20'260'101);
  key last_new = key_count;
  const std::vector<std::pair<std::string, trace>> traces{
      {"zipf 0.99", make_trace([&](std::size_t) { return steep(random); })},
      {"zipf 0.70", make_trace([&](std::size_t) { return flat(random); })},
      // A report that reads all keys in order, repeatedly.
      {"scan", make_trace([](std::size_t i) { return static_cast<key>(i % (key_count / 5)); })},
      // Every 100,000 requests a scan reads 25,000 keys that are not requested again.
      {"zipf 0.99 + scans", make_trace([&](std::size_t i) {
         return i % 100'000 >= 75'000 ? ++last_new : steep(random);
       })},
      // Every 100,000 requests other keys become popular.
      {"zipf 0.99, moving", make_trace([&](std::size_t i) {
         return (steep(random) + i / 100'000 * 7'919) % key_count;
       })},
  };
  std::vector<policy_row> rows;
  for (const auto& [name, requests] : traces) {
    for (const std::size_t capacity : {key_count / 100, key_count / 10}) {
      rows.push_back({.trace = name,
                      .capacity = capacity,
                      .lru = hit_ratio<lru>(requests, capacity),
                      .s3_fifo = hit_ratio<s3_fifo>(requests, capacity),
                      .w_tinylfu = hit_ratio<w_tinylfu>(requests, capacity)});
    }
  }
  return rows;
}

std::string to_table(const std::vector<policy_row>& rows) {
  std::string text = "trace              capacity     LRU  S3-FIFO  W-TinyLFU\n";
  for (const policy_row& result : rows) {
    std::array<char, 96> line{};
    (void)std::snprintf(line.data(), line.size(), "%-17s  %8zu  %5.1f%%  %6.1f%%  %8.1f%%\n",
                        result.trace.c_str(), result.capacity, 100 * result.lru,
                        100 * result.s3_fifo, 100 * result.w_tinylfu);
    text += line.data();
  }
  return text;
}

std::string to_json(const std::vector<policy_row>& rows) {
  std::string text = R"({"bench":"store.policies","rows":[)";
  for (const policy_row& result : rows) {
    std::array<char, 160> object{};
    (void)std::snprintf(
        object.data(), object.size(),
        R"({"trace":"%s","capacity":%zu,"lru":%.4f,"s3_fifo":%.4f,"w_tinylfu":%.4f})",
        result.trace.c_str(), result.capacity, result.lru, result.s3_fifo, result.w_tinylfu);
    if (&result != rows.data()) text += ',';
    text += object.data();
  }
  return text + "]}\n";
}

}  // namespace holdfast::bench
