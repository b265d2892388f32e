#pragma once

/// \file
/// Reads and makes the rows of manifests, which name the members of lists.

#include <holdfast/failover/gather.hpp>

#include "failover/scatter/rows.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Hash of the manifest of a call, for engine_core::served.
[[nodiscard]] std::uint64_t manifest_id(const point_core& point, const gather_base& call) noexcept;

/// The members of a list, from its manifest.
struct list_members {
  timestamp as_of{};
  std::vector<std::string> keys{};
  std::size_t missing = 0;  ///< members of chunks that were not found
};
/// Returns nothing if there is no valid manifest, which is counted.
[[nodiscard]] std::optional<list_members> read_manifest(const std::shared_ptr<point_core>& point,
                                                        const gather_base& call,
                                                        steady_time deadline);
/// The rows of a manifest with these keys. The head is the last row: if it was stored, the other
/// chunks were stored before it.
[[nodiscard]] std::vector<entry> manifest_rows(const point_core& point, const gather_base& call,
                                               timestamp expire_on,
                                               const std::vector<std::string_view>& keys);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
