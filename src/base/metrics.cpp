#include <holdfast/metrics.hpp>

#include <atomic>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace metrics {
counter::~counter() = default;
gauge::~gauge() = default;
histogram::~histogram() = default;
}  // namespace metrics

metrics_sink::~metrics_sink() = default;

namespace {

using failure_count = std::shared_ptr<std::atomic<std::uint64_t>>;

template <class Call>
void catch_and_count(const failure_count& failures, Call call) noexcept {
  try {
    call();
  } catch (...) {
    failures->fetch_add(1, std::memory_order_relaxed);
  }
}

/// A handle that forwards to another one and catches its exceptions. Does nothing if it is null.
template <class Handle>
class guard : public Handle {
 public:
  guard(std::shared_ptr<Handle> target, failure_count failures)
      : target_(std::move(target)), failures_(std::move(failures)) {}

 protected:
  template <class Call>
  void forward(Call call) const noexcept {
    if (target_) catch_and_count(failures_, [&] { call(*target_); });
  }

 private:
  std::shared_ptr<Handle> target_;
  failure_count failures_;
};

struct guarded_counter final : guard<metrics::counter> {
  using guard::guard;
  void add(std::uint64_t count) override {
    forward([count](auto& target) { target.add(count); });
  }
};

struct guarded_gauge final : guard<metrics::gauge> {
  using guard::guard;
  void set(double value) override {
    forward([value](auto& target) { target.set(value); });
  }
  void add(double difference) override {
    forward([difference](auto& target) { target.add(difference); });
  }
};

struct guarded_histogram final : guard<metrics::histogram> {
  using guard::guard;
  void observe(double value) override {
    forward([value](auto& target) { target.observe(value); });
  }
};

class isolating_sink final : public isolated_metrics {
 public:
  explicit isolating_sink(std::shared_ptr<metrics_sink> sink) : sink_(std::move(sink)) {}
  [[nodiscard]] std::uint64_t failures() const noexcept override {
    return failures_->load(std::memory_order_relaxed);
  }

 private:
  /// Wraps the handle that `request` returns. If it fails, the wrapper does nothing.
  template <class Guarded, class Handle, class Request>
  std::shared_ptr<Handle> wrap(Request request) {
    std::shared_ptr<Handle> handle;
    if (sink_) catch_and_count(failures_, [&] { handle = request(*sink_); });
    return std::make_shared<Guarded>(std::move(handle), failures_);
  }
  std::shared_ptr<metrics::counter> make_counter(std::string_view name, metrics::labels labels,
                                                 std::string_view help) override {
    return wrap<guarded_counter, metrics::counter>(
        [&](metrics_sink& sink) { return sink.counter(name, labels, help); });
  }
  std::shared_ptr<metrics::gauge> make_gauge(std::string_view name, metrics::labels labels,
                                             std::string_view help) override {
    return wrap<guarded_gauge, metrics::gauge>(
        [&](metrics_sink& sink) { return sink.gauge(name, labels, help); });
  }
  std::shared_ptr<metrics::histogram> make_histogram(std::string_view name, metrics::labels labels,
                                                     std::string_view help,
                                                     std::span<const double> bounds) override {
    return wrap<guarded_histogram, metrics::histogram>(
        [&](metrics_sink& sink) { return sink.histogram(name, labels, help, bounds); });
  }

  const std::shared_ptr<metrics_sink> sink_;
  const failure_count failures_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace

std::shared_ptr<isolated_metrics> isolate(std::shared_ptr<metrics_sink> sink) {
  if (auto already_isolated = std::dynamic_pointer_cast<isolated_metrics>(sink))
    return already_isolated;
  return std::make_shared<isolating_sink>(std::move(sink));
}

}  // namespace HOLDFAST_NAMESPACE
