#pragma once

/// \file
/// The URL of a database, parsed.

#include <holdfast/version.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

struct url_host {
  std::string name;  ///< an IPv6 address without its brackets
  std::optional<unsigned> port{};
};

/// `scheme://user:password@host:port/path?name=value`, percent-decoded.
struct url {
  std::string scheme;
  /// True if `//` follows the scheme; then the path is absolute.
  bool has_authority = false;
  std::optional<std::string> user{};
  std::optional<std::string> password{};
  std::string host{};              ///< the name of the first host
  std::optional<unsigned> port{};  ///< of the first host
  /// Empty if the URL names no host.
  std::vector<url_host> hosts{};
  std::string path{};  ///< without its leading slash
  std::map<std::string, std::string, std::less<>> parameters{};
};

/// Throws errc::invalid_argument, also for a URL with several hosts. The message never contains the
/// password.
[[nodiscard]] HOLDFAST_API url parse_url(std::string_view text);

/// As parse_url, but takes several hosts: `scheme://host1:port1,host2:port2/path`.
[[nodiscard]] HOLDFAST_API url parse_url_of_hosts(std::string_view text);

/// Returns the URL to open. Unless `create` is set, an SQLite file must exist: a mistyped path must
/// not create an empty file.
[[nodiscard]] HOLDFAST_API std::string url_to_open(std::string url, bool create);

struct text_range {
  std::size_t begin;
  std::size_t end;  ///< one past the last character
};

/// Where passwords stand in a URL, an ODBC connection string, or a message with one of them, in
/// order: `scheme://user:password@`, and parameters whose names end with pwd, password, passphrase,
/// secret or token, also percent-encoded. Rather finds too much.
[[nodiscard]] HOLDFAST_API std::vector<text_range> passwords_in(std::string_view text);

/// The text with `***` for each password.
[[nodiscard]] HOLDFAST_API std::string without_password(std::string_view text);

/// The text with `***` for each password and for what may be a key: 32 and more hexadecimal digits,
/// and padded Base64 of 16 and more bytes. For messages that repeat an argument.
[[nodiscard]] HOLDFAST_API std::string without_secrets(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail
