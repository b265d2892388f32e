#pragma once

/// \file
/// The metrics of the library and the sink that collects them. Get a handle from a sink once, keep
/// it, and add to it where the work is done.

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

/// One label of a series. Values come from a small set (the name of a point, a result), never from
/// a caller's arguments.
struct label {
  std::string_view name;
  std::string_view value;
};
using labels = std::span<const label>;

/// A number that only grows.
/// Thread-safety of counter, gauge and histogram: every function may be called from any thread.
class HOLDFAST_API counter {
 public:
  virtual ~counter();
  virtual void add(std::uint64_t count) = 0;
  void add() { add(1); }
};

/// A number that goes up and down.
class HOLDFAST_API gauge {
 public:
  virtual ~gauge();
  virtual void set(double value) = 0;
  virtual void add(double difference) = 0;
};

/// The distribution of values, in buckets.
class HOLDFAST_API histogram {
 public:
  virtual ~histogram();
  virtual void observe(double value) = 0;
};

/// Upper bounds for durations in seconds, from a read in memory to a timeout.
inline constexpr std::array<double, 16> seconds_buckets{
    0.00001, 0.000025, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
    0.01,    0.025,    0.05,   0.1,     0.25,   0.5,   1.0,    10.0};
/// Upper bounds for sizes in bytes.
inline constexpr std::array<double, 9> bytes_buckets{64,    256,    1024,    4096,    16384,
                                                     65536, 262144, 1048576, 16777216};

}  // namespace metrics

/// Collects metrics. Names and labels follow Prometheus: `holdfast_store_put_seconds`, and `_total`
/// at the end of a counter. The same name and labels always return the same series. Handles stay
/// usable after the sink is destroyed.
///
/// A sink should not throw. The library calls every sink through `isolate`, so an exception is
/// counted and does not break a call.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API metrics_sink {
 public:
  virtual ~metrics_sink();

  /// These functions never return null.
  [[nodiscard]] std::shared_ptr<metrics::counter> counter(std::string_view name,
                                                          metrics::labels labels,
                                                          std::string_view help) {
    return make_counter(name, labels, help);
  }
  [[nodiscard]] std::shared_ptr<metrics::counter> counter(
      std::string_view name, std::initializer_list<metrics::label> labels, std::string_view help) {
    return make_counter(name, {labels.begin(), labels.size()}, help);
  }
  [[nodiscard]] std::shared_ptr<metrics::gauge> gauge(std::string_view name, metrics::labels labels,
                                                      std::string_view help) {
    return make_gauge(name, labels, help);
  }
  [[nodiscard]] std::shared_ptr<metrics::gauge> gauge(std::string_view name,
                                                      std::initializer_list<metrics::label> labels,
                                                      std::string_view help) {
    return make_gauge(name, {labels.begin(), labels.size()}, help);
  }
  /// `bounds` are the upper bounds of the buckets, in ascending order. A last bucket for all larger
  /// values is added.
  [[nodiscard]] std::shared_ptr<metrics::histogram> histogram(
      std::string_view name, metrics::labels labels, std::string_view help,
      std::span<const double> bounds = metrics::seconds_buckets) {
    return make_histogram(name, labels, help, bounds);
  }
  [[nodiscard]] std::shared_ptr<metrics::histogram> histogram(
      std::string_view name, std::initializer_list<metrics::label> labels, std::string_view help,
      std::span<const double> bounds = metrics::seconds_buckets) {
    return make_histogram(name, {labels.begin(), labels.size()}, help, bounds);
  }

 protected:
  virtual std::shared_ptr<metrics::counter> make_counter(std::string_view name,
                                                         metrics::labels labels,
                                                         std::string_view help) = 0;
  virtual std::shared_ptr<metrics::gauge> make_gauge(std::string_view name, metrics::labels labels,
                                                     std::string_view help) = 0;
  virtual std::shared_ptr<metrics::histogram> make_histogram(std::string_view name,
                                                             metrics::labels labels,
                                                             std::string_view help,
                                                             std::span<const double> bounds) = 0;
};

/// Wraps a sink and catches its exceptions and those of its handles. If the sink is null, the
/// handles do nothing.
class HOLDFAST_API isolated_metrics : public metrics_sink {
 public:
  /// Number of calls to the wrapped sink that threw.
  [[nodiscard]] virtual std::uint64_t failures() const noexcept = 0;
};
[[nodiscard]] HOLDFAST_API std::shared_ptr<isolated_metrics> isolate(
    std::shared_ptr<metrics_sink> sink);

struct prometheus_options {
  /// Maximum number of series. Further series are refused and counted.
  std::size_t series = 2000;
  /// Maximum number of series of one name, so that a label with too many values does not use up
  /// `series`.
  std::size_t series_of_one_name = 200;
};

/// Keeps every series in memory and writes them in the text format 0.0.4 of Prometheus.
/// Serve `text()` under /metrics with `Content-Type: text/plain; version=0.0.4; charset=utf-8`.
///
/// Adding to a handle takes no lock, and threads use different cache lines. A series beyond a limit
/// gets a handle that is not exported; `holdfast_metrics_series_refused_total` counts them.
/// Requesting a handle throws errc::invalid_argument if Prometheus does not allow the name or a
/// label, or if the name already belongs to a metric of another kind. In label values, bytes that
/// are not well-formed UTF-8 are replaced by U+FFFD.
class HOLDFAST_API prometheus_registry : public metrics_sink {
 public:
  /// All series, sorted by name and then by labels.
  [[nodiscard]] virtual std::string text() const = 0;
  /// Number of series.
  [[nodiscard]] virtual std::size_t size() const = 0;
};
[[nodiscard]] HOLDFAST_API std::shared_ptr<prometheus_registry> make_prometheus_registry(
    prometheus_options options = {});

}  // namespace HOLDFAST_NAMESPACE
