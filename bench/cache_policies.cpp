#include "cache_policies.hpp"

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
using keys = std::list<key>;

/// Keeps what was used last.
class lru {
 public:
  explicit lru(std::size_t capacity) : capacity_(capacity) {}

  bool ask(key which) {
    if (const auto found = where_.find(which); found != where_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    if (order_.size() == capacity_) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(which);
    where_[which] = order_.begin();
    return false;
  }

 private:
  std::size_t capacity_;
  keys order_;
  std::unordered_map<key, keys::iterator> where_;
};

/// Yang and others, "FIFO queues are all you need for cache eviction" (SOSP 2023): a small queue for newcomers, a large one for what was
/// asked for again, and the names of those that left the small one. (The paper wants two more requests; here one does better on each trace.)
class s3_fifo {
 public:
  explicit s3_fifo(std::size_t capacity) : capacity_(capacity), small_target_(std::max<std::size_t>(1, capacity / 10)) {}

  bool ask(key which) {
    if (const auto found = used_.find(which); found != used_.end()) {
      found->second = std::min(found->second + 1, 3);
      return true;
    }
    while (used_.size() >= capacity_) evict();
    if (ghosts_.erase(which) != 0) main_.push_front(which);
    else small_.push_front(which);
    used_[which] = 0;
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
    if (int& used = used_[oldest]; used > 0) {
      used = 0;
      main_.push_front(oldest);
      return;
    }
    used_.erase(oldest);
    ghost_order_.push_front(oldest);
    ghosts_[oldest] = ++ghost_number_;
    while (ghost_order_.size() > capacity_ - small_target_) {
      // A name that came twice counts from the second time.
      if (const auto found = ghosts_.find(ghost_order_.back());
          found != ghosts_.end() && found->second + ghost_order_.size() <= ghost_number_ + 1)
        ghosts_.erase(found);
      ghost_order_.pop_back();
    }
  }
  void evict_main() {
    const key oldest = main_.back();
    main_.pop_back();
    if (int& used = used_[oldest]; used > 0) {
      --used;
      main_.push_front(oldest);
    } else {
      used_.erase(oldest);
    }
  }

  std::size_t capacity_;
  std::size_t small_target_;
  keys small_;
  keys main_;
  keys ghost_order_;
  std::uint64_t ghost_number_ = 0;
  std::unordered_map<key, std::uint64_t> ghosts_;
  std::unordered_map<key, int> used_;
};

/// How often keys were asked for lately: four rows of small counters, all halved now and then.
class sketch {
 public:
  explicit sketch(std::size_t capacity) : width_(std::bit_ceil(capacity)), sample_(10 * capacity) {
    for (auto& each : rows_) each.resize(width_);
  }
  void count(key which) {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      auto& counter = rows_[row][slot(which, row)];
      if (counter < 15) ++counter;
    }
    if (++counted_ < sample_) return;
    counted_ /= 2;
    for (auto& each : rows_) {
      for (auto& counter : each) counter /= 2;
    }
  }
  [[nodiscard]] int estimate(key which) const {
    int least = 15;
    for (std::size_t row = 0; row < rows_.size(); ++row) least = std::min<int>(least, rows_[row][slot(which, row)]);
    return least;
  }

 private:
  [[nodiscard]] std::size_t slot(key which, std::size_t row) const {
    constexpr std::array<std::uint64_t, 4> odd{0x9E3779B97F4A7C15U, 0xC2B2AE3D27D4EB4FU, 0x165667B19E3779F9U, 0xD6E8FEB86659FD93U};
    std::uint64_t mixed = (which + row + 1) * odd[row];
    mixed = (mixed ^ (mixed >> 32U)) * odd[(row + 1) % 4];
    return static_cast<std::size_t>(mixed >> 32U) & (width_ - 1);
  }

  std::size_t width_;
  std::size_t sample_;
  std::size_t counted_ = 0;
  std::array<std::vector<std::uint8_t>, 4> rows_;
};

/// Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy" (2017): a window for newcomers, and behind it a place
/// only for those asked for more often than whom they would replace.
class w_tinylfu {
 public:
  explicit w_tinylfu(std::size_t capacity)
      : window_size_(std::max<std::size_t>(1, capacity / 100)),
        main_size_(capacity - window_size_),
        protected_size_(main_size_ * 8 / 10),
        used_(capacity) {}

  bool ask(key which) {
    used_.count(which);
    if (const auto found = where_.find(which); found != where_.end()) {
      again(found->second);
      return true;
    }
    window_.push_front(which);
    where_[which] = {&window_, window_.begin()};
    if (window_.size() > window_size_) leave_window();
    return false;
  }

 private:
  struct position {
    keys* in;
    keys::iterator at;
  };

