#pragma once

/// \file
/// From which page a browser sends a request. Browsers add cookies, and proxies add the user, also
/// to requests that a foreign page makes (CSRF).

#include <holdfast/version.hpp>

#include "serve/http_server.hpp"

#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::serve {

enum class request_origin : std::uint8_t {
  own,         ///< a page of this server
  foreign,     ///< a page of another origin; another port of this machine is foreign, too
  navigation,  ///< a link or a typed address: the user goes to a page
  unknown      ///< not a browser, or an old one
};

/// Reads Sec-Fetch-Site, or else Origin, which must have the host that the request was sent to.
/// `https`: the server has TLS. Without it, a proxy may have it, so both schemes are its own.
[[nodiscard]] request_origin origin_of(const server_request& request, bool https);

/// GET, HEAD and OPTIONS change nothing.
[[nodiscard]] bool is_safe_method(std::string_view method) noexcept;

/// Why a request with a cookie, or with the user of a proxy, is refused; empty if it is admitted.
/// A method that changes something needs the origin `own`, and a content needs `Content-Type:
/// application/json`, which no form of another page can have.
[[nodiscard]] std::string_view cross_site_problem(const server_request& request, bool https);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
