// Any text, read as the URL of a database, of a Redis and of its nodes. Nothing connects.

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "redis/address.hpp"
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

/// A password that a URL has in its place is in no message, and not in the URL that is shown.
void require_hidden(std::string_view rest) {
  if (rest.find(secret) != std::string_view::npos) return;
  for (const std::string_view scheme : {"postgresql", "mysql", "h2", "redis", "rediss", "redis+cluster", "https"}) {
    const std::string text = std::string(scheme) + "://user:" + std::string(secret) + "@host" + std::string(rest);
    try {
      const auto parsed = parse_url(text);
      require(parsed.password.has_value());
      if (parsed.password == secret) require(without_password(text).find(secret) == std::string::npos);
      if (scheme.starts_with("redis")) (void)redis::read_settings(text, {});
      else (void)sql::connector(text, {});
    } catch (const error& refused) {
      require(std::string_view(refused.what()).find(secret) == std::string_view::npos);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  survive([&] {
    const auto parsed = parse_url(text);
    require(!parsed.port || (*parsed.port > 0 && *parsed.port < 65536));
    require(parsed.host.find('\0') == std::string::npos && parsed.path.find('\0') == std::string::npos);
  });
  (void)without_password(text);
  survive([&] { (void)redis::read_settings(text, {}); });
  survive([&] { (void)sql::connector(text, {}); });
  for (const std::string_view scheme : {"sqlite:", "postgresql://", "mysql://", "h2://", "odbc:"})
    survive([&] { (void)sql::connector(std::string(scheme) + std::string(text), {}); });
  if (const auto address = redis::read_address(text, "same")) {
    require(redis::is_socket_path(*address) || redis::port_of(*address) != 0);
    require(!redis::host_of(*address).empty());
  }
  // Up to where the host would end: an @ there moves the password's end.
  require_hidden("/" + std::string(text.substr(0, text.find('@'))));
  return 0;
}
