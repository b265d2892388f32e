#pragma once

/// \file
/// Limits of requests: one for each token, and one for each address that signs in.

#include <holdfast/version.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A steady rate with a burst, in one number: the time at which an empty bucket would be full again
/// (the generic cell rate algorithm).
/// Thread-safety: may be called from any thread.
class rate_bucket {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Counts a request. Returns nothing if it is within the limit, else how long the client must
  /// wait; a refused request does not count.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> admit(time_point now,
                                                              std::chrono::nanoseconds interval,
                                                              std::uint32_t burst) noexcept;

 private:
  std::atomic<std::int64_t> full_again_{0};
};

/// Requests in a second. Beyond twice as many at once a token is refused.
[[nodiscard]] std::optional<std::chrono::nanoseconds> admit_at_rate(rate_bucket& bucket,
                                                                    rate_bucket::time_point now,
                                                                    std::uint32_t rate) noexcept;

/// Reads `100/s`: 1 to 1,000,000 requests in a second. Throws errc::invalid_argument with the path
/// `rate`.
[[nodiscard]] std::uint32_t parse_rate(std::string_view text);

/// Attempts to sign in: 5 a minute for each address, or for each network of IPv6 (/64), because
/// such a network belongs to one client.
/// Thread-safety: may be called from any thread.
class sign_in_limit {
 public:
  static constexpr std::size_t max_addresses = 10'000;

  /// As rate_bucket::admit.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> admit(std::string_view address,
                                                              rate_bucket::time_point now);

 private:
  void make_room(rate_bucket::time_point now);

  std::mutex mutex_{};
  /// The time at which an address may sign in 5 times again.
  std::map<std::string, rate_bucket::time_point, std::less<>> full_again_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
