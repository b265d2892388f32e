#pragma once

/// \file
/// Which hosts are this machine: the rule behind the defaults of encryption (docs/tls.md).

#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Returns true for an empty host, the path of a Unix socket (`/run/...`, or `@name`), `localhost`, 127.0.0.0/8 and ::1.
/// Names are not resolved: a name server could lead them anywhere. An abbreviated address (`127.1`) is not local either.
[[nodiscard]] HOLDFAST_API bool is_local_host(std::string_view host) noexcept;

}  // namespace HOLDFAST_NAMESPACE
