#include "base/local_host.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

/// The longest address in text form, `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`, fits with its
/// NUL.
using address_text = std::array<char, INET6_ADDRSTRLEN>;

bool is_loopback_name(std::string_view host) noexcept {
  constexpr std::string_view name = "localhost";
  return host.size() == name.size() &&
         std::equal(host.begin(), host.end(), name.begin(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

}  // namespace

bool is_local_host(std::string_view host) noexcept {
  if (host.empty() || host.front() == '/' || host.front() == '@' || is_loopback_name(host))
    return true;
  address_text text{};
  if (host.size() >= text.size() || host.find('\0') != std::string_view::npos) return false;
  std::memcpy(text.data(), host.data(), host.size());
  in_addr four{};
  if (inet_pton(AF_INET, text.data(), &four) == 1)
    return (ntohl(four.s_addr) >> 24U) == IN_LOOPBACKNET;
  in6_addr six{};
  if (inet_pton(AF_INET6, text.data(), &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) ||
         (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == IN_LOOPBACKNET);
}

}  // namespace HOLDFAST_NAMESPACE::detail
