#pragma once

/// \file
/// The settings of a client: its URL and its options, checked and combined.

#include <holdfast/redis.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

struct settings {
  bool cluster = false;
  bool tls = false;
  /// Addresses from the URL; a single one unless it is a Cluster.
  std::vector<std::string> addresses{};
  unsigned database = 0;
  /// With user, password and TLS options filled in.
  holdfast::redis::options options{};
};

/// Throws errc::invalid_argument, also for a scheme that HOLDFAST_SCHEMES does not list. The
/// message never contains the password.
[[nodiscard]] HOLDFAST_API settings read_settings(std::string_view url,
                                                  holdfast::redis::options options);

}  // namespace HOLDFAST_NAMESPACE::detail::redis
