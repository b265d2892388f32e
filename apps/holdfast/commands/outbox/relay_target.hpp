#pragma once

/// \file
/// The targets of `holdfast outbox work --relay` that are message brokers or Redis.

#include <holdfast/worker.hpp>

#include <chrono>
#include <string>

namespace holdfast::cli {

/// One of the two is set.
struct delivery_target {
  event_handler handler{};
  batch_handler batch{};
};

struct relay_request {
  std::string url;
  std::chrono::milliseconds timeout;
  /// The attribute `source` of CloudEvents.
  std::string source;
  bool credentials = false;
};

/// Throws errc::invalid_argument if the URL is invalid, and errc::unsupported_type if this program
/// was built without the broker. Passwords come from the URL or HOLDFAST_RELAY_PASSWORD.
[[nodiscard]] delivery_target make_relay_target(const relay_request& request);

}  // namespace holdfast::cli
