#pragma once

#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail {

/// How large the next block is, and how early it is asked for.
/// Thread-safety: none.
class HOLDFAST_API block_sizing {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit block_sizing(const block_policy& policy);

  /// For a block that is asked for now, when so many ids were drawn so far. `left`: ids that the sequence has to its end; a block never takes more than a
  /// small part of them.
  [[nodiscard]] std::int64_t next_size(time_point now, std::uint64_t drawn, std::uint64_t left);
  /// A block came, so long after it was asked for.
  void arrived(std::chrono::microseconds latency);

  /// How many ids before the end of a lease the next block is asked for; 0 means not before it is used up.
  [[nodiscard]] std::uint64_t margin(std::uint64_t lease) const;

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] double rate() const noexcept { return rate_; }
  [[nodiscard]] std::chrono::microseconds latency() const noexcept { return latency_; }

 private:
  void follow(time_point now, std::uint64_t drawn);

  const block_policy policy_;
  std::int64_t size_;
  double rate_ = 0.0;  // ids a second
  std::chrono::microseconds latency_{0};
  bool asked_before_ = false;
  time_point asked_{};
  std::uint64_t drawn_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail
