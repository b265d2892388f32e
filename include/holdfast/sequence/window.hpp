#pragma once

/// \file
/// The part of a sequence that every `next()` touches, laid out for the hot path. Nothing here is for users.

#include <holdfast/version.hpp>

#include <atomic>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail {

/// What the threads of a process share. It lives in memory that the kernel wipes in a child process: a child finds bounds between which
/// nothing lies, and goes the slow way, where it learns that it is a child.
///
/// Why no id is given twice:
/// 1. A ticket is owned by whoever drew it: `ticket` only grows, but for the holder of the topmost ticket, who may put it back unused.
/// 2. Only tickets of the lease become ids: the slow way stores `low` before `soft` (release), a reader loads `soft` (acquire) before `low`.
///    Who sees the `soft` of a block sees its `low`, or that of a later block, which is not below the first one's end: then
///    nothing lies between the two. A stale `soft` only sends an owned ticket the slow way.
///
/// A template, so that a test can walk through every interleaving of the same code.
template <template <class> class Atomic>
struct basic_sequence_window {
  alignas(64) Atomic<std::uint64_t> ticket{0};  ///< the next one; alone on its line, which all threads fight for
  alignas(64) Atomic<std::uint64_t> soft{0};    ///< tickets below this need no thought
  Atomic<std::uint64_t> low{0};                 ///< tickets below this belong to nobody any more
  std::uint64_t offset = 0;                     ///< id = offset + ticket * step; written before the first `soft`, and never again
  std::uint64_t step = 1;

  struct drawn {
    std::uint64_t ticket;
    bool sure;  ///< it is an id; else ask the slow way
  };
  /// Nothing is read before the ticket is drawn: a look at a line that others write costs as much as the draw.
  drawn draw(std::uint64_t count = 1) noexcept {
    const std::uint64_t mine = ticket.fetch_add(count, std::memory_order_relaxed);
    const std::uint64_t end = soft.load(std::memory_order_acquire);
    const std::uint64_t begin = low.load(std::memory_order_relaxed);
    return {mine, mine < end && mine >= begin && count <= end - mine};
  }

  [[nodiscard]] std::int64_t id(std::uint64_t mine) const noexcept { return static_cast<std::int64_t>(offset + mine * step); }
};
using sequence_window = basic_sequence_window<std::atomic>;

/// What one handle has left. In wiped memory, too: a child finds nothing.
struct alignas(64) handle_window {
  std::uint64_t next = 0;  ///< the id to give
  std::uint64_t end = 0;   ///< the id after the last
  std::uint64_t step = 1;
};

}  // namespace HOLDFAST_NAMESPACE::detail
