#pragma once

/// \file
/// The settings of a client: its URL and its options, checked and combined.

#include <holdfast/redis.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// What a login must find out about a server.
enum class expected_role : std::uint8_t {
  any,       ///< a node of a Cluster
  data,      ///< a master or a replica, not a Sentinel
  master,    ///< a master
  sentinel,  ///< a Sentinel
};

struct settings {
  bool cluster = false;
  bool tls = false;
  expected_role role = expected_role::data;
  /// Name of the master, if `addresses` are Sentinels; otherwise empty.
  std::string master_name{};
  /// Addresses from the URL: nodes of a Cluster, Sentinels, or those that the server may have.
  std::vector<std::string> addresses{};
  unsigned database = 0;
  /// With user, password and TLS options filled in.
  holdfast::redis::options options{};
};

/// Throws errc::invalid_argument, also for a scheme that HOLDFAST_SCHEMES does not list. The
/// message never contains the password.
[[nodiscard]] HOLDFAST_API settings read_settings(std::string_view url,
                                                  holdfast::redis::options options);

/// Returns the settings of the connections to the Sentinels of a client.
[[nodiscard]] HOLDFAST_API settings sentinel_settings(const settings& configured);

}  // namespace HOLDFAST_NAMESPACE::detail::redis
