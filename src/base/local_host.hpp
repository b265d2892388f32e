#pragma once

/// \file
/// Tells whether a host is this machine. The defaults of encryption depend on it (docs/tls.md).

#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// Returns true for an empty host, the path of a Unix socket (`/run/...`, or `@name`), `localhost`,
/// 127.0.0.0/8 and ::1. Names are not resolved, because a name server could return any address.
/// Abbreviated addresses (`127.1`) are not local.
[[nodiscard]] HOLDFAST_API bool is_local_host(std::string_view host) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail
