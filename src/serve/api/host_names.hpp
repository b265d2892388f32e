#pragma once

/// \file
/// The values of Host that the server answers. A page of another site can make a browser send
/// requests to this server under the name of that site (DNS rebinding); the name gives it away.

#include <holdfast/version.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: immutable.
class host_names {
 public:
  /// `addresses` as http_server::addresses returns them; `names` without a port. An address such as
  /// 0.0.0.0 admits every numeric host, because a browser cannot rebind a number.
  host_names(const std::vector<std::string>& addresses, const std::vector<std::string>& names);

  /// `host` is the field Host, with or without a port. The port is not compared, because a proxy or
  /// a forwarded port changes it. `peer` is server_request::peer: the clients of a Unix socket may
  /// send any host. An empty host is admitted: browsers always send one.
  [[nodiscard]] bool admits(std::string_view host, std::string_view peer) const;

 private:
  std::vector<std::string> hosts_{"localhost"};
  bool any_number_ = false;
};

/// Returns true for an address of this machine only: 127.0.0.1, ::1, the path of a Unix socket,
/// and the peer `unix`.
[[nodiscard]] bool is_loopback(std::string_view host);

/// The host of `host:port`, `[host]:port` or `host`, without brackets.
[[nodiscard]] std::string_view host_part(std::string_view address) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::serve
