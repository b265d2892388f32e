#include "serve/auth/identity_part.hpp"

#include <holdfast/error.hpp>

#include "serve/api/audit_endpoints.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/services.hpp"
#include "serve/api/session_endpoints.hpp"
#include "serve/api/token_endpoints.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A user in several lists has the role with the most rights.
std::optional<trusted_proxy> proxy_of(const config::trust_config& trust) {
  if (trust.header.empty()) return std::nullopt;
  trusted_proxy proxy{.field = trust.header, .addresses = trust.addresses};
  for (const auto& user : trust.viewers) proxy.roles[user] = role::viewer;
  for (const auto& user : trust.operators) proxy.roles[user] = role::operator_;
  for (const auto& user : trust.admins) proxy.roles[user] = role::admin;
  return proxy;
}

class identity_part final : public server_part {
 public:
  identity_part(const config::server_config& config, show_credentials show)
      : show_(std::move(show)),
        open_(config.open),
        https_(!config.tls.certificate.empty()),
        has_proxy_(!config.trust.header.empty()),
        clients_(config.clients),
        add_command_("holdfast serve token add" + config::state_arguments(config)) {
    options_.state_url = config.state;
    options_.rules = {.https = https_, .open = open_, .proxy = proxy_of(config.trust)};
  }

  void attach(services& shared) override {
    options_.clock = shared.clock;
    options_.log = shared.log;
    options_.metrics = shared.metrics;
    auth_ = std::make_unique<serve::identity>(std::move(options_));
    auth_->set_clients(clients_);
    shared.auth = auth_.get();
    shared.audit = &auth_->audit();
  }
  void add_endpoints(endpoint_table& table, services& shared) override {
    // Every part is attached by now.
    auth_->audit().publish_to(shared.events);
    add_session_endpoints(table, shared);
    add_token_endpoints(table, shared);
    add_audit_endpoints(table, shared);
    log_ = shared.log;
    table_ = &table;
  }
  authenticator* identity() override { return &auth_->requests(); }
  std::optional<bool> has_token() override {
    if (!auth_->tokens().is_loaded()) return std::nullopt;
    // A proxy and certificates identify callers, too.
    return has_proxy_ || !clients_.empty() || auth_->tokens().has_usable(auth_->clock().now());
  }
  void start(const std::vector<std::string>& addresses) override {
    if (open_ || has_token() != false) return;
    const bool local = std::ranges::all_of(addresses, config::is_local_address);
    if (local && show_) offer_credentials(addresses);
    else if (log_)
      log_({.level = log_level::warning,
            .message = "there is no token yet, so that no client is admitted; run: " +
                       add_command_ + " --role admin"});
  }
  std::optional<std::string> problem() override {
    // Known tokens stay in use while the database fails.
    if (open_ || auth_->tokens().is_loaded()) return std::nullopt;
    return "state";
  }
  void reload(const config::server_config& fresh) override {
    clients_ = fresh.clients;
    auth_->set_clients(clients_);
    auth_->reload();
  }
  std::vector<std::string> finish(std::chrono::steady_clock::time_point /*deadline*/) override {
    if (auth_->finish()) return {};
    return {"entries of the audit log"};
  }

 private:
  void offer_credentials(const std::vector<std::string>& addresses) {
    const auto tcp = std::ranges::find_if_not(
        addresses, [](const std::string& address) { return address.starts_with('/'); });
    // The link is for the console.
    const bool has_console = std::ranges::any_of(
        table_->rows(), [](const endpoint& row) { return row.path == "/" && row.method == "GET"; });
    std::string base_url;
    if (tcp != addresses.end() && has_console) base_url = (https_ ? "https://" : "http://") + *tcp;
    try {
      auto credentials = auth_->create_first_credentials(base_url);
      if (!credentials) return;
      credentials->add_command = add_command_;
      show_(*credentials);
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // The state database failed, which was logged: the server starts without tokens.
    }
  }

  const show_credentials show_;
  const bool open_;
  const bool https_;
  const bool has_proxy_;
  std::vector<certificate_client> clients_;
  const std::string add_command_;
  identity_options options_{};
  log_sink log_{};
  const endpoint_table* table_ = nullptr;
  std::unique_ptr<serve::identity> auth_{};
};

}  // namespace

std::unique_ptr<server_part> make_identity_part(const config::server_config& config,
                                                show_credentials show) {
  return std::make_unique<identity_part>(config, std::move(show));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
