#include "serve/gateway/gateway_part.hpp"

#include <holdfast/error.hpp>

#include "net/tls.hpp"
#include "serve/certificate_metrics.hpp"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

constexpr std::size_t most_loops_of_gateway = 4;

std::shared_ptr<const net::tls_server_context> make_client_tls(
    const config::gateway_config& settings, metrics_sink* metrics) {
  if (settings.tls.certificate.empty()) return nullptr;
  auto context = std::make_shared<const net::tls_server_context>(settings.tls);
  if (metrics != nullptr) show_certificate(*metrics, "gateway", *context);
  return context;
}

class gateway_part final : public server_part {
 public:
  gateway_part(config::server_config config,
               std::function<void(const std::vector<std::string>&)> listening)
      : config_(std::move(config)), listening_(std::move(listening)) {}

  /// The points must exist before the API makes points of its own for the same names.
  void attach(services& shared) override {
    metrics_ = shared.metrics;
    const auto& file = settings().access_log;
    if (!file.empty()) access_ = std::make_unique<access_log>(file, shared.clock);
    gateway_ = std::make_unique<gateway_server>(options_for(config_, shared, access_.get()));
  }
  void start(const std::vector<std::string>& /*addresses*/) override {
    gateway_->start();
    if (listening_) listening_(gateway_->addresses());
  }
  void prepare_reload(const config::server_config& fresh) override {
    if (!fresh.gateway)
      throw error(errc::invalid_argument,
                  "the file has no routes any more; to end the gateway, restart the server");
    for (const auto& added : fresh.gateway->routes) check_added(added, fresh);
    prepared_tls_ = make_client_tls(settings(), metrics_.get());
    prepared_routes_ = gateway_->prepare_routes(fresh.gateway->routes);
  }
  void reload(const config::server_config& fresh) override {
    if (access_) access_->reopen();
    if (prepared_tls_) gateway_->set_tls(std::exchange(prepared_tls_, nullptr));
    gateway_->set_routes(std::exchange(prepared_routes_, nullptr));
    if (config_.gateway && fresh.gateway) config_.gateway->routes = fresh.gateway->routes;
  }
  void drain() noexcept override {
    if (gateway_) gateway_->begin_drain();
  }
  std::vector<std::string> finish(std::chrono::steady_clock::time_point deadline) override {
    return gateway_ ? gateway_->stop(deadline) : std::vector<std::string>{};
  }

 private:
  [[nodiscard]] const config::gateway_config& settings() const {
    if (!config_.gateway) throw error(errc::internal, "the configuration has no gateway");
    return *config_.gateway;
  }
  /// The engine reads the options of points once, so that those of a new route would not count.
  void check_added(const route& added, const config::server_config& fresh) const {
    const auto& routes = settings().routes;
    if (std::ranges::find(routes, added.name, &route::name) != routes.end()) return;
    const auto prefix = "failover.points." + added.name + ".";
    if (std::ranges::any_of(fresh.effective,
                            [&](const auto& value) { return value.key.starts_with(prefix); }))
      throw error(errc::invalid_argument, "gateway.routes." + added.name +
                                              " is new and has options below failover.points." +
                                              added.name + "; to add it, restart the server");
  }

  config::server_config config_;
  std::function<void(const std::vector<std::string>&)> listening_;
  std::shared_ptr<metrics_sink> metrics_{};
  std::unique_ptr<access_log> access_{};
  std::unique_ptr<gateway_server> gateway_{};
  std::shared_ptr<const net::tls_server_context> prepared_tls_{};
  std::shared_ptr<gateway_runtime> prepared_routes_{};
};

}  // namespace

gateway_options options_for(const config::server_config& config, const services& shared,
                            access_log* access) {
  if (!config.gateway || shared.stores.empty() || !shared.engine)
    throw error(errc::invalid_argument, "the gateway keeps answers in the first store");
  const auto& settings = *config.gateway;
  const auto& store = shared.stores.front();
  const bool has_bytes =
      store.options.payload == payload_column::bytes || store.url.starts_with("memory:");
  const auto processors = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  return {.listen = settings.listen,
          .tls = make_client_tls(settings, shared.metrics.get()),
          .loops = config.loops != 0 ? config.loops : std::min(most_loops_of_gateway, processors),
          .connections = settings.connections,
          .connections_per_address = settings.connections_per_address,
          .max_body = settings.max_body,
          .head_timeout = config.head_timeout,
          .idle_timeout = config.idle_timeout,
          .runtime = {.routes = settings.routes,
                      .engine = shared.engine,
                      .decisions = shared.decisions,
                      .clock = shared.clock,
                      .log = shared.log,
                      .metrics = shared.metrics,
                      .access = access,
                      .secret = settings.secret,
                      .form = has_bytes ? payload_form::bytes : payload_form::text,
                      .queue_never_waits = config.queue_never_waits,
                      .workers = settings.workers,
                      .queue = settings.queue,
                      .upstream_tls = {.ca = settings.upstream_ca},
                      .trusted_proxies = settings.trusted_proxies}};
}

std::unique_ptr<server_part> make_gateway_part(
    const config::server_config& config,
    std::function<void(const std::vector<std::string>&)> listening) {
  if (!config.gateway) return nullptr;
  // The plan is for the one that opens the stores: it can be used only once.
  config::server_config copy{.loops = config.loops,
                             .head_timeout = config.head_timeout,
                             .idle_timeout = config.idle_timeout,
                             .gateway = config.gateway,
                             .queue_never_waits = config.queue_never_waits};
  return std::make_unique<gateway_part>(std::move(copy), std::move(listening));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
