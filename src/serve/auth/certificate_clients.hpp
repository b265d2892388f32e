#pragma once

/// \file
/// `[serve.clients]`: programs that identify themselves by the certificate of their connection.

#include <holdfast/version.hpp>

#include "net/tls.hpp"
#include "serve/auth/caller.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A client, and what it may do.
struct certificate_client {
  /// Callers and the audit log have it as `client:billing`.
  std::string name{};
  /// One of them must match, as `certificate_text` returns them.
  std::vector<std::string> certificates{};
  serve::role role = serve::role::application;
  /// Of an application. Empty: all.
  std::vector<std::string> scopes{};
  /// The only tenant that it sees. Empty: all.
  std::string tenant{};
};

/// Returns `dns:`, `uri:`, `email:` or `cn:` and a name, or `sha256:` and a fingerprint, in the
/// form of net::peer_certificate: `sha256:AB:CD...` loses its colons. Throws errc::invalid_argument
/// for any other text.
[[nodiscard]] std::string certificate_text(std::string_view text);

/// Returns the clients that a certificate belongs to, in their order. More than one: the
/// configuration is ambiguous.
[[nodiscard]] std::vector<const certificate_client*> clients_of(
    const std::vector<certificate_client>& clients, const net::peer_certificate& certificate);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
