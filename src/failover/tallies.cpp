#include "failover/tallies.hpp"

#include <bit>

namespace HOLDFAST_NAMESPACE {

point_numbers tallies::numbers() const noexcept {
  std::array<std::uint64_t, tally_count> all{};
  // Backwards: what a call counts last is read first, so no part is ever greater than its whole.
  for (std::size_t i = tally_count; i-- > 0;) all[i] = sum(static_cast<tally>(i));
  return std::bit_cast<point_numbers>(all);
}

}  // namespace HOLDFAST_NAMESPACE
