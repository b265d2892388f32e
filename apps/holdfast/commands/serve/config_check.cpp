#include "commands/serve/config_check.hpp"

#include <holdfast/database.hpp>

#include "net/tls.hpp"
#include "serve/gateway/gateway_part.hpp"
#include "serve/gateway/route_runtime.hpp"

namespace holdfast::cli {

std::string check_references(const detail::serve::config::server_config& config) {
  // Reads the files.
  if (!config.tls.certificate.empty()) (void)detail::net::tls_server_context(config.tls);
  // Checks the URLs, without connecting.
  for (const auto& service : config.stores) (void)holdfast::open(service.database.url);
  for (const auto& service : config.outboxes) (void)holdfast::open(service.database.url);
  if (config.sequences) (void)holdfast::open(config.sequences->database.url);
  if (config.gateway) {
    if (!config.gateway->tls.certificate.empty())
      (void)detail::net::tls_server_context(config.gateway->tls);
    for (const auto& route : config.gateway->routes) {
      for (const auto& url : route.upstreams) (void)detail::serve::gateway::parse_upstream(url);
    }
  }
  return std::to_string(config.stores.size()) + " stores, " +
         std::to_string(config.outboxes.size()) + " outboxes, " +
         (config.sequences ? "sequences" : "no sequences");
}

}  // namespace holdfast::cli
