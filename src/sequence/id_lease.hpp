#pragma once

/// \file
/// The lease: which tickets become ids. See holdfast/sequence/window.hpp for tickets and bounds.

#include <holdfast/sequence/window.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// The tickets [begin, end) that this process owns. It publishes the bounds of the fast path in the
/// window.
///
/// A ticket is an ordinal plus a shift. The shift is 0 unless the counter went back (a cycle, a
/// reset): tickets never go back.
///
/// Thread-safety: none; the caller holds the lock of the slow path. Only the window is shared with
/// `draw`.
template <template <class> class Atomic>
class basic_id_lease {
 public:
  /// `fast_path`: whether draw() may make ids without the slow path.
  basic_id_lease(basic_ticket_window<Atomic>& window, bool fast_path)
      : window_(window), fast_path_(fast_path) {
    raise_next_ticket(begin_);
  }

  enum class position : std::uint8_t {
    leased,  ///< all tickets are ids
    passed,  ///< they belong to an earlier lease, which was dropped: draw again
    beyond   ///< they are after the end of the lease: another block may cover them
  };
  [[nodiscard]] position position_of(std::uint64_t ticket, std::uint64_t count) const noexcept {
    if (ticket < begin_) return position::passed;
    return ticket < end_ && count <= end_ - ticket ? position::leased : position::beyond;
  }

  /// Whether a block with this first ordinal continues the lease. Then it can be extended, and
  /// callers that wait keep their tickets.
  [[nodiscard]] bool is_continued_by(std::int64_t first) const noexcept {
    return static_cast<std::uint64_t>(first) + shift_ == end_;
  }
  void extend(std::int64_t last, std::uint64_t margin) noexcept {
    end_ = static_cast<std::uint64_t>(last) + shift_ + 1;
    publish(margin);
  }

  /// Drops what remains of the lease, and continues with another block.
  void replace(std::int64_t first, std::int64_t last, std::uint64_t margin) {
    const std::uint64_t length =
        static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
    drawn_before_ += reached() - begin_;
    std::uint64_t new_begin = static_cast<std::uint64_t>(first) + shift_;
    // The counter went back. Tickets do not, so the shift changes. Only the slow path knows the
    // shift, so the fast path is closed from now on.
    if (new_begin < end_) {
      fast_path_ = false;
      new_begin = std::max(end_, window_.next_ticket.load(std::memory_order_relaxed));
      shift_ = new_begin - static_cast<std::uint64_t>(first);
    }
    begin_ = new_begin;
    window_.begin.store(begin_, std::memory_order_relaxed);
    end_ = begin_ + length;
    raise_next_ticket(begin_);
    returned_.erase(returned_.begin(), returned_.lower_bound(begin_));
    publish(margin);
  }

  /// Opens the fast path for all tickets but the last `margin`. The thread that draws one of these
  /// takes the slow path, where it requests the next block.
  void publish(std::uint64_t margin) noexcept {
    fast_end_ = end_ - std::min(margin, end_ - begin_);
    window_.fast_end.store(fast_path_ ? fast_end_ : 0, std::memory_order_release);
  }

  /// Whether one of these tickets of the lease is in the margin.
  [[nodiscard]] bool in_margin(std::uint64_t ticket, std::uint64_t count) const noexcept {
    return ticket + count > fast_end_;
  }

  /// Draws all remaining tickets, and returns the ordinal of the first one.
  std::int64_t take_remaining() noexcept {
    std::uint64_t next = window_.next_ticket.load(std::memory_order_relaxed);
    while (next < end_ &&
           !window_.next_ticket.compare_exchange_weak(next, end_, std::memory_order_relaxed)) {
    }
    const std::uint64_t first = std::clamp(next, begin_, end_);
    drawn_before_ += first - begin_;
    begin_ = end_;
    window_.begin.store(begin_, std::memory_order_relaxed);
    return ordinal(first);
  }

  /// Returns tickets that were drawn in vain. They are drawn again if no ticket above them is in
  /// use: at once, or when those above are returned too. This is the one exception to the rule that
  /// tickets only grow (see window.hpp).
  void put_back(std::uint64_t ticket, std::uint64_t count) {
    constexpr std::size_t max_ranges = 1024;
    returned_.emplace(ticket, ticket + count);
    while (!returned_.empty()) {
      const auto top = std::prev(returned_.end());
      std::uint64_t expected = top->second;
      if (!window_.next_ticket.compare_exchange_strong(expected, top->first,
                                                       std::memory_order_relaxed))
        break;
      returned_.erase(top);
    }
    if (returned_.size() > max_ranges) returned_.erase(returned_.begin());  // a gap
  }

  [[nodiscard]] std::int64_t ordinal(std::uint64_t ticket) const noexcept {
    return static_cast<std::int64_t>(ticket - shift_);
  }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] bool fast_path() const noexcept { return fast_path_; }
  /// Tickets of the lease that are not drawn yet.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return end_ - reached(); }
  /// Tickets that were drawn, in all blocks.
  [[nodiscard]] std::uint64_t drawn() const noexcept { return drawn_before_ + reached() - begin_; }
  /// Whether a ticket of the current lease was drawn.
  [[nodiscard]] bool has_drawn() const noexcept { return reached() > begin_; }
  /// The next ticket of the lease, or its end.
  [[nodiscard]] std::uint64_t reached() const noexcept {
    return std::clamp(window_.next_ticket.load(std::memory_order_relaxed), begin_, end_);
  }

 private:
  void raise_next_ticket(std::uint64_t minimum) noexcept {
    std::uint64_t next = window_.next_ticket.load(std::memory_order_relaxed);
    while (next < minimum &&
           !window_.next_ticket.compare_exchange_weak(next, minimum, std::memory_order_relaxed)) {
    }
  }

  basic_ticket_window<Atomic>& window_;
  bool fast_path_;
  std::uint64_t begin_ = 1;  // ordinals begin at 1
  std::uint64_t end_ = 1;
  std::uint64_t fast_end_ = 1;
  std::uint64_t shift_ = 0;
  std::uint64_t drawn_before_ = 0;                     // in blocks that were dropped
  std::map<std::uint64_t, std::uint64_t> returned_{};  // ranges of tickets: first -> end
};
using id_lease = basic_id_lease<std::atomic>;

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
