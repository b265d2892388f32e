// make_prometheus_registry: keeps series in memory and writes them as text.

#include <holdfast/error.hpp>
#include <holdfast/metrics.hpp>

#include "base/prometheus_text.hpp"
#include "base/thread_number.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE {
namespace {

/// Threads add to different shards, each with its own cache line. A reader adds up the shards.
constexpr std::size_t shard_count = 4;

std::size_t current_shard() noexcept { return detail::thread_number() % shard_count; }

class sharded_counter final : public metrics::counter {
 public:
  void add(std::uint64_t count) noexcept override {
    shards_[current_shard()].value.fetch_add(count, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t sum() const noexcept {
    std::uint64_t result = 0;
    for (const auto& shard : shards_) result += shard.value.load(std::memory_order_relaxed);
    return result;
  }

 private:
  struct alignas(64) slot {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<slot, shard_count> shards_{};
};

class atomic_gauge final : public metrics::gauge {
 public:
  void set(double value) noexcept override { value_.store(value, std::memory_order_relaxed); }
  void add(double difference) noexcept override {
    value_.fetch_add(difference, std::memory_order_relaxed);
  }
  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class sharded_histogram final : public metrics::histogram {
 public:
  explicit sharded_histogram(std::shared_ptr<const std::vector<double>> bounds)
      : bounds_(std::move(bounds)) {
    for (auto& shard : shards_)
      shard.counts = std::vector<std::atomic<std::uint64_t>>(bounds_->size() + 1);
  }

  void observe(double value) noexcept override {
    // The first bound that is not less than the value. NaN goes to the last bucket, as in the
    // clients of Prometheus.
    const auto bucket =
        value != value ? bounds_->end() : std::lower_bound(bounds_->begin(), bounds_->end(), value);
    auto& shard = shards_[current_shard()];
    shard.counts[static_cast<std::size_t>(bucket - bounds_->begin())].fetch_add(
        1, std::memory_order_relaxed);
    shard.sum.fetch_add(value, std::memory_order_relaxed);
  }

  [[nodiscard]] const std::vector<double>& bounds() const noexcept { return *bounds_; }
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> result(bounds_->size() + 1);
    for (const auto& shard : shards_) {
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] += shard.counts[i].load(std::memory_order_relaxed);
    }
    return result;
  }
  [[nodiscard]] double sum() const noexcept {
    double result = 0;
    for (const auto& shard : shards_) result += shard.sum.load(std::memory_order_relaxed);
    return result;
  }

 private:
  struct alignas(64) slot {
    std::vector<std::atomic<std::uint64_t>> counts{};
    std::atomic<double> sum{0};
  };
  const std::shared_ptr<const std::vector<double>> bounds_;
  std::array<slot, shard_count> shards_{};
};

using handle = std::variant<std::shared_ptr<sharded_counter>, std::shared_ptr<atomic_gauge>,
                            std::shared_ptr<sharded_histogram>>;
constexpr std::array<std::string_view, 3> kind_names{"counter", "gauge", "histogram"};

constexpr std::string_view refused_name = "holdfast_metrics_series_refused_total";

struct family {
  std::size_t kind = 0;
  std::string help{};
  // Of a histogram: shared by all its series
  std::shared_ptr<const std::vector<double>> bounds{};
  std::map<std::string, handle> series{};  // by the text of the labels
};

class registry final : public prometheus_registry {
 public:
  explicit registry(prometheus_options options) : options_(options) {}

  [[nodiscard]] std::string text() const override {
    const std::scoped_lock lock(mutex_);
    detail::prometheus::text_writer out;
    for (const auto& [name, family] : families_) {
      out.head(name, kind_names[family.kind], family.help);
      for (const auto& [labels, series] : family.series) {
        if (const auto* counter = std::get_if<0>(&series))
          out.sample(name, labels, (*counter)->sum());
        else if (const auto* gauge = std::get_if<1>(&series))
          out.sample(name, labels, (*gauge)->value());
        else if (const auto* histogram = std::get_if<2>(&series))
          out.buckets(name, labels, (*histogram)->bounds(), (*histogram)->counts(),
                      (*histogram)->sum());
      }
    }
    out.head(refused_name, "counter", "Series that were not kept, because a limit was reached");
    out.sample(refused_name, {}, refused_);
    return std::move(out).text();
  }

  [[nodiscard]] std::size_t size() const override {
    const std::scoped_lock lock(mutex_);
    return series_;
  }

 private:
  /// Returns the series, and creates it if it is new. `make` creates a handle for the family. If a
  /// limit is reached, the caller gets a handle that is not part of a family.
  template <std::size_t kind, class Make>
  std::variant_alternative_t<kind, handle> find_or_create(std::string_view name,
                                                          metrics::labels labels,
                                                          std::string_view help, Make make) {
    detail::prometheus::check_name(name);
    const auto text = detail::prometheus::label_text(labels, kind == 2);
    const std::scoped_lock lock(mutex_);
    auto position = families_.find(name);
    if (position != families_.end() && position->second.kind != kind)
      throw error(errc::invalid_argument, "the metric '" + std::string(name) + "' is a " +
                                              std::string(kind_names[position->second.kind]) +
                                              " and cannot also be a " +
                                              std::string(kind_names[kind]));
    if (position != families_.end()) {
      const auto& series = position->second.series;
      if (const auto match = series.find(text); match != series.end())
        return std::get<kind>(match->second);
    }
    const bool full = series_ >= options_.series ||
                      (position != families_.end() &&
                       position->second.series.size() >= options_.series_of_one_name);
    if (full) {
      ++refused_;
      family unregistered;
      return make(unregistered);
    }
    if (position == families_.end())
      position =
          families_.emplace(std::string(name), family{.kind = kind, .help = std::string(help)})
              .first;
    auto created = make(position->second);
    position->second.series.emplace(text, created);
    ++series_;
    return created;
  }

  std::shared_ptr<metrics::counter> make_counter(std::string_view name, metrics::labels labels,
                                                 std::string_view help) override {
    if (name == refused_name)
      throw error(errc::invalid_argument,
                  "the metric '" + std::string(name) + "' is reserved for the registry");
    return find_or_create<0>(name, labels, help,
                             [](family&) { return std::make_shared<sharded_counter>(); });
  }
  std::shared_ptr<metrics::gauge> make_gauge(std::string_view name, metrics::labels labels,
                                             std::string_view help) override {
    return find_or_create<1>(name, labels, help,
                             [](family&) { return std::make_shared<atomic_gauge>(); });
  }
  std::shared_ptr<metrics::histogram> make_histogram(std::string_view name, metrics::labels labels,
                                                     std::string_view help,
                                                     std::span<const double> bounds) override {
    detail::prometheus::check_bounds(name, bounds);
    return find_or_create<2>(name, labels, help, [&](family& metric) {
      if (!metric.bounds)
        metric.bounds = std::make_shared<const std::vector<double>>(bounds.begin(), bounds.end());
      return std::make_shared<sharded_histogram>(metric.bounds);
    });
  }

  const prometheus_options options_;
  mutable std::mutex mutex_{};
  std::map<std::string, family, std::less<>> families_{};
  std::size_t series_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace

std::shared_ptr<prometheus_registry> make_prometheus_registry(prometheus_options options) {
  return std::make_shared<registry>(options);
}

}  // namespace HOLDFAST_NAMESPACE
