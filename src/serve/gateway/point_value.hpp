#pragma once

/// \file
/// The value of a route's point: what a response becomes in the engine.

#include <holdfast/clock.hpp>
#include <holdfast/codec.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/version.hpp>

#include "serve/gateway/keep_rules.hpp"
#include "serve/gateway/route.hpp"
#include "serve/gateway/stored_response.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

struct point_value {
  stored_response response{};
  timestamp expires{};
  payload_form form = payload_form::bytes;
  /// False: the call succeeded, and what is kept stays in force.
  bool keep = true;
};

/// The codec of point_value.
struct point_codec {
  [[nodiscard]] std::string encode(const point_value& value) const;
  [[nodiscard]] point_value decode(std::string_view payload) const;
};

using route_point = point<std::optional<point_value>(const run_time_arguments&)>;
using pending_value = pending<point_value>;

/// Registers the point of a route. Throws errc::invalid_argument if its options are invalid.
[[nodiscard]] route_point make_route_point(engine& owner, const route& rules);

/// The arguments of a call with this key text.
[[nodiscard]] run_time_arguments arguments_of(std::string key_text);

/// Set while a call is recovered: decides on this thread whether its client may have the kept
/// response.
class recovery_scope {
 public:
  /// `invalidated` is the time of the entry that invalidates older answers of the target.
  recovery_scope(const route& rules, const request_facts& request, timestamp now,
                 std::optional<timestamp> invalidated) noexcept;
  recovery_scope(const recovery_scope&) = delete;
  recovery_scope& operator=(const recovery_scope&) = delete;
  ~recovery_scope();

  /// Why the kept response was refused; empty if it was not.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  /// Whether the client may have the response.
  [[nodiscard]] bool admits(const point_value& value, timestamp as_of);
  /// Of this thread; null outside of a recovery.
  [[nodiscard]] static recovery_scope* current() noexcept;

 private:
  const route& rules_;
  const request_facts& request_;
  timestamp now_;
  std::optional<timestamp> invalidated_;
  std::string refusal_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
