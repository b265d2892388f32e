#pragma once

/// \file
/// Fences: how a sequence on Redis avoids that a block is granted twice. Redis acknowledges a write
/// before its replicas have it. A replica that is promoted may therefore have an older counter, and
/// so may a server that restarts without its last writes. Only the user knows what a duplicate id
/// costs, so there is no default: a sequence on Redis is refused until a fence is chosen.
/// docs/sequences.md compares them.

#include <holdfast/sequence/block_store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>

namespace HOLDFAST_NAMESPACE {

/// No duplicates, whatever Redis forgets. Large blocks come from a database that keeps what it
/// grants, and Redis hands out parts of them. Each large block is bound to the replication id of
/// the Redis server, which changes at every restart and every promotion. The new server then needs
/// a new large block, and the rest of the old one is a gap.
struct super_blocks {
  /// Grants the large blocks: the block store of an SQL database.
  std::shared_ptr<block_store> source{};
  /// Ids in a large block: 1 to 2^31. A failover loses at most so many for each process.
  std::int64_t size = 1'000'000;
  bool operator==(const super_blocks&) const = default;
};

/// No duplicates as long as the clocks are right; needs only Redis. The counter never runs ahead of
/// the time: it allows `rate` ordinals for each second since `origin`. After a restart, a promotion
/// or a loss it continues above everything that can have been granted until then. Ordinals are
/// therefore large, and jump. The first block, and the first one after a failover, comes `max_skew`
/// later.
struct clock_fence {
  /// Must be more than the difference between the clocks of the servers, plus the time that an old
  /// master still answers after the promotion of another one.
  std::chrono::milliseconds max_skew = std::chrono::seconds(5);
  /// Ordinals that a sequence can grant in a second: 1 to 1 million.
  std::int64_t rate = 1'000'000;
  /// When counting starts; stored with the counter, as are the other values.
  std::chrono::sys_seconds origin =
      std::chrono::sys_days(std::chrono::year(2026) / std::chrono::January / 1);
  bool operator==(const clock_fence&) const = default;
};

/// Fewer duplicates: a block is used only after this many replicas have confirmed it. Redis may
/// still promote a replica that has not.
struct wait_fence {
  /// Replicas that must confirm a block.
  std::size_t replicas = 1;
  /// The block must also be synced to disk, on the replicas and on the master (WAITAOF, Redis 7.2
  /// and later).
  bool on_disk = false;
  /// Time to wait for the replicas; after that the block is abandoned and the refill fails. Must be
  /// shorter than the timeout of the client. Blocks of several sequences in one refill share this
  /// time, but each gets at least 50 ms.
  std::chrono::milliseconds longest = std::chrono::milliseconds(500);
  bool operator==(const wait_fence&) const = default;
};

/// Blocks can be granted twice when a replica is promoted. For a Redis without replicas that syncs
/// every write, or for ids that may repeat.
struct no_fence {
  bool operator==(const no_fence&) const = default;
};

/// std::monostate: not chosen yet.
using sequence_fence =
    std::variant<std::monostate, super_blocks, clock_fence, wait_fence, no_fence>;

}  // namespace HOLDFAST_NAMESPACE
