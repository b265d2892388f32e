#pragma once

/// \file
/// The text format 0.0.4 of Prometheus: its rules for names, and a writer.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::prometheus {

/// Throws errc::invalid_argument if a metric cannot have this name.
void check_name(std::string_view name);
/// Throws errc::invalid_argument unless the bounds are finite and ascending.
void check_bounds(std::string_view name, std::span<const double> bounds);

/// The text between the braces: labels sorted by name, values escaped and well-formed. Throws
/// errc::invalid_argument if a name is not allowed (`le` is reserved for histograms) or occurs
/// twice.
[[nodiscard]] std::string label_text(metrics::labels labels, bool histogram);

/// Writes the lines of a scrape.
class text_writer {
 public:
  void head(std::string_view name, std::string_view kind, std::string_view help);
  void sample(std::string_view name, std::string_view labels, std::uint64_t value);
  void sample(std::string_view name, std::string_view labels, double value);
  /// `counts` are not cumulative. The last one counts the values above all bounds.
  void buckets(std::string_view name, std::string_view labels, std::span<const double> bounds,
               std::span<const std::uint64_t> counts, double sum);
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void begin(std::string_view name, std::string_view suffix, std::string_view labels,
             std::string_view bound = {});

  std::string text_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::prometheus
