#pragma once

/// \file
/// What keeps a Redis from granting a block twice. A Redis acknowledges before its replicas have heard of it, so a replica that takes over may
/// have an older counter, and so may a server that restarts without its last writes. Nobody but the user knows what a duplicate costs, so there
/// is no default: a sequence on Redis is refused until one of these is chosen. docs/sequences.md compares them.

#include <holdfast/sequence/block_store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>

namespace HOLDFAST_NAMESPACE {

/// No duplicates: large blocks are leased from a database that keeps what it grants, and Redis hands out parts of them. Each is bound to the
/// server's replication id, which changes with every restart and every promotion; whoever takes over leases a new one, and what was left of
/// the old one is a gap. Nothing that Redis forgets matters.
struct super_blocks {
  std::shared_ptr<block_store> from{};  ///< where the large blocks come from: the block store of an SQL database
  std::int64_t size = 1'000'000;        ///< ids in one of them; 1 to 2^31. A failover loses at most so many of each sequence
};

/// No duplicates as long as the clocks are right, and nothing but Redis: the counter never runs ahead of the time (`rate` ordinals for each
/// second since `origin`), and after every restart, promotion or loss it goes on beyond what can have been granted until then. Ordinals are
/// therefore large, and jump. The first block, and the first one after a failover, is granted `max_skew` later.
struct clock_fence {
  /// More than the clocks of the servers differ, plus the time that an old master may still answer after another took its place.
  std::chrono::milliseconds max_skew = std::chrono::seconds(5);
  std::int64_t rate = 1'000'000;  ///< ordinals a second that a sequence can grant at most; 1 to 1 million
  /// Where time begins, the same for all who use the sequence.
  std::chrono::sys_seconds origin = std::chrono::sys_days(std::chrono::year(2026) / std::chrono::January / 1);
};

/// Fewer duplicates: a block is used only when so many replicas have heard of it. Redis may still promote one that has not.
struct wait_fence {
  std::size_t replicas = 1;  ///< that must have it
  bool on_disk = false;      ///< synced there and here, too (WAITAOF, Redis 7.2 and later)
  /// To wait for them; then the block is abandoned, and the refill fails. Shorter than the timeout of the client. Blocks of several sequences
  /// that are asked for at once share it, but none has less than 50 ms of it.
  std::chrono::milliseconds longest = std::chrono::milliseconds(500);
};

/// Blocks can be granted twice when a replica takes over. For a Redis without replicas that syncs every write, or ids that may repeat.
struct no_fence {};

/// std::monostate: not chosen yet.
using sequence_fence = std::variant<std::monostate, super_blocks, clock_fence, wait_fence, no_fence>;

}  // namespace HOLDFAST_NAMESPACE
