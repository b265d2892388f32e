#pragma once

/// \file
/// Grants blocks out of super-blocks (holdfast/sequence/fence.hpp): Redis keeps the current
/// super-block of each counter, and an SQL database grants new ones.

#include <holdfast/redis.hpp>
#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include "sequence/redis/counters.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Thread-safety: every function may be called from any thread.
class super_block_allocator {
 public:
  /// Both must outlive this object.
  super_block_allocator(const redis_counters& counters, const super_blocks& fence)
      : counters_(counters), fence_(fence) {}

  /// As block_store::allocate. One round trip to Redis, unless a counter needs a super-block.
  [[nodiscard]] std::vector<block_grant> allocate(std::span<const block_request> requests);

  /// Forgets what this process was granted of a counter: ids were given back.
  void forget_granted(std::string_view name);

 private:
  struct super_block {
    std::int64_t first = 0, last = 0, epoch = 0;
  };
  /// One request of a call to `allocate`.
  struct pending_request {
    const block_request* request;
    block_grant* grant;
    /// To be brought to Redis with the next attempt.
    std::optional<super_block> new_block{};
  };

  [[nodiscard]] std::vector<pending_request> try_redis(std::vector<pending_request> pending);
  [[nodiscard]] holdfast::redis::command allocate_command(const pending_request& pending) const;
  [[nodiscard]] std::vector<pending_request> lease_super_blocks(
      std::vector<pending_request> pending) const;

  [[nodiscard]] counter_state last_granted(std::string_view name) const;
  void remember_granted(std::string_view name, counter_state granted);

  const redis_counters& counters_;
  const super_blocks& fence_;
  std::mutex leasing_{};  // held by the one thread that leases super-blocks
  mutable std::mutex granted_mutex_{};
  // The last grant to this process, by name. After a failover Redis may know less.
  std::map<std::string, counter_state, std::less<>> granted_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
