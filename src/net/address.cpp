#include "net/address.hpp"

#include <charconv>

namespace HOLDFAST_NAMESPACE::detail::net {

std::optional<std::string> parse_address(std::string_view text, std::string_view default_host) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto digits = text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failed != std::errc{} || end != digits.data() + digits.size() || port == 0 || port > 65535)
    return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host == "?") host = default_host;
  if (host.empty()) return std::nullopt;
  for (const char c : host) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '/') return std::nullopt;
  }
  return std::string(host) + ':' + std::to_string(port);
}

std::string_view host_of(std::string_view address) noexcept {
  if (is_socket_path(address)) return {};
  return address.substr(0, address.rfind(':'));
}

std::uint16_t port_of(std::string_view address) noexcept {
  const auto colon = address.rfind(':');
  if (is_socket_path(address) || colon == std::string_view::npos) return 0;
  std::uint16_t port = 0;
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  return port;
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
