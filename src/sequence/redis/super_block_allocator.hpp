#pragma once

/// \file
/// Grants blocks out of super-blocks (holdfast/sequence/fence.hpp): Redis keeps the current
/// super-block of each counter, and an SQL database grants new ones.

#include <holdfast/redis.hpp>
#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include "sequence/redis/counters.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Thread-safety: every function may be called from any thread.
class super_block_allocator {
 public:
  /// The references must outlive this object. `fence_definition`: what is added to the definitions
  /// of the requests.
  super_block_allocator(const redis_counters& counters, const super_blocks& fence,
                        std::string fence_definition)
      : counters_(counters), fence_(fence), fence_definition_(std::move(fence_definition)) {}

  /// As block_store::allocate. One round trip to Redis, unless a counter needs a super-block: that
  /// is leased only for requests that do not accept `busy`, because the source may be slow.
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
    /// The counter as Redis had it at the last attempt.
    counter_state on_redis{.last = 0, .epoch = 0};
  };
  /// Held by the thread that leases a super-block for a name.
  class leasing_lock {
   public:
    leasing_lock(super_block_allocator& owner, std::string_view name);
    leasing_lock(const leasing_lock&) = delete;
    leasing_lock& operator=(const leasing_lock&) = delete;
    ~leasing_lock();

   private:
    super_block_allocator& owner_;
    const std::string name_;
  };

  [[nodiscard]] std::vector<pending_request> try_redis(std::vector<pending_request> pending);
  [[nodiscard]] holdfast::redis::command allocate_command(const pending_request& pending) const;
  void allocate_with_super_block(const pending_request& unserved);
  void lease_super_block(pending_request& pending) const;
  [[nodiscard]] std::string definition_of(const block_request& request) const;

  [[nodiscard]] counter_state last_granted(std::string_view name) const;
  void remember_granted(std::string_view name, counter_state granted);

  const redis_counters& counters_;
  const super_blocks& fence_;
  const std::string fence_definition_;
  std::mutex leasing_mutex_{};
  std::condition_variable leasing_ended_{};
  std::set<std::string, std::less<>> leasing_{};  // names whose super-block a thread leases
  mutable std::mutex granted_mutex_{};
  // The last grant to this process, by name. After a failover Redis may know less.
  std::map<std::string, counter_state, std::less<>> granted_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
