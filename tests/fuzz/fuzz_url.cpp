// Reads arbitrary text as the URL of a database, of a Redis and of its nodes. Does not connect.

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "net/address.hpp"
#include "redis/settings.hpp"
#include "sql/connect.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace holdfast;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class F>
void survive(F call) {
  try {
    call();
  } catch (const error& refused) {
    require(!refused.message().empty());
  }
}

constexpr std::string_view secret = "hunter2hunter2";

/// The password of a URL must not appear in a message or in the URL that is shown.
void require_hidden(std::string_view rest) {
  if (rest.find(secret) != std::string_view::npos) return;
  for (const std::string_view scheme :
       {"postgresql", "mysql", "h2", "redis", "rediss", "redis+cluster", "https"}) {
    const std::string text =
        std::string(scheme) + "://user:" + std::string(secret) + "@host" + std::string(rest);
    try {
      const auto parsed = detail::parse_url_of_hosts(text);
      require(parsed.password.has_value());
      if (parsed.password == secret)
        require(detail::without_password(text).find(secret) == std::string::npos);
      if (scheme.starts_with("redis")) (void)detail::redis::read_settings(text, {});
      else (void)detail::sql::connector(text, {});
    } catch (const error& refused) {
      require(std::string_view(refused.what()).find(secret) == std::string_view::npos);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  survive([&] {
    const auto parsed = detail::parse_url_of_hosts(text);
    require(parsed.path.find('\0') == std::string::npos);
    require(parsed.hosts.empty() ? parsed.host.empty() : parsed.host == parsed.hosts.front().name);
    for (const auto& host : parsed.hosts) {
      require(!host.port || (*host.port > 0 && *host.port < 65536));
      require(host.name.find('\0') == std::string::npos);
      require(parsed.hosts.size() == 1 || !host.name.empty());
    }
  });
  (void)detail::without_password(text);
  survive([&] { (void)detail::redis::read_settings(text, {}); });
  survive([&] { (void)detail::sql::connector(text, {}); });
  for (const std::string_view scheme : {"sqlite:", "postgresql://", "mysql://", "h2://", "odbc:"})
    survive([&] { (void)detail::sql::connector(std::string(scheme) + std::string(text), {}); });
  if (const auto address = detail::net::parse_address(text, "same")) {
    require(detail::net::is_socket_path(*address) || detail::net::port_of(*address) != 0);
    require(!detail::net::host_of(*address).empty());
  }
  // Without an @, which would extend the password.
  require_hidden("/" + std::string(text.substr(0, text.find('@'))));
  return 0;
}
