#pragma once

/// \file
/// What the library counts, for whoever collects it. Ask a sink for a handle once, keep it, and add to it where the work is done.

#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

namespace metrics {

/// One label of a series. Values come from a small set (a point's name, a result); never from a caller's arguments.
struct label {
  std::string_view name;
  std::string_view value;
};
using labels = std::span<const label>;

/// Only grows. Thread-safety of this and the others: every function may be called from any thread.
class HOLDFAST_API counter {
 public:
  virtual ~counter();
  virtual void add(std::uint64_t count) = 0;
  void add() { add(1); }
};

/// Goes up and down.
class HOLDFAST_API gauge {
 public:
  virtual ~gauge();
  virtual void set(double value) = 0;
  virtual void add(double difference) = 0;
};

/// How values are spread, in buckets.
class HOLDFAST_API histogram {
 public:
  virtual ~histogram();
  virtual void observe(double value) = 0;
};

/// Upper bounds for durations in seconds: from a call answered by memory to one that timed out.
inline constexpr std::array<double, 16> seconds_buckets{0.00001, 0.000025, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                        0.01,    0.025,    0.05,   0.1,     0.25,   0.5,   1.0,    10.0};
/// Upper bounds for sizes in bytes.
inline constexpr std::array<double, 9> bytes_buckets{64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 16777216};

}  // namespace metrics

/// Where numbers go. Names and labels are those of Prometheus: `holdfast_store_put_seconds`, `_total` at the end of a counter.
/// The same name and labels give the same series, however often it is asked for. Handles stay usable when the sink is gone.
///
/// A sink should not throw; the library calls every sink through `isolate`, so one that does costs a count, not a call.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API metrics_sink {
 public:
  virtual ~metrics_sink();

  /// Never null.
  [[nodiscard]] std::shared_ptr<metrics::counter> counter(std::string_view name, metrics::labels labels, std::string_view help) {
    return make_counter(name, labels, help);
  }
  [[nodiscard]] std::shared_ptr<metrics::counter> counter(std::string_view name, std::initializer_list<metrics::label> labels,
                                                          std::string_view help) {
    return make_counter(name, {labels.begin(), labels.size()}, help);
  }
  [[nodiscard]] std::shared_ptr<metrics::gauge> gauge(std::string_view name, metrics::labels labels, std::string_view help) {
    return make_gauge(name, labels, help);
  }
  [[nodiscard]] std::shared_ptr<metrics::gauge> gauge(std::string_view name, std::initializer_list<metrics::label> labels,
                                                      std::string_view help) {
    return make_gauge(name, {labels.begin(), labels.size()}, help);
  }
  /// `bounds` are the upper bounds of the buckets, growing; the one for all others is added.
  [[nodiscard]] std::shared_ptr<metrics::histogram> histogram(std::string_view name, metrics::labels labels, std::string_view help,
                                                              std::span<const double> bounds = metrics::seconds_buckets) {
    return make_histogram(name, labels, help, bounds);
  }
  [[nodiscard]] std::shared_ptr<metrics::histogram> histogram(std::string_view name, std::initializer_list<metrics::label> labels,
                                                              std::string_view help,
                                                              std::span<const double> bounds = metrics::seconds_buckets) {
    return make_histogram(name, {labels.begin(), labels.size()}, help, bounds);
  }

 protected:
  virtual std::shared_ptr<metrics::counter> make_counter(std::string_view name, metrics::labels labels, std::string_view help) = 0;
  virtual std::shared_ptr<metrics::gauge> make_gauge(std::string_view name, metrics::labels labels, std::string_view help) = 0;
  virtual std::shared_ptr<metrics::histogram> make_histogram(std::string_view name, metrics::labels labels, std::string_view help,
                                                             std::span<const double> bounds) = 0;
};

/// A sink in front of another that throws nothing: neither do its handles. Without another (null) it counts nothing, for next to nothing.
class HOLDFAST_API isolated_metrics : public metrics_sink {
 public:
  /// Calls to the sink behind that threw.
  [[nodiscard]] virtual std::uint64_t failures() const noexcept = 0;
};
[[nodiscard]] HOLDFAST_API std::shared_ptr<isolated_metrics> isolate(std::shared_ptr<metrics_sink> behind);

struct prometheus_options {
  std::size_t series = 2000;             ///< of all names together; one more is refused and counted
  std::size_t series_of_one_name = 200;  ///< so that one label with too many values does not use up all
};

/// Keeps every series in memory and writes them as Prometheus reads them, in the text format 0.0.4. Serve `text()` under /metrics with
/// `Content-Type: text/plain; version=0.0.4; charset=utf-8`.
///
/// Adding to a handle takes no lock, and threads do not share its cache lines. A series beyond a limit gets a handle that keeps nothing;
/// `holdfast_metrics_series_refused_total` counts them.
/// Asking for a handle throws errc::invalid_argument for a name or label that Prometheus does not allow, and for a name that has another
/// kind already. Label values that are not well-formed UTF-8 are repaired.
class HOLDFAST_API prometheus_registry : public metrics_sink {
 public:
  /// Everything, in the order of names, then of labels. A number being added to is either before or after the addition.
  [[nodiscard]] virtual std::string text() const = 0;
  /// Series that exist.
  [[nodiscard]] virtual std::size_t size() const = 0;
};
[[nodiscard]] HOLDFAST_API std::shared_ptr<prometheus_registry> make_prometheus_registry(prometheus_options options = {});

}  // namespace HOLDFAST_NAMESPACE
