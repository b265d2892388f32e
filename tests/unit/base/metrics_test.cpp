#include <holdfast/error.hpp>
#include <holdfast/metrics.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;

const std::string nothing_refused =
    "# HELP holdfast_metrics_series_refused_total Series that were not kept, because a limit was "
    "reached\n"
    "# TYPE holdfast_metrics_series_refused_total counter\n"
    "holdfast_metrics_series_refused_total 0\n";

TEST(Prometheus, WritesCountersAndGauges) {
  const auto registry = make_prometheus_registry();
  registry->counter("a_puts_total", {{"store", "sql"}}, "Entries written")->add(3);
  registry->counter("a_puts_total", {{"store", "memory"}}, "Entries written")->add();
  registry->gauge("a_queue", {}, "Tasks that wait")->set(2.5);
  EXPECT_EQ(registry->text(),
            "# HELP a_puts_total Entries written\n# TYPE a_puts_total counter\n"
            "a_puts_total{store=\"memory\"} 1\na_puts_total{store=\"sql\"} 3\n"
            "# HELP a_queue Tasks that wait\n# TYPE a_queue gauge\na_queue 2.5\n" +
                nothing_refused);
}

TEST(Prometheus, WritesHistogramsCumulatively) {
  const auto registry = make_prometheus_registry();
  const std::vector<double> bounds{0.1, 1, 10};
  const auto h = registry->histogram("a_seconds", {{"op", "find"}}, "", bounds);
  for (const double value : {0.05, 0.1, 0.5, 3.0, 100.0}) h->observe(value);
  EXPECT_EQ(
      registry->text(),
      "# TYPE a_seconds histogram\n"
      "a_seconds_bucket{op=\"find\",le=\"0.1\"} 2\na_seconds_bucket{op=\"find\",le=\"1\"} 3\n"
      "a_seconds_bucket{op=\"find\",le=\"10\"} 4\na_seconds_bucket{op=\"find\",le=\"+Inf\"} 5\n"
      "a_seconds_sum{op=\"find\"} 103.65\na_seconds_count{op=\"find\"} 5\n" +
          nothing_refused);
}

TEST(Prometheus, EscapesAndRepairsText) {
  const auto registry = make_prometheus_registry();
  registry
      ->counter("a_total", {{"p", "back\\slash \"quoted\"\nline \xff end"}}, "one\\two\n\"three\"")
      ->add();
  EXPECT_EQ(registry->text(),
            "# HELP a_total one\\\\two\\n\"three\"\n# TYPE a_total counter\n"
            "a_total{p=\"back\\\\slash \\\"quoted\\\"\\nline \xEF\xBF\xBD end\"} 1\n" +
                nothing_refused);
}

TEST(Prometheus, WritesNumbersThatAreNoneAsPrometheusReadsThem) {
  const auto registry = make_prometheus_registry();
  registry->gauge("a", {}, "")->set(std::nan(""));
  registry->gauge("b", {}, "")->set(std::numeric_limits<double>::infinity());
  registry->gauge("c", {}, "")->set(-std::numeric_limits<double>::infinity());
  const auto text = registry->text();
  EXPECT_NE(text.find("\na NaN\n"), std::string::npos);
  EXPECT_NE(text.find("\nb +Inf\n"), std::string::npos);
  EXPECT_NE(text.find("\nc -Inf\n"), std::string::npos);
}

TEST(Prometheus, TheSameNameAndLabelsAreOneSeries) {
  const auto registry = make_prometheus_registry();
  const auto one = registry->counter("a_total", {{"x", "1"}, {"y", "2"}}, "");
  const auto two = registry->counter("a_total", {{"y", "2"}, {"x", "1"}}, "");
  EXPECT_EQ(one, two) << "the order of labels does not matter";
  EXPECT_EQ(registry->size(), 1U);
}

TEST(Prometheus, RefusesSeriesBeyondItsLimitsAndCountsThem) {
  const auto registry = make_prometheus_registry({.series = 5, .series_of_one_name = 3});
  for (int i = 0; i < 10; ++i) registry->counter("a_total", {{"i", std::to_string(i)}}, "")->add();
  for (int i = 0; i < 10; ++i) registry->gauge("b" + std::to_string(i), {}, "")->set(1);
  EXPECT_EQ(registry->size(), 5U);
  registry->counter("a_total", {{"i", "1"}}, "")->add();
  const auto text = registry->text();
  EXPECT_NE(text.find("a_total{i=\"1\"} 2\n"), std::string::npos) << "those that exist go on";
  EXPECT_NE(text.find("holdfast_metrics_series_refused_total 15\n"), std::string::npos) << text;
}

