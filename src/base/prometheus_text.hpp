#pragma once

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// Prometheus' text format 0.0.4: what it allows, and how it is written.
namespace HOLDFAST_NAMESPACE::prometheus {

/// Throws errc::invalid_argument.
void check_name(std::string_view name);
/// Finite and growing; throws errc::invalid_argument.
void check_bounds(std::string_view name, std::span<const double> bounds);

/// The labels as they stand between braces, in the order of their names, values escaped and well-formed. Throws errc::invalid_argument
/// for a name that is not allowed (`le` is a histogram's own) or comes twice.
[[nodiscard]] std::string label_text(metrics::labels labels, bool histogram);

/// Puts the lines of a scrape together.
class text_writer {
 public:
  void head(std::string_view name, std::string_view kind, std::string_view help);
  void sample(std::string_view name, std::string_view labels, std::uint64_t value);
  void sample(std::string_view name, std::string_view labels, double value);
  /// `counts` are of each bucket alone, the last one for all above the bounds.
  void buckets(std::string_view name, std::string_view labels, std::span<const double> bounds, std::span<const std::uint64_t> counts,
               double sum);
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void begin(std::string_view name, std::string_view suffix, std::string_view labels, std::string_view bound = {});

  std::string text_{};
};

}  // namespace HOLDFAST_NAMESPACE::prometheus
