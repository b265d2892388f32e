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

/// Threads add to different cache lines, so that two of them scale; a reader sums them up.
constexpr std::size_t shards = 4;

std::size_t my_shard() noexcept { return thread_number() % shards; }

class sharded_counter final : public metrics::counter {
 public:
  void add(std::uint64_t count) noexcept override { parts_[my_shard()].value.fetch_add(count, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t sum() const noexcept {
    std::uint64_t result = 0;
    for (const auto& one : parts_) result += one.value.load(std::memory_order_relaxed);
    return result;
  }

 private:
  struct alignas(64) part {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<part, shards> parts_{};
};

class atomic_gauge final : public metrics::gauge {
 public:
  void set(double value) noexcept override { value_.store(value, std::memory_order_relaxed); }
  void add(double difference) noexcept override { value_.fetch_add(difference, std::memory_order_relaxed); }
  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class sharded_histogram final : public metrics::histogram {
 public:
  explicit sharded_histogram(std::shared_ptr<const std::vector<double>> bounds) : bounds_(std::move(bounds)) {
    for (auto& one : parts_) one.counts = std::vector<std::atomic<std::uint64_t>>(bounds_->size() + 1);
  }

  void observe(double value) noexcept override {
    // The first bound that is not below; NaN belongs to the last bucket, as in Prometheus' own client.
    const auto place = value != value ? bounds_->end() : std::lower_bound(bounds_->begin(), bounds_->end(), value);
    auto& mine = parts_[my_shard()];
    mine.counts[static_cast<std::size_t>(place - bounds_->begin())].fetch_add(1, std::memory_order_relaxed);
    mine.sum.fetch_add(value, std::memory_order_relaxed);
  }

  [[nodiscard]] const std::vector<double>& bounds() const noexcept { return *bounds_; }
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> result(bounds_->size() + 1);
    for (const auto& one : parts_) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += one.counts[i].load(std::memory_order_relaxed);
    }
    return result;
  }
  [[nodiscard]] double sum() const noexcept {
    double result = 0;
    for (const auto& one : parts_) result += one.sum.load(std::memory_order_relaxed);
    return result;
  }

 private:
  struct alignas(64) part {
    std::vector<std::atomic<std::uint64_t>> counts{};
    std::atomic<double> sum{0};
  };
  const std::shared_ptr<const std::vector<double>> bounds_;
  std::array<part, shards> parts_{};
};

using handle = std::variant<std::shared_ptr<sharded_counter>, std::shared_ptr<atomic_gauge>, std::shared_ptr<sharded_histogram>>;
constexpr std::array<std::string_view, 3> kind_names{"counter", "gauge", "histogram"};

constexpr std::string_view refused_name = "holdfast_metrics_series_refused_total";

struct family {
  std::size_t kind = 0;
  std::string help{};
  std::shared_ptr<const std::vector<double>> bounds{};  // of a histogram: all its series have the same
  std::map<std::string, handle> series{};               // by the text of their labels
};

class registry final : public prometheus_registry {
 public:
  explicit registry(prometheus_options options) : options_(options) {}

  [[nodiscard]] std::string text() const override {
    const std::scoped_lock lock(mutex_);
    prometheus::text_writer out;
    for (const auto& [name, one] : families_) {
      out.head(name, kind_names[one.kind], one.help);
      for (const auto& [labels, what] : one.series) {
        if (const auto* counter = std::get_if<0>(&what)) out.sample(name, labels, (*counter)->sum());
        else if (const auto* gauge = std::get_if<1>(&what)) out.sample(name, labels, (*gauge)->value());
        else if (const auto* histogram = std::get_if<2>(&what))
          out.buckets(name, labels, (*histogram)->bounds(), (*histogram)->counts(), (*histogram)->sum());
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
  /// The series, made now if it is new. `make` gives a handle for the family; it is also what a refused caller gets.
  template <std::size_t kind, class Make>
  std::variant_alternative_t<kind, handle> find(std::string_view name, metrics::labels labels, std::string_view help, Make make) {
    prometheus::check_name(name);
    const auto text = prometheus::label_text(labels, kind == 2);
    const std::scoped_lock lock(mutex_);
    auto at = families_.find(name);
    if (at != families_.end() && at->second.kind != kind)
      throw error(errc::invalid_argument, "the metric '" + std::string(name) + "' is a " + std::string(kind_names[at->second.kind]) +
                                              " already, so it cannot be a " + std::string(kind_names[kind]));
    if (at != families_.end()) {
      if (const auto known = at->second.series.find(text); known != at->second.series.end()) return std::get<kind>(known->second);
    }
    const bool full = series_ >= options_.series || (at != families_.end() && at->second.series.size() >= options_.series_of_one_name);
    if (full) {
      ++refused_;
      family nobody;
      return make(nobody);
    }
    if (at == families_.end()) at = families_.emplace(std::string(name), family{.kind = kind, .help = std::string(help)}).first;
    auto made = make(at->second);
    at->second.series.emplace(text, made);
    ++series_;
    return made;
  }

  std::shared_ptr<metrics::counter> make_counter(std::string_view name, metrics::labels labels, std::string_view help) override {
    if (name == refused_name) throw error(errc::invalid_argument, "the metric '" + std::string(name) + "' is the registry's own");
    return find<0>(name, labels, help, [](family&) { return std::make_shared<sharded_counter>(); });
  }
  std::shared_ptr<metrics::gauge> make_gauge(std::string_view name, metrics::labels labels, std::string_view help) override {
    return find<1>(name, labels, help, [](family&) { return std::make_shared<atomic_gauge>(); });
  }
  std::shared_ptr<metrics::histogram> make_histogram(std::string_view name, metrics::labels labels, std::string_view help,
                                                     std::span<const double> bounds) override {
    prometheus::check_bounds(name, bounds);
    return find<2>(name, labels, help, [&](family& of) {
      if (!of.bounds) of.bounds = std::make_shared<const std::vector<double>>(bounds.begin(), bounds.end());
      return std::make_shared<sharded_histogram>(of.bounds);
    });
  }

  const prometheus_options options_;
  mutable std::mutex mutex_{};
  std::map<std::string, family, std::less<>> families_{};
  std::size_t series_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace

std::shared_ptr<prometheus_registry> make_prometheus_registry(prometheus_options options) { return std::make_shared<registry>(options); }

}  // namespace HOLDFAST_NAMESPACE
