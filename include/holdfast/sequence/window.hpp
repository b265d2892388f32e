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
struct sequence_window {
  alignas(64) std::atomic<std::uint64_t> ticket{0};  ///< the next one; alone on its line, which all threads fight for
  alignas(64) std::atomic<std::uint64_t> soft{0};    ///< tickets below this need no thought
  std::atomic<std::uint64_t> low{0};                 ///< tickets below this belong to nobody any more
  std::uint64_t offset = 0;                          ///< id = offset + ticket * step; written before the first `soft`, and never again
  std::uint64_t step = 1;

  [[nodiscard]] std::int64_t id(std::uint64_t drawn) const noexcept { return static_cast<std::int64_t>(offset + drawn * step); }
};

/// What one handle has left. In wiped memory, too: a child finds nothing.
struct alignas(64) handle_window {
  std::uint64_t next = 0;  ///< the id to give
  std::uint64_t end = 0;   ///< the id after the last
  std::uint64_t step = 1;
};

}  // namespace HOLDFAST_NAMESPACE::detail
