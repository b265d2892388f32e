#pragma once

/// \file
/// Reads the store during a recovery: on this thread if the store does not block, else on the read
/// executor and not longer than the read deadline.

#include <holdfast/store.hpp>

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

enum class read_status : std::uint8_t { row, no_row, failed, late };
struct read_result {
  read_status status = read_status::no_row;
  std::optional<entry> row{};
};

/// Finds a row on this thread. If the store throws, the status is `failed` and `error` is set.
[[nodiscard]] read_result find_row(holdfast::store& store, place location, std::string_view key,
                                   std::exception_ptr& error) noexcept;
/// Reads the row of a call. Logs failures, but does not count them.
[[nodiscard]] read_result read_row(const std::shared_ptr<point_core>& point, const call_base& call);
/// The counter of a read without a row.
[[nodiscard]] counter counter_of(read_status status) noexcept;
/// Erases an expired version, in the background if the store may block.
void erase_expired(const std::shared_ptr<point_core>& point, const entry& expired) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::failover
