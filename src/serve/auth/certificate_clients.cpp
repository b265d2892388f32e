#include "serve/auth/certificate_clients.hpp"

#include <holdfast/error.hpp>

#include "base/hex.hpp"
#include "http/syntax.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view fingerprint_kind = "sha256:";
constexpr std::size_t fingerprint_digits = 64;
constexpr std::array<std::string_view, 4> name_kinds{"dns:", "uri:", "email:", "cn:"};

std::string fingerprint_text(std::string_view digits) {
  std::string text(fingerprint_kind);
  for (const char c : digits) {
    if (hex_digit(c) >= 0) text.push_back(http::to_lower(c));
    else if (c != ':')
      throw error(errc::invalid_argument, "a fingerprint has hexadecimal digits and colons only");
  }
  if (text.size() != fingerprint_kind.size() + fingerprint_digits)
    throw error(errc::invalid_argument,
                "a fingerprint has 64 hexadecimal digits; openssl x509 -noout -fingerprint -sha256 "
                "-in FILE prints it");
  return text;
}

}  // namespace

std::string certificate_text(std::string_view text) {
  if (text.starts_with(fingerprint_kind))
    return fingerprint_text(text.substr(fingerprint_kind.size()));
  const auto kind = std::ranges::find_if(
      name_kinds, [&](std::string_view candidate) { return text.starts_with(candidate); });
  if (kind == name_kinds.end() || text.size() == kind->size())
    throw error(errc::invalid_argument,
                "must be dns:, uri:, email: or cn: and a name of the certificate, or sha256: and "
                "its fingerprint");
  std::string result(text);
  if (*kind == "dns:") std::ranges::transform(result, result.begin(), http::to_lower);
  return result;
}

std::vector<const certificate_client*> clients_of(const std::vector<certificate_client>& clients,
                                                  const net::peer_certificate& certificate) {
  const auto matches = [&](const std::string& text) {
    return text == certificate.fingerprint ||
           std::ranges::find(certificate.names, text) != certificate.names.end();
  };
  std::vector<const certificate_client*> result;
  for (const auto& client : clients) {
    if (std::ranges::any_of(client.certificates, matches)) result.push_back(&client);
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
