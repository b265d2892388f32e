#pragma once

#include <holdfast/failover/options.hpp>

#include "failover/config/settings.hpp"

#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

/// The settings of points, by name.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API point_settings {
 public:
  point_settings(std::shared_ptr<const settings> file_settings, const engine_options& engine);

  /// Overrides the options of a point with the settings of the file.
  void apply(std::string_view name, point_options& options);
  /// Names of points that are in the file but were never registered. They may be misspelled.
  [[nodiscard]] std::vector<std::string> unclaimed() const;

 private:
  void read_point(std::string_view name, point_options& options) const;

  const std::shared_ptr<const settings> settings_;
  const scatter_options scatter_;
  const bool enabled_;
  mutable std::mutex mutex_{};
  std::set<std::string, std::less<>> unclaimed_{};  // points of the file; `apply` removes them
};

/// Overrides scatter options with the settings of a section, for example `failover.scatter.`.
/// `name` replaces the `*` of the section.
void read_scatter(const settings& file_settings, std::string_view section, std::string_view name,
                  scatter_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