  void again(position& its) {
    if (its.in != &probation_) {
      its.in->splice(its.in->begin(), *its.in, its.at);
      return;
    }
    protected_.splice(protected_.begin(), probation_, its.at);
    its.in = &protected_;
    if (protected_.size() > protected_size_) {
      where_[protected_.back()].in = &probation_;
      probation_.splice(probation_.begin(), protected_, std::prev(protected_.end()));
    }
  }
  void leave_window() {
    const key candidate = window_.back();
    if (probation_.size() + protected_.size() >= main_size_) {
      keys& from = probation_.empty() ? protected_ : probation_;
      const key victim = from.back();
      if (used_.estimate(candidate) <= used_.estimate(victim)) {
        window_.pop_back();
        where_.erase(candidate);
        return;
      }
      from.pop_back();
      where_.erase(victim);
    }
    probation_.splice(probation_.begin(), window_, std::prev(window_.end()));
    where_[candidate].in = &probation_;
  }

  std::size_t window_size_;
  std::size_t main_size_;
  std::size_t protected_size_;
  sketch used_;
  keys window_;
  keys probation_;
  keys protected_;
  std::unordered_map<key, position> where_;
};

constexpr std::size_t requests = 1'000'000;
constexpr std::size_t universe = 100'000;

/// Few keys are asked for often, many seldom: the n-th with a weight of 1 / n^skew.
class zipf {
 public:
  explicit zipf(double skew) {
    double sum = 0;
    for (std::size_t i = 1; i <= universe; ++i) sums_.push_back(sum += 1 / std::pow(static_cast<double>(i), skew));
  }
  key operator()(std::mt19937_64& random) const {
    // Not std::uniform_real_distribution: a seed must mean the same requests with every standard library.
    const double at = static_cast<double>(random() >> 11U) * 0x1p-53 * sums_.back();
    return static_cast<key>(std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

using trace = std::vector<key>;

trace make(const std::function<key(std::size_t)>& nth) {
  trace made(requests);
  for (std::size_t i = 0; i < requests; ++i) made[i] = nth(i);
  return made;
}

template <class Policy>
double hit_ratio(const trace& asked, std::size_t capacity) {
  Policy policy(capacity);
  std::size_t hits = 0;
  for (const key each : asked) hits += policy.ask(each) ? 1U : 0U;
  return static_cast<double>(hits) / static_cast<double>(asked.size());
}

std::string percent(double ratio) {
  std::array<char, 16> room{};
  (void)std::snprintf(room.data(), room.size(), "%.1f%%", 100 * ratio);
  return room.data();
}

std::string number(double ratio) {
  std::array<char, 16> room{};
  (void)std::snprintf(room.data(), room.size(), "%.4f", ratio);
  return room.data();
}

}  // namespace

std::vector<policy_row> compare_policies() {
  const zipf steep(0.99);
  const zipf flat(0.7);
  std::mt19937_64 random(20'260'101);
  key fresh = universe;
  const std::vector<std::pair<std::string, trace>> traces{
      {"zipf 0.99", make([&](std::size_t) { return steep(random); })},
      {"zipf 0.70", make([&](std::size_t) { return flat(random); })},
      // The same keys from first to last, again and again: a report that reads everything.
      {"scan", make([](std::size_t i) { return static_cast<key>(i % (universe / 5)); })},
      // Every 100,000 requests somebody reads 25,000 keys that nobody asks for again.
      {"zipf 0.99 + scans", make([&](std::size_t i) { return i % 100'000 >= 75'000 ? ++fresh : steep(random); })},
      // Every 100,000 requests other keys become the popular ones.
      {"zipf 0.99, moving", make([&](std::size_t i) { return (steep(random) + i / 100'000 * 7'919) % universe; })},
  };
  std::vector<policy_row> rows;
  for (const auto& [name, asked] : traces) {
    for (const std::size_t capacity : {universe / 100, universe / 10}) {
      rows.push_back({.trace = name,
                      .capacity = capacity,
                      .lru = hit_ratio<lru>(asked, capacity),
                      .s3_fifo = hit_ratio<s3_fifo>(asked, capacity),
                      .w_tinylfu = hit_ratio<w_tinylfu>(asked, capacity)});
    }
  }
  return rows;
}

std::string to_table(const std::vector<policy_row>& rows) {
  std::string out = "trace              capacity     LRU  S3-FIFO  W-TinyLFU\n";
  for (const policy_row& each : rows) {
    std::array<char, 96> line{};
    (void)std::snprintf(line.data(), line.size(), "%-17s  %8zu  %6s  %7s  %9s\n", each.trace.c_str(), each.capacity,
                        percent(each.lru).c_str(), percent(each.s3_fifo).c_str(), percent(each.w_tinylfu).c_str());
    out += line.data();
  }
  return out;
}

std::string to_json(const std::vector<policy_row>& rows) {
  std::string out = R"({"bench":"store.policies","rows":[)";
  for (const policy_row& each : rows) {
    if (&each != rows.data()) out += ',';
    out += R"({"trace":")";
    out += each.trace;
    out += R"(","capacity":)";
    out += std::to_string(each.capacity);
    out += R"(,"lru":)";
    out += number(each.lru);
    out += R"(,"s3_fifo":)";
    out += number(each.s3_fifo);
    out += R"(,"w_tinylfu":)";
    out += number(each.w_tinylfu);
    out += '}';
  }
  return out + "]}\n";
}

}  // namespace holdfast::bench
