#pragma once

#include <holdfast/failover/gather.hpp>
#include <holdfast/version.hpp>

#include "failover/point_core.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

/// Stores the slices of a live answer with one put, the manifest of a list behind them, and recovers those that the upstream did not give.
/// Never throws: what must leave is in `refused` afterwards.
void keep_slices(const point_core& point, gather_base& all) noexcept;
/// Recovers each open slice. True: the answer may be served.
bool recover_slices(const std::shared_ptr<point_core>& point, gather_base& all, const cause& why);
/// Says of every slice, or of the list, that it is gone.
void invalidate_slices(const point_core& point, gather_base& all) noexcept;
/// Reads and judges the open slices, makes their final states, and says what the whole is: provenance, completeness, policy.
bool recover_open(const std::shared_ptr<point_core>& point, gather_base& all, const cause& why,
                  std::chrono::steady_clock::time_point deadline, timestamp listed_as_of);

/// When the storing or the recovering of a whole must be over.
[[nodiscard]] std::chrono::steady_clock::time_point gather_deadline(const point_core& point);

/// Reads rows of one name: here where the store cannot wait, else several at a time on the executor, until the deadline, or until nothing
/// came for the read deadline. One reading per key, in their order; what did not come in time is late.
[[nodiscard]] std::vector<reading> read_rows(const point_core& point, std::string_view name, std::string_view realm,
                                             std::vector<std::string> keys, std::chrono::steady_clock::time_point deadline);
/// The rows of the point's effective name, at most `limit`, within the deadline. Nothing when it could not be read.
[[nodiscard]] std::optional<std::vector<entry>> read_all_rows(const point_core& point, const std::string& realm, std::size_t limit,
                                                              std::chrono::steady_clock::time_point deadline);
/// Puts rows at once; when the store refuses, finds those it refuses and puts the others. Gives which were not put.
[[nodiscard]] std::vector<bool> put_rows(const point_core& point, std::vector<entry> rows, std::chrono::steady_clock::time_point deadline);

/// A number for a list's manifest, for the table of recent ones.
[[nodiscard]] inline std::uint64_t manifest_id(const point_core& point, const gather_base& all) noexcept {
  return point.id_of(all) ^ std::hash<std::string>{}(point.manifest_name);
}
/// What belongs to a list: found, and its rows judged.
struct membership {
  timestamp as_of{};
  std::vector<std::string> keys{};
  std::size_t lost = 0;  ///< members of chunks that are not there
};
/// Nothing, and counted, when there is none that may be believed.
[[nodiscard]] std::optional<membership> read_manifest(const std::shared_ptr<point_core>& point, const gather_base& all,
                                                      std::chrono::steady_clock::time_point deadline);
/// The rows of a manifest for these keys: the head is the last.
[[nodiscard]] std::vector<entry> manifest_rows(const point_core& point, const gather_base& all, timestamp expire_on,
                                               const std::vector<std::string_view>& keys);

}  // namespace HOLDFAST_NAMESPACE::detail
