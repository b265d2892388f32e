#pragma once

/// \file
/// A block: a range of numbers that was leased from a sequence and belongs to whoever holds the object.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// Numbers from `first` to `last`, `step` apart, each to be used once.
///
/// A block can be moved but not copied, and there is no way to write it down and read it again: two copies of one block would hand out the same
/// numbers. What is left of it when it dies is a gap, which costs nothing.
/// Thread-safety: none; a block belongs to one thread at a time. Nothing here throws but `next`.
class sequence_block {
 public:
  sequence_block() noexcept = default;  ///< nothing in it
  /// `last` must be `first` plus a whole number of steps. Nothing is in it when `last` lies before `first`, seen in the direction of `step`.
  sequence_block(std::int64_t first, std::int64_t last, std::int64_t step = 1) noexcept
      : first_(first), last_(last), step_(step), next_(first), left_(count(first, last, step)) {}

  sequence_block(sequence_block&& other) noexcept { *this = std::move(other); }
  sequence_block& operator=(sequence_block&& other) noexcept {
    first_ = other.first_;
    last_ = other.last_;
    step_ = other.step_;
    next_ = other.next_;
    left_ = std::exchange(other.left_, 0);
    return *this;
  }
  sequence_block(const sequence_block&) = delete;
  sequence_block& operator=(const sequence_block&) = delete;
  ~sequence_block() = default;

  [[nodiscard]] std::int64_t first() const noexcept { return first_; }
  [[nodiscard]] std::int64_t last() const noexcept { return last_; }
  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  /// How many numbers are left.
  [[nodiscard]] std::uint64_t size() const noexcept { return left_; }
  [[nodiscard]] bool has_next() const noexcept { return left_ != 0; }

  /// Throws errc::out_of_range when nothing is left; it never returns a number that is not in the block.
  std::int64_t next() {
    if (left_ == 0) throw error(errc::out_of_range, "the block is used up; take another one");
    --left_;
    // Unsigned, so that the step after the last number may leave the range: nobody reads it.
    return std::exchange(next_, static_cast<std::int64_t>(static_cast<std::uint64_t>(next_) + static_cast<std::uint64_t>(step_)));
  }

 private:
  static std::uint64_t count(std::int64_t first, std::int64_t last, std::int64_t step) noexcept {
    if (step == 0 || (step > 0 ? last < first : last > first)) return 0;
    const auto low = static_cast<std::uint64_t>(step > 0 ? first : last);
    const auto high = static_cast<std::uint64_t>(step > 0 ? last : first);
    const auto width = step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
    const auto steps = (high - low) / width;
    return steps == std::numeric_limits<std::uint64_t>::max() ? steps : steps + 1;
  }

  std::int64_t first_ = 0;
  std::int64_t last_ = -1;
  std::int64_t step_ = 1;
  std::int64_t next_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE
