#include "failover/tallies.hpp"

#include <bit>
#include <bitset>
#include <mutex>

namespace HOLDFAST_NAMESPACE {

std::size_t tallies::take_part() noexcept {
  // Which parts have an owner; the same for all tallies. The lock also hands what one owner counted over to the next.
  static std::mutex mutex;
  static std::bitset<shared> taken;
  struct owner {
    std::size_t part = shared;
    owner() {
      const std::scoped_lock lock(mutex);
      for (part = 0; part < shared && taken.test(part); ++part) {
      }
      if (part < shared) taken.set(part);
    }
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    ~owner() {
      if (part == shared) return;
      my_part = shared;  // for what the thread still does while it ends
      const std::scoped_lock lock(mutex);
      taken.reset(part);
    }
  };
  thread_local const owner mine;
  return mine.part;
}

point_numbers tallies::numbers() const noexcept {
  std::array<std::uint64_t, tally_count> all{};
  // Backwards: what a call counts last is read first, so no part is ever greater than its whole.
  for (std::size_t i = tally_count; i-- > 0;) all[i] = sum(static_cast<tally>(i));
  return std::bit_cast<point_numbers>(all);
}

}  // namespace HOLDFAST_NAMESPACE
