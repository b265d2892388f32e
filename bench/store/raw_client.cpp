#include "bench/store/raw_client.hpp"

#include <holdfast/error.hpp>

#include <cstdlib>

namespace holdfast::bench {

std::string raw_client_settings::parameter(std::string_view name) const {
  const auto position = parts.parameters.find(name);
  return position == parts.parameters.end() ? std::string() : position->second;
}

raw_client_settings read_settings(const std::string& url) {
  raw_client_settings settings{.url_text = url, .parts = detail::parse_url(url), .password = {}};
  if (settings.parts.password) {
    settings.password = *settings.parts.password;
  } else if (const char* variable = std::getenv("HOLDFAST_PASSWORD"); variable != nullptr) {
    settings.password = variable;
  }
  return settings;
}

std::unique_ptr<raw_client> connect_raw_client(const raw_client_settings& settings) {
  const std::string& scheme = settings.parts.scheme;
#if HOLDFAST_HAS_SQLITE
  if (scheme == "sqlite") return connect_sqlite(settings);
#endif
#if HOLDFAST_HAS_POSTGRES
  if (scheme == "postgresql" || scheme == "postgres") return connect_postgres(settings);
#endif
#if HOLDFAST_HAS_MYSQL
  if (scheme == "mysql" || scheme == "mariadb") return connect_mysql(settings);
#endif
  throw error(errc::invalid_argument, "'" + scheme +
                                          ":' has no client library to compare with; give sqlite:, "
                                          "postgresql://, mysql://, h2:// or odbc:");
}

}  // namespace holdfast::bench