TEST(Prometheus, RefusesNamesThatCannotBeWritten) {
  const auto registry = make_prometheus_registry();
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const holdfast::error& e) {
      return e.code();
    }
    return errc::internal;
  };
  for (const char* name : {"", "1a", "a-b", "a b", "a\n", "\xC3\xA4"})
    EXPECT_EQ(code_of([&] { (void)registry->counter(name, {}, ""); }), errc::invalid_argument)
        << name;
  for (const char* name : {"", "1a", "a:b", "__a", "a\""})
    EXPECT_EQ(code_of([&] { (void)registry->counter("a", {{name, ""}}, ""); }),
              errc::invalid_argument)
        << name;
  EXPECT_EQ(code_of([&] { (void)registry->counter("a", {{"x", ""}, {"x", ""}}, ""); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)registry->histogram("h", {{"le", ""}}, ""); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)registry->histogram("h", {}, "", std::vector<double>{2, 1}); }),
            errc::invalid_argument);
  (void)registry->gauge("g", {}, "");
  EXPECT_EQ(code_of([&] { (void)registry->counter("g", {}, ""); }), errc::invalid_argument)
      << "a gauge already";
  EXPECT_EQ(
      code_of([&] { (void)registry->counter("holdfast_metrics_series_refused_total", {}, ""); }),
      errc::invalid_argument);
}

TEST(Prometheus, ThreadsLoseNoAddition) {
  const auto registry = make_prometheus_registry();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const auto counter = registry->counter("a_total", {}, "");
        const auto histogram = registry->histogram("a_seconds", {}, "");
        const auto gauge = registry->gauge("a", {}, "");
        for (int i = 0; i < 5000; ++i) {
          counter->add();
          histogram->observe(0.5);
          gauge->add(i % 2 == 0 ? 1 : -1);
          if (i % 1000 == 0) (void)registry->text();
        }
      });
    }
  }
  const auto text = registry->text();
  EXPECT_NE(text.find("a_total 20000\n"), std::string::npos);
  EXPECT_NE(text.find("a_seconds_count 20000\n"), std::string::npos);
  EXPECT_NE(text.find("a_seconds_sum 10000\n"), std::string::npos);
  EXPECT_NE(text.find("\na 0\n"), std::string::npos);
}

TEST(Prometheus, HandlesOutliveTheRegistry) {
  auto registry = make_prometheus_registry();
  const auto counter = registry->counter("a_total", {}, "");
  registry.reset();
  counter->add();
}

/// Throws from everything, once told to.
struct broken_sink final : metrics_sink {
  bool handles_too = false;
  struct broken_counter final : metrics::counter {
    void add(std::uint64_t) override { throw std::runtime_error("no"); }
  };
  struct broken_gauge final : metrics::gauge {
    void set(double) override { throw std::runtime_error("no"); }
    void add(double) override { throw std::runtime_error("no"); }
  };
  std::shared_ptr<metrics::counter> make_counter(std::string_view, metrics::labels,
                                                 std::string_view) override {
    if (!handles_too) throw std::runtime_error("no");
    return std::make_shared<broken_counter>();
  }
  std::shared_ptr<metrics::gauge> make_gauge(std::string_view, metrics::labels,
                                             std::string_view) override {
    if (!handles_too) throw 7;
    return std::make_shared<broken_gauge>();
  }
  std::shared_ptr<metrics::histogram> make_histogram(std::string_view, metrics::labels,
                                                     std::string_view,
                                                     std::span<const double>) override {
    return nullptr;
  }
};

TEST(IsolatedMetrics, AThrowingSinkCostsACount) {
  const auto broken = std::make_shared<broken_sink>();
  const auto sink = isolate(broken);
  sink->counter("a", {}, "")->add();
  sink->gauge("b", {}, "")->set(1);
  EXPECT_EQ(sink->failures(), 2U)
      << "once when asked for; the handle that is there instead does nothing";
  broken->handles_too = true;
  sink->counter("a", {}, "")->add();
  sink->gauge("b", {}, "")->add(1);
  EXPECT_EQ(sink->failures(), 4U);
  sink->histogram("c", {}, "")->observe(1);
  EXPECT_EQ(sink->failures(), 4U) << "a sink that gives null is taken for one that does not count";
}

TEST(IsolatedMetrics, WithoutASinkNothingHappens) {
  const auto sink = isolate(nullptr);
  sink->counter("a", {}, "")->add();
  sink->gauge("b", {}, "")->set(1);
  sink->histogram("c", {}, "")->observe(1);
  EXPECT_EQ(sink->failures(), 0U);
  EXPECT_EQ(isolate(sink), sink) << "once is enough";
}

TEST(IsolatedMetrics, PassesNumbersOn) {
  const auto registry = make_prometheus_registry();
  isolate(registry)->counter("a_total", {{"x", "1"}}, "")->add(2);
  EXPECT_NE(registry->text().find("a_total{x=\"1\"} 2\n"), std::string::npos);
}

}  // namespace
