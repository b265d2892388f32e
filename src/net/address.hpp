#pragma once

/// \file
/// The address of a server as text: `host:port`, or the path of a Unix socket. An IPv6 host may
/// have brackets or not: Redis itself writes `::1:6379`.

#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::net {

/// Parses `host:port` from text that a server sent. An empty host, or `?`, stands for
/// `default_host`. Returns nothing if the text is not an address.
[[nodiscard]] HOLDFAST_API std::optional<std::string> parse_address(std::string_view text,
                                                                    std::string_view default_host);

/// Returns an empty host for the path of a socket.
[[nodiscard]] HOLDFAST_API std::string_view host_of(std::string_view address) noexcept;
/// Returns 0 for the path of a socket.
[[nodiscard]] HOLDFAST_API std::uint16_t port_of(std::string_view address) noexcept;
[[nodiscard]] inline bool is_socket_path(std::string_view address) noexcept {
  return address.starts_with('/');
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
