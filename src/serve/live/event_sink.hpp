#pragma once

#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Takes what the clients of GET /v1/events are told.
/// Thread-safety: may be called from any thread.
class event_sink {
 public:
  event_sink() = default;
  event_sink(const event_sink&) = delete;
  event_sink& operator=(const event_sink&) = delete;
  virtual ~event_sink() = default;
  /// `kind` is `state`, `incident`, `job` or `audit`. Never waits; never throws.
  virtual void publish(std::string_view kind, std::string json) noexcept = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
