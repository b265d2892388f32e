#pragma once

#include "http/fields.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// Returns the value of a cookie of a request (RFC 6265, section 5.4). Returns nothing if it is not
/// there, has a character that a cookie cannot have, or occurs twice: another program could have
/// set the second one, and its order says nothing.
[[nodiscard]] std::optional<std::string_view> find_cookie(const fields& request,
                                                          std::string_view name) noexcept;

/// A cookie for Set-Cookie. The defaults are those of a session.
struct cookie {
  enum class same_site : std::uint8_t { strict, lax, none };
  std::string name{};
  std::string value{};
  std::string path = "/";
  /// Empty: the cookie ends with the session of the browser. 0 deletes it.
  std::optional<std::chrono::seconds> max_age{};
  bool secure = true;
  bool http_only = true;
  same_site site = same_site::strict;
};

/// The value of Set-Cookie. Throws errc::invalid_argument if the name, value or path has a
/// character that is not allowed, or a name with the prefix `__Host-` or `__Secure-` lacks what
/// browsers require for it.
[[nodiscard]] std::string to_field(const cookie& value);

}  // namespace HOLDFAST_NAMESPACE::detail::http
