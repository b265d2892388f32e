#pragma once

#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail {

/// Ids from ordinals, and back: id = start + (ordinal - 1) * increment. Nothing here can overflow: a range knows how many ids it holds.
/// Thread-safety: immutable.
class HOLDFAST_API id_range {
 public:
  /// Throws errc::invalid_argument for limits that leave no id, and for a start outside them.
  explicit id_range(const sequence_options& options);

  /// The last ordinal whose id lies within the limits.
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::int64_t increment() const noexcept { return increment_; }
  /// Of an ordinal from 1 to `limit`.
  [[nodiscard]] std::int64_t id(std::int64_t ordinal) const noexcept {
    return static_cast<std::int64_t>(offset() + static_cast<std::uint64_t>(ordinal) * static_cast<std::uint64_t>(increment_));
  }
  /// The `id` of ordinal 0, were there one; arithmetic modulo 2^64 makes it right for all others.
  [[nodiscard]] std::uint64_t offset() const noexcept {
    return static_cast<std::uint64_t>(start_) - static_cast<std::uint64_t>(increment_);
  }

  /// The number of ids that come no later than this one, which need not be an id itself. Throws errc::out_of_range beyond the limits.
  [[nodiscard]] std::int64_t ordinal_up_to(std::int64_t id) const;
  /// The ordinal of an id. Throws errc::invalid_argument when it is none of the sequence.
  [[nodiscard]] std::int64_t ordinal_of(std::int64_t id) const;

 private:
  std::int64_t start_;
  std::int64_t increment_;
  std::int64_t limit_ = 0;
};

/// Throws errc::invalid_argument for options that cannot hold.
HOLDFAST_API void check_sequence_options(const sequence_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail
