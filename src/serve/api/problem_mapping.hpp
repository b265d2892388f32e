#pragma once

/// \file
/// Exceptions as answers in `application/problem+json`:
///
///     {"type":"urn:holdfast:problem:in_doubt","title":"Service Unavailable","status":503,
///      "detail":"...","instance":"urn:holdfast:request:0c7h2k9m4r1xz","code":"unavailable",
///      "transient":true,"inDoubt":true}

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/caller.hpp"
#include "serve/http_server.hpp"

#include <exception>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// An operation that may have happened is 503: the client repeats it with the same id.
[[nodiscard]] int status_of(const error& failure) noexcept;

/// The message of a backend is shown to operators and admins only: it can contain names of tables,
/// hosts and users. That of a server_refusal is shown to all, with its `reason`.
[[nodiscard]] server_response problem_of(const error& failure, const caller& client,
                                         std::string_view reference);
/// Of any exception. One that is not a holdfast::error is 500, without its message.
[[nodiscard]] server_response problem_of(const std::exception_ptr& failure, const caller& client,
                                         std::string_view reference);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
