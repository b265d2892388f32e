#pragma once

/// \file
/// How large the next block is, and how early it is requested.

#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Thread-safety: none.
class HOLDFAST_API block_sizing {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit block_sizing(const block_policy& policy);

  /// The size of a block that is requested now. `drawn`: ids drawn so far. `starved`: the time so
  /// far in which callers waited for a block; it does not count for the rate, which would otherwise
  /// be that of the store. `remaining`: ids until the end of the sequence; an adaptive block takes
  /// only a small part of them.
  [[nodiscard]] std::int64_t next_size(time_point now, std::uint64_t drawn,
                                       std::chrono::steady_clock::duration starved,
                                       std::uint64_t remaining);
  /// A block came this long after its request.
  void record_latency(std::chrono::microseconds latency);

  /// How many ids before the end of a lease the next block is requested; 0: when it is used up. Not
  /// more than a block, so that a process never holds more than two.
  [[nodiscard]] std::uint64_t margin(std::uint64_t lease_size) const;

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] double rate() const noexcept { return rate_; }
  [[nodiscard]] std::chrono::microseconds latency() const noexcept { return latency_; }

 private:
  void adapt(std::chrono::duration<double> elapsed, std::uint64_t drawn);

  const block_policy policy_;
  std::int64_t size_;
  double rate_ = 0.0;  // ids per second
  std::chrono::microseconds latency_{0};
  std::optional<time_point> last_request_{};
  std::uint64_t drawn_at_last_request_ = 0;
  std::chrono::steady_clock::duration starved_at_last_request_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
