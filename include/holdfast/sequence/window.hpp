#pragma once

/// \file
/// The memory that every `next()` touches, laid out for the fast path. Private to the library; it
/// is installed so that `next()` can be inlined.

#include <holdfast/version.hpp>

#include <atomic>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// What the threads of a sequence share. A call to `next()` draws a ticket, a number that only
/// grows. The process owns the tickets of its lease, and only these become ids:
///
///     tickets  0 ........ begin .......... fast_end ......... end of the lease ..............
///              | draw again | id at once    | slow path: id    | slow path: wait for a block
///
/// The slow path (sequence_state.cpp) moves the bounds, under a lock. The fast path only reads
/// them.
///
/// Why no id is given twice:
///
/// 1. Every ticket has one owner. `next_ticket` only grows, and fetch_add gives each ticket to one
///    thread. There is one exception: the owner of the topmost ticket may put it back. It does so
///    with a compare-and-exchange, which fails if another thread has drawn since.
/// 2. Every ticket that becomes an id on the fast path is in the lease.
///    - The slow path stores `begin` before `fast_end` (release). draw() loads `fast_end` (acquire)
///      before `begin`. So a thread that reads the `fast_end` of a block reads the `begin` of that
///      block or of a later one.
///    - The `begin` of a later block is not below the end of the earlier block. No ticket is at or
///      above that `begin` and below the earlier `fast_end`, so the thread takes the slow path.
///    - An outdated `fast_end` is too low. It only sends a ticket to the slow path.
/// 3. A forked child cannot repeat the ids of its parent. The window is in memory that is all zeros
///    in the child (see wiped_on_fork.hpp). There `fast_end` is 0, so the child always takes the
///    slow path, which throws.
///
/// A template, so that a test can run every interleaving of the same code (protocol_test.cpp).
template <template <class> class Atomic>
struct basic_ticket_window {
  /// Alone on its cache line: all threads write to it.
  alignas(64) Atomic<std::uint64_t> next_ticket{0};
  alignas(64) Atomic<std::uint64_t> fast_end{0};
  Atomic<std::uint64_t> begin{0};
  /// id = offset + ticket * step. Written before the first `fast_end`, and never again.
  std::uint64_t offset = 0;
  std::uint64_t step = 1;

  struct drawn {
    std::uint64_t ticket;  ///< the first one
    bool is_id;            ///< all of them are ids; if not, ask the slow path
  };
  /// Draws `count` tickets that follow each other. Reads nothing before it draws: reading a cache
  /// line that other threads write costs as much as the draw.
  drawn draw(std::uint64_t count = 1) noexcept {
    const std::uint64_t ticket = next_ticket.fetch_add(count, std::memory_order_relaxed);
    const std::uint64_t upper = fast_end.load(std::memory_order_acquire);
    const std::uint64_t lower = begin.load(std::memory_order_relaxed);
    return {ticket, ticket < upper && ticket >= lower && count <= upper - ticket};
  }

  [[nodiscard]] std::int64_t id(std::uint64_t ticket) const noexcept {
    return static_cast<std::int64_t>(offset + ticket * step);
  }
};
using ticket_window = basic_ticket_window<std::atomic>;

/// The ids that a sequence_handle has taken and not given out. Also all zeros in a forked child,
/// where the handle is therefore empty.
struct alignas(64) handle_window {
  std::uint64_t next = 0;  ///< the next id
  std::uint64_t end = 0;   ///< the id after the last one; equal to `next` when the handle is empty
  std::uint64_t step = 1;
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
