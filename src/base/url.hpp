#pragma once

#include <holdfast/version.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// `scheme://user:password@host:port/path?name=value`, percent-decoded.
struct url {
  std::string scheme;
  bool has_authority = false;  ///< whether `//` follows the scheme; then the path is absolute
  std::optional<std::string> user{};
  std::optional<std::string> password{};
  std::string host{};
  std::optional<unsigned> port{};
  std::string path{};  ///< without its leading slash
  std::map<std::string, std::string, std::less<>> parameters{};
};

/// Throws errc::invalid_argument; the message never contains the password.
[[nodiscard]] HOLDFAST_API url parse_url(std::string_view text);

/// The URL as it may be shown: the password replaced by `***`.
[[nodiscard]] HOLDFAST_API std::string without_password(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE
