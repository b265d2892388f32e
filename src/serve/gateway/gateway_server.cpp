#include "serve/gateway/gateway_server.hpp"

#include "net/tls.hpp"
#include "serve/gateway/gateway_call.hpp"
#include "serve/gateway/gateway_loop.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

/// Java's client offers to change to HTTP/2 in each of its first requests. Such an offer may be
/// ignored; other protocols cannot pass.
bool upgrades(const http::fields& request) {
  bool other = false;
  request.for_each("upgrade", [&](std::string_view value) {
    http::for_each_element(value, [&](std::string_view protocol) {
      if (!http::equals_ignoring_case(protocol, "h2c")) other = true;
    });
  });
  return other;
}

/// How many gateways a request may pass. One that leads to itself would take all descriptors.
constexpr int most_gateways = 10;

bool runs_in_circles(const http::fields& request) {
  int passed = 0;
  request.for_each("via", [&](std::string_view value) {
    http::for_each_element(value, [&](std::string_view hop) {
      if (hop.ends_with(" holdfast")) ++passed;
    });
  });
  return passed >= most_gateways;
}

struct refusal {
  int status;
  const char* reason;
};

/// Why a request is not forwarded, whatever its route is; status 0: it is.
refusal refusal_for(const server_request& request) {
  if (request.absolute_target)
    return {400, "this gateway is not a proxy for other hosts; send the path only"};
  if (request.method == "TRACE" || request.method == "CONNECT")
    return {501, "the gateway does not forward this method"};
  if (runs_in_circles(request.fields))
    return {508, "the request came back to this gateway; check its upstreams"};
  if (upgrades(request.fields)) return {501, "the gateway does not forward this protocol"};
  return {0, ""};
}

}  // namespace

gateway_server::gateway_server(gateway_options options)
    : options_(std::move(options)),
      runtime_(std::make_shared<gateway_runtime>(std::move(options_.runtime))) {}

gateway_server::~gateway_server() {
  if (transport_) (void)stop(net::steady::now());
}

void gateway_server::start() {
  server_options transport{.listen = options_.listen,
                           .tls = options_.tls.get(),
                           .limits = {.body = options_.max_body},
                           .loops = options_.loops,
                           .head_timeout = options_.head_timeout,
                           .idle_timeout = options_.idle_timeout,
                           .max_connections = options_.connections,
                           .max_connections_per_address = options_.connections_per_address,
                           .max_waiting = options_.connections,
                           .make_context =
                               [runtime = runtime_](std::shared_ptr<net::event_loop> loop) {
                                 return std::make_unique<gateway_loop>(std::move(loop), runtime);
                               },
                           .on_failure =
                               [log = runtime_->options().log](std::string_view message) {
                                 logger(log).write(log_level::error, message, {});
                               }};
  transport_ = std::make_unique<http_server>(
      std::move(transport), [this](const server_request& request, responder answer) {
        handle(request, std::move(answer));
      });
}

void gateway_server::handle(const server_request& request, responder answer) {
  const auto refused = refusal_for(request);
  auto& loop = *static_cast<gateway_loop*>(request.context);
  auto& runtime = *loop.routes()->runtime();
  auto* const target =
      refused.status != 0 ? nullptr : runtime.find(request.host, request.target.path());
  if (target == nullptr) {
    const int status = refused.status != 0 ? refused.status : 404;
    runtime.record_refusal(request, status);
    answer.answer(problem_response(
        status, refused.status != 0 ? refused.reason : "no route of the gateway takes this path"));
    return;
  }
  std::make_shared<gateway_call>(loop, *target, request, std::move(answer))->start();
}

std::vector<std::string> gateway_server::addresses() const {
  return transport_ ? transport_->addresses() : std::vector<std::string>{};
}

server_counts gateway_server::counts() const noexcept {
  return transport_ ? transport_->counts() : server_counts{};
}

void gateway_server::set_tls(std::shared_ptr<const net::tls_server_context> context) {
  if (transport_) transport_->set_tls(std::move(context));
}

std::shared_ptr<gateway_runtime> gateway_server::prepare_routes(std::vector<route> routes) const {
  auto options = runtime_->options();
  options.routes = std::move(routes);
  return std::make_shared<gateway_runtime>(std::move(options), runtime_.get());
}

void gateway_server::set_routes(std::shared_ptr<gateway_runtime> prepared) {
  runtime_ = std::move(prepared);
  if (!transport_) return;
  transport_->call_contexts([runtime = runtime_](loop_context& context) {
    static_cast<gateway_loop&>(context).set_routes(runtime);
  });
}

void gateway_server::begin_drain() noexcept {
  if (transport_) transport_->begin_drain();
}

std::vector<std::string> gateway_server::stop(net::steady::time_point deadline) {
  std::vector<std::string> remaining;
  const auto add_count = [&](std::size_t count, const char* noun) {
    if (count > 0) remaining.push_back(std::to_string(count) + " " + noun);
  };
  if (transport_) {
    const auto grace =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - net::steady::now());
    add_count(transport_->stop(std::max(grace, std::chrono::milliseconds(0))),
              "clients of the gateway without their answer");
  }
  const auto report = runtime_->workers().close(
      std::max(deadline, net::steady::now() + std::chrono::milliseconds(50)));
  add_count(report.dropped + report.still_running,
            "requests of the gateway that wait for the store");
  return remaining;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
