#pragma once

/// \file
/// Ids from ordinals, and ordinals from ids.

#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// All ids of a sequence: id = start + (ordinal - 1) * increment, for ordinals from 1 to `limit`.
/// Nothing here overflows.
/// Thread-safety: immutable.
class HOLDFAST_API id_range {
 public:
  /// Throws errc::invalid_argument if the limits allow no id, or if the start is outside them.
  explicit id_range(const sequence_options& options);

  /// The last ordinal whose id is within the limits.
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::int64_t increment() const noexcept { return increment_; }
  /// The id of an ordinal from 1 to `limit`.
  [[nodiscard]] std::int64_t id(std::int64_t ordinal) const noexcept {
    return static_cast<std::int64_t>(offset() + static_cast<std::uint64_t>(ordinal) *
                                                    static_cast<std::uint64_t>(increment_));
  }
  /// The id that ordinal 0 would have, modulo 2^64: id = offset + ordinal * increment.
  [[nodiscard]] std::uint64_t offset() const noexcept {
    return static_cast<std::uint64_t>(start_) - static_cast<std::uint64_t>(increment_);
  }

  /// The last ordinal whose id does not come after `id`, which need not be an id of the sequence.
  /// Throws errc::out_of_range beyond the limits.
  [[nodiscard]] std::int64_t ordinal_up_to(std::int64_t id) const;
  /// The ordinal of an id. Throws errc::invalid_argument if it is not an id of the sequence.
  [[nodiscard]] std::int64_t ordinal_of(std::int64_t id) const;

 private:
  std::int64_t start_;
  std::int64_t increment_;
  std::int64_t limit_ = 0;
};

/// Throws errc::invalid_argument for invalid options.
HOLDFAST_API void check_options(const sequence_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
