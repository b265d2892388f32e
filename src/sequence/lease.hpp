#pragma once

#include <holdfast/sequence/window.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace HOLDFAST_NAMESPACE::detail {

/// The tickets that this process owns, and what the hot path is told of them. Everything but the window is the slow way's, under its lock.
///
/// Tickets are ordinals plus a shift, which is 0 unless the counter went back (a cycle, a reset): tickets never do.
/// Thread-safety: none; the caller holds the lock of the slow way. The window is shared with `draw`.
template <template <class> class Atomic>
class basic_lease {
 public:
  /// `open`: whether the hot path may give ids out by itself.
  basic_lease(basic_sequence_window<Atomic>& window, bool open) : window_(window), open_(open) { raise_ticket(low_); }

  enum class verdict : std::uint8_t {
    owned,   ///< every one of them is an id
    redraw,  ///< they belong to nobody: draw again
    beyond   ///< the lease ends before: another block may cover them
  };
  [[nodiscard]] verdict look(std::uint64_t mine, std::uint64_t count) const noexcept {
    if (mine < low_) return verdict::redraw;
    return mine < high_ && count <= high_ - mine ? verdict::owned : verdict::beyond;
  }

  /// The block after the last one that this lease had, if it follows directly: no switch, and whoever waits already has its ticket.
  [[nodiscard]] bool follows(std::int64_t first) const noexcept { return static_cast<std::uint64_t>(first) + shift_ == high_; }
  void extend(std::int64_t last, std::uint64_t margin) noexcept {
    high_ = static_cast<std::uint64_t>(last) + shift_ + 1;
    publish(margin);
  }

  /// Another block instead of what is left. Ids from the hot path are only possible as long as ordinals grow.
  void replace(std::int64_t first, std::int64_t last, std::uint64_t margin) {
    const std::uint64_t length = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
    used_before_ += used();
    std::uint64_t begin = static_cast<std::uint64_t>(first) + shift_;
    if (begin < high_) {  // the counter went back: from now on tickets are moved up, and only the slow way knows by how much
      open_ = false;
      begin = std::max(high_, window_.ticket.load(std::memory_order_relaxed));
      shift_ = begin - static_cast<std::uint64_t>(first);
    }
    low_ = begin;
    window_.low.store(low_, std::memory_order_relaxed);
    high_ = begin + length;
    raise_ticket(low_);
    given_up_.erase(given_up_.begin(), given_up_.lower_bound(low_));
    publish(margin);
  }

  /// The last `margin` tickets go the slow way, so that somebody asks for the next block.
  void publish(std::uint64_t margin) noexcept {
    soft_ = high_ - std::min(margin, high_ - low_);
    window_.soft.store(open_ ? soft_ : 0, std::memory_order_release);
  }

  /// Whether tickets that are owned lie among the last ones of the lease.
  [[nodiscard]] bool past_soft(std::uint64_t mine, std::uint64_t count) const noexcept { return mine + count > soft_; }

  /// Draws all that is left, and returns the first ordinal of it: nobody else gets any.
  std::int64_t take_rest() noexcept {
    std::uint64_t next = window_.ticket.load(std::memory_order_relaxed);
    while (next < high_ && !window_.ticket.compare_exchange_weak(next, high_, std::memory_order_relaxed)) {
    }
    const std::uint64_t mine = std::clamp(next, low_, high_);
    used_before_ += mine - low_;
    low_ = high_;
    window_.low.store(low_, std::memory_order_relaxed);
    return static_cast<std::int64_t>(mine - shift_);
  }

  /// Tickets that no id comes of go back, if nobody drew after them; else when those did, too. The one exception to tickets only growing: whoever
  /// holds the topmost one gives it up in the same step.
  void give_up(std::uint64_t mine, std::uint64_t count) {
    constexpr std::size_t most = 1024;
    given_up_.emplace(mine, mine + count);
    while (!given_up_.empty()) {
      const auto top = std::prev(given_up_.end());
      std::uint64_t expected = top->second;
      if (!window_.ticket.compare_exchange_strong(expected, top->first, std::memory_order_relaxed)) break;
      given_up_.erase(top);
    }
    if (given_up_.size() > most) given_up_.erase(given_up_.begin());  // a gap
  }

  [[nodiscard]] std::int64_t ordinal(std::uint64_t mine) const noexcept { return static_cast<std::int64_t>(mine - shift_); }
  [[nodiscard]] std::uint64_t high() const noexcept { return high_; }
  [[nodiscard]] bool open() const noexcept { return open_; }
  /// Tickets that nobody drew yet.
  [[nodiscard]] std::uint64_t left() const noexcept { return high_ - reached(); }
  /// Tickets that were drawn, in all blocks.
  [[nodiscard]] std::uint64_t drawn() const noexcept { return used_before_ + used(); }
  /// Whether any of this block was drawn.
  [[nodiscard]] bool touched() const noexcept { return reached() > low_; }
  [[nodiscard]] std::uint64_t reached() const noexcept { return std::clamp(window_.ticket.load(std::memory_order_relaxed), low_, high_); }

 private:
  [[nodiscard]] std::uint64_t used() const noexcept { return reached() - low_; }

  void raise_ticket(std::uint64_t to) noexcept {
    std::uint64_t next = window_.ticket.load(std::memory_order_relaxed);
    while (next < to && !window_.ticket.compare_exchange_weak(next, to, std::memory_order_relaxed)) {
    }
  }

  basic_sequence_window<Atomic>& window_;
  bool open_;
  std::uint64_t low_ = 1;   // ordinals begin at 1
  std::uint64_t high_ = 1;  // one past the last
  std::uint64_t soft_ = 1;
  std::uint64_t shift_ = 0;
  std::uint64_t used_before_ = 0;
  std::map<std::uint64_t, std::uint64_t> given_up_{};  // from, to
};
using lease = basic_lease<std::atomic>;

}  // namespace HOLDFAST_NAMESPACE::detail
