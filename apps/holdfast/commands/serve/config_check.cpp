#include "commands/serve/config_check.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>

#include "net/tls.hpp"
#include "serve/gateway/gateway_part.hpp"
#include "serve/gateway/route_runtime.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

namespace config = detail::serve::config;

std::string counted(std::size_t count, const std::string& one, const std::string& several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

/// Adds a problem with the line of its key.
void add_problem(std::vector<config::problem>& problems, const config::server_config& config,
                 const std::string& key, const std::string& text) {
  const auto value = std::ranges::find(config.effective, key, &config::effective_value::key);
  problems.push_back({.line = value == config.effective.end() ? 0 : value->line, .text = text});
}

/// Reads the files of one section.
void check_files(const config::server_config& config, const detail::net::tls_server_options& files,
                 std::vector<config::problem>& problems) {
  if (files.certificate.empty()) return;
  try {
    (void)detail::net::tls_server_context(files);
  } catch (const error& failure) {
    add_problem(problems, config, failure.path(), failure.what());
  }
}

void check_upstreams(const config::server_config& config, std::vector<config::problem>& problems) {
  for (const auto& route : config.gateway->routes) {
    const auto key = "gateway.routes." + route.name + ".upstream";
    for (const auto& url : route.upstreams) {
      try {
        (void)detail::serve::gateway::parse_upstream(url);
      } catch (const error& failure) {
        add_problem(problems, config, key, key + ": " + failure.message());
      }
    }
  }
}

}  // namespace

std::string check_references(const config::server_config& config) {
  std::vector<config::problem> problems;
  check_files(config, config.tls, problems);
  if (config.gateway) {
    check_files(config, config.gateway->tls, problems);
    check_upstreams(config, problems);
  }
  if (!problems.empty()) detail::failover::config::throw_problems(config.file, std::move(problems));
  // A file of the right form can name a database that this program has no driver for.
  for (const auto& service : config.stores) (void)holdfast::open(service.database.url);
  for (const auto& service : config.outboxes) (void)holdfast::open(service.database.url);
  if (config.sequences) (void)holdfast::open(config.sequences->database.url);
  return counted(config.stores.size(), "store", "stores") + ", " +
         counted(config.outboxes.size(), "outbox", "outboxes") + ", " +
         (config.sequences ? "sequences" : "no sequences");
}

}  // namespace holdfast::cli
