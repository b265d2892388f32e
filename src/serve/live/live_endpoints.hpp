#pragma once

#include "serve/api/endpoint.hpp"
#include "serve/live/event_hub.hpp"
#include "serve/live/history.hpp"
#include "serve/live/incidents.hpp"
#include "serve/live/state.hpp"

#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// What the endpoints of the live state work on. All of it must outlive them.
struct live_parts {
  live_state& state;
  event_hub& hub;
  history& past;
  incident_log& incidents;
  services& shared;
};

/// `/v1/status`, `/v1/events`, `/v1/history` and `/v1/incidents`.
[[nodiscard]] std::vector<endpoint> live_endpoints(live_parts parts);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
