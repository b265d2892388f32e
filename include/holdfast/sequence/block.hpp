#pragma once

/// \file
/// A block: a range of numbers that was leased from a sequence, for the owner of the object.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// The numbers from `first` to `last`, `step` apart, each to be used once.
///
/// A block can be moved but not copied or serialized: two copies would hand out the same numbers.
/// Numbers that are unused when the block is destroyed are lost, and leave a gap.
/// Thread-safety: none; a block belongs to one thread at a time. Only `next` throws.
class sequence_block {
 public:
  sequence_block() noexcept = default;  ///< empty
  /// `last` must be `first` plus a whole number of steps. The block is empty if `last` comes before
  /// `first` in the direction of `step`.
  sequence_block(std::int64_t first, std::int64_t last, std::int64_t step = 1) noexcept
      : first_(first),
        last_(last),
        step_(step),
        next_(first),
        remaining_(count(first, last, step)) {}

  sequence_block(sequence_block&& other) noexcept { *this = std::move(other); }
  sequence_block& operator=(sequence_block&& other) noexcept {
    first_ = other.first_;
    last_ = other.last_;
    step_ = other.step_;
    next_ = other.next_;
    remaining_ = std::exchange(other.remaining_, 0);
    return *this;
  }
  sequence_block(const sequence_block&) = delete;
  sequence_block& operator=(const sequence_block&) = delete;
  ~sequence_block() = default;

  [[nodiscard]] std::int64_t first() const noexcept { return first_; }
  [[nodiscard]] std::int64_t last() const noexcept { return last_; }
  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  /// How many numbers are not used yet.
  [[nodiscard]] std::uint64_t size() const noexcept { return remaining_; }
  [[nodiscard]] bool has_next() const noexcept { return remaining_ != 0; }

  /// The next number of the block. Throws errc::out_of_range when all are used.
  std::int64_t next() {
    if (remaining_ == 0) throw error(errc::out_of_range, "the block is used up; take another one");
    --remaining_;
    // Unsigned, because the step after the last number may leave the range. That value is not used.
    return std::exchange(next_, static_cast<std::int64_t>(static_cast<std::uint64_t>(next_) +
                                                          static_cast<std::uint64_t>(step_)));
  }

 private:
  static std::uint64_t count(std::int64_t first, std::int64_t last, std::int64_t step) noexcept {
    if (step == 0 || (step > 0 ? last < first : last > first)) return 0;
    const auto low = static_cast<std::uint64_t>(step > 0 ? first : last);
    const auto high = static_cast<std::uint64_t>(step > 0 ? last : first);
    const auto width = step > 0 ? static_cast<std::uint64_t>(step)
                                : std::uint64_t{0} - static_cast<std::uint64_t>(step);
    const auto steps = (high - low) / width;
    return steps == std::numeric_limits<std::uint64_t>::max() ? steps : steps + 1;
  }

  std::int64_t first_ = 0;
  std::int64_t last_ = -1;
  std::int64_t step_ = 1;
  std::int64_t next_ = 0;
  std::uint64_t remaining_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE
