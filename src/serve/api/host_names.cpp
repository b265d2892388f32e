#include "serve/api/host_names.hpp"

#include "base/local_host.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A numeric address in its usual form, or nothing.
std::optional<std::string> numeric_host(std::string_view host) {
  const std::string text(host);
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> usual{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, text.c_str(), bytes.data()) == 1 &&
        ::inet_ntop(family, bytes.data(), usual.data(), usual.size()) != nullptr)
      return usual.data();
  }
  return std::nullopt;
}

/// In lower case, without the dot at the end of a fully qualified name.
std::string comparable_host(std::string_view host) {
  if (auto number = numeric_host(host)) return *std::move(number);
  std::string name(host);
  if (name.ends_with('.')) name.pop_back();
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return name;
}

}  // namespace

std::string_view host_part(std::string_view address) noexcept {
  if (address.starts_with('[')) {
    const auto end = address.find(']');
    return end == std::string_view::npos ? std::string_view{} : address.substr(1, end - 1);
  }
  const auto colon = address.find(':');
  // A number of IPv6 without brackets has no port.
  if (colon != std::string_view::npos && address.find(':', colon + 1) == std::string_view::npos)
    return address.substr(0, colon);
  return address;
}

bool is_loopback(std::string_view host) {
  if (host.empty()) return false;
  return host == "unix" || host.starts_with("::ffff:127.") || is_local_host(comparable_host(host));
}

host_names::host_names(const std::vector<std::string>& addresses,
                       const std::vector<std::string>& names) {
  for (const auto& address : addresses) {
    if (address.starts_with('/')) continue;
    auto host = comparable_host(host_part(address));
    if (host == "0.0.0.0" || host == "::") any_number_ = true;
    hosts_.push_back(std::move(host));
  }
  for (const auto& name : names) hosts_.push_back(comparable_host(name));
}

bool host_names::admits(std::string_view host, std::string_view peer) const {
  if (host.empty() || peer == "unix") return true;
  const auto name = comparable_host(host_part(host));
  if (std::ranges::find(hosts_, name) != hosts_.end()) return true;
  return any_number_ && numeric_host(name).has_value();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
