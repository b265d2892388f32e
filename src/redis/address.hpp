#pragma once

/// \file
/// Where a server is: `host:port`, an IPv6 host in brackets or not (Redis itself writes `::1:6379`), or the path of a socket.

#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::redis {

/// `host:port` from text that a server sent; an empty host, or `?`, is `same_host`. Nothing when it is no address.
[[nodiscard]] HOLDFAST_API std::optional<std::string> read_address(std::string_view text, std::string_view same_host);

[[nodiscard]] HOLDFAST_API std::string_view host_of(std::string_view address) noexcept;
/// 0 for the path of a socket.
[[nodiscard]] HOLDFAST_API std::uint16_t port_of(std::string_view address) noexcept;
[[nodiscard]] inline bool is_socket_path(std::string_view address) noexcept { return address.starts_with('/'); }

}  // namespace HOLDFAST_NAMESPACE::redis
