#pragma once

#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Tells systemd about the state of the service: `READY=1`, `STOPPING=1`, `RELOADING=1`. The
/// protocol of sd_notify(3) is one datagram. Does nothing without NOTIFY_SOCKET. Never throws and
/// never waits.
void notify_service_manager(std::string_view state) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::serve
