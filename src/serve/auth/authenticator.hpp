#pragma once

#include <holdfast/version.hpp>

#include "serve/auth/caller.hpp"
#include "serve/http_server.hpp"

#include <variant>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Decides who sends a request.
/// Thread-safety: may be called from any thread.
class authenticator {
 public:
  authenticator() = default;
  authenticator(const authenticator&) = delete;
  authenticator& operator=(const authenticator&) = delete;
  virtual ~authenticator() = default;
  /// Returns the caller, who may be unidentified, or the answer that refuses the request: 401 for
  /// an unknown, expired or revoked token, 403 for a request from a foreign page, 429 for too many.
  /// Called on a loop thread: must not wait.
  [[nodiscard]] virtual std::variant<caller, server_response> identify(
      const server_request& request) = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
