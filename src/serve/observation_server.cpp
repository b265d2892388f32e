#include "serve/observation_server.hpp"

#include <holdfast/error.hpp>

#include "serve/api/health_answers.hpp"
#include "serve/api/host_names.hpp"
#include "serve/config/server_config.hpp"
#include "serve/http_server.hpp"
#include "serve/readiness_metrics.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A few monitors, each with a connection or two.
constexpr std::size_t most_observers = 64;
/// The process ends; a check that takes longer waits for a database that does not answer.
constexpr std::chrono::milliseconds time_for_checks{100};

server_response refuse_method() {
  auto refusal = problem_response(405, "this path has the methods GET, HEAD");
  refusal.fields.add("Allow", "GET, HEAD");
  return refusal;
}

/// A thread of the checks still uses them.
void abandon(std::unique_ptr<readiness> checks) {
  // Never destroyed, also not at the end of the process.
  static auto* const abandoned = new std::vector<std::unique_ptr<readiness>>;
  abandoned->push_back(std::move(checks));
}

}  // namespace

struct observation_server::state {
  std::unique_ptr<readiness> ready = std::make_unique<readiness>();
  std::shared_ptr<prometheus_registry> metrics{};
  std::unique_ptr<readiness_metrics> readiness_gauges{};
  /// Empty: other machines may use any name of this one.
  std::optional<host_names> hosts{};
  std::unique_ptr<http_server> transport{};

  [[nodiscard]] server_response answer(const server_request& request) const;
};

server_response observation_server::state::answer(const server_request& request) const {
  if (hosts && !hosts->admits(request.host, request.peer))
    return problem_response(421, "this process does not answer for this Host; use its address");
  if (request.method != "GET" && request.method != "HEAD") return refuse_method();
  const auto path = request.target.path();
  // This is the only loop, and it reacts.
  if (path == "/healthz") return liveness_answer(0);
  if (path == "/readyz") return readiness_answer(ready->missing());
  if (path == "/metrics") {
    readiness_gauges->update(ready->missing());
    return metrics_answer(metrics->text());
  }
  return problem_response(404, "there is no such path; use /healthz, /readyz or /metrics");
}

void check_observation_address(const std::string& listen, bool allow_plain) {
  if (allow_plain || config::is_local_address(config::socket_address(listen))) return;
  throw error(errc::invalid_argument,
              "'" + listen +
                  "' is not an address of this machine only, and no token protects the metrics; "
                  "use 127.0.0.1:9100 or unix:/path, or add --allow-plain");
}

observation_server::observation_server(observation_options options)
    : state_(std::make_unique<state>()) {
  check_observation_address(options.listen, options.allow_plain);
  const auto address = config::socket_address(options.listen);
  state_->metrics = std::move(options.metrics);
  state_->readiness_gauges = std::make_unique<readiness_metrics>(state_->metrics);
  if (config::is_local_address(address))
    state_->hosts.emplace(std::vector{address}, std::vector<std::string>{});
  state_->transport = std::make_unique<http_server>(
      server_options{.listen = {address},
                     .limits = {.body = 0},
                     .max_connections = most_observers,
                     .max_waiting = most_observers},
      [target = state_.get()](const server_request& request, responder client) {
        client.answer(target->answer(request));
      });
  state_->ready->start(std::move(options.checks));
}

observation_server::~observation_server() {
  // The handlers use the checks.
  state_->transport.reset();
  const bool ended = state_->ready->stop(std::chrono::steady_clock::now() + time_for_checks);
  if (!ended) abandon(std::move(state_->ready));
}

std::string observation_server::address() const {
  const auto& address = state_->transport->addresses().front();
  return (address.starts_with('/') ? "unix:" : "http://") + address;
}

void observation_server::begin_drain() noexcept { state_->ready->begin_drain(); }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
