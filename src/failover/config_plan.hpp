#pragma once

#include <holdfast/database.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/store/cleanup.hpp>
#include <holdfast/store/memory.hpp>
#include <holdfast/store/sealed.hpp>
#include <holdfast/store/tenants.hpp>
#include <holdfast/store/tiered.hpp>
#include <holdfast/version.hpp>

#include "failover/config_settings.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::config {

/// What the file says about points, by their names.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API point_settings {
 public:
  point_settings(std::shared_ptr<const settings> from, const engine_options& engine);

  void apply(std::string_view name, point_options& options);
  /// Points that the file speaks of and nobody has registered: misspelled, perhaps.
  [[nodiscard]] std::vector<std::string> unclaimed() const;

 private:
  const std::shared_ptr<const settings> from_;
  const scatter_options scatter_;
  const bool enabled_;
  mutable std::mutex mutex_{};
  std::set<std::string, std::less<>> unclaimed_{};
};

/// Everything that an engine is made of, as a file and the options it adds to describe it.
struct plan {
  engine_options engine{};
  std::string url{};  ///< empty: the store is in memory
  database_options database{};
  store_options store{};
  memory_store_options memory{};
  std::optional<sealed_options> sealed{};
  std::optional<tiered_options> tiered{};
  std::optional<tenant_options> tenants{};
  std::optional<cleanup_options> cleanup{};
  std::shared_ptr<point_settings> points{};
  std::vector<std::string> warnings{};  ///< for the log, when the engine starts
};

/// Throws errc::invalid_argument with all that is wrong. `file` is for its path.
[[nodiscard]] HOLDFAST_API plan make_plan(const std::string& file, std::string_view text, engine_options base,
                                          const environment& lookup = process_environment());

/// Opens and connects what the plan says, and hands it to an engine.
[[nodiscard]] HOLDFAST_API std::shared_ptr<store> build_store(plan& from);

/// Takes a scatter section over what was there.
void read_scatter(const settings& from, std::string_view section, std::string_view of, scatter_options& to);

}  // namespace HOLDFAST_NAMESPACE::config
