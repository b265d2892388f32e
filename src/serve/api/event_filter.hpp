#pragma once

/// \file
/// Which events an operator means: by type, key, error and age.

#include <holdfast/clock.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/version.hpp>

#include "serve/api/endpoint.hpp"
#include "serve/api/json_reader.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A missing field matches every event. `type` and `error` may end with `*`: then they match the
/// texts that begin like this.
struct event_filter {
  std::optional<std::string> type{};
  std::optional<std::string> key{};
  /// The whole text of the last error, as `parked/groups` shows it.
  std::optional<std::string> error{};
  /// Parked before this time, or for an event that is not parked, published before it. By the clock
  /// of the store.
  std::optional<timestamp> before{};

  [[nodiscard]] bool matches(const outbox_record& record) const;
  [[nodiscard]] bool is_empty() const noexcept { return !type && !key && !error && !before; }
};

/// The parameters `type`, `key`, `error` and `olderThan`, as `read_filter` reads them.
[[nodiscard]] std::vector<query_parameter> filter_parameters();
[[nodiscard]] event_filter read_filter(const api_request& request, timestamp now);
/// The members of the same names, and no others.
[[nodiscard]] event_filter read_filter(json_object& object, timestamp now);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
