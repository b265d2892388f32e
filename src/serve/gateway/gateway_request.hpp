#pragma once

#include <holdfast/version.hpp>

#include "serve/gateway/answer_builder.hpp"
#include "serve/gateway/keep_rules.hpp"
#include "serve/gateway/request_conditions.hpp"
#include "serve/gateway/route_runtime.hpp"
#include "serve/http_server.hpp"

#include <chrono>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// What the gateway needs of a request after its handler has returned.
/// Thread-safety: immutable.
struct gateway_request {
  /// Moves the content of `source`.
  gateway_request(const route_runtime& target, const gateway_runtime& runtime,
                  const server_request& source);

  std::string method;
  /// The target that is forwarded.
  std::string target_text;
  /// Of the client, if the route forwards it.
  std::string host;
  /// Address of the client.
  std::string address;
  std::string body;
  /// GET or HEAD.
  bool is_read;
  /// Kept answers stand in for failures.
  bool is_protected;
  /// The fields that are forwarded.
  http::field_block forwarded;
  request_conditions conditions;
  request_facts facts;
  /// Empty if the request is not protected.
  std::string key_text{};
  /// Empty if the route has no `vary`.
  std::string invalidation_key{};
  /// Of a request with an unsafe method; else empty.
  std::string unsafe_host{};
  /// The same, normalised.
  std::string unsafe_target{};

  /// Repeating the request changes nothing.
  [[nodiscard]] bool is_idempotent() const noexcept;
  /// How long the upstream may take.
  [[nodiscard]] std::chrono::microseconds time_limit(const route_runtime& target) const noexcept;
  [[nodiscard]] answer_request as_answered() const {
    return {.method = method, .conditions = conditions, .address = address};
  }
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
