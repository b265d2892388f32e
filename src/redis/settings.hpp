#pragma once

#include <holdfast/redis.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// Somebody who means "for ever" says milliseconds::max(), which no clock can add to its time.
[[nodiscard]] constexpr std::chrono::milliseconds bounded(std::chrono::milliseconds time) noexcept {
  return std::min<std::chrono::milliseconds>(time, std::chrono::hours(24 * 365));
}

/// What a URL and the options say together.
struct settings {
  bool cluster = false;
  bool tls = false;
  std::vector<std::string> seeds{};  ///< addresses; one, unless it is a Cluster
  unsigned database = 0;
  options how{};  ///< user, password and TLS filled in
};

/// Throws errc::invalid_argument, also for a scheme that HOLDFAST_SCHEMES does not list; the message never contains the password.
[[nodiscard]] HOLDFAST_API settings read_settings(std::string_view url, options how);

}  // namespace HOLDFAST_NAMESPACE::redis
