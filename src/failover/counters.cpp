#include "failover/counters.hpp"

#include <bit>
#include <bitset>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::failover {

std::size_t counters::assign_shard() noexcept {
  // The shards with an owner, for all objects of this class. The lock also makes the counts of one
  // owner visible to the next.
  static std::mutex mutex;
  static std::bitset<shared> assigned;
  struct owner {
    std::size_t shard = 0;
    owner() {
      const std::scoped_lock lock(mutex);
      while (shard < shared && assigned.test(shard)) ++shard;
      if (shard < shared) assigned.set(shard);
    }
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    ~owner() {
      if (shard == shared) return;
      my_shard = shared;  // for destructors that run later on this thread
      const std::scoped_lock lock(mutex);
      assigned.reset(shard);
    }
  };
  thread_local const owner this_thread;
  return this_thread.shard;
}

point_numbers counters::numbers() const noexcept {
  std::array<std::uint64_t, counter_count> sums{};
  // Backwards: a call increments `started` first, so no subset is read as greater than its whole.
  for (std::size_t i = counter_count; i-- > 0;) sums[i] = sum(static_cast<counter>(i));
  return std::bit_cast<point_numbers>(sums);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
